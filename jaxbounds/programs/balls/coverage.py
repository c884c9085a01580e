"""List, for each of JAX's primitives, which engines of this library have a rule for it."""

from typing import NamedTuple

from jaxbounds.ground.jax_internals import known_primitives
from jaxbounds.programs import interpreted
from jaxbounds.programs.balls import interpreter, slopes
from jaxbounds.programs.primitives import PRIMITIVES


class Coverage(NamedTuple):
    """The engines (NumPy, ball arithmetic, slopes) that have a rule for one primitive.

    Attributes:
        name: the name that JAX gives to the primitive.
        parameters: whether the table `PRIMITIVES` lists the primitive's parameters.
        numpy: whether the library can run the primitive in NumPy; otherwise XLA compiles the
            program.
        balls: whether ball arithmetic (interval arithmetic) can enclose the primitive's result;
            otherwise the library makes no certificate.
        slopes: whether the library can bound the primitive's derivatives on boxes; otherwise it
            refuses a proof on a box.
        rounds: whether the primitive rounds its results to their type.
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
