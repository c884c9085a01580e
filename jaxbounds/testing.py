"""Make a claim for a test from two sides, with simple defaults for other fields of `Statement`."""

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbounds.claims.statements import (
    Budget,
    Form,
    Instance,
    Kind,
    Relation,
    Sides,
    Size,
    Statement,
)
from jaxbounds.claims.statements.sides import CONTROL

Side = Callable[[Any], ArrayLike] | float
"""A side of a claim: a number, or a function of the instance or of one of its entries."""


def claim(
    lhs: Side,
    rhs: Side,
    *,
    entry: str = "",
    sample: Callable[..., Instance] | None = None,
    over: Mapping[str, Any] | None = None,
    hypotheses: Callable[..., Mapping[str, ArrayLike]] | None = None,
    error: Side = 0.0,
    control: Side | None = None,
    kind: Kind = "inequality",
    relation: Relation | None = None,
    form: Form | None = None,
    sizes: tuple[Mapping[str, float], ...] = ({},),
    budget: Budget | None = None,
    id: str = "mine.claim",
) -> Statement:
    """Return the statement lhs <= rhs, or a statement with another relation.

    ```python
    from jaxbounds.testing import claim

    square = claim(lambda x: 2 * x, lambda x: 1.5 + x**2, entry="x", over={"x": jb.Reals()})
    (verdict,) = jb.verify(square)
    ```

    Args:
        lhs: the left side.
        rhs: the right side.
        entry: the name of the entry that the sides take as their argument; unless given, the sides
            take the whole instance.
        sample: `sample(key, size) -> instance`; the claim needs it or `over`.
        over: the set of each entry, by the entry's name.
        hypotheses: `hypotheses(instance, size) -> {name: bool}`.
        error: a bound on the numerical error of both sides.
        control: the right side of a control (a deliberately false variant); by default, a right
            side that no instance meets.
        kind: the kind of the statement.
        relation: "<=", ">=" or "="; the relation of the kind unless given.
        form: the name and the expected status of the right side; `Form(name="printed")` unless
            given.
        sizes: the sizes to try, each a mapping from names to numbers.
        budget: the numbers of random instances and searches; the library's default unless given.
        id: the id of the statement; the part before the first dot is its paper.

    Raises:
        Refused: if `Statement` refuses a field.
    """
    chosen = Form(name="printed") if form is None else form

    def value(side: Side, instance: Instance) -> Any:
        if not callable(side):
            return side
        return side(instance[entry] if entry else instance)

    def evaluate(instance: Instance, size: Size) -> Sides:
        left, right = jnp.asarray(value(lhs, instance)), value(rhs, instance)
        never = left - (-1.0 if relation == ">=" else 1.0) * (1.0 + jnp.abs(left))
        wrong = never if control is None else value(control, instance)
        sides = {chosen.name: right, CONTROL: wrong}
        return Sides(lhs=left, rhs=sides, error=value(error, instance))

    optional = {"sample": sample, "over": over, "relation": relation, "budget": budget}
    given: dict[str, Any] = {name: it for name, it in optional.items() if it is not None}
    return Statement(
        id=id, label="Claim", formula=f"lhs {relation or '<='} rhs", kind=kind, evaluate=evaluate,
        sizes=sizes, forms=(chosen,), control="no instance meets it", hypotheses=hypotheses,
        **given,
    )  # fmt: skip
