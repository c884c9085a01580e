"""The rules by which measurements become a verdict, and the verdict itself."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.falsify.bench import Column
from jaxbounds.falsify.intervals import clopper_pearson, fitted_exponent, mean_interval
from jaxbounds.falsify.measure import Measured, Reals
from jaxbounds.statements import Form, Sense, Statement, Status


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the library says about one form of one statement, and on what ground.

    Attributes:
        id: the statement.
        paper: its paper.
        label: its label in print.
        kind: its kind.
        relation: "<=" or "=": what is compared.
        form: the form judged.
        expected: the status the form is expected to have.
        status: the status it got.
        reason: one sentence: why this status.
        worst_ratio: by kind: the largest lhs/rhs (`<=`), the largest relative discrepancy (`=`),
            failure frequency over level (probability), mean over mean (expectation), or the
            fitted exponent (rate). NaN where nothing counted.
        instances: how many instances counted.
        evidence: what stands behind it: "sampled", "searched", "enumerated", "attained", or
            "violated"; see `jaxbounds.falsify.evidence`.
        searches: how many searches were run for this form.
        accepted: how many of their steps led to a worse instance.
        distinct: how many different instances counted.
        by_size: the worst ratio at each size.
        near: whether the near-control was rejected: the same form with a right side 1% smaller, or
            with one side of an identity moved by a millionth.
        sensitivity: for `<=` that holds by how much, relatively, the right side could shrink before
            anything would have been noticed.
        horizon: for trajectories the number of steps that were followed.
        enumerates: of what the instances are all, where they are.
        checked: the hypotheses by name, evaluated on every instance.
        excluded: instances left out, by reason.
        sources: for each sampler, `cases` and the search: instances and worst ratio.
        quantiles: 0%, 5%, ..., 100% of the ratios of the counted instances.
        control: status and worst ratio of the deliberately false variant.
        counterexample_ratio: the ratio of the stored counterexample, where there is one.
        worst_file: the saved worst instance, relative to the output folder; empty if not saved.
        shrunk_ratio: the ratio of the shrunk failing instance, where the form fails.
        shrunk_file: that instance, relative to the output folder; empty if not saved.
        size: the shapes of the worst instance.
        precision: the float type.
        tolerance: relative, as stated by the statement.
        seconds: spent on the whole statement.
        seed: of the run.
        source: where in the paper, and under which other numbers it stands.
    """

    id: str
    paper: str
    label: str
    kind: str
    relation: str
    form: str
    expected: Status
    status: Status
    reason: str
    worst_ratio: float
    instances: int
    searches: int
    evidence: str = ""
    accepted: int = 0
    distinct: int = 0
    by_size: dict[str, float] = field(default_factory=dict)
    near: bool = False
    sensitivity: float | None = None
    horizon: int | None = None
    enumerates: str = ""
    checked: tuple[str, ...] = ()
    excluded: dict[str, int] = field(default_factory=dict)
    sources: dict[str, dict[str, float]] = field(default_factory=dict)
    quantiles: tuple[float, ...] = ()
    control: dict[str, Any] = field(default_factory=dict)
    counterexample_ratio: float | None = None
    worst_file: str = ""
    shrunk_ratio: float | None = None
    shrunk_file: str = ""
    size: dict[str, int] = field(default_factory=dict)
    precision: str = "float64"
    tolerance: float = 0.0
    seconds: float = 0.0
    seed: int = 0
    source: str = ""

    @property
    def as_expected(self) -> bool:
        """Whether the status is the recorded one."""
        return self.status == self.expected

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict; numbers that JSON lacks become null."""

        def plain(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: plain(entry) for name, entry in value.items()}
            if isinstance(value, (list, tuple)):
                return [plain(entry) for entry in value]
            if isinstance(value, float) and not np.isfinite(value):
                return None if np.isnan(value) else ("inf" if value > 0 else "-inf")
            return value

        return plain(asdict(self) | {"as_expected": self.as_expected})

    @classmethod
    def from_json(cls, stored: dict[str, Any], /) -> "Verdict":
        """A verdict from what `to_json` gave.

        Raises:
            ValueError: if a field is missing or unknown.
        """
        stored = {name: value for name, value in stored.items() if name != "as_expected"}
        if set(stored) != {f.name for f in fields(cls)}:
            raise ValueError("these verdicts are of another version: run verify again")
        number = lambda value: float("nan") if value is None else float(value)
        return cls(
            **stored
            | {
                "worst_ratio": number(stored["worst_ratio"]),
                "quantiles": tuple(map(number, stored["quantiles"])),
                "checked": tuple(stored["checked"]),
            }
        )


class Decision(NamedTuple):
    """A status with its ratio and reason."""

    status: Status
    ratio: float
    reason: str


ON_AVERAGE = ("probability", "expectation", "rate")
"""Kinds of which no single instance decides."""
MORE = "draw more (--thorough, or budget=Budget(samples=...))"
NUMERICAL = 1e-3
"""An error bar wider than this is statistical: a known equality case cannot decide it."""


def edge(statement: Statement, /) -> float:
    """The value above which an instance violates: 1 + tolerance for `<=`.

    For `=` it is a thousand tolerances; between one and that a difference is neither rounding nor
    clear.
    """
    return 1e3 * statement.tolerance if statement.relation == "=" else 1 + statement.tolerance


def violation(statement: Statement, m: Measured, /) -> Reals:
    """By how much the instances of a column certainly violate; -inf where they do not count."""
    return np.where(m.counted & np.isfinite(m.low), m.low - edge(statement), -np.inf)


def _nan_reason(value: Reals) -> str:
    return (
        f"{int(np.sum(np.isnan(value)))} of {len(value)} instances that count gave NaN (a search "
        "moves floats without bound: say in `hypotheses` where they may be, and give `project`)"
    )


def _worst(values: Reals) -> float:
    return float(np.nanmax(values)) if np.any(~np.isnan(values)) else float("nan")


def _violated(statement: Statement, m: Measured, words: str) -> Decision | None:
    failing = int(np.sum(m.low > edge(statement)))
    if failing:
        return Decision("fails", _worst(m.value), f"{failing} of {len(m.low)} instances {words}")
    if np.any(np.isnan(m.value)):
        return Decision("inconclusive", float("nan"), _nan_reason(m.value))
    return None


def _at_most(statement: Statement, form: Form | None, m: Measured) -> Decision:
    if decision := _violated(statement, m, "violate it"):
        return decision
    tolerance, worst = statement.tolerance, _worst(m.value)
    if np.all(m.trivial):
        return Decision("vacuous", worst, "it never beats the trivial bound")
    if np.all(m.high < 1 - tolerance):
        return Decision("holds", worst, "every ratio stays below one")
    if np.any((m.high > 1 + tolerance) & (m.high - m.low > NUMERICAL)):
        return Decision("inconclusive", worst, "the error of some measurement straddles one")
    if form and form.equality:
        return Decision("holds", worst, f"the worst ratio is one, attained at: {form.equality}")
    return Decision("inconclusive", worst, "the ratio reaches one and no equality case is known")


def _equal(statement: Statement, m: Measured) -> Decision:
    if decision := _violated(statement, m, "differ"):
        return decision
    worst = _worst(m.value)
    if np.all(m.high <= statement.tolerance):
        return Decision("holds", worst, "both sides agree to the tolerance")
    return Decision("inconclusive", worst, "the sides differ by more than rounding should allow")


def _probability(statement: Statement, groups: list[Measured]) -> Decision:
    if any(np.any(np.isnan(m.value)) for m in groups):
        return Decision("inconclusive", float("nan"), "some draw gave NaN")
    level, lows, highs, rates = statement.level or 0.0, [], [], []
    for m in groups:
        failures, trials = int(np.sum(m.value > edge(statement))), len(m.value)
        low, high = clopper_pearson(failures, trials)
        lows.append(low)
        highs.append(high)
        rates.append(failures / trials)
    worst = max(rates) / level
    text = f"failure frequency at most {max(rates):.3g}, level {level:g}, 99.9% exact interval"
    if max(lows) > level:
        return Decision("fails", worst, f"{text} above it")
    if max(highs) <= level:
        return Decision("holds", worst, f"{text} up to {max(highs):.3g}")
    return Decision("inconclusive", worst, f"{text} up to {max(highs):.3g}: {MORE}")


def _expectation(groups: list[Measured]) -> Decision:
    lows, highs, ratios = [], [], []
    for m in groups:
        if len(m.lhs) < 2 or np.any(np.isnan(m.lhs)) or np.any(np.isnan(m.rhs)):
            return Decision("inconclusive", float("nan"), "NaN, or fewer than two draws")
        _, low, high = mean_interval(m.lhs - m.rhs)
        scale = abs(float(np.mean(m.rhs))) or 1.0
        lows.append(low / scale)
        highs.append(high / scale)
        ratios.append(float(np.mean(m.lhs)) / scale)
    text = "4-sigma interval of the mean difference"
    if max(lows) > 0:
        return Decision("fails", max(ratios), f"{text} above zero")
    if max(highs) <= 0:
        return Decision("holds", max(ratios), f"{text} below zero")
    return Decision("inconclusive", max(ratios), f"{text} contains zero: {MORE}")


def _rate(sense: Sense, m: Measured) -> Decision:
    try:
        slope, low, high = fitted_exponent(m.rhs, m.lhs)
    except ValueError as problem:
        wrong = int(np.sum(~(m.lhs > 0) | ~(m.rhs > 0)))
        reason = f"{problem} ({wrong} of {len(m.lhs)} instances have a side that is not positive)"
        return Decision("inconclusive", float("nan"), reason)
    # An exact power has an interval of no length, which rounding may put beside one.
    most, least = low <= 1 + 1e-9, high >= 1 - 1e-9
    agrees = {"at most": most, "at least": least, "exactly": most and least}[sense]
    text = f"exponent {slope:.3f} (99% interval {low:.3f} to {high:.3f}), claimed {sense} 1"
    return Decision("consistent" if agrees else "inconsistent", slope, text)


def decide(statement: Statement, form: Form | None, column: Column, /) -> Decision:
    """The status of one column of measurements (`form=None` for the control).

    Frequencies and means are taken by size.

    Args:
        statement: whose kind and tolerance decide.
        form: the form of that column.
        column: all its measurements.
    """
    keep = column.measured.counted
    if not np.any(keep):
        return Decision("vacuous", float("nan"), "no instance met the hypotheses")
    rows = lambda chosen: Measured(*(np.asarray(field)[chosen] for field in column.measured))
    counted = rows(keep)
    if statement.kind in ("probability", "expectation"):
        groups = [rows(keep & (column.sizes == size)) for size in np.unique(column.sizes[keep])]
        mean = statement.kind == "expectation"
        decision = _expectation(groups) if mean else _probability(statement, groups)
        if decision.status == "holds" and np.all(counted.trivial):
            return decision._replace(status="vacuous", reason="it never beats the trivial bound")
        return decision
    if statement.kind == "rate":
        return _rate((form or statement.forms[0]).sense or "at most", counted)
    if statement.relation == "=":
        return _equal(statement, counted)
    return _at_most(statement, form, counted)
