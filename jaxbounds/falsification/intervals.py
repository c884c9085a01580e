"""Confidence bounds: exact for a binomial, of a mean, and of the exponent of a power law."""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from jaxbounds.ground.exceptions import Refused


def clopper_pearson(failures: int, trials: int, /, *, confidence: float = 0.999):
    """Return the exact two-sided interval for a binomial frequency.

    Raises:
        Refused: if trials is not positive or failures is not between 0 and trials.
    """
    if trials < 1 or not 0 <= failures <= trials:
        raise Refused(
            f"need 0 <= failures <= trials >= 1, got failures={failures} of "
            f"trials={trials}. Try at least one trial"
        )
    tail = (1 - confidence) / 2
    low = scipy.special.betaincinv(failures, trials - failures + 1, tail) if failures else 0.0
    high = (
        scipy.special.betaincinv(failures + 1, trials - failures, 1 - tail)
        if failures < trials
        else 1.0
    )
    return float(low), float(high)


def bernstein_bound(
    values: ArrayLike, least: float, most: float, /, *, trials: int | None = None, risk: float
) -> float:
    """Return an upper bound on a mean: empirical Bernstein (Maurer and Pontil 2009, Theorem 4).

    The bound fails with probability at most `risk` if all values lie from `least` to `most`.

    Args:
        values: independent draws.
        least: the smallest value there is.
        most: the largest.
        trials: the number of independent draws; all draws unless given.
        risk: the probability of failing.

    Raises:
        Refused: for fewer than two values or trials.
    """
    values = np.asarray(values, float)
    n = len(values) if trials is None else trials
    if len(values) < 2 or n < 2:
        raise Refused(
            f"need at least 2 values for an interval, got n={min(len(values), n)}. Try more draws"
        )
    amount = np.log(2 / risk)
    spread = np.sqrt(2 * float(np.var(values, ddof=1)) * amount / n)
    return float(np.mean(values) + spread + 7 * (most - least) * amount / (3 * (n - 1)))


CLIPS = 4
"""Floors that `upper_mean` tries; a larger number finds a smaller bound, for longer."""


def upper_mean(
    values: ArrayLike, most: float, /, *, trials: int | None = None, risk: float = 0.001
) -> float:
    """Return an upper bound on a mean of values up to `most`, without a bound from below.

    The function raises the values to a floor. The raised values have no smaller mean, and they have
    a range. The result is the best bound of several floors.
    """
    values = np.asarray(values, float)
    floors = np.quantile(values, np.linspace(0, 0.9, CLIPS))
    bounds = (
        bernstein_bound(np.maximum(values, low), low, most, trials=trials, risk=risk / CLIPS)
        for low in floors
    )
    return min(bounds)


def tail_index(values: ArrayLike, /) -> float:
    """Estimate the index a of the upper tail P(x > t) ~ t^-a, about the median (Hill).

    The estimator uses the largest values, as many as the square root of all, and then the largest
    third of these. The larger of the two estimates counts, as only a true power keeps its index to
    the end. The index is infinite where the values do not spread. An index up to two shows no sign
    of a variance.
    """
    values = np.asarray(values, float)
    size = np.sort(values - np.median(values))[::-1]
    count = max(24, int(np.sqrt(len(size))))
    if len(size) <= count or not size[count] > 0:
        return float("inf")

    def hill(k: int) -> float:
        spread = float(np.mean(np.log(size[:k] / size[k])))
        return 1 / spread if spread > 0 else float("inf")

    return max(hill(count), hill(count // 3))


def fitted_exponent(x: ArrayLike, y: ArrayLike, /, *, confidence: float = 0.99):
    """Fit the slope of log y against log x by least squares, with its Student interval.

    Returns:
        (slope, low, high).

    Raises:
        Refused: if fewer than 3 points are given, some are not positive, or x is constant.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if len(x) < 3 or len(x) != len(y):
        raise Refused(
            f"need at least 3 points in x and y of one length, got {len(x)} and {len(y)}. "
            "Try more sizes"
        )
    if not (np.all(x > 0) and np.all(y > 0)):
        raise Refused(
            f"x={x}, y={y}: an exponent needs positive values. Try to leave out zeros and NaN"
        )
    if np.ptp(np.log(x)) == 0:
        raise Refused(f"x={x}: an exponent needs at least two different x. Try more sizes")
    (slope, _), covariance = np.polyfit(np.log(x), np.log(y), 1, cov=True)
    half = scipy.special.stdtrit(len(x) - 2, (1 + confidence) / 2) * np.sqrt(covariance[0, 0])
    return float(slope), float(slope - half), float(slope + half)
