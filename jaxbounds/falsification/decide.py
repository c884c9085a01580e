"""The rules that turn a claim's measurements into its status: holds, fails, inconclusive, ..."""

import math
from typing import NamedTuple

import numpy as np

from jaxbounds.claims.statements import BY_INSTANCE, DRAWN, Form, Statement, Status
from jaxbounds.claims.statements.problems import WIDEST
from jaxbounds.falsification.averages import Group, judged_expectation, judged_probability
from jaxbounds.falsification.bench import Column
from jaxbounds.falsification.evaluation import Flags, Reals
from jaxbounds.falsification.limits import judged_limit
from jaxbounds.falsification.measure import UNITS, Measured
from jaxbounds.falsification.rates import judged_rate


class Decision(NamedTuple):
    """The status of one version of the claim, its worst ratio, and the reason for the status."""

    status: Status
    ratio: float
    reason: str


REACHES_ONE = "the worst ratio is one up to rounding, and the form names no equality case"
NAME_EQUALITY = '. Try equality="x = y" in jb.claim or jb.Form, which says where both sides agree'
WITH_CONTROL = 9e-6
"""The control that the library makes for an identity is wrong by 1%. The rules reject a difference
of a thousand tolerances, so they reject this control only up to this tolerance. A larger number
advises tolerances with which the library cannot reject its control."""
NUMERICAL = 1e-3
"""A relative error bar up to this width counts as rounding; a wider bar is statistical and leaves
equality undecided. A larger value treats wider bars as rounding."""


LARGE = 1e100
"""If one side is infinite and the other exceeds this value, the infinity may be an overflow. A
larger value calls more bounds with an infinite side vacuous (they exclude nothing)."""
BELOW_ONE = "every ratio stays below one"
"""The verdict's reason for a bound whose ratio of the sides stays below one."""
MAY_BE = "but may be rounding"
"""A part of the reason if the sides of an identity differ by a small amount."""
NONE_MET = "no drawn instance met the hypotheses"
"""The verdict's reason if every instance violates the hypotheses."""
TRY_SETS = ". Try sets in over= whose points meet the hypotheses"
"""Advice for a claim whose hypotheses every instance violates."""
UNNAMED = f"{REACHES_ONE}{NAME_EQUALITY}"
"""The verdict's reason for a bound whose worst ratio is near one and that names no instance with
equal sides."""


def edge(statement: Statement, /) -> float:
    """Return the largest value that does not violate the claim: 1 + tolerance for a bound.

    For `=` the result is a thousand tolerances, because a smaller difference is no clear violation.
    """
    return 1 + statement.tolerance if statement.is_bound else 1e3 * statement.tolerance


def violation(statement: Statement, m: Measured, /) -> Reals:
    """Return, for each instance, the amount by which it certainly violates the claim.

    The result is -inf for an instance that does not count as evidence, for example because it
    violates a hypothesis.
    """
    return np.where(m.counted & (m.low > -np.inf), m.low - edge(statement), -np.inf)


def _unknown(m: Measured) -> np.ndarray:
    """Return a mask of the measurements with a NaN; `Measured` stores a negative error as NaN."""
    return np.isnan(m.value) | np.isnan(m.low) | np.isnan(m.high) | np.isnan(m.error)


def _nan_reason(statement: Statement, m: Measured) -> str:
    stated = np.isnan(m.error) & ~np.isnan(m.value)
    if np.any(stated):
        return f"the stated error of {int(np.sum(stated))} instances that count is negative or NaN"
    project = "" if statement.search == "none" else ", and a `project` onto them"
    return (
        f"evaluate gave NaN on {int(np.sum(_unknown(m)))} of {len(m.value)} instances that count. "
        f"Try `hypotheses` that exclude these instances{project}"
    )


def _worst(values: Reals) -> float:
    return float(np.nanmax(values)) if np.any(~np.isnan(values)) else float("nan")


