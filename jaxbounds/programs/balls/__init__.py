"""Evaluate JAX programs in ball arithmetic, which `pip install 'jaxbounds[certify]'` installs.

A ball is an interval, given by its midpoint and its radius. `enclose` traces a function and returns
a ball around each entry of its result. `add_rule` adds a rule for a JAX primitive of your own.
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
