"""From evidence to proof: statements evaluated in ball arithmetic (the extra `certify`).

`disprove` turns a violation into a certificate: both sides are enclosed by balls, all hypotheses
are certain, and the claim is violated by a margin. `enclose` is the interpreter underneath, for
any JAX function. `witness_of` writes down an instance so that a program that shares nothing with
this library can check it.
"""

try:
    import flint as _flint  # noqa: F401
except ModuleNotFoundError as problem:
    raise ModuleNotFoundError(
        "certificates need python-flint: pip install 'jaxbounds[certify]'", name="flint"
    ) from problem

from jaxbounds.certification.certificate import Certificate
from jaxbounds.certification.disproof import disprove
from jaxbounds.certification.failing import Failing, certified, failing_forms, proofs
from jaxbounds.certification.interpreter import Enclosed, enclose, precision
from jaxbounds.certification.proof import Box, Proof, prove
from jaxbounds.certification.values import Flags, NotSupported, Undecided
from jaxbounds.certification.witness import load_witness, save_witness, witness_of

__all__ = [
    "Box",
    "Certificate",
    "Enclosed",
    "Failing",
    "Flags",
    "NotSupported",
    "Proof",
    "Undecided",
    "certified",
    "disprove",
    "enclose",
    "failing_forms",
    "load_witness",
    "precision",
    "proofs",
    "prove",
    "save_witness",
    "witness_of",
]
