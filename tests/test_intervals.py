"""The width and the coverage of every interval, by hand and by laws whose coverage is known.

Nothing here is computed by the library twice: widths are worked out in the comments, from quantiles
that have a closed form (Student with one and two degrees of freedom), and coverage is summed over
all outcomes of a binomial or counted over draws of a known law.
"""

import math

import numpy as np
import pytest
from scipy import stats

from jaxbounds.falsification.intervals import clopper_pearson, fitted_exponent

STUDENT_1 = math.tan(0.495 * math.pi)
"""The two-sided 99% point of Student's law with one degree of freedom, which is Cauchy's."""
STUDENT_2 = 0.99 / math.sqrt(2 * 0.995 * 0.005)
"""With two: (2p - 1) / sqrt(2p(1 - p)) at p = .995."""


@pytest.mark.parametrize("confidence", [0.9, 0.999])
@pytest.mark.parametrize("failures, trials", [(0, 7), (1, 7), (3, 10), (10, 10), (61, 2000)])
def test_clopper_pearson_is_scipy_s_exact_interval(failures, trials, confidence):
    found = clopper_pearson(failures, trials, confidence=confidence)
    test = stats.binomtest(failures, trials)
    known = test.proportion_ci(confidence_level=confidence, method="exact")
    assert found == pytest.approx((known.low, known.high), rel=1e-9, abs=1e-12)


def test_clopper_pearson_never_covers_less_than_it_says():
    # And, at some frequency, little more: an interval too wide would decide nothing.
    n, tails = 30, []
    intervals = [clopper_pearson(k, n, confidence=0.95) for k in range(n + 1)]
    for p in np.linspace(0.01, 0.99, 99):
        inside = [low <= p <= high for low, high in intervals]
        tails.append(1 - float(stats.binom.pmf(np.arange(n + 1), n, p) @ inside))
    assert 0.035 < max(tails) <= 0.05
    # No failure in n: (1 - high)^n is half of what is left out, .0005 unless said otherwise.
    assert clopper_pearson(0, 400)[1] == pytest.approx(1 - 0.0005 ** (1 / 400), rel=1e-12)


def test_the_interval_of_an_exponent_by_hand():
    # log2 x = 0, 1, 2 and log2 y = 0, 1, 0: slope 0, residuals -1/3, 2/3, -1/3, so the variance is
    # 2/3 with one degree of freedom, over 2 = the squared distances of log2 x: sqrt(1/3).
    slope, low, high = fitted_exponent([1, 2, 4], [1, 2, 1])
    assert slope == pytest.approx(0.0, abs=1e-14)
    assert high - slope == pytest.approx(STUDENT_1 / math.sqrt(3), rel=1e-9)
    assert slope - low == pytest.approx(STUDENT_1 / math.sqrt(3), rel=1e-9)
    # log2 x = 0, 1, 2, 3 and noise 1, -1, -1, 1, which has no slope, around 7 sqrt(x): the variance
    # is 4 / 2, over 5.
    x = np.array([1.0, 2.0, 4.0, 8.0])
    slope, low, high = fitted_exponent(x, 7 * np.sqrt(x) * np.array([2.0, 0.5, 0.5, 2.0]))
    assert slope == pytest.approx(0.5, rel=1e-12)
    assert high - slope == pytest.approx(STUDENT_2 * math.sqrt(2 / 5), rel=1e-9)
    assert slope - low == pytest.approx(STUDENT_2 * math.sqrt(2 / 5), rel=1e-9)
    # A confidence of one's own: Cauchy's quartile is 1.
    _, low, high = fitted_exponent([1, 2, 4], [1, 2, 1], confidence=0.5)
    assert (low, high) == pytest.approx((-1 / math.sqrt(3), 1 / math.sqrt(3)), rel=1e-9)


def test_the_interval_of_an_exponent_misses_one_time_in_a_hundred():
    # Gaussian noise in the logarithm: Student's interval is exact. Of 4000 it misses 40, give or
    # take 6.3; a one-sided quantile would miss 80.
    rng, x = np.random.default_rng(7), np.array([1.0, 2.0, 5.0, 10.0, 20.0, 50.0])
    noise = np.exp(0.3 * rng.normal(size=(4000, len(x))))
    found = [fitted_exponent(x, 3 * x**0.7 * factor) for factor in noise]
    missed = sum(not low <= 0.7 <= high for _, low, high in found)
    assert 15 <= missed <= 65