def _violated(statement: Statement, m: Measured, words: str) -> Decision | None:
    failing = int(np.sum(m.low > edge(statement)))
    if failing:
        return Decision("fails", _worst(m.value), f"{failing} of {len(m.low)} instances {words}")
    if np.any(_unknown(m)):
        return Decision("inconclusive", float("nan"), _nan_reason(statement, m))
    return None


def _at_most(statement: Statement, form: Form | None, m: Measured) -> Decision:
    if decision := _violated(statement, m, "violate it"):
        return decision
    tolerance, worst = statement.tolerance, _worst(m.value)
    if np.all(m.trivial | (m.rhs == np.inf) | (m.lhs == -np.inf)):
        large = np.isinf(m.lhs) | (np.abs(m.lhs) > LARGE)
        if np.any(large & (m.rhs == np.inf)):
            reason = "the larger side is infinite on all instances, perhaps by overflow"
            cure = "Try smaller sets, or compare logarithms"
            return Decision("inconclusive", worst, f"{reason}. {cure}")
        infinite = np.all(m.rhs == np.inf) or np.all(m.lhs == -np.inf)
        words = "one side is infinite on all instances, so the inequality excludes no number"
        never = "the bound never beats the trivial bound"
        return Decision("vacuous", worst, words if infinite else never)
    if np.all(m.high < 1 - tolerance):
        return Decision("holds", worst, BELOW_ONE)
    searched = (m.value > 1 + tolerance) & np.isneginf(m.low)
    if np.any(searched):
        return Decision("inconclusive", worst, _unsupported(statement, searched))
    if statement.there_is is not None and np.any(m.value == np.inf):
        none = int(np.sum(m.value == np.inf))
        entries = ", ".join(statement.there_is)
        reason = (
            f"on {none} of {len(m.value)} instances the search found no {entries} that meets the "
            "hypotheses. A hypothesis on an entry of there_is restricts the entry. Try hypotheses "
            "that some point meets at every instance"
        )
        return Decision("inconclusive", worst, reason)
    if np.any((m.high > 1 + tolerance) & (m.high - m.low > NUMERICAL)):
        words = "the error bar of some ratio contains one"
        cure = (
            "Try error= with the rounding error of the sides, or hypotheses that exclude zero sides"
        )
        return Decision("inconclusive", worst, f"{words}. {cure}")
    if form and form.equality:
        words = f"the worst ratio is one up to rounding; named equality case: {form.equality}"
        return Decision("holds", worst, words)
    return Decision("inconclusive", worst, UNNAMED)


def _unsupported(statement: Statement, searched: Flags) -> str:
    some = f"{int(np.sum(searched))} of {len(searched)} instances"
    if statement.there_is is not None:
        cure = "" if statement.witness else ". Try witness= with a function that returns a point"
        return (
            f"the search found no {', '.join(statement.there_is)} for {some}, and such a failure "
            f"does not prove that none exists{cure}"
        )
    side, word = next(iter(statement.estimates.items()))
    return (
        f"{some} seem to violate the claim, but a search only estimates the {side} from {word}; "
        "the true value may satisfy the claim"
    )


def _none_tried(statement: Statement) -> str:
    """Return why hypotheses that no tried `there_is` entry meets decide nothing, and advice."""
    entries = ", ".join(statement.there_is or {})
    witness = "" if statement.witness else "witness= with a function that returns a point, or "
    return (
        f"{NONE_MET} with any tried {entries}. A hypothesis on {entries} restricts the choice. Try "
        f"{witness}sets in over= and there_is= whose points meet the hypotheses"
    )


def _tolerance(statement: Statement, needed: float) -> str:
    """Return a tolerance as an argument, rounded up to one digit; empty if it is too large."""
    if not 0 < needed <= (WIDEST if statement.control else WITH_CONTROL):
        return ""
    unit = 10.0 ** math.floor(math.log10(needed))
    return f"tolerance={math.ceil(needed / unit) * unit:.0e}"


