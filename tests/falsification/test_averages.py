"""Frequencies and means: which word each border gives, from intervals worked out by hand.

No draw decides: values are listed, so that means, variances and extremes stand in the comments.
"""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from stubs import hill, measured, pareto

from jaxbounds.falsification import averages
from jaxbounds.falsification.averages import Group, judged_expectation, judged_probability
from jaxbounds.falsification.intervals import clopper_pearson, upper_mean

NAN, INF = math.nan, math.inf
ROWS = 1000
NONE = 1 - 0.0005 ** (1 / ROWS)
"""Where the exact 99.9% interval of none in a thousand ends: .00757."""


def _group(value, distinct=None, reach=(NAN, NAN), **given):
    m = measured(value, **given)
    return Group(m, len(m.value) if distinct is None else distinct, reach)


def _frequency(*groups, level=0.05, edge=1.0):
    return judged_probability(list(groups), level, edge)


ZEROS = np.zeros(ROWS)


@pytest.mark.parametrize("level, status", [(NONE * 1.001, "holds"), (NONE * 0.999, "inconclusive")])
def test_what_never_failed_may_fail_as_often_as_the_interval_says(level, status):
    found = _frequency(_group(ZEROS), level=level)
    assert (found.status, found.ratio) == (status, 0.0)


def test_a_level_is_met_by_a_frequency_that_may_be_as_large():
    half = np.repeat([0.0, 2.0], ROWS // 2)
    low, high = clopper_pearson(ROWS // 2, ROWS)  # tests/test_intervals.py has SciPy's beside it
    for level, status in (
        (high, "holds"), (np.nextafter(high, 0), "inconclusive"),
        (low, "inconclusive"), (np.nextafter(low, 0), "fails"),
    ):  # fmt: skip
        found = _frequency(_group(half), level=float(level))
        assert found.status == status and found.ratio == pytest.approx(0.5 / level)


@pytest.mark.parametrize("given, holds, fails", [
    # On the edge a draw meets the claim, above it by an ulp it fails, whatever the ratio is.
    ({"value": 1.0}, True, False),
    ({"value": 0.5, "high": 1.0, "low": 0.5}, True, False),
    ({"value": 0.5, "high": np.nextafter(1.0, 2), "low": 0.5}, False, False),
    ({"value": 2.0, "high": 3.0, "low": 1.0}, False, False),
    ({"value": 2.0, "high": 3.0, "low": np.nextafter(1.0, 2)}, False, True),
    # An error that hides both sides: may fail, and may not.
    ({"value": 0.5, "counted": False}, False, False),
    ({"value": 2.0, "counted": False}, False, False),
    # Of an infinite least value nothing is known, and of an infinite ratio that it fails.
    ({"value": 2.0, "low": -INF}, False, False),
    ({"value": INF}, False, True),
    ({"value": 0.5, "high": NAN}, False, False),
])  # fmt: skip
def test_a_draw_below_the_error_counts_against_the_claim(given, holds, fails):
    rows = {name: np.full(ROWS, value) for name, value in given.items()}
    word = "holds" if holds else "fails" if fails else "inconclusive"
    found = _frequency(_group(**rows))
    assert found.status == word
    if given.get("counted", True):
        assert found.ratio == (given["value"] > 1) / 0.05


def test_a_part_of_the_draws_is_a_part_of_their_number():
    # A tenth: the interval is from .0713 to .1353.
    tenth = np.where(np.arange(ROWS) < 100, 2.0, 0.0)
    found = {level: _frequency(_group(tenth), level=level) for level in (0.07, 0.073, 0.13, 0.137)}
    assert [one.status for one in found.values()] == ["fails", *2 * ["inconclusive"], "holds"]
    assert found[0.07].ratio == pytest.approx(0.1 / 0.07)
    # What does not count is no failure of the ratio told, and is one that may be.
    hidden = _frequency(_group(tenth, counted=tenth == 0), level=0.05)
    assert (hidden.status, hidden.ratio) == ("inconclusive", 0.0)
    # A tenth counts and fails, the others are hidden: a tenth is certain.
    shown = _frequency(_group(np.full(ROWS, 2.0), counted=tenth > 0), level=0.07)
    assert shown.status == "fails"
    assert _frequency(_group(np.full(ROWS, 2.0), counted=tenth > 0), level=0.073).status != "fails"


def test_every_size_must_hold_and_one_may_fail():
    good, bad = _group(ZEROS), _group(np.full(ROWS, 2.0))
    open_ = _group(np.full(ROWS, 0.5), high=2.0)
    for groups, status in (
        ((good, good), "holds"), ((good, bad), "fails"), ((bad, good), "fails"),
        ((good, open_), "inconclusive"), ((open_, good), "inconclusive"), ((open_, bad), "fails"),
    ):  # fmt: skip
        assert _frequency(*groups).status == status
    some = _group(np.where(np.arange(ROWS) < 10, 2.0, 0.0))
    assert _frequency(good, some, good, level=0.2).ratio == pytest.approx(0.01 / 0.2)


def test_repeated_draws_count_once_rounded_to_the_side_of_doubt():
    # 305 of 1000 are 3.05 of ten: up to 4 may fail; 995 are 9.95, of which 9 are certain.
    third = lambda n: np.where(np.arange(ROWS) < n, 2.0, 0.0)
    interval = lambda k, n: stats.binomtest(k, n).proportion_ci(0.999, "exact")
    high = interval(4, 10).high
    for level, status in ((high * 1.001, "holds"), (high * 0.999, "inconclusive")):
        assert _frequency(_group(third(305), distinct=10), level=level).status == status
    low = interval(9, 10).low
    for level, status in ((low * 0.999, "fails"), (low * 1.001, "inconclusive")):
        assert _frequency(_group(third(995), distinct=10), level=level).status == status
    said = _frequency(_group(third(305), distinct=10)).reason
    assert "; 1000 draws have only 10 different instances" in said
    assert "draws are" not in _frequency(_group(third(305))).reason


@pytest.mark.parametrize("given", [{"value": NAN, "low": 0, "high": 0}, {"value": 0, "error": NAN}])
def test_one_number_that_is_none_decides_no_frequency(given):
    rows = {k: np.append(np.zeros(ROWS), v) for k, v in given.items()}
    for groups in ((_group(**rows), _group(ZEROS)), (_group(ZEROS), _group(**rows))):
        found = _frequency(*groups)
        assert found.status == "inconclusive" and math.isnan(found.ratio)


# Means

AMOUNT = math.log(2 * 4 / 0.001)
"""Bernstein's at a thousandth, of which each of four floors has a quarter."""


def _two(low=0.0, high=2.0):
    """Half the one, half the other."""
    return np.repeat([low, high], ROWS // 2)


def _mean(*groups):
    return judged_expectation(list(groups))


def _sides(difference, rhs=0.0, **given):
    """lhs - rhs."""
    lhs = np.asarray(difference) + rhs
    return _group(lhs, lhs=lhs, rhs=rhs, **given)


WIDTH = math.sqrt(2 * (ROWS / (ROWS - 1)) * AMOUNT / ROWS) + 14 * AMOUNT / (3 * (ROWS - 1))
"""By how much the mean of `_two()` may be larger: variance 1000/999 and a range of 2."""


@pytest.mark.parametrize("error", [0.0, 0.3])
@pytest.mark.parametrize("part, status", [
    (-1.001, "holds"), (-0.999, "inconclusive"), (0.999, "inconclusive"), (1.001, "fails"),
])  # fmt: skip
def test_a_mean_is_known_to_its_bernstein_bound_and_the_stated_error(part, status, error):
    for rhs in (0.0, 3.0):
        group = _sides(_two() - 1 + part * (WIDTH + error), rhs=rhs, error=error)
        assert _mean(group).status == status


def test_sides_that_are_always_equal_hold_and_do_not_fail():
    assert _mean(_sides(np.zeros(ROWS), rhs=3.0)).status == "holds"


@pytest.mark.parametrize("sign, word", [(1, "holds"), (-1, "fails")])
def test_what_was_seen_beside_the_draws_widens_the_range(sign, word):
    # Up to 4 on that side instead of 2; what was seen on the other is of no weight.
    width = WIDTH + 14 * AMOUNT / (3 * (ROWS - 1))
    for part, status in ((1.001, word), (0.999, "inconclusive")):
        shift = -1 - part * width
        ends = (-9.0, shift + 4)
        seen = ends if sign > 0 else (-ends[1], -ends[0])
        assert _mean(_sides(sign * (_two() + shift), reach=seen)).status == status


def test_every_size_counts_for_a_mean():
    good, bad, open_ = _sides(_two() - 2), _sides(_two()), _sides(_two() - 1)
    for groups, status in (
        ((good, good), "holds"), ((good, bad), "fails"), ((bad, good), "fails"),
        ((good, open_), "inconclusive"), ((open_, good), "inconclusive"), ((open_, bad), "fails"),
    ):  # fmt: skip
        assert _mean(*groups).status == status


def test_the_ratio_is_mean_over_mean_the_largest():
    one, two = _sides(_two() - 2, rhs=10.0), _sides(_two() - 2, rhs=4.0)
    assert _mean(one, two).ratio == pytest.approx(9 / 10)
    assert _mean(two, one).ratio == pytest.approx(9 / 10)
    assert _mean(_sides(_two() - 2, rhs=-4.0)).ratio == pytest.approx(-5 / 4)
    assert _mean(_sides(_two() - 3)).ratio == pytest.approx(-2.0)  # over nothing: the mean


@pytest.mark.parametrize("name", ["lhs", "rhs", "error"])
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_one_number_that_is_none_decides_no_mean(name, bad):
    fields = {"lhs": _two() - 2, "rhs": np.zeros(ROWS), "error": np.zeros(ROWS)}
    fields[name] = np.append(fields[name][1:], bad)
    fine = _sides(_two() - 2)
    for groups in ((_group(0, **fields), fine), (fine, _group(0, **fields))):
        found = _mean(*groups)
        assert found.status == "inconclusive" and math.isnan(found.ratio)


@pytest.mark.parametrize("distinct, status", [
    (1, "inconclusive"), (2, "inconclusive"), (ROWS // 2, "inconclusive"), (ROWS, "holds"),
])  # fmt: skip
def test_repeated_draws_are_no_evidence_of_a_mean(distinct, status):
    found = _mean(_sides(_two() - 1 - 1.001 * WIDTH, distinct=distinct))
    assert (found.status, math.isnan(found.ratio)) == (status, distinct == 1)


def _tail(index, rows=4000):
    """A quarter of a power, above zeros, of which Hill's estimate is exactly the index."""
    power = pareto(1.0, rows // 4)
    of = lambda values: max(hill(values, 63), hill(values, 21))
    values = np.append(np.zeros(3 * rows // 4), power)
    return np.append(np.zeros(3 * rows // 4), power ** (of(values) / index))


@pytest.mark.parametrize("index, status", [
    (0.9, "inconclusive"), (1.0, "inconclusive"), (1.29, "inconclusive"),
    (1.31, "holds"), (1.9, "holds"), (2.5, "holds"),
])  # fmt: skip
def test_without_a_mean_nothing_is_said_however_far_below_zero(index, status):
    found = _mean(_sides(_tail(index) - 1e9))
    assert found.status == status
    assert (f"heavy tails (index {index:.2g})" in found.reason) == (status == "inconclusive")


@pytest.mark.parametrize("index", [1.35, 1.6, 1.99])
def test_without_a_variance_ten_times_what_may_lie_beyond_the_draws_is_needed(index):
    # Beyond the largest of n draws a power holds largest / ((index - 1) n).
    values = _tail(index)
    bound = upper_mean(values, float(np.max(values)))  # by hand in test_intervals_by_hand.py
    beyond = float(np.max(values)) / (4000 * (index - 1))
    for part, status in ((1.001, "holds"), (0.999, "inconclusive")):
        found = _mean(_sides(values - bound - 10 * part * beyond))
        assert found.status == status and ("heavy" in found.reason) == (status == "inconclusive")
    # What was seen beside the draws is the largest as well.
    seen = (NAN, 2 * float(np.max(values)) - bound - 10.01 * beyond)
    assert _mean(_sides(values - bound - 10.01 * beyond, reach=seen)).status == "inconclusive"
    # Above two there is a variance, and the bound is enough.
    values = _tail(2.01)
    bound = upper_mean(values, float(np.max(values)))
    assert _mean(_sides(values - bound - 1e-6)).status == "holds"
    assert _mean(_sides(values - bound + 1e-6)).status == "inconclusive"


def test_a_heavy_tail_matters_on_the_side_that_could_change_the_word():
    tail, light = _tail(1.2), _two()
    heavy = _sides(tail - 1e6)
    assert _mean(_sides(1e6 - tail)).status == "inconclusive"
    assert _mean(_sides(1e6 + tail)).status == "fails"
    assert _mean(_sides(-1e6 - tail)).status == "holds"
    # A size that fails for certain is enough; one heavy one is enough not to hold.
    for first, second in ((heavy, _sides(light)), (_sides(light), heavy)):
        assert _mean(first, second).status == "fails"
    for first, second in ((heavy, _sides(light - 2)), (_sides(light - 2), heavy)):
        assert _mean(first, second).status == "inconclusive"
        assert "heavy" in _mean(first, second).reason
    # Where the one that fails is heavy, that is the reason, not what could hold.
    found = _mean(_sides(1e6 - tail), _sides(_tail(1.1) - 1e6))
    assert "heavy tails (index 1.2)" in found.reason


def test_each_rule_is_tested_here():
    text = Path(__file__).read_text(encoding="utf8")
    rules = [name for name in vars(averages) if name.startswith("judged_")]
    assert rules and [name for name in rules if text.count(name) < 2] == []
