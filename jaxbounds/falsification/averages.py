"""Decisions about frequencies and means, from the draws and from tails that no draw shows."""

from typing import NamedTuple

import numpy as np

from jaxbounds.claims.statements import Status
from jaxbounds.falsification.intervals import clopper_pearson, tail_index, upper_mean
from jaxbounds.falsification.measure import Measured

MORE = "draw more (--thorough, or budget=Budget(samples=...))"
NO_MEAN, NO_VARIANCE = 1.3, 2.0
"""Tail indices: up to the first, there may be no mean; up to the second, no variance. Larger
numbers leave more claims open.
"""
UNSEEN = 10
"""Factor by which `_at_most` overestimates the part of a tail beyond the draws. A larger factor
leaves more claims open.
"""


class Group(NamedTuple):
    """The draws of one size that meet the hypotheses.

    Attributes:
        measured: their measurements, also where the stated error exceeds both sides.
        distinct: the number of different instances; a repeated instance is no further evidence.
        reach: the least and the largest difference of the sides that was seen at any instance, also
            beside the draws; NaN where no instance beside the draws was measured.
    """

    measured: Measured
    distinct: int
    reach: tuple[float, float] = (np.nan, np.nan)


class Average(NamedTuple):
    """A decision about a mean: its status, the ratio, and the reason."""

    status: Status
    ratio: float
    reason: str


def judged_probability(groups: list[Group], level: float, edge: float, /) -> Average:
    """Decide whether a claim fails at most as often as allowed.

    The stated error leaves some draws open. An open draw counts against `holds`, and against
    `fails`.
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


class _Side(NamedTuple):
    """The bound on a mean that a group gives from one side.

    Attributes:
        bound: the mean of lhs - rhs is at most this number.
        heavy: the index of a tail that could still raise the mean above zero; infinite if no tail
            could.
    """

    bound: float
    heavy: float


def _at_most(group: Group, sign: float) -> _Side:
    """Bound the mean of sign (lhs - rhs) from above, with the stated error added."""
    m, distinct, reach = group
    difference = sign * (m.lhs - m.rhs)
    most = float(np.nanmax([*difference, sign * reach[0], sign * reach[1]]))
    bound = upper_mean(difference, most, trials=distinct) + float(np.mean(m.error))
    index = tail_index(difference)
    # The mean of a power law beyond the largest draw. One draw in their number exceeds the largest
    # draw, and this mean is the largest draw over the index less one.
    beyond = (most - float(np.median(difference))) / distinct
    matters = index <= NO_MEAN or (index <= NO_VARIANCE and UNSEEN * beyond > -bound * (index - 1))
    return _Side(bound, index if matters else np.inf)


def judged_expectation(groups: list[Group], /) -> Average:
    """Decide whether the mean of lhs is at most the mean of rhs.

    The claim holds if this is true at every size, and fails if it is false at one size.
    """
    above, below, ratios = [], [], []
    for group in groups:
        m = group.measured
        if group.distinct < 2 or not np.all(np.isfinite([m.lhs, m.rhs, m.error])):
            reason = "NaN, an infinity, a negative error, or fewer than two different draws"
            return Average("inconclusive", np.nan, reason)
        above.append(_at_most(group, 1.0))
        below.append(_at_most(group, -1.0))
        ratios.append(float(np.mean(m.lhs)) / (abs(float(np.mean(m.rhs))) or 1.0))
    worst = max(ratios)
    text = "99.9% bound of the mean difference (empirical Bernstein, with the range seen)"
    failing = [side for side in below if side.bound < 0]
    if any(np.isinf(side.heavy) for side in failing):
        return Average("fails", worst, f"{text} above zero")
    heavy = min(side.heavy for side in (failing or above))
    if np.isfinite(heavy):
        reason = f"heavy tails (index {heavy:.2g}): a few draws decide the mean, and bounds of it"
        return Average("inconclusive", worst, f"{reason} mean nothing")
    if all(side.bound <= 0 for side in above):
        return Average("holds", worst, f"{text} below zero")
    return Average("inconclusive", worst, f"{text} on either side of zero: {MORE}")
