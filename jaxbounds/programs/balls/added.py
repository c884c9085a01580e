"""Let the caller add rules of ball arithmetic for JAX primitives of the caller's own."""

from collections.abc import Callable, Iterable
from typing import Any

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls.interpreter import RULES, Interpreter
from jaxbounds.programs.primitives import PRIMITIVES, Primitive

Rule = Callable[[JaxprEqn, list[Any], Interpreter], list[Any]]
"""A function of an equation, its inputs and the interpreter; it returns enclosures of the outputs.

A float input is an array of `flint.arb` (balls: intervals with midpoint and radius). An integer
input is a NumPy array. Each output must enclose the true value for all numbers that the input balls
contain.
"""

_ADDED: set[str] = set()


def add_rule(
    primitive: str,
    rule: Rule,
    /,
    *,
    exact: bool = False,
    reads: Iterable[str] = (),
    may: Iterable[str] = (),
) -> None:
    """Add a rule by which ball arithmetic (rigorous intervals) evaluates your own JAX primitive.

    A second call with the same primitive replaces the rule, so that a module may be loaded again.

    Args:
        primitive: the name of the primitive, which JAX prints in the function's jaxpr.
        rule: the function that encloses the primitive's outputs; `each`, `reals` and `hull` of
            `jaxbounds.programs.balls.values` help to write it.
        exact: whether the primitive computes without rounding in every floating-point type.
        reads: the names of those parameters of the primitive that the rule reads.
        may: the names of parameters that do not change the result. The library refuses an equation
            with a parameter that neither `reads` nor `may` names.

    Raises:
        Refused: if the library has its own rule for the primitive.
    """
    if primitive in PRIMITIVES and primitive not in _ADDED:
        raise Refused(
            f"primitive={primitive!r} is known to the library, expected a primitive of your own. "
            "Try another name"
        )
    _ADDED.add(primitive)
    PRIMITIVES[primitive] = Primitive(exact, frozenset(reads), frozenset(may), frozenset())
    RULES[primitive] = rule
