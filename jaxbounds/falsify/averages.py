"""Decisions about frequencies and means: what draws say, and what they cannot have seen."""

from typing import NamedTuple

import numpy as np

from jaxbounds.falsify.intervals import bernstein_interval, clopper_pearson, tail_index
from jaxbounds.falsify.measure import Measured, Reals
from jaxbounds.statements import Status

MORE = "draw more (--thorough, or budget=Budget(samples=...))"
HEAVY = 2.0
"""Up to this tail index there is no sign of a variance, and an interval of a mean means nothing."""


class Group(NamedTuple):
    """The draws of one size that meet the hypotheses.

    Attributes:
        measured: of them, also where the stated error exceeds both sides.
        distinct: how many different instances they are; repeated ones are no further evidence.
        reach: the least and the largest difference of the sides that was seen anywhere, also beside
            the draws; NaN where nobody looked.
    """

    measured: Measured
    distinct: int
    reach: tuple[float, float] = (np.nan, np.nan)


class Average(NamedTuple):
    """A status, the ratio, and why."""

    status: Status
    ratio: float
    reason: str


def judged_probability(groups: list[Group], level: float, edge: float, /) -> Average:
    """Whether a claim fails at most as often as allowed.

    A draw that the stated error leaves open counts against the claim where it is to hold, and for
    it where it is to fail.
    """
    if any(np.any(np.isnan(g.measured.value) | np.isnan(g.measured.error)) for g in groups):
        return Average("inconclusive", np.nan, "some draw gave NaN, or a stated error is negative")
    lows, highs, rates, repeated = [], [], [], ""
    for m, distinct, _ in groups:
        drawn = len(m.value)
        certain = np.sum(m.counted & (m.low > edge)) / drawn
        possible = np.mean(~m.counted | ~(m.high <= edge))
        lows.append(clopper_pearson(int(np.floor(certain * distinct)), distinct)[0])
        highs.append(clopper_pearson(int(np.ceil(possible * distinct)), distinct)[1])
        rates.append(float(np.mean(m.counted & (m.value > edge))))
        if distinct < drawn:
            repeated = f"; {drawn} draws are {distinct} different instances"
    worst = max(rates) / level
    text = f"failure frequency at most {max(rates):.3g}, level {level:g}, 99.9% exact interval"
    if max(lows) > level:
        return Average("fails", worst, f"{text} above it{repeated}")
    if max(highs) <= level:
        return Average("holds", worst, f"{text} up to {max(highs):.3g}{repeated}")
    return Average("inconclusive", worst, f"{text} up to {max(highs):.3g}{repeated}: {MORE}")


def _interval(group: Group) -> tuple[float, float]:
    """Of the mean of lhs - rhs, with the stated error added on either side."""
    m, distinct, reach = group
    difference = m.lhs - m.rhs
    low, high = np.nanmin([*difference, reach[0]]), np.nanmax([*difference, reach[1]])
    _, below, above = bernstein_interval(difference, float(high - low), trials=distinct)
    error = float(np.mean(m.error))
    return below - error, above + error


def judged_expectation(groups: list[Group], /) -> Average:
    """Whether the mean of lhs is at most that of rhs."""
    lows, highs, ratios = [], [], []
    heavy: list[float] = []
    for group in groups:
        m = group.measured
        sides: Reals = np.stack([m.lhs, m.rhs, m.error])
        if group.distinct < 2 or not np.all(np.isfinite(sides)):
            reason = "NaN, an infinity, a negative error, or fewer than two different draws"
            return Average("inconclusive", np.nan, reason)
        low, high = _interval(group)
        scale = abs(float(np.mean(m.rhs))) or 1.0
        lows.append(low / scale)
        highs.append(high / scale)
        ratios.append(float(np.mean(m.lhs)) / scale)
        heavy.append(tail_index(m.lhs - m.rhs))
    text = "99.9% interval of the mean difference (empirical Bernstein, with the range seen)"
    if min(heavy) <= HEAVY:
        reason = (
            f"heavy tails (index {min(heavy):.2g}): a few draws decide the mean, and no interval "
            "of it can be trusted"
        )
        return Average("inconclusive", max(ratios), reason)
    if max(lows) > 0:
        return Average("fails", max(ratios), f"{text} above zero")
    if max(highs) <= 0:
        return Average("holds", max(ratios), f"{text} below zero")
    return Average("inconclusive", max(ratios), f"{text} contains zero: {MORE}")
