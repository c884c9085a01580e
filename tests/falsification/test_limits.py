"""What distances at growing parameters say, at the border of each constant.

Parameters double unless said otherwise, so that slopes and factors are powers of two by hand.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from stubs import measured, statement

import jaxbounds as jb
from jaxbounds.claims.statements import Size
from jaxbounds.falsification.limits import _left, judged_limit, trend

LOG2 = math.log(2)
NAN, INF = math.nan, math.inf


def _by_slopes(*slopes, last=1.0):
    """Distances whose logarithm changes by these slopes, ending at `last`."""
    return last * 2.0 ** -np.append(np.cumsum(slopes[::-1])[::-1], 0.0)


def _word(distance, floor=0.0):
    return trend(LOG2 * np.arange(len(distance)), np.asarray(distance, float), floor)


X = np.log([1e2, 1e4, 1e8, 1e16, 1e32])


@pytest.mark.parametrize(
    ("distance", "status"),
    [
        (3 / X, "consistent"),  # a true limit, and the same with a constant that stays
        (1 + 3 / X, "inconsistent"),
        (0.1 + 3 / X, "inconsistent"),
        (3 / (X + 2), "inconclusive"),  # to nothing, not yet to be told
        (3 / X**2 + 0.02, "inconsistent"),
        (3 / np.sqrt(X), "inconclusive"),
        (0.01 + 3 / X, "inconsistent"),  # a fifth of the last distance
        (0.001 + 3 / X, "inconsistent"),
        (1 / np.log(X), "inconclusive"),
    ],
)
def test_a_limit_like_one_over_a_logarithm_is_told_from_what_stays(distance, status):
    found = trend(X, distance, 0.0)
    assert found.status == status, found.reason
    assert trend(X, 1e-5 * distance, 0.0).status == status  # whatever the unit


def _settling(left, factor=0.5, steps=4):
    """From above to `left` of the last distance, which is one, by a factor of each step."""
    return left + (1 - left) * factor ** -np.arange(steps)[::-1].astype(float)


@pytest.mark.parametrize(
    "steps", [(1.0, 1.0, 1.0), (0.3, 2.0, 2.0), (5.0, 2.0, 0.5), (1.0, 0.5, 3.0)]
)
@pytest.mark.parametrize("power", [0.76, 1.0, 2.5])
@pytest.mark.parametrize("left", [0.0, 0.3, 0.9, -0.5])
def test_what_is_left_in_the_end_by_hand(steps, power, left):
    # A power and a constant: the constant is told exactly, whatever the steps.
    x = np.cumsum([0.0, *steps])
    distance = left + (1 - left) * np.exp(power * (x[-1] - x))
    assert _left(x, distance) == pytest.approx(left, abs=1e-9)
    # What was before the last three is of no weight; of a last distance of 3 the part is the same.
    before = np.append(-7.0, distance[1:])
    assert _left(x, before) == pytest.approx(left, abs=1e-9)
    assert _left(x, 3 * distance) == pytest.approx(left, abs=1e-9)


@pytest.mark.parametrize("distance", [
    [2.0, 1.0],  # one change
    [4.0, 2.0, 2.0], [4.0, 4.0, 3.0], [4.0, 2.0, 3.0], [2.0, 3.0, 1.0],  # one that does not fall
    [4.0, 3.0, 2.0], [4.0, 3.0, 1.0],  # no slower than a logarithm
])  # fmt: skip
def test_what_does_not_settle_leaves_nothing_known(distance):
    assert math.isnan(_left(LOG2 * np.arange(len(distance)), np.asarray(distance)))


@pytest.mark.parametrize("distance, floor, word", [
    # Below the floor the sides agree, whatever was before.
    ([0.5, 0.5, 0.5], 0.5, "consistent"), ([0.5, 0.5, 0.5], 0.4999, "inconsistent"),
    ([0.1, 0.2, 0.3], 0.3, "consistent"), ([0.1, 0.2, 0.3], 0.2, "inconsistent"),
    ([1.0, 1.0, 0.0], 0.0, "consistent"),
    # What is left is told from the changes: a tenth goes, a half stays.
    (_settling(0.095, steps=3), 0, "consistent"),
    (_settling(0.105, steps=3), 0, "inconclusive"),
    ([2.5, 1.5, 1.0], 0, "inconclusive"),  # a half, told once
    # ... and twice: by hand 1 + s stays without the last distance and .7 + s with it.
    ([x + 13.0 for x in (3.7, 1.9, 1.3, 1.0)], 0, "inconclusive"),
    ([x + 15.0 for x in (3.7, 1.9, 1.3, 1.0)], 0, "inconsistent"),
    (_settling(0.48, steps=3), 0, "inconclusive"), (_settling(0.52), 0, "inconsistent"),
    # Less than nothing is left of what crosses: a tenth of the distance before, here 2 - left.
    (_settling(-0.2, steps=3), 0, "consistent"),
    (_settling(-0.25, steps=3), 0, "inconclusive"),
    # A slow power: three local exponents of at least .05 that differ by 3% from step to step.
    (_by_slopes(-0.3, -0.3, -0.293), 0, "consistent"), (_by_slopes(-0.3, -0.3, -0.289), 0,
     "inconclusive"),
    (_by_slopes(-0.3, -0.3, -0.309), 0, "consistent"), (_by_slopes(-0.3, -0.3, -0.31), 0,
     "inconclusive"),
    (_by_slopes(-0.3, -0.293, -0.293), 0, "consistent"), (_by_slopes(-0.3, -0.289, -0.289), 0,
     "inconclusive"),
    (_by_slopes(-0.052, -0.052, -0.052), 0, "consistent"), (_by_slopes(-0.052, -0.052), 0,
     "inconclusive"),
    (_by_slopes(-0.048, -0.048, -0.048), 0, "inconclusive"),
    (_by_slopes(-0.05, -0.05, -0.049), 0, "inconclusive"),
    (_by_slopes(-0.049, -0.05, -0.05), 0, "inconclusive"),
    (_by_slopes(0.9, -0.2, -0.2, -0.2), 0, "consistent"),
    (_by_slopes(0.9, -0.2, -0.2), 0, "inconclusive"),
    # What does not fall: by less than a thousandth, and from nowhere much higher.
    (_by_slopes(-0.1, -0.0009, -0.0009), 0, "inconsistent"),
    (_by_slopes(-0.1, -0.0011, -0.0009), 0, "inconclusive"),
    (_by_slopes(-0.1, -0.0009, -0.0011), 0, "inconclusive"),
    (_by_slopes(math.log2(0.89), -1e-4, -1e-4), 0, "inconclusive"),
    ([0.0999, 0.01, 0.01, 0.01], 0, "inconsistent"),
    (_by_slopes(math.log2(0.91), 0.0, 0.0), 0, "inconsistent"),
    (_by_slopes(0.5, 0.5, 0.5), 0, "inconsistent"),
    ([1.0, 0.9, 0.9, 0.9], 0, "inconsistent"),
    ([1.0, 0.0, 0.5], 0, "inconclusive"), ([0.0, 0.5, 0.5], 0, "inconsistent"),
])  # fmt: skip
def test_the_word_of_a_trend(distance, floor, word):
    found = _word(distance, floor)
    assert (found.status, found.distance) == (word, distance[-1])


def test_the_reason_has_the_numbers():
    # .52 + .48 * 8 = 4.36
    settles = _word(_settling(0.52)).reason
    assert "goes from 4.36 to 1, with" in settles and settles.endswith(
        "the difference of the sides tends to 0.52"
    )
    slow = _word(_by_slopes(0.7, -0.305, -0.3, -0.293)).reason
    assert slow.endswith("local exponents -0.30, -0.30, -0.29")
    # A slope is per parameter, not per step: of fourfold ones it is half.
    fourfold = trend(2 * LOG2 * np.arange(4), _by_slopes(-0.6, -0.6, -0.6), 0.0)
    assert fourfold.reason.endswith("-0.30, -0.30, -0.30") and fourfold.status == "consistent"


def test_what_crosses_slowly_is_not_called_consistent():
    # H_n / log n passes 1.03 near n = e^19 on its way to 1, and .5 / sqrt(n) passes .001.
    harmonic = lambda n: np.log(n) + 0.5772156649 + 0.5 / n
    for last in (5, 6, 7):
        n = 10.0 ** np.arange(2, last + 1)
        for limit in (1.03, 1.0):
            distance = np.abs(harmonic(n) / np.log(n) - limit)
            told = "consistent" if limit == 1.0 else "inconclusive"
            assert trend(np.log(n), distance, 0.0).status == (told if last > 5 else "inconclusive")
    n = 10.0 ** np.arange(1, 5)
    assert trend(np.log(n), 0.5 / np.sqrt(n) - 0.001, 0.0).status == "inconsistent"


@pytest.mark.parametrize("first", [2.0, 4.0, 30.0])
@pytest.mark.parametrize("sizes", [3, 4, 5, 6])
@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_logarithms_go_to_zero_and_are_not_said_to_settle(first, sizes, power):
    n = first * 2.0 ** np.arange(sizes)
    assert trend(np.log(n), np.log(n) ** -power, 0.0).status != "inconsistent"


@pytest.mark.parametrize("distance", [
    lambda n: np.exp(-n / 4), lambda n: np.abs((1 + 1 / n) ** n - np.e), lambda n: 1 / n - 1 / n**2,
    lambda n: 3 / np.sqrt(n), lambda n: n**-0.06,
])  # fmt: skip
@pytest.mark.parametrize(
    "n", [2.0 ** np.arange(2, 8), np.arange(10.0, 60, 10), 10.0 ** np.arange(1, 5)]
)
def test_what_goes_to_zero_is(distance, n):
    assert trend(np.log(n), distance(n), 0.0).status == "consistent"


# Of a statement


def _limit(sizes, towards=INF, tolerance=1e-10):
    (axis,) = {"n"}
    return statement(kind="limit", towards={axis: towards}, sizes=sizes, tolerance=tolerance)


N = tuple({"n": 2**k} for k in range(3, 8))
FALLING = 3 / 2.0 ** np.arange(3, 8)


def _judged(sizes, value, at=None, towards=INF, tolerance=1e-10, **given):
    m = measured(value, **{"rhs": 0.0, **given})
    return judged_limit(
        _limit(sizes, towards, tolerance), m, np.arange(len(value)) if at is None else at
    )


def test_a_parameter_grows_or_falls():
    assert _judged(N, FALLING).status == "consistent"
    assert _judged(N[::-1], FALLING[::-1]).status == "consistent"
    small = tuple({"n": 2.0**-k} for k in range(3, 8))
    assert _judged(small, FALLING, towards=0.0).status == "consistent"
    assert _judged(small, FALLING[::-1], towards=0.0).status == "inconsistent"
    assert _judged(N, FALLING[::-1]).status == "inconsistent"
    # Local exponents are of the parameter itself: -.08 is more than .05, of its square it is less.
    slowly = 2.0 ** (-0.08 * np.arange(5))
    assert _judged(N, slowly).status == "consistent"
    assert _judged(small, slowly, towards=0.0).status == "consistent"


def test_the_distance_of_a_size_is_its_largest():
    twice = np.repeat(np.arange(5), 2)
    value = np.repeat(FALLING, 2) * np.tile([1.0, 0.1], 5)
    found = _judged(N, value, twice)
    assert (found.status, found.distance) == ("consistent", FALLING[-1])
    value[1::2] = 0.5  # one of them stays
    assert _judged(N, value, twice).status == "inconsistent"


def test_what_is_no_number_or_not_there_decides_nothing():
    found = _judged(N, np.append(FALLING[:4], NAN))
    assert found.status == "inconclusive" and math.isnan(found.distance)
    assert "evaluate gave NaN on 1 of 5 instances" in found.reason
    gone = _judged(N, FALLING[:4])
    assert gone.status == "inconclusive" and "no instance counts at n=128" in gone.reason
    assert math.isnan(gone.distance)


@pytest.mark.parametrize("given, tolerance, level, word", [
    # The floor is the tolerance of the larger of one and the right side, or the error.
    ({"rhs": 0.5}, 1e-6, 0.99e-6, "consistent"), ({"rhs": 0.5}, 1e-6, 1.01e-6, "inconsistent"),
    ({"rhs": -100.0}, 1e-6, 0.99e-4, "consistent"), ({"rhs": 100.0}, 1e-6, 1.01e-4, "inconsistent"),
    ({"error": 0.3}, 1e-6, 0.29, "consistent"), ({"error": 0.3}, 1e-6, 0.31, "inconsistent"),
])  # fmt: skip
def test_the_floor_is_a_tolerance_or_the_error(given, tolerance, level, word):
    found = _judged(N, np.full(5, level), tolerance=tolerance, **given)
    assert found.status == word
    # That of the last value counts: of several instances the largest.
    rows = {name: np.repeat([value, 0.0], [6, 4]) for name, value in given.items()}
    first = _judged(N, np.full(10, level), np.repeat(np.arange(5), 2), tolerance=tolerance, **rows)
    assert first.status == ("consistent" if level <= 1e-6 else "inconsistent")
    rows = {name: np.append(np.zeros(9), value) for name, value in given.items()}
    last = _judged(N, np.full(10, level), np.repeat(np.arange(5), 2), tolerance=tolerance, **rows)
    assert last.status == word


def test_sizes_that_differ_in_more_are_groups_of_which_the_worst_word_counts():
    sizes = tuple({"n": 2**k, "d": d} for d in (1, 2) for k in range(3, 8))
    slowly, stays = np.log(2.0 ** np.arange(3, 8)) ** -0.5, np.full(5, 0.01)
    for first, second, word, at in (
        (FALLING, 2 * FALLING, "consistent", 2), (2 * FALLING, FALLING, "consistent", 1),
        (slowly, FALLING, "inconclusive", 1), (FALLING, slowly, "inconclusive", 2),
        (100 * FALLING, 0.01 * slowly, "inconclusive", 2),
        (stays, slowly, "inconsistent", 1), (slowly, stays, "inconsistent", 2),
    ):  # fmt: skip
        found = _judged(sizes, np.append(first, second))
        assert found.status == word and found.reason.startswith(f"at {Size({'d': at})!r} the")
        assert found.distance == (first, second)[at - 1][-1]
    assert not _judged(N, FALLING).reason.startswith("at ")


@pytest.mark.parametrize("slow", [
    lambda x: 1 / x, lambda x: 1 / np.log(x), lambda x: x**-2.0, lambda x: np.log(x) / x,
    lambda x: 1 / np.log1p(np.log1p(x)),
])  # fmt: skip
@pytest.mark.parametrize("ends", [(1, 5), (3, 13), (10, 40), (50, 60)])
def test_logarithms_never_end(slow, ends):
    """Of x = log n: all of these go to zero, whatever the sizes within reach look like."""
    x = LOG2 * 2 * np.arange(*ends)
    assert trend(x[slow(x) > 0], slow(x)[slow(x) > 0], 0.0).status != "inconsistent"


@pytest.mark.parametrize("slow", [
    lambda x: 1 / x, lambda x: 1 / np.log(x), lambda x: x**-0.5,
    lambda x: 1 / np.log1p(np.log1p(x)),
])  # fmt: skip
@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("factor", [0.01, 0.1, 1.0, 3.0])
def test_a_fast_part_does_not_make_a_slow_one_settle(slow, power, factor):
    """The sum of a power and a logarithm goes to zero; for a while its exponents end quickly."""
    for first, last in ((1, 6), (2, 8), (3, 9), (4, 10), (6, 12)):
        for step in (1, 2, 3.32):
            x = LOG2 * step * np.arange(first + 0.5, last)
            found = trend(x, slow(x) + factor * np.exp(-power * x), 0.0)
            assert found.status != "inconsistent", found.reason


def _powers(first, count, base=10.0):
    return base ** np.arange(first, first + count)


log = np.log
KAPPA = np.array([1.818, 1.937, 1.980, 1.9937, 1.998])
TO_ZERO = (
    (_powers(1, 6), lambda n: 1 / log(n)), (_powers(1, 4), lambda n: 1 / log(n)),
    (_powers(1, 6), lambda n: 1 / log(log(n))), (_powers(1, 6), lambda n: n**-0.1),
    (_powers(1, 6), lambda n: log(n) / np.sqrt(n)), (np.arange(11.0, 17), lambda n: (-1) ** n / n),
    (_powers(1, 6), lambda n: np.sin(log(n)) / log(n)),
    (_powers(1, 6), lambda n: 5 / n - 1 / log(n)),
    (_powers(1, 5), lambda n: 1 / log(n) ** 2), (_powers(3, 5, 2.0), lambda n: 1 / (log(n) + 3)),
    (_powers(2, 5), lambda n: KAPPA - 2), (_powers(1, 6), lambda n: log(log(n)) / log(n) - 1 / n),
)  # fmt: skip
TO_OTHER = (
    (_powers(2, 5), lambda n: KAPPA - 1.96), (_powers(2, 5), lambda n: KAPPA - 2.04),
    (_powers(1, 4), lambda n: 1 / log(n) + 1e-3), (_powers(1, 6), lambda n: 1 / log(n) - 0.15),
    (_powers(1, 4), lambda n: 1 / n - 0.04), (_powers(1, 6), lambda n: 0.02 - n**-0.5),
    (_powers(1, 6), lambda n: n**-0.3 + 0.1), (_powers(1, 6), lambda n: n**-0.3 - 0.1),
    (_powers(3, 6, 2.0), lambda n: 1 / n - 0.01),
    (_powers(1, 6), lambda n: 2 / n - 3 / n**1.5 + 0.01),
    (_powers(2, 6), lambda n: 1 / np.sqrt(n) + 0.2 / n - 0.02),
    (_powers(1, 4), lambda n: 1 / n + 1e-5),
)  # fmt: skip


@pytest.mark.parametrize("n, difference", TO_ZERO)
def test_a_difference_that_tends_to_zero_is_not_inconsistent(n, difference):
    y = difference(n)
    for signed in (None, y, -y):
        found = trend(np.log(n), np.abs(y), 0.0, signed)
        assert found.status != "inconsistent", found.reason


@pytest.mark.parametrize("n, difference", TO_OTHER)
def test_a_difference_that_tends_to_another_limit_is_inconsistent(n, difference):
    y = difference(n)
    for signed in (y, -y):
        assert trend(np.log(n), np.abs(y), 0.0, signed).status == "inconsistent"


def test_the_sign_of_a_difference_comes_from_its_sides():
    n = 10.0 ** np.arange(2, 7)
    sizes = tuple({"n": int(x)} for x in n)
    m = measured(np.abs(KAPPA - 1.96), lhs=KAPPA, rhs=1.96)
    assert judged_limit(_limit(sizes), m, np.arange(5)).status == "inconsistent"


def _versions(limits):
    """Return the statuses of claims that sqrt(n^2 + n) - n tends to different limits."""
    lhs = lambda n: jnp.sqrt(n**2 + n) - n
    first, *others = [lambda n, limit=limit: limit + 0.0 * n for limit in limits]
    claim = jb.claim(
        "mine.limit", lhs, "->", first, over={}, towards={"n": np.inf},
        sizes=[{"n": 2**k} for k in range(2, 9)], false=others,
    )  # fmt: skip
    return [verdict.status for verdict in jb.falsify(claim)]


def test_a_limit_is_refuted_by_another_limit_that_the_left_side_reaches():
    assert _versions([0.5, 0.49, 0.501]) == ["consistent", "inconsistent", "inconsistent"]


def test_a_false_limit_does_not_refute_the_true_limit():
    assert _versions([0.49, 0.5])[1] == "consistent"
