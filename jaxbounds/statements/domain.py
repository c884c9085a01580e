"""Where a form is to be proved: a box of parameters, and the instances that they stand for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from jaxbounds.statements.instance import Instance, Size


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A box on which `jaxbounds.certify` proves a form, up to `slack`.

    Attributes:
        name: what the box holds, in words ("one token pair, logits (t, 0), |t| <= 8").
        chart: `chart(point, size) -> Instance` for a point of shape (k,); JAX traces it.
        size: the static part of the instances; it need not be among the statement's sizes.
        lower: the least coordinates.
        upper: the greatest.
        slack: what is proved is lhs <= rhs + slack, or |lhs - rhs| <= slack for every entry.
        beyond: what follows outside the box, and why, in one sentence.
    """

    name: str
    chart: Callable[[jax.Array, Size], Instance]
    size: Mapping[str, int]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    slack: float = 0.0
    beyond: str = ""

    def __post_init__(self) -> None:
        """Refuse a box that is none."""
        if len(self.lower) != len(self.upper) or not self.lower:
            raise ValueError(f"domain {self.name!r}: lower and upper must be of one length")
        if any(not a < b for a, b in zip(self.lower, self.upper)):
            raise ValueError(f"domain {self.name!r}: each lower end must be below the upper one")
        if not 0 <= self.slack < float("inf"):
            raise ValueError(f"domain {self.name!r}: slack cannot be {self.slack}")

    def instance(self, point: Any, /) -> Instance:
        """The instance at a point."""
        return self.chart(point, Size(dict(self.size)))
