"""Certificates and proofs of statements by ball arithmetic (needs the extra `certify`).

`disprove` proves that an instance violates a claim, and returns the proof as a certificate. The
certificate holds balls (intervals around floats) that enclose both sides of the claim. The balls
show that the instance meets all hypotheses and violates the claim by a margin. `enclose` evaluates
any JAX function in ball arithmetic. `witness_of` writes the instance to a file that an independent
program can check.
"""

import jaxbounds.programs.balls  # noqa: F401 - says at once what is missing
from jaxbounds.certification.disproof import disprove
from jaxbounds.certification.failing import Failing, certified, failing_forms, proofs
from jaxbounds.certification.proof import Box, Proof, prove
from jaxbounds.certification.witness import load_witness, save_witness, witness_of
from jaxbounds.programs.balls.certificate import Certificate
from jaxbounds.programs.balls.interpreter import Enclosed, enclose, precision
from jaxbounds.programs.balls.values import Flags, NotSupported, Undecided

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
