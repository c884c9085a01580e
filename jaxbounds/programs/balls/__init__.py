"""Evaluate JAX programs in ball arithmetic; the extra `certify` installs the arithmetic.

A ball is an interval, given by a midpoint and a radius. `enclose` traces a function and returns,
for each entry of the result, a ball that contains the entry. `enclose` raises `Undecided` if the
balls are too wide to decide a branch or an index of the program, and `NotSupported` if a primitive
has no rule. `add_rule` adds a rule for a primitive of your own.
"""

try:
    import flint as _flint  # noqa: F401
except ModuleNotFoundError as problem:
    raise ModuleNotFoundError(
        "certificates need module='flint'. Try pip install 'jaxbounds[certify]'", name="flint"
    ) from problem

from jaxbounds.programs.balls.added import add_rule
from jaxbounds.programs.balls.boxes import Box
from jaxbounds.programs.balls.certificate import Certificate
from jaxbounds.programs.balls.interpreter import Enclosed, enclose, precision
from jaxbounds.programs.balls.values import Flags, NotSupported, Undecided

__all__ = [
    "Box",
    "Certificate",
    "Enclosed",
    "Flags",
    "NotSupported",
    "Undecided",
    "add_rule",
    "enclose",
    "precision",
]
