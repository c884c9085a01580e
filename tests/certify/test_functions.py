"""Scalar functions of balls contain the truth, and are tight.

The oracle is mpmath at 400 bits and fractions: it shares no code with FLINT's balls, and the ends
of a ball are read off its midpoint and its radius.
"""

import math
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from mpmath import mp
from oracle import draws, truth

from jaxbounds.certification import precision
from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.values import OPEN

DRAWS = pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.slow)])
OF_ITS_DOMAIN = {"sqrt", "pow"}
"""On a ball that leaves the domain they enclose what is defined; the others say that they know
nothing."""


def judge(
    name: str,
    function: Callable[..., arb],
    value: Callable[..., Any],
    given: tuple[arb, ...],
    rng: np.random.Generator,
) -> bool:
    """One draw; whether anything was claimed of a true value."""
    found, claimed = function(*given), False
    wide = any(not x.is_exact() for x in given)
    for at in zip(*(rng.permutation(np.array(p, dtype=object)) for p in points(given, rng))):
        try:
            true = value(*at)
        except truth.Unknown:
            continue
        if true is None and wide and name in OF_ITS_DOMAIN:
            continue
        assert truth.encloses(found, true), f"{name}{given} = {found}, and {true} at {at}"
        claimed |= true is not None and not found.is_nan()
    return claimed


def points(given: tuple[arb, ...], rng: np.random.Generator) -> list[list[Any]]:
    """As many points of each ball; a ball that is a point is itself each time."""
    found = [draws.points(x, rng, 2) for x in given]
    most = max(map(len, found))
    return [(p * most)[:most] for p in found]


def many(name: str, count: int, function: Any, value: Any, arguments: int, least: float) -> None:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    claimed = 0
    for i in range(count):
        given = tuple(draws.ball(rng) for _ in range(arguments))
        with precision((32, 192)[i % 2]):
            claimed += judge(name, function, value, given, rng)
    assert claimed > least * count  # containment by NaN alone would be empty


@DRAWS
@pytest.mark.parametrize("name", sorted(functions.UNARY))
def test_a_function_of_one_ball_contains_the_truth(name, count):
    many(name, count, functions.UNARY[name], truth.UNARY[name], 1, 0.1)


@DRAWS
@pytest.mark.parametrize("name", sorted(functions.BINARY))
def test_a_function_of_two_balls_contains_the_truth(name, count):
    least = 0.02 if "igamma" in name else 0.2
    many(name, count, functions.BINARY[name], truth.BINARY[name], 2, least)


@DRAWS
@pytest.mark.parametrize("n", [-3, -2, -1, 0, 1, 2, 3, 4, 7])
def test_integer_powers_contain_the_truth(n, count):
    power = lambda x: functions.integer_power(x, n)
    many(f"x^{n}", count, power, lambda x: truth.power(x, Fraction(n)), 1, 0.5)


@DRAWS
def test_whole_parts_contain_the_truth(count):
    towards_zero = lambda x: x if isinstance(x, float) and math.isinf(x) else None
    value = lambda x: towards_zero(x) if isinstance(x, float) else Fraction(math.trunc(x))
    many("truncated", count, functions.truncated, value, 1, 0.5)


@DRAWS
@pytest.mark.parametrize("to_even", [True, False])
def test_rounded_contains_the_truth(to_even, count):
    nearest = truth.half_to_even if to_even else truth.half_away
    infinite = lambda x: x if math.isinf(x) else None
    value = lambda x: infinite(x) if isinstance(x, float) else Fraction(nearest(x))
    rounded = lambda x: functions.rounded(x, to_even)
    many(f"rounded {to_even}", count, rounded, value, 1, 0.5)


@DRAWS
@pytest.mark.parametrize("name", sorted(functions.COMPARISONS))
def test_a_comparison_is_what_holds_at_all_points_and_decided_where_they_agree(name, count):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    holds, seen = truth.COMPARISONS[name], set()
    for _ in range(count):
        a, b = draws.ball(rng), draws.ball(rng)
        if rng.random() < 0.2:
            b = a
        found = functions.COMPARISONS[name](a, b)
        if a.is_nan() or b.is_nan():
            assert found == OPEN
            continue
        answers = {holds(u, v) for u in draws.points(a, rng, 2) for v in draws.points(b, rng, 2)}
        assert found == OPEN or answers == {bool(found)}, f"{name}({a}, {b}) = {found}"
        if a.is_exact() and b.is_exact():
            assert found != OPEN
        # The ends are among the points: where they agree on an order, so does everything between.
        if name not in ("eq", "ne") and a.is_finite() and b.is_finite() and len(answers) == 1:
            assert found != OPEN, f"{name}({a}, {b}) is open"
        seen.add(found)
    assert seen == {0, 1, OPEN}


