"""The rules by which measurements become a verdict, and the verdict itself."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.falsify.intervals import clopper_pearson, fitted_exponent, mean_interval
from jaxbounds.falsify.measure import Measured
from jaxbounds.statements import Form, Sense, Statement, Status


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the library says about one form of one statement, and on what ground.

    Attributes:
        id: the statement.
        paper: its paper.
        label: its label in print.
        kind: its kind.
        form: the form judged.
        expected: the status the form is expected to have.
        status: the status it got.
        reason: one sentence: why this status.
        worst_ratio: by kind: the largest lhs/rhs (`<=`), the largest relative discrepancy (`=`),
            failure frequency over level (probability), mean over mean (expectation), or the
            fitted exponent (rate). NaN where nothing counted.
        instances: how many instances counted.
        searches: how many searches were run for this form.
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
    form: str
    expected: Status
    status: Status
    reason: str
    worst_ratio: float
    instances: int
    searches: int
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
        """Whether the status is the expected one."""
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


MORE = "draw more (--thorough, or budget=Budget(samples=...))"
NUMERICAL = 1e-3
"""An error bar wider than this is statistical: a known equality case cannot decide it."""


def _nan_reason(value: np.ndarray) -> str:
    return f"{int(np.sum(np.isnan(value)))} of {len(value)} instances that count gave NaN"


def _worst(values: np.ndarray) -> float:
    return float(np.nanmax(values)) if np.any(~np.isnan(values)) else float("nan")


def _at_most(statement: Statement, form: Form | None, m: Measured, index: int) -> Decision:
    keep = m.counted[:, index]
    value, low, high = (getattr(m, name)[keep, index] for name in ("value", "low", "high"))
    tolerance, worst = statement.tolerance, _worst(value)
    if np.any(low > 1 + tolerance):
        failing = int(np.sum(low > 1 + tolerance))
        return Decision("fails", worst, f"{failing} of {len(low)} instances violate it")
    if np.any(np.isnan(value)):
        return Decision("inconclusive", float("nan"), _nan_reason(value))
    if np.all(m.trivial[keep, index]):
        return Decision("vacuous", worst, "it never beats the trivial bound")
    if np.all(high < 1 - tolerance):
        return Decision("holds", worst, "every ratio stays below one")
    if np.any((high > 1 + tolerance) & (high - low > NUMERICAL)):
        return Decision("inconclusive", worst, "the error of some measurement straddles one")
    if form and form.equality:
        return Decision("holds", worst, f"the worst ratio is one, attained at: {form.equality}")
    return Decision("inconclusive", worst, "the ratio reaches one and no equality case is known")


def _equal(statement: Statement, m: Measured, index: int) -> Decision:
    keep = m.counted[:, index]
    value, low, high = (getattr(m, name)[keep, index] for name in ("value", "low", "high"))
    tolerance, worst = statement.tolerance, _worst(value)
    if np.any(low > 1e3 * tolerance):
        failing = int(np.sum(low > 1e3 * tolerance))
        return Decision("fails", worst, f"{failing} of {len(low)} instances differ")
    if np.any(np.isnan(value)):
        return Decision("inconclusive", float("nan"), _nan_reason(value))
    if np.all(high <= tolerance):
        return Decision("holds", worst, "both sides agree to the tolerance")
    return Decision("inconclusive", worst, "the sides differ by more than rounding should allow")


def _by_size(m: Measured, index: int, sizes: np.ndarray):
    keep = m.counted[:, index]
    for size in np.unique(sizes[keep]):
        chosen = keep & (sizes == size)
        yield m.lhs[chosen, index], m.rhs[chosen, index], m.value[chosen, index]


def _probability(statement: Statement, m: Measured, index: int, sizes: np.ndarray) -> Decision:
    if np.any(np.isnan(m.value[m.counted[:, index], index])):
        return Decision("inconclusive", float("nan"), "some draw gave NaN")
    level, lows, highs, rates = statement.level, [], [], []
    for _, _, value in _by_size(m, index, sizes):
        failures, trials = int(np.sum(value > 1 + statement.tolerance)), len(value)
        low, high = clopper_pearson(failures, trials)
        lows.append(low), highs.append(high), rates.append(failures / trials)
    worst = max(rates) / level
    text = f"failure frequency at most {max(rates):.3g}, level {level:g}, 99.9% exact interval"
    if max(lows) > level:
        return Decision("fails", worst, f"{text} above it")
    if max(highs) <= level:
        return Decision("holds", worst, f"{text} up to {max(highs):.3g}")
    return Decision("inconclusive", worst, f"{text} up to {max(highs):.3g}: {MORE}")


def _expectation(m: Measured, index: int, sizes: np.ndarray) -> Decision:
    lows, highs, ratios = [], [], []
    for lhs, rhs, _ in _by_size(m, index, sizes):
        if len(lhs) < 2 or np.any(np.isnan(lhs)) or np.any(np.isnan(rhs)):
            return Decision("inconclusive", float("nan"), "NaN, or fewer than two draws")
        _, low, high = mean_interval(lhs - rhs)
        scale = abs(float(np.mean(rhs))) or 1.0
        lows.append(low / scale), highs.append(high / scale)
        ratios.append(float(np.mean(lhs)) / scale)
    text = "4-sigma interval of the mean difference"
    if max(lows) > 0:
        return Decision("fails", max(ratios), f"{text} above zero")
    if max(highs) <= 0:
        return Decision("holds", max(ratios), f"{text} below zero")
    return Decision("inconclusive", max(ratios), f"{text} contains zero: {MORE}")


def _rate(sense: Sense, m: Measured, index: int) -> Decision:
    keep = m.counted[:, index]
    try:
        slope, low, high = fitted_exponent(m.rhs[keep, index], m.lhs[keep, index])
    except ValueError as problem:
        low = int(np.sum(~(m.lhs[keep, index] > 0) | ~(m.rhs[keep, index] > 0)))
        reason = (
            f"{problem} ({low} of {int(np.sum(keep))} instances have a side that is not positive)"
        )
        return Decision("inconclusive", float("nan"), reason)
    # An exact power has an interval of no length, which rounding may put beside one.
    most, least = low <= 1 + 1e-9, high >= 1 - 1e-9
    agrees = {"at most": most, "at least": least, "exactly": most and least}[sense]
    text = f"exponent {slope:.3f} (99% interval {low:.3f} to {high:.3f}), claimed {sense} 1"
    return Decision("consistent" if agrees else "inconsistent", slope, text)


def decide(
    statement: Statement, form: Form | None, m: Measured, index: int, sizes: np.ndarray, /
) -> Decision:
    """The status of one column of a table of measurements (`form=None` for the control).

    Args:
        statement: whose kind and tolerance decide.
        form: the form of that column.
        m: arrays of shape (instances, forms).
        index: the column.
        sizes: for each instance the index of its size; frequencies and means are taken by size.
    """
    if not np.any(m.counted[:, index]):
        return Decision("vacuous", float("nan"), "no instance met the hypotheses")
    if statement.kind == "probability":
        return _probability(statement, m, index, sizes)
    if statement.kind == "expectation":
        return _expectation(m, index, sizes)
    if statement.kind == "rate":
        return _rate((form or statement.forms[0]).sense or "at most", m, index)
    if statement.relation == "=":
        return _equal(statement, m, index)
    return _at_most(statement, form, m, index)
