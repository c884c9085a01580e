"""Domain of a proof: a box of parameters, and the map from the box to instances."""

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
    """A box on which `jaxbounds.certify` proves a form (version of a claim), up to `slack`.

    Attributes:
        name: a description of the box in words ("one token pair, logits (t, 0), |t| <= 8").
        chart: `chart(point, size) -> Instance` for a point of shape (k,); JAX can trace it.
        size: the static part of the instances; it need not be among the statement's sizes.
        lower: the least value of each coordinate of the box, finite.
        upper: the greatest value of each coordinate of the box, finite.
        slack: the absolute amount by which the proved claim may be weaker. The proof shows lhs <=
            rhs + slack, or |lhs - rhs| <= slack for every entry of an identity.
        relative_slack: a further slack, as a share of |rhs| (for an identity, of the larger side).
        beyond: one sentence that says whether the claim holds outside the box, and why.
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
        for end, values in (("lower", self.lower), ("upper", self.upper)):
            object.__setattr__(self, end, tuple(self._end(end, v) for v in values))
        if len(self.lower) != len(self.upper) or not self.lower:
            raise Refused(
                f"domain {self.name!r} has lower={self.lower}, upper={self.upper}, expected equal "
                f"lengths of at least 1. Try one number for each coordinate"
            )
        for a, b in zip(self.lower, self.upper):
            if not a < b or not math.isfinite(b - a):
                raise Refused(
                    f"domain {self.name!r} has the ends lower={a!r}, upper={b!r}, expected "
                    "lower < upper with a finite upper - lower. Try another box"
                )
        for field in ("slack", "relative_slack"):
            value = getattr(self, field)
            if not _is_real(value) or not 0 <= value < math.inf:
                raise Refused(
                    f"domain {self.name!r} has {field}={value!r}, expected a finite number >= 0. "
                    "Try 1e-9"
                )
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
        """Return boxes that cover a product of sets: one domain for each chart.

        Args:
            sets: the sets, keyed by the names of an instance's entries, as in `Statement.over`.
            size: the static part of the instances (shapes and other numbers, by name).
            name: a description of the domains in words; the default lists the sets and the size.
            slack: the slack of each domain: a proof on the domain shows lhs <= rhs + slack.
            beyond: one sentence that says whether the claim holds outside the boxes, and why; see
                `Domain`.

        Raises:
            Refused: if the library knows no coordinates for one of the sets.
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
            raise TypeError(f"domain {self.name!r}: {which}={value!r} is not a number. Try 0.0")
        if not math.isfinite(value):
            raise Refused(
                f"domain {self.name!r} has {which}={value!r}, expected finite ends. Try to replace "
                f"x >= a by x = a + t / (1 - t) with t in [0, 1 - 1e-6], and say in `beyond` what "
                f"holds for other x"
            )
        return float(value)

    def with_slack(self, slack: str | float) -> "Domain":
        """Return the domain with a new slack: a number, or words like "1e-9 relative".

        Raises:
            Refused: if the slack is neither a number nor a text like "1e-9 relative".
        """
        words = str(slack).split()
        try:
            amount: float | None = float(words[0])
        except (ValueError, IndexError):
            amount = None
        if amount is None or words[1:] not in ([], ["relative"]):
            raise Refused(
                f"slack={slack!r} is neither a number nor a number with 'relative'. Try 1e-9, or "
                "'1e-9 relative'"
            )
        relative = bool(words[1:])
        return replace(
            self, slack=0.0 if relative else amount, relative_slack=amount if relative else 0.0
        )

    def instance(self, point: Any) -> Instance:
        """Return the instance to which the chart maps a point of the box."""
        return self.chart(point, Size(dict(self.size)))


def _at(chart: Chart) -> Callable[[jax.Array, Size], Instance]:
    return lambda point, size: chart.point(point)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