ORDINARY: dict[str, tuple[float, float]] = {
    "acosh": (1.5, 5),
    "asin": (-0.9, 0.9),
    "acos": (-0.9, 0.9),
    "atanh": (-0.9, 0.9),
    "erf_inv": (-0.9, 0.9),
    "sqrt": (0.1, 5),
    "rsqrt": (0.1, 5),
    "log": (0.1, 5),
    "log1p": (-0.9, 5),
    "lgamma": (0.1, 5),
    "digamma": (0.1, 5),
}
TIGHT = 1e-40
"""Radius allowed at 192 bits on points: what is wider is sound, and useless."""


@pytest.mark.parametrize("name", sorted(functions.UNARY))
def test_a_function_of_a_point_is_tight(name):
    rng = np.random.default_rng(7)
    for x in rng.uniform(*ORDINARY.get(name, (-3, 3)), size=20):
        with precision(192):
            found = functions.UNARY[name](arb(x))
        true = abs(truth.real(truth.UNARY[name](Fraction(x))))
        assert truth.real(draws.exactly(found.rad())) <= TIGHT * max(1, true), (x, found)


@pytest.mark.parametrize("name", sorted(functions.BINARY))
def test_a_function_of_two_points_is_tight(name):
    rng = np.random.default_rng(7)
    for x, y in rng.uniform(0.2, 5, size=(20, 2)):
        with precision(192):
            found = functions.BINARY[name](arb(x), arb(y))
        true = abs(truth.real(truth.BINARY[name](Fraction(x), Fraction(y))))
        assert truth.real(draws.exactly(found.rad())) <= TIGHT * max(1, true), (x, y, found)


EXACT: dict[str, tuple[float, float]] = {
    "sqrt": (0, 0),
    "rsqrt": (math.inf, 0),
    "log": (0, -math.inf),
    "log1p": (-1, -math.inf),
    "exp": (-math.inf, 0),
    "exp2": (-math.inf, 0),
    "expm1": (-math.inf, -1),
    "logistic": (math.inf, 1),
    "tanh": (-math.inf, -1),
    "erf": (math.inf, 1),
    "cbrt": (0, 0),
    "square": (0, 0),
    "sign": (-3, -1),
    "floor": (-2.5, -3),
    "ceil": (-2.5, -2),
    "abs": (-2.5, 2.5),
    "neg": (math.inf, -math.inf),
}


@pytest.mark.parametrize(("name", "at", "value"), [(n, *pair) for n, pair in EXACT.items()])
def test_values_that_are_numbers_are_exact(name, at, value):
    found = functions.UNARY[name](arb(at))
    assert found.is_exact()
    assert draws.exactly(found) == value


@pytest.mark.parametrize(
    ("a", "b", "value"), [(3, math.inf, 0), (-3, -math.inf, 0), (0, 3, 0), (3, 4, 0.75)]
)
def test_quotients_that_are_numbers_are_exact(a, b, value):
    found = functions.divide(arb(a), arb(b))
    assert found.is_exact()
    assert draws.exactly(found) == value


@pytest.mark.parametrize(
    ("x", "y", "value"),
    [
        (0, 0, 1),
        (0, 0.5, 0),
        (0, -0.5, math.inf),
        (-2, 3, -8),
        (-2, -2, 0.25),
        (math.nan, 0, 1),
        (4, 1, 4),
    ],
)
def test_powers_that_are_numbers_are_exact(x, y, value):
    found = functions.power(arb(x), arb(y))
    assert found.is_exact()
    assert draws.exactly(found) == value


@pytest.mark.parametrize("y", [arb(3, 0.1), arb(2**20 + 1), arb(2**30 + 1), arb(3, 2.0**-100)])
def test_a_power_that_may_be_whole_and_odd_reaches_below_zero(y):
    found = functions.power(arb(0, 1), y)
    assert truth.encloses(found, Fraction(-1))
    assert truth.encloses(found, Fraction(1))


@pytest.mark.parametrize("y", [arb(0, 1), arb("nan"), arb("0 +/- inf")])
def test_zero_to_a_power_of_unknown_sign_is_unknown(y):
    assert functions.power(arb(0), y).is_nan()


def test_cube_roots_of_a_ball_around_zero_reach_both_ends():
    found = functions.cube_root(arb(0, 8))
    assert truth.encloses(found, Fraction(2)) and truth.encloses(found, Fraction(-2))
    assert found.rad() < 2.001


def test_what_is_no_half_at_a_low_precision_is_not_rounded_as_one():
    x = arb(-2885898165010861) / 2**25  # a little above a half, by less than 32 bits tell
    with precision(32):
        assert truth.encloses(functions.rounded(x, False), Fraction(-86006467))


INCREASING = (
    "exp",
    "exp2",
    "expm1",
    "logistic",
    "tanh",
    "erf",
    "cbrt",
    "sqrt",
    "log",
    "log1p",
    "atan",
)


