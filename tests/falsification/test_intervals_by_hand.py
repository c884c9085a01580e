"""Bounds of means and indices of tails by hand, and what the intervals refuse.

Not what `tests/test_intervals.py` has: there are the widths and the coverage of those that it
names, here the one-sided bounds, and every border.
"""

import math

import numpy as np
import pytest
from stubs import hill, pareto

from jaxbounds.falsification.intervals import (
    bernstein_bound,
    clopper_pearson,
    fitted_exponent,
    tail_index,
    upper_mean,
)

TWO = np.repeat([0.0, 2.0], 50)
"""Mean 1, and a variance of 100/99 from 100 draws."""


@pytest.mark.parametrize("failures, trials", [(0, 0), (-1, 3), (4, 3), (1, 0)])
def test_a_frequency_is_of_something(failures, trials):
    with pytest.raises(ValueError, match="expected 0 <= failures <= trials"):
        clopper_pearson(failures, trials)


@pytest.mark.parametrize("least, most, trials, risk, wanted", [
    # sqrt(2 (100/99) ln 2000 / 100) + 7 * 2 ln 2000 / (3 * 99), beside the mean.
    (0, 2, None, 1e-3, 1 + math.sqrt(2 / 99 * math.log(2000)) + 14 * math.log(2000) / 297),
    (-3, 5, None, 1e-3, 1 + math.sqrt(2 / 99 * math.log(2000)) + 56 * math.log(2000) / 297),
    (0, 2, None, 0.02, 1 + math.sqrt(2 / 99 * math.log(100)) + 14 * math.log(100) / 297),
    # Of the 100 ten are independent.
    (0, 2, 10, 0.02, 1 + math.sqrt(20 / 99 * math.log(100)) + 14 * math.log(100) / 27),
])  # fmt: skip
def test_bernstein_s_bound_by_hand(least, most, trials, risk, wanted):
    found = bernstein_bound(TWO, least, most, trials=trials, risk=risk)
    assert found == pytest.approx(wanted, rel=1e-12)


def test_bernstein_s_bound_of_two_values_and_of_fewer():
    # 0 and 1: a half, sqrt(2 * 1/2 * ln 20 / 2) and 7 ln 20 / 3.
    wanted = 0.5 + math.sqrt(math.log(20) / 2) + 7 * math.log(20) / 3
    assert bernstein_bound([0.0, 1.0], 0, 1, risk=0.1) == pytest.approx(wanted, rel=1e-12)
    assert bernstein_bound([0.0, 1.0, 0.0], 0, 1, trials=2, risk=0.1) > wanted - 0.5
    for values, trials, fewest in (([1.0], None, 1), ([1.0], 5, 1), ([1.0, 2.0, 3.0], 1, 1)):
        with pytest.raises(ValueError, match=f"n={fewest}, expected at least 2 values"):
            bernstein_bound(values, 0, 1, trials=trials, risk=0.1)


def test_a_bound_without_a_least_value_is_the_best_of_four_floors():
    # Quantiles 0, .3, .6, .9 of 0, ..., 99 are 0, 29.7, 59.4, 89.1; each with a quarter of the
    # risk, so that ln 8000 stands for ln 2000.
    values = np.arange(100.0)
    amount, found = math.log(8000), []
    for low in (0.0, 29.7, 59.4, 89.1):
        raised = np.maximum(values, low)
        spread = math.sqrt(2 * np.var(raised, ddof=1) * amount / 100)
        found.append(np.mean(raised) + spread + 7 * (120 - low) * amount / 297)
    assert np.argmin(found) == 1  # neither the first nor the last
    assert upper_mean(values, 120.0) == pytest.approx(min(found), rel=1e-12)
    # Of one draw far below all the floor of all is far too wide.
    late = np.append(values, -1e6)
    assert upper_mean(late, 120.0) < 120.0
    assert upper_mean(values, 120.0, trials=50) > upper_mean(values, 120.0)
    assert upper_mean(values, 120.0, risk=0.1) < upper_mean(values, 120.0)


@pytest.mark.parametrize("rows, count", [(1000, 31), (4000, 63), (300, 24)])
def test_the_index_of_a_tail_is_hill_s_the_larger_of_two(rows, count):
    values = pareto(1.5, rows)
    both = hill(values, count), hill(values, count // 3)
    assert tail_index(values) == pytest.approx(max(both), rel=1e-12)
    # Only a true power keeps its index: here each of the two is the larger one.
    bent = np.where(values > 20, 20 * (values / 20) ** 0.2, values)
    assert tail_index(bent) == pytest.approx(hill(bent, count // 3), rel=1e-12)
    light = np.where(values > 20, 20 * (values / 20) ** 3.0, values)
    assert tail_index(light) == pytest.approx(hill(light, count), rel=1e-12)
    assert tail_index(values[::-1] + 7) == pytest.approx(max(both), rel=1e-9)


def test_too_few_draws_and_those_that_do_not_spread_show_no_tail():
    # 25 draws above their median are needed, of which the least is where the tail begins.
    for rows in (24, 25, 48, 49):
        assert tail_index(pareto(1.5, rows)) == math.inf
    fifty = pareto(1.5, 50)
    assert tail_index(fifty) == pytest.approx(max(hill(fifty, 24), hill(fifty, 8)), rel=1e-12)
    # More than half are one number, and less than 24 are above it.
    assert tail_index(np.repeat([1.0, 2.0], [980, 20])) == math.inf
    # Of 24 that are above and alike the logarithms have no spread.
    assert tail_index(np.repeat([1.0, 2.0], [900, 100])) == math.inf


def test_an_exponent_is_of_three_positive_points_and_two_places():
    assert fitted_exponent([1.0, 2.0, 4.0], [3.0, 6.0, 12.0])[0] == pytest.approx(1.0)
    for x, y, says in (
        ([1.0, 2.0], [1.0, 2.0], r"lengths=\(2, 2\) of x and y, expected one length of at least 3"),
        ([1.0, 2.0, 3.0], [1.0, 2.0], r"lengths=\(3, 2\)"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], r"lengths=\(2, 3\)"),
        ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], "positive values"),
        ([1.0, 2.0, 3.0], [1.0, 0.0, 3.0], "positive values"),
        ([1.0, 2.0, 3.0], [1.0, math.nan, 3.0], "positive values"),
        ([2.0, 2.0, 2.0], [1.0, 2.0, 3.0], "two different values"),
        # Different, and their logarithms are one float.
        (
            [1e300, 1e300 * (1 + 2.0**-52), 1e300],
            [1.0, 2.0, 3.0],
            "two different values",
        ),
    ):
        with pytest.raises(ValueError, match=says):
            fitted_exponent(x, y)
