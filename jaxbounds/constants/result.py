"""The result of a search for a sharp constant, as data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from jaxbounds.constants.closed_form import ClosedForm
from jaxbounds.constants.dependence import Exponent
from jaxbounds.ground.files import write_text
from jaxbounds.ground.tables import Table, with_table
from jaxbounds.ground.to_json import to_json

SECONDS = 30.0
"""Processor time in seconds for each size; a larger number finds and certifies more."""
Where = Literal[
    "attained", "limit", "rising", "unbounded", "every instance", "enumerated", "drawn", "none",
    "as coded",
]  # fmt: skip
MEANING: Mapping[Where, str] = {
    "attained": "slopes, neighbours and another start find nothing larger than at this instance "
    "(on the host: moves of every length, in place of slopes; of integers and signs: moves from "
    "several draws end there, and no neighbour is larger)",
    "limit": "no instance attains it: the ratio still rises along a scale without end",
    "rising": "the search had not settled: another start, a slope or a neighbour promises more",
    "unbounded": "the ratio grows without bound along a scale: there is no constant",
    "every instance": "the ratio is the same on every draw",
    "enumerated": "the largest of all the instances there are",
    "drawn": "the largest of draws and named cases: the statement asks for no search",
    "as coded": "integers wrap on the way to the sides: the number is the program's, and says "
    "nothing of the integers",
    "none": "no instance counts, or the right side is not positive",
}


@dataclass(frozen=True, kw_only=True)
class AtSize:
    """A lower estimate of the supremum of lhs/rhs at one size.

    Attributes:
        size: the shapes.
        ratio: the largest ratio found: a lower estimate of the supremum, whatever `where` says. If
            `low` is empty, only floats gave the ratio (shown as ~), and it may be their rounding.
        where: whether the supremum is attained, a limit, or not settled; see `MEANING`.
        along: for a limit, the scale that grows ("W -> infinity").
        low: a decimal number that is certainly below lhs/rhs at the extremal instance (for a limit:
            far along the scale); empty if ball arithmetic could not run.
        high: a decimal number that is certainly above this ratio, by the further gain that slopes
            or the last steps along the scale promise. A closed form lies between `low` and `high`.
        digits: the number of certain decimal digits.
        gain: the relative gain that slopes still promise, in ball arithmetic; None if unknown.
        reason: the reason for missing digits or slopes.
        starts: the number of polished starting points.
        agreeing: the number of starting points that led to this ratio.
        kinds: the number of starts of each kind.
        agreed: the number of starts of each kind that led to this ratio.
        closed: a closed form that agrees with all certain digits; None without one.
        instance: the extremal instance, rounded for reading.
        instance_ratio: lhs/rhs at the rounded instance.
        seconds: the processor time of the search in seconds.
    """

    size: dict[str, float]
    ratio: float
    where: Where
    along: str = ""
    low: str = ""
    high: str = ""
    digits: int = 0
    gain: float | None = None
    reason: str = ""
    starts: int = 0
    agreeing: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    agreed: dict[str, int] = field(default_factory=dict)
    closed: ClosedForm | None = None
    instance: dict[str, Any] = field(default_factory=dict)
    instance_ratio: float | None = None
    seconds: float = 0.0


@with_table
@dataclass(frozen=True, kw_only=True)
class SharpConstant:
    """The least C with lhs <= C rhs at each size, as far as a search can tell.

    Attributes:
        id: the id of the statement.
        form: the name of its form.
        label: the statement's label in print.
        formula: the statement's formula in plain text.
        sizes: the finding at each size.
        dependence: the dependence on each axis that varies.
        residual: the largest residual in log C of the fit behind `dependence`.
        law: the constant as a formula in the axes ("sqrt(T d)"), if closed forms and exponents
            agree; else empty.
        seed: the seed of the draws.
        relation: "<=", or ">=" for a bound from below: C is then the least with C lhs >= rhs.
        line: the claim as text, if the search got two functions instead of a statement.
    """

    id: str
    form: str
    label: str
    formula: str
    sizes: tuple[AtSize, ...]
    dependence: tuple[Exponent, ...] = ()
    residual: float = 0.0
    law: str = ""
    seed: int = 0
    relation: str = "<="
    line: dict[str, Any] = field(default_factory=dict)

    def save(self, path: str | Path) -> Path:
        """Write the constant as JSON, and return the path.

        `jaxbounds new --from` makes a statement from the file, if the constant is of two functions.
        """
        write_text(Path(path), json.dumps(to_json(self), indent=1) + "\n")
        return Path(path)

    @property
    def largest(self) -> AtSize:
        """Return the size with the largest ratio."""
        return max(self.sizes, key=lambda s: s.ratio)

    @property
    def fails(self) -> bool:
        """Tell whether the form is false: a constant exceeds 1, surely or by more than rounding."""
        known = [s for s in self.sizes if s.where != "as coded"]
        return any(Decimal(s.low) > 1 if s.low else s.ratio > 1 + 1e-9 for s in known)

    def _table(self) -> Table:
        rows = [
            (
                ", ".join(f"{k}={v}" for k, v in found.size.items()),
                f"{found.ratio:.10g}" if found.low else f"~{found.ratio:.6g}",
                found.where,
                str(found.digits or "-"),
                found.closed.text if found.closed else "",
            )
            for found in self.sizes
        ]
        law = f"; C = {self.law}" if self.law else ""
        meant = "C lhs >= rhs" if self.relation == ">=" else "lhs <= C rhs"
        title = f"{self.id} ({self.form}): the least C with {meant}, from below{law}"
        return Table(title, ("size", "C at least", "where", "digits", "closed form"), rows)

    @classmethod
    def from_json(cls, stored: dict[str, Any], /) -> "SharpConstant":
        """Return a constant from its parsed JSON.

        Raises:
            TypeError: if the JSON has other fields.
        """
        sizes = []
        for one in stored["sizes"]:
            closed = one["closed"] and ClosedForm(**one["closed"])
            sizes.append(AtSize(**one | {"closed": closed}))
        dependence = tuple(Exponent(**one) for one in stored["dependence"])
        return cls(**stored | {"sizes": tuple(sizes), "dependence": dependence})