@pytest.mark.parametrize("name", [*INCREASING, "floor", "ceil", "sign"])
def test_an_increasing_function_of_a_wide_ball_is_no_wider_than_its_ends(name):
    rng = np.random.default_rng(11)
    least = 0.1 if name in ("sqrt", "log") else 2.0**-10 - 1 if name == "log1p" else -8
    for middle, radius in rng.uniform((least + 2, 0.1), (8, 2), size=(20, 2)):
        x = arb(middle, radius)
        low, high, *_ = draws.points(x, rng)
        with precision(192):
            found = functions.UNARY[name](x)
        # The logarithms are FLINT's own, whose radius is first order: twice the width at most.
        more = 4 if "log" in name or name == "atan" else 1 + 1e-6
        with mp.workprec(truth.BITS):
            ends = [truth.real(truth.UNARY[name](end)) for end in (low, high)]
            width = 2 * truth.real(draws.exactly(found.rad()))
            assert width <= (ends[1] - ends[0]) * more


@pytest.mark.parametrize("value", [math.inf, -math.inf])
@pytest.mark.parametrize(
    "function",
    [
        functions.floor,
        functions.ceil,
        functions.truncated,
        functions.cube_root,
        lambda x: functions.rounded(x, True),
        lambda x: functions.integer_power(x, 1),
    ],
)
def test_an_infinity_stays_itself(function, value):
    assert draws.exactly(function(arb(value))) == value


def _ends(x: arb) -> tuple[Fraction, Fraction]:
    middle, radius = draws.exactly(x.mid()), draws.exactly(x.rad())
    return middle - radius, middle + radius


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (lambda x: functions.integer_power(x, 2), 0, 1.75**2),
        (lambda x: functions.integer_power(x, 4), 0, 1.75**4),
        (functions.UNARY["abs"], 0, 1.75),
        (functions.truncated, 0, 1),
        (functions.floor, -1, 1),
        (functions.ceil, 0, 2),
        (lambda x: functions.rounded(x, True), -1, 2),
        (functions.sign, -1, 1),
        (lambda x: functions.greater(x, arb(1)), 1, 1.75),
        (lambda x: functions.less(x, arb(1)), -0.75, 1),
        (lambda x: functions.power(x, arb(2)), 0, 1.75**2),
    ],
)
def test_around_zero_the_enclosure_is_the_image(function, low, high):
    found = _ends(function(arb(0.5, 1.25)))  # [-0.75, 1.75]
    assert found == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(
    "function",
    [functions.square_root, lambda x: functions.power(x, arb(0.5)), functions.UNARY["log"]]
    + [functions.UNARY[name] for name in ("asin", "acos", "atanh", "acosh", "erf_inv")],
)
def test_what_is_undefined_somewhere_in_the_ball_is_unknown(function):
    assert function(arb(0.5, 1.25)).is_nan()


def test_what_is_known_not_to_be_negative_has_a_root():
    """The ball of x^2 on [-0.75, 1.75] reaches below zero, x^2 does not."""
    square = functions.integer_power(arb(0.5, 1.25), 2)
    assert _ends(square)[0] < 0
    for known in (
        square,
        functions.plus(square, square),
        functions.times(square, arb(3)),
        functions.divide(square, arb(2)),
        functions.greater(square, arb(-1)),
        functions.less(square, arb(1)),
    ):
        low, high = _ends(functions.square_root(known))
        assert (low, high) == pytest.approx((0, math.sqrt(_ends(known)[1])), abs=1e-6)
        assert functions.COMPARISONS["ge"](known, arb(0)) == 1
        assert functions.COMPARISONS["lt"](known, arb(0)) == 0
    assert functions.square_root(square - arb(1)).is_nan()
    assert functions.square_root(functions.plus(square, arb(-1))).is_nan()
    assert functions.square_root(functions.times(square, arb(-1))).is_nan()
    assert functions.square_root(-square).is_nan()


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0, -1), (arb(0, 1), -1), (arb(0, 1), arb(0, 1))])
def test_at_the_cut_an_angle_may_have_either_sign(a, b):
    """atan2(0., -0.) = pi and atan2(-0., -0.) = -pi: the sign of a zero is in no ball."""
    found = functions.BINARY["atan2"](arb(a), arb(b))
    for zero in (0.0, -0.0):
        assert truth.encloses(found, Fraction(math.atan2(zero, -0.0)).limit_denominator(10**9))


@pytest.mark.parametrize(("a", "b"), [(3, 5), (5, 3), (3, 3), (math.inf, 2), (-math.inf, 2)])
def test_the_larger_and_the_smaller_of_points_are_those_points(a, b):
    assert draws.exactly(functions.greater(arb(a), arb(b))) == max(a, b)
    assert draws.exactly(functions.less(arb(a), arb(b))) == min(a, b)


@pytest.mark.parametrize("function", [functions.greater, functions.less])
def test_an_extremum_with_an_unknown_number_is_unknown(function):
    assert function(arb("nan"), arb(1)).is_nan()
    assert function(arb(1), arb("nan")).is_nan()
