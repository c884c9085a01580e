"""Decide claims about frequencies and means from random instances and a bound on unseen tails."""

from typing import NamedTuple

import numpy as np

from jaxbounds.claims.statements import Status
from jaxbounds.falsification.intervals import clopper_pearson, tail_index, upper_mean
from jaxbounds.falsification.measure import Measured

MORE = "Try more draws (--thorough, or budget=Budget(samples=...))"
NO_MEAN, NO_VARIANCE = 1.3, 2.0
"""Exponents a of a power-law tail P(x > t) ~ t^-a.

The mean may not exist if a is at most NO_MEAN, and the variance may not exist if a is at most
NO_VARIANCE. Larger exponents leave more claims undecided.
"""
UNSEEN = 10
"""`_at_most` multiplies its estimate of the undrawn tail's share in the mean by this factor. A
larger factor leaves more claims undecided."""


class Group(NamedTuple):
    """The random instances of one shape that meet the hypotheses.

    Attributes:
        distinct: the number of different instances; a repeated instance is no further evidence.
        reach: the least and the largest difference of the sides at any measured instance, drawn or
            not; NaN if the engine measured only the draws.
    """

    measured: Measured
    distinct: int
    reach: tuple[float, float] = (np.nan, np.nan)


class Average(NamedTuple):
    """A decision about a frequency or a mean: the status, the measured ratio, and the reason."""

    status: Status
    ratio: float
    reason: str


def judged_probability(groups: list[Group], level: float, edge: float, /) -> Average:
    """Decide whether a claim fails at most as often as its level (a probability) allows.

    A large stated error may leave a draw (a random instance) undecided. An undecided draw counts
    against the verdict, whether `holds` or `fails`.
    """
    if any(np.any(np.isnan(g.measured.value) | np.isnan(g.measured.error)) for g in groups):
        return Average("inconclusive", np.nan, "a draw gave NaN, or a stated error is negative")
    lows, highs, rates, repeated = [], [], [], ""
    for m, distinct, _ in groups:
        drawn = len(m.value)
        certain = np.sum(m.counted & (m.low > edge)) / drawn
        possible = np.mean(~m.counted | ~(m.high <= edge))
        lows.append(clopper_pearson(int(np.floor(certain * distinct)), distinct)[0])
        highs.append(clopper_pearson(int(np.ceil(possible * distinct)), distinct)[1])
        rates.append(float(np.mean(m.counted & (m.value > edge))))
        if distinct < drawn:
            repeated = f"; {drawn} draws have only {distinct} different instances"
    worst = max(rates) / level
    text = f"the largest failure frequency is {max(rates):.3g}, and the level is {level:g}"
    interval = "its exact 99.9% interval"
    if max(lows) > level:
        return Average("fails", worst, f"{text}; {interval} lies above the level{repeated}")
    if max(highs) <= level:
        return Average("holds", worst, f"{text}; {interval} ends at {max(highs):.3g}{repeated}")
    reason = f"{text}; {interval} ends at {max(highs):.3g}{repeated}. {MORE}"
    return Average("inconclusive", worst, reason)


class _Side(NamedTuple):
    """An upper confidence bound from random instances of one shape.

    Attributes:
        bound: the upper confidence bound on the mean of sign * (lhs - rhs).
        heavy: the exponent of a power-law tail, if the tail's unseen values could make the mean
            positive; otherwise infinity.
    """

    bound: float
    heavy: float


def _at_most(group: Group, sign: float) -> _Side:
    """Return an upper confidence bound on the mean of sign * (lhs - rhs), plus the stated error."""
    m, distinct, reach = group
    difference = sign * (m.lhs - m.rhs)
    most = float(np.nanmax([*difference, sign * reach[0], sign * reach[1]]))
    bound = upper_mean(difference, most, trials=distinct) + float(np.mean(m.error))
    index = tail_index(difference)
    # Add the share of the mean beyond the largest draw x. Under a power law of index a, a value
    # beyond x has probability 1 / (number of draws) and mean excess x / (a - 1).
    beyond = (most - float(np.median(difference))) / distinct
    matters = index <= NO_MEAN or (index <= NO_VARIANCE and UNSEEN * beyond > -bound * (index - 1))
    return _Side(bound, index if matters else np.inf)


def judged_expectation(groups: list[Group], /) -> Average:
    """Decide whether the mean of lhs is at most the mean of rhs.

    The claim holds if the inequality is true at every size, and fails if it is false at one size.
    """
    above, below, ratios = [], [], []
    for group in groups:
        m = group.measured
        if group.distinct < 2 or not np.all(np.isfinite([m.lhs, m.rhs, m.error])):
            reason = "a draw gave NaN, an infinity or a negative error, or all draws are equal"
            return Average("inconclusive", np.nan, reason)
        above.append(_at_most(group, 1.0))
        below.append(_at_most(group, -1.0))
        ratios.append(float(np.mean(m.lhs)) / (abs(float(np.mean(m.rhs))) or 1.0))
    worst = max(ratios)
    text = "the 99.9% bounds on the mean of lhs - rhs (empirical Bernstein, with the range seen)"
    failing = [side for side in below if side.bound < 0]
    if any(np.isinf(side.heavy) for side in failing):
        return Average("fails", worst, f"{text} lie above zero")
    heavy = min(side.heavy for side in (failing or above))
    if np.isfinite(heavy):
        reason = f"lhs - rhs has heavy tails (index {heavy:.2g}), so a few draws decide its mean"
        return Average("inconclusive", worst, f"{reason}, and no bound on the mean is reliable")
    if all(side.bound <= 0 for side in above):
        return Average("holds", worst, f"{text} lie below zero")
    return Average("inconclusive", worst, f"{text} lie on both sides of zero. {MORE}")
