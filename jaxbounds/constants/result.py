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
"""The default processor time of a search for a constant at each size, in seconds. A longer search
finds larger ratios lhs/rhs, and certifies more digits.
"""
Where = Literal[
    "attained", "limit", "rising", "unbounded", "every instance", "enumerated", "drawn", "none",
    "as coded",
]  # fmt: skip
MEANING: Mapping[Where, str] = {
    "attained": "slopes, neighbours and another start found no larger ratio than at this instance "
    "(for a statement on the host: moves of every length found none; for integers and "
    "signs: moves from several draws ended there, and no neighbour has a larger ratio)",
    "limit": "no instance attains the supremum: the ratio still rises along a scale without end",
    "rising": "the search did not settle: another start, a slope or a neighbour promises a larger "
    "ratio",
    "unbounded": "no constant exists: the ratio grows without bound along a scale, or the right "
    "side is zero where the left side is positive",
    "every instance": "the ratio is the same on every draw",
    "enumerated": "the search measured all instances, and this ratio is the largest",
    "drawn": "the ratio is the largest of draws and named cases, because the statement asks for no "
    "search",
    "as coded": "machine integers wrap in the program, so the number is about the program, and not "
    "about the mathematical integers",
    "none": "no instance meets the hypotheses, or the right side is not positive",
}


@dataclass(frozen=True, kw_only=True)
class AtSize:
    """A lower estimate of the supremum of lhs/rhs at one size.

    Attributes:
        size: the size of the instances: a dict from axes to values.
        ratio: the largest ratio lhs/rhs found, a lower estimate of the supremum for every value of
            `where`. If `low` is empty, the ratio is computed only in floats (displayed with ~), and
            may be a rounding error.
        where: a word for how lhs/rhs comes near its supremum, such as "attained", "limit" or
            "rising"; `MEANING` explains each word.
        along: for a limit, the scale and its direction ("W -> infinity").
        low: a decimal number that is certainly below lhs/rhs at the extremal instance (for a limit:
            at an instance far along the scale); empty if ball arithmetic could not run.
        high: a decimal number above `low`: an upper bound on lhs/rhs at the same instance, plus the
            further increase that derivatives or the last scales predict. A closed form lies between
            `low` and `high`.
        digits: the number of certain decimal digits of the ratio lhs/rhs.
        gain: the further relative gain of lhs/rhs that slopes predict in ball arithmetic; None if
            unknown.
        reason: the reason why digits or slopes are missing, or why the kind of supremum is
            undecided.
        starts: the number of starting instances from which the search climbed to larger ratios
            lhs/rhs.
        agreeing: the number of starting instances from which the search reached `ratio`.
        kinds: for each kind of starting instance (such as random draws), the number of such
            instances.
        agreed: for each kind of starting instance, the number of instances from which the search
            reached `ratio`.
        closed: a closed form that agrees with all certain digits; None if no formula agrees.
        instance: the instance with the largest ratio lhs/rhs, rounded for display.
        instance_ratio: the ratio lhs/rhs at the rounded instance.
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
    """The sharp constant, the least C with lhs <= C rhs at each size, estimated from below.

    Attributes:
        id: the id of the statement.
        form: the name of the form (version of the statement's claim).
        label: the label of the statement in the paper, for example "Lemma 6".
        formula: the formula of the statement, in plain text.
        sizes: the finding about the constant at each size.
        dependence: the exponent with which C grows in each size axis (such as T or d) that varies.
        residual: the largest error of log C in the fit of the exponents of `dependence`.
        law: a formula for C in the axes, such as "sqrt(T d)", if it agrees with all closed forms
            and exponents; else empty.
        seed: the seed of the random draws of the search.
        relation: "<=", or ">=" for a bound from below; for ">=" C is the least number with
            C lhs >= rhs.
        line: the claim as JSON, if the user gave the two sides as functions instead of a statement.
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

        If the caller gave the sides as two functions, `jaxbounds new --from` makes a statement from
        the file.
        """
        write_text(Path(path), json.dumps(to_json(self), indent=1) + "\n")
        return Path(path)

    @property
    def largest(self) -> AtSize:
        """Return the search's result at the size where the ratio lhs/rhs is largest."""
        return max(self.sizes, key=lambda s: s.ratio)

    @property
    def fails(self) -> bool:
        """Tell whether a constant exceeds 1 by more than rounding, which makes the form false."""
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
        """Return a constant from the parsed JSON that `save` wrote.

        Raises:
            TypeError: if the JSON of the constant has unknown or missing fields.
        """
        sizes = []
        for one in stored["sizes"]:
            closed = one["closed"] and ClosedForm(**one["closed"])
            sizes.append(AtSize(**one | {"closed": closed}))
        dependence = tuple(Exponent(**one) for one in stored["dependence"])
        return cls(**stored | {"sizes": tuple(sizes), "dependence": dependence})
