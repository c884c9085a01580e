"""A claim in one line: two functions and the sets of their arguments."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxbounds.claims.sets import Over, Set
from jaxbounds.claims.sets.over import refuse_other_sets
from jaxbounds.claims.sets.words import declared
from jaxbounds.claims.statements.form import Form
from jaxbounds.claims.statements.kinds import Relation
from jaxbounds.claims.statements.statement import Budget, Statement
from jaxbounds.claims.statements.two_sides import (
    PRINTED,
    Side,
    TwoSides,
    by_name,
    entries_of,
    parameters,
    refuse_other_arguments,
    refuse_other_relation,
    refuse_other_side,
)
from jaxbounds.claims.statements.written import written
from jaxbounds.ground.exceptions import Refused

Sets = Mapping[str, Set | Mapping[str, Any]]
Axes = Mapping[str, float | Sequence[float]] | Sequence[Mapping[str, float]]
"""The sizes to try: a list of sizes, or the values of each name, which the search combines in all
ways."""


def sizes_of(axes: Axes | None, /) -> tuple[dict[str, float], ...]:
    """Return the sizes: all combinations of the values of a mapping, or the list as given.

    Raises:
        TypeError: if the axes are neither a mapping nor a sequence.
    """
    if axes is None:
        return ({},)
    if not isinstance(axes, Mapping | Sequence) or isinstance(axes, str):
        raise TypeError(
            f"sizes={axes!r:.60}: expected a dict from names to values. Try {{'d': (2, 4)}}"
        )
    if not isinstance(axes, Mapping):
        return tuple(map(dict, axes))
    values = [v if isinstance(v, Sequence) else (v,) for v in axes.values()]
    return tuple(dict(zip(axes, chosen)) for chosen in itertools.product(*values))


@dataclass(frozen=True, kw_only=True)
class Line:
    """The claim lhs <= rhs (or lhs >= rhs) for all points of some sets.

    A side is a number, or a function whose arguments have the names of entries of `over` or of
    sizes. The number or function `error` bounds the absolute rounding error of lhs - rhs.
    """

    lhs: Side
    rhs: Side
    over: Over | Mapping[str, Any]
    sizes: tuple[Mapping[str, float], ...] = ({},)
    relation: Relation = "<="
    error: Side = 0.0
    hypotheses: Any = None

    def statement(self, budget: Budget | None = None) -> Statement:
        """Return the claim as a statement; the default of `budget` is `Budget()`.

        Raises:
            Refused: if a function has an argument that is neither an entry nor a size.
        """
        given: dict[str, Any] = {"budget": budget} if budget else {}
        names = {*self.over, *self.sizes[0]}
        for which, side in (("lhs", self.lhs), ("rhs", self.rhs), ("error", self.error)):
            refuse_other_arguments(which, side, names)
        return Statement(
            id="line.claim", label="", formula=f"lhs {self.relation} rhs", kind="inequality",
            evaluate=TwoSides({PRINTED: (self.lhs, self.rhs)}, self.error),
            over=self.over, sizes=self.sizes, relation=self.relation,
            hypotheses=by_name(self.hypotheses, names), forms=(Form(name=PRINTED),), **given,
        )  # fmt: skip

    def _given(self, side: Side) -> list[str]:
        return [name for name in parameters(side) if name in self.over or name in self.sizes[0]]

    def to_json(self) -> dict[str, Any]:
        """Return the claim as text, from which `jaxbounds new --from` writes a statement.

        The text under "code" is empty if a side's code is unreadable, or the claim has hypotheses.
        """
        sides = {"left_side": self.lhs, "right_side": self.rhs}
        exact = not callable(self.error) and self.error == 0
        every = sides if exact else {**sides, "uncertainty": self.error}
        return {
            "code": "" if self.hypotheses else written(every),
            "lhs": self._given(self.lhs),
            "rhs": self._given(self.rhs),
            "over": declared(self.over),
            "sizes": [dict(size) for size in self.sizes],
            "relation": self.relation,
            "error": None if exact else self._given(self.error),
        }


def line_of(
    lhs: Side,
    rhs: Side,
    over: Sets,
    sizes: Axes | None,
    relation: Relation,
    error: Side = 0.0,
    hypotheses: Any = None,
    /,
) -> Line:
    """Make a `Line` from the arguments of `jb.find_violation` and of similar functions.

    Raises:
        TypeError: if a side or the error is neither a function nor a number, or `over` is no dict.
        Refused: if the relation is neither "<=" nor ">=", or the sizes are empty.
    """
    for which, side in (("left side", lhs), ("right side", rhs), ("error", error)):
        refuse_other_side(which, side)
    refuse_other_relation(relation, ("<=", ">="))
    found = sizes_of(sizes)
    if not found:
        raise Refused(f"sizes={sizes!r} gives no size. Try {{'d': (2, 4)}}")
    refuse_other_sets("over", over, entries_of(filter(callable, (lhs, rhs)), found[0]))
    return Line(
        lhs=lhs,
        rhs=rhs,
        over=Over(over) if over else {},
        sizes=found,
        relation=relation,
        error=error,
        hypotheses=hypotheses,
    )