def _without_stated_errors(statement: Statement, m: Measured) -> str:
    """Return the advice for an identity whose stated errors exceed half the tolerance."""
    wide = _tolerance(statement, _worst(np.maximum(m.high, 2 * (m.high - m.value))))
    alone = _tolerance(statement, max(2 * _worst(m.value), statement.tolerance))
    without = f"{alone} and no error=" if alone else "a smaller error="
    return f"{wide}, or {without}" if wide else without


def _equal(statement: Statement, m: Measured) -> Decision:
    if decision := _violated(statement, m, "differ"):
        return decision
    worst = _worst(m.value)
    if np.all(m.high <= statement.tolerance):
        return Decision("holds", worst, "both sides agree within the tolerance")
    searched = (m.value > statement.tolerance) & np.isneginf(m.low)
    if np.any(searched):
        return Decision("inconclusive", worst, _unsupported(statement, searched))
    smaller = "smaller sets in over=" if statement.over else "sides without terms that cancel"
    ways = _tolerance(statement, 2 * float(np.max(m.high))), smaller
    reason = (
        f"the relative difference {worst:.1g} of the sides exceeds the tolerance "
        f"{statement.tolerance:.0e}, {MAY_BE}. If rounding causes the difference, try "
        f"{', or '.join(filter(None, ways))}"
    )
    return Decision("inconclusive", worst, reason)


def decide(statement: Statement, form: Form | None, column: Column, /) -> Decision:
    """Decide the status of one version of the claim (`form`) from its measurements.

    A deliberately false variant has no `form`.

    Raises:
        NotImplementedError: if the function has no rule for the kind of the statement.
    """
    keep = column.measured.counted
    if statement.kind in DRAWN:
        keep = column.measured.met  # an undecided draw counts against the claim
    if not np.any(keep) and np.any(column.measured.met):
        hidden = int(np.sum(column.measured.met))
        reason = f"the stated error exceeds both sides on {hidden} instances"
        if statement.relation == "=":
            m = Measured(*(np.asarray(field)[column.measured.met] for field in column.measured))
            reason = (
                f"the stated error exceeds tolerance={statement.tolerance:g} / 2 times the sides "
                f"on {hidden} instances. Try {_without_stated_errors(statement, m)}"
            )
        return Decision("inconclusive", float("nan"), reason)
    if not np.any(keep) and statement.there_is is not None:
        return Decision("inconclusive", float("nan"), _none_tried(statement))
    if not np.any(keep):
        return Decision("vacuous", float("nan"), NONE_MET + TRY_SETS)
    rows = lambda chosen: Measured(*(np.asarray(field)[chosen] for field in column.measured))
    counted = rows(keep)
    if statement.kind in DRAWN:
        drawn = [keep & (column.sizes == size) for size in np.unique(column.sizes[keep])]
        groups = [
            Group(rows(chosen), len(np.unique(column.labels[chosen])), column.reach)
            for chosen in drawn
        ]
        mean = statement.kind == "expectation"
        found = (
            judged_expectation(groups) if mean
            else judged_probability(groups, statement.level or 0.0, edge(statement))
        )  # fmt: skip
        if found.status == "holds" and np.all(counted.trivial):
            return Decision("vacuous", found.ratio, "the bound never beats the trivial bound")
        return Decision(*found)
    if statement.kind == "rate":
        if lost := int(np.sum(column.measured.met & ~column.measured.counted)):
            reason = f"the stated error exceeds both sides on {lost} instances"
            return Decision("inconclusive", float("nan"), reason)
        sense = (form or statement.forms[0]).sense or "at most"
        return Decision(*judged_rate(form, sense, counted, column.sizes[keep]))
    if statement.kind == "limit":
        rounding = None if column.scale is None else UNITS * column.scale[keep]
        return Decision(*judged_limit(statement, counted, column.sizes[keep], rounding))
    if statement.kind not in BY_INSTANCE:
        raise NotImplementedError(
            f"kind={statement.kind!r} has no rule in `decide`. Try to add a rule there, or to give "
            f"the kind the decider 'each instance'"
        )
    if statement.relation == "=":
        return _equal(statement, counted)
    return _at_most(statement, form, counted)
