"""Confidence bounds of a frequency, of a mean, and of the exponent of a power law."""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from jaxbounds.ground.exceptions import Refused


def clopper_pearson(
    failures: int, trials: int, /, *, confidence: float = 0.999
) -> tuple[float, float]:
    """Return the exact two-sided confidence interval (Clopper-Pearson) for a binomial frequency.

    Raises:
        Refused: if trials is not positive, or failures is not in 0..trials.
    """
    if trials < 1 or not 0 <= failures <= trials:
        raise Refused(
            f"failures={failures}, trials={trials}: expected 0 <= failures <= trials and "
            "trials >= 1. Try at least one trial"
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
    """Return an empirical Bernstein bound on a mean (Maurer and Pontil 2009, Theorem 4).

    The mean exceeds the bound with probability at most `risk` if all values are in [least, most].

    Args:
        values: independent draws.
        least: the smallest value that the quantity can have.
        most: the largest value that the quantity can have.
        trials: the number of independent draws; the default is the number of values.
        risk: the probability with which the confidence bound may fail.

    Raises:
        Refused: if there are fewer than two values or trials.
    """
    values = np.asarray(values, float)
    n = len(values) if trials is None else trials
    if len(values) < 2 or n < 2:
        raise Refused(
            f"n={min(len(values), n)}, expected at least 2 values for a bound. Try more draws"
        )
    amount = np.log(2 / risk)
    spread = np.sqrt(2 * float(np.var(values, ddof=1)) * amount / n)
    return float(np.mean(values) + spread + 7 * (most - least) * amount / (3 * (n - 1)))


CLIPS = 4
"""`upper_mean` tries this many floors (lower limits), to which it raises smaller values. A larger
number gives a smaller bound and takes longer."""


def upper_mean(
    values: ArrayLike, most: float, /, *, trials: int | None = None, risk: float = 0.001
) -> float:
    """Return an upper confidence bound on a mean; the values are at most `most`, however small.

    The function raises small values to a floor, which cannot lower the mean and makes the range
    finite. The result is the smallest bound over several floors.
    """
    values = np.asarray(values, float)
    floors = np.quantile(values, np.linspace(0, 0.9, CLIPS))
    bounds = (
        bernstein_bound(np.maximum(values, low), low, most, trials=trials, risk=risk / CLIPS)
        for low in floors
    )
    return min(bounds)


def tail_index(values: ArrayLike, /) -> float:
    """Estimate the index a of the upper tail P(x - median > t) ~ t^-a by Hill's estimator.

    The estimator uses the sqrt(n) largest of n values, and then the largest third of these values.
    The larger estimate is the result, or infinity if few values lie above the median. A tail with
    an index of at most two may have no variance.
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


def fitted_exponent(
    x: ArrayLike, y: ArrayLike, /, *, confidence: float = 0.99
) -> tuple[float, float, float]:
    """Fit the slope of log y against log x by least squares; return it with its Student interval.

    Returns:
        The tuple (slope, low, high) of the slope and the ends of its interval.

    Raises:
        Refused: if there are fewer than 3 points, a number is not positive, or x is constant.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if len(x) < 3 or len(x) != len(y):
        raise Refused(
            f"lengths={(len(x), len(y))} of x and y, expected one length of at least 3. Try more "
            "sizes"
        )
    if not (np.all(x > 0) and np.all(y > 0)):
        raise Refused(
            f"x={x}, y={y}: the fit of an exponent needs positive values. Try to leave out zeros "
            f"and NaN"
        )
    if np.ptp(np.log(x)) == 0:
        raise Refused(f"x={x}: expected at least two different values. Try more values of x")
    (slope, _), covariance = np.polyfit(np.log(x), np.log(y), 1, cov=True)
    half = scipy.special.stdtrit(len(x) - 2, (1 + confidence) / 2) * np.sqrt(covariance[0, 0])
    return float(slope), float(slope - half), float(slope + half)
