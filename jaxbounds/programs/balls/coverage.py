"""The coverage of JAX's primitives by rules."""

from typing import NamedTuple

from jaxbounds.ground.jax_internals import known_primitives
from jaxbounds.programs import interpreted
from jaxbounds.programs.balls import interpreter, slopes
from jaxbounds.programs.primitives import PRIMITIVES


class Coverage(NamedTuple):
    """The rules for one primitive.

    Attributes:
        name: the name of the primitive in JAX.
        parameters: whether the table `PRIMITIVES` lists its parameters.
        numpy: whether NumPy runs it; else the compiler does.
        balls: whether ball arithmetic encloses it; else a certificate is refused.
        slopes: whether slopes on boxes are enclosed; else a proof on a box is refused.
        rounds: whether its results are rounded to their type.
    """

    name: str
    parameters: bool
    numpy: bool
    balls: bool
    slopes: bool
    rounds: bool


def coverage() -> tuple[Coverage, ...]:
    """Return a row for each primitive that this version of JAX lists or that the library knows."""
    return tuple(
        Coverage(
            name,
            parameters=name in PRIMITIVES,
            numpy=interpreted.has_rule(name),
            balls=name in interpreter.RULES,
            slopes=slopes.has_rule(name),
            rounds=name not in PRIMITIVES or not PRIMITIVES[name].exact,
        )
        for name in sorted({*known_primitives(), *PRIMITIVES})
    )
