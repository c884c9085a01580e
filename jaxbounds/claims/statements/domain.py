"""Domain of a proof of a form: a box of parameters, and the instances in it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.sets import Chart, Over, Set
from jaxbounds.claims.statements.declared import refuse_other_types
from jaxbounds.claims.statements.instance import Instance, Size
from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A box on which `jaxbounds.certify` proves a form, up to `slack`.

    Attributes:
        name: what the box holds, in words ("one token pair, logits (t, 0), |t| <= 8").
        chart: `chart(point, size) -> Instance` for a point of shape (k,); JAX traces it.
        size: the static part of the instances; it need not be among the statement's sizes.
        lower: the least coordinates, finite.
        upper: the greatest, finite.
        slack: what is proved is lhs <= rhs + slack, or |lhs - rhs| <= slack for every entry.
        relative_slack: that much of |rhs| is added to it (for an identity, of the larger side).
        beyond: what follows outside the box, and why, in one sentence.
    """

    name: str
    chart: Callable[[jax.Array, Size], Instance]
    size: Mapping[str, float]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    slack: float = 0.0
    relative_slack: float = 0.0
    beyond: str = ""

    def __post_init__(self) -> None:
        """Refuse a box that is none, and take its ends as floats."""
        for end, values in (("lower", self.lower), ("upper", self.upper)):
            object.__setattr__(self, end, tuple(self._end(end, v) for v in values))
        if len(self.lower) != len(self.upper) or not self.lower:
            raise Refused(f"domain {self.name!r}: lower and upper must be of one length")
        for a, b in zip(self.lower, self.upper):
            if not a < b or not math.isfinite(b - a):
                raise Refused(
                    f"domain {self.name!r}: each lower end must be below the upper one, by a "
                    f"finite amount, got {a!r} and {b!r}"
                )
        for field in ("slack", "relative_slack"):
            value = getattr(self, field)
            if not _is_real(value) or not 0 <= value < math.inf:
                raise Refused(f"domain {self.name!r}: {field} cannot be {value!r}")
        refuse_other_types(self, f"domain {self.name!r}")

    @classmethod
    def over(
        cls,
        sets: Mapping[str, Set | Mapping[str, Any]],
        /,
        *,
        size: Mapping[str, float],
        name: str = "",
        slack: float = 0.0,
        beyond: str = "",
    ) -> "tuple[Domain, ...]":
        """All of a product of sets, in the coordinates that they give: a box for each part.

        Args:
            sets: by the name of an instance's entry, as `Statement.over`.
            size: the static part.
            name: in words; the sets and the size unless given.
            slack: of each.
            beyond: of each.

        Raises:
            Refused: if no coordinates are known of one of the sets.
        """
        words = name or f"{Over(sets)!r} at {Size(dict(size))!r}"
        return tuple(
            cls(
                name=f"{words}, {chart.part}" if chart.part else words,
                chart=_at(chart),
                size=size, lower=chart.lower, upper=chart.upper, slack=slack, beyond=beyond,
            )
            for chart in Over(sets).charts(size)
        )  # fmt: skip

    def _end(self, which: str, value: Any) -> float:
        if not _is_real(value):
            raise TypeError(f"domain {self.name!r}: {which} must hold numbers, got {value!r}")
        if not math.isfinite(value):
            raise Refused(
                f"domain {self.name!r}: a box has finite ends, got {value!r} in {which}; for "
                "x >= a take t in [0, 1 - 1e-6] with x = a + t / (1 - t) in the chart, and say in "
                "`beyond` what holds outside"
            )
        return float(value)

    def with_slack(self, slack: str | float) -> "Domain":
        """The same box with another slack: a number, or a number and "relative" ("1e-9 relative").

        Raises:
            Refused: if it is neither.
        """
        words = str(slack).split()
        try:
            amount: float | None = float(words[0])
        except (ValueError, IndexError):
            amount = None
        if amount is None or words[1:] not in ([], ["relative"]):
            raise Refused(
                f"slack={slack!r} is no number, and no number with the word relative. Try 1e-9, or "
                "'1e-9 relative'"
            )
        relative = bool(words[1:])
        return replace(
            self, slack=0.0 if relative else amount, relative_slack=amount if relative else 0.0
        )

    def instance(self, point: Any) -> Instance:
        """The instance at a point."""
        return self.chart(point, Size(dict(self.size)))


def _at(chart: Chart) -> Callable[[jax.Array, Size], Instance]:
    return lambda point, size: chart.point(point)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
