"""The rules by which measurements become a status."""

from typing import NamedTuple

import numpy as np

from jaxbounds.falsify.bench import Column
from jaxbounds.falsify.intervals import clopper_pearson, fitted_exponent, mean_interval
from jaxbounds.falsify.measure import Measured, Reals
from jaxbounds.statements import Form, Sense, Statement, Status


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
    reason = (
        f"the sides differ by a relative {worst:.1g}, more than rounding should allow (tolerance "
        f"{statement.tolerance:.0e}): if it is cancellation, say how much in Sides(..., error=...)"
    )
    return Decision("inconclusive", worst, reason)


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


def _rate(form: Form | None, sense: Sense, m: Measured) -> Decision:
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
    if form and form.exponent and not form.exponent[0] <= slope <= form.exponent[1]:
        expected = "expected {:g} to {:g}: is the formula what was meant?".format(*form.exponent)
        return Decision("inconclusive", slope, f"{text}, {expected}")
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
        return _rate(form, (form or statement.forms[0]).sense or "at most", counted)
    if statement.relation == "=":
        return _equal(statement, counted)
    return _at_most(statement, form, counted)
