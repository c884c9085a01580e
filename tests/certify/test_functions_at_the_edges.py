"""Scalar functions of balls at the edges of their domains, at infinities and around jumps.

The values stand here: worked out by hand, or by Python's math (libm shares no code with FLINT).
"""

import math

import pytest
from flint import arb
from oracle.hand import ANY, INF, ball, ball_of, is_image

from jaxbounds.certification import precision
from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.functions import BINARY, COMPARISONS, UNARY
from jaxbounds.programs.balls.values import Nonnegative, nonnegative

UNBOUNDED = arb("0 +/- inf")
AROUND = ball(-0.75, 1.75)
SQUARE = functions.integer_power(arb(0, 1.5), 2)
"""[0, 2.25], of which it is known that nothing is negative; the ball itself reaches below zero."""


def test_the_square_of_a_ball_reaches_below_zero_and_is_known_not_to_be_negative():
    assert type(SQUARE) is Nonnegative and not SQUARE >= 0 and nonnegative(SQUARE)
    assert is_image(SQUARE, (0, 2.25))


POWERS = [
    (0, -1, None), (0, 0, 1), (0, 1, 0), (0, 2, 0), (0, 3, 0), (2, -1, 0.5), (2, -2, 0.25),
    (-2, -3, -0.125), (-2, 3, -8), (-2, 2, 4), (ANY, 0, 1), (ANY, 1, None), (ANY, 2, None),
    (ANY, 3, None), (INF, 0, 1), (INF, 2, math.inf), (INF, 3, math.inf), (-INF, 2, math.inf),
    (-INF, 3, -math.inf), (INF, -2, 0), (-INF, -1, 0), (UNBOUNDED, 2, None), (UNBOUNDED, 3, None),
    (AROUND, 2, (0, 3.0625)), (-AROUND, 2, (0, 3.0625)), (AROUND, 3, (-0.421875, 5.359375)),
    (-AROUND, 3, (-5.359375, 0.421875)), (AROUND, -1, None), (SQUARE, 3, (0, 2.25**3)),
    (SQUARE, 2, (0, 2.25**2)), (ball(0, 2), 3, (0, 8)), (ball(-2, 0), 4, (0, 16)),
    (ball(0.75, 1.25), -1, (0.8, 4 / 3)),
]  # fmt: skip


@pytest.mark.parametrize(("x", "n", "value"), POWERS)
def test_whole_powers(x, n, value):
    assert is_image(functions.integer_power(ball_of(x), n), value, 0.1)
    if not isinstance(x, arb) or x.is_finite():
        assert is_image(functions.power(ball_of(x), arb(n)), value, 0.1) or type(x) is Nonnegative


def test_a_power_of_what_is_not_negative_is_known_not_to_be():
    for n in (2, 3, 4):
        assert nonnegative(functions.integer_power(SQUARE, n))
    assert not nonnegative(functions.integer_power(AROUND, 3))


REAL_POWERS = [
    (4, 0.5, 2), (0, 0.5, 0), (0, -0.5, math.inf), (0, ball(-1.5, -0.75), None),
    (0, ball(-0.75, -0.25), math.inf), (0, ball(0.25, 3), 0), (0, ball(-1, 1), None),
    (0, ANY, None), (ANY, 0, 1), (ANY, 0.5, None), (2, ANY, None), (2, INF, None),
    (INF, 0.5, math.inf), (INF, -0.5, 0), (INF, ball(-1, 1), None), (-INF, 0.5, None),
    (-INF, -0.5, None), (UNBOUNDED, 0.5, None), (-2, 0.5, None), (AROUND, 0.5, None),
    (SQUARE, 0.5, (0, 1.5)), (SQUARE, -0.5, None), (SQUARE, ball(0.5, 0.75), (0, 2.25**0.75)),
    (2, 2.0**20 - 1, None), (2, arb(0, arb(2) ** 300), None), (ball(1, 4), 0.5, (1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("x", "y", "value"), REAL_POWERS)
def test_real_powers(x, y, value):
    found = functions.power(ball_of(x), ball_of(y))
    if (x, y) == (2, 2.0**20 - 1):
        assert found == arb(2) ** (2**20 - 1)
    else:
        assert is_image(found, value, 0.6)


QUOTIENTS = [
    (3, 4, 0.75), (3, 0, None), (0, 0, None), (3, INF, 0), (-3, -INF, 0), (INF, INF, None),
    (INF, 2, math.inf), (INF, -2, -math.inf), (-INF, 2, -math.inf), (INF, 0, None),
    (INF, ball(1, 3), math.inf), (INF, ball(-1, 3), None), (INF, ball(-3, -1), -math.inf),
    (ANY, 2, None), (2, ANY, None), (ANY, INF, None), (2, UNBOUNDED, None), (1, ball(-1, 3), None),
    (UNBOUNDED, 2, None), (1, ball(0.75, 1.25), (0.8, 4 / 3)), (0, 3, 0),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "value"), QUOTIENTS)
def test_quotients(a, b, value):
    assert is_image(functions.divide(ball_of(a), ball_of(b)), value, 0.2)


def test_quotients_of_what_is_not_negative():
    assert type(functions.divide(SQUARE, arb(2))) is Nonnegative
    assert type(functions.divide(SQUARE, arb(0.25))) is Nonnegative
    assert not nonnegative(functions.divide(SQUARE, arb(-2)))
    assert functions.divide(SQUARE, SQUARE).is_nan()
    assert not nonnegative(functions.divide(AROUND, arb(2)))


REMAINDERS = [
    (7, 3, 1), (-7, 3, -1), (7, -3, 1), (-7, -3, -1), (5.5, 2, 1.5), (6, 3, 0), (2, 3, 2),
    (-2, 3, -2), (7, 0, None), (INF, 3, None), (7, ANY, None), (ANY, 3, None),
    (ball(6.5, 7.5), 3, (0.5, 1.5)), (ball(-7.5, -6.5), 3, (-1.5, -0.5)),
    (ball(5.5, 6.5), 3, (-0.5, 3.5)), (ball(-1, 2), 4, (-1, 2)), (7, ball(2.75, 3.25), (0.5, 1.5)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "value"), REMAINDERS)
def test_remainders(a, b, value):
    assert is_image(functions.remainder(ball_of(a), ball_of(b)), value)


STEPS = {
    "truncated": functions.truncated, "floor": UNARY["floor"], "ceil": UNARY["ceil"],
    "to even": lambda x: functions.rounded(x, True), "away": lambda x: functions.rounded(x, False),
    "sign": UNARY["sign"], "abs": UNARY["abs"],
}  # fmt: skip
AT = [
    #     truncated floor ceil even away sign abs
    (2.5, 2, 2, 3, 2, 3, 1, 2.5), (-2.5, -2, -3, -2, -2, -3, -1, 2.5),
    (3.5, 3, 3, 4, 4, 4, 1, 3.5), (-3.5, -3, -4, -3, -4, -4, -1, 3.5),
    (0.5, 0, 0, 1, 0, 1, 1, 0.5), (-0.5, 0, -1, 0, 0, -1, -1, 0.5),
    (2.25, 2, 2, 3, 2, 2, 1, 2.25), (-2.75, -2, -3, -2, -3, -3, -1, 2.75),
    (0, 0, 0, 0, 0, 0, 0, 0), (-4, -4, -4, -4, -4, -4, -1, 4),
    (INF, *[math.inf] * 5, 1, math.inf), (-INF, *[-math.inf] * 5, -1, math.inf),
    (ANY, *[None] * 7), (UNBOUNDED, *[None] * 7),
    (ball(1.75, 2.25), (1, 2), (1, 2), (2, 3), 2, 2, 1, (1.75, 2.25)),
    (ball(-2.25, -1.75), (-2, -1), (-3, -2), (-2, -1), -2, -2, -1, (1.75, 2.25)),
    (ball(1.25, 1.75), 1, 1, 2, (1, 2), (1, 2), 1, (1.25, 1.75)),
    (ball(2.25, 2.5), 2, 2, 3, (2, 3), (2, 3), 1, (2.25, 2.5)),
    (ball(-1.75, -1.25), -1, -2, -1, (-2, -1), (-2, -1), -1, (1.25, 1.75)),
    (AROUND, (0, 1), (-1, 1), (0, 2), (-1, 2), (-1, 2), (-1, 1), (0, 1.75)),
    (-AROUND, (-1, 0), (-2, 0), (-1, 1), (-2, 1), (-2, 1), (-1, 1), (0, 1.75)),
    (ball(0.25, 0.75), 0, 0, 1, (0, 1), (0, 1), 1, (0.25, 0.75)),
]  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_steps(name):
    column = 1 + list(STEPS).index(name)
    for row in AT:
        assert is_image(STEPS[name](ball_of(row[0])), row[column]), (
            row[0],
            STEPS[name](ball_of(row[0])),
        )


def test_the_sign_of_what_is_not_negative():
    assert is_image(functions.sign(SQUARE), (0, 1)) and nonnegative(functions.sign(SQUARE))


EXTREMA = [
    # a, b, larger, smaller
    (3, 5, 5, 3), (5, 3, 5, 3), (3, 3, 3, 3), (INF, 2, math.inf, 2), (-INF, 2, 2, -math.inf),
    (ANY, 1, None, None), (1, ANY, None, None), (AROUND, 1, (1, 1.75), (-0.75, 1)),
    (1, AROUND, (1, 1.75), (-0.75, 1)), (AROUND, 2, 2, (-0.75, 1.75)),
    (AROUND, -2, (-0.75, 1.75), -2), (AROUND, ball(-2, 0.5), (-0.75, 1.75), (-2, 0.5)),
    (ball(0, 1), ball(0.5, 3), (0.5, 3), (0, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "larger", "smaller"), EXTREMA)
def test_extrema(a, b, larger, smaller):
    assert is_image(functions.greater(ball_of(a), ball_of(b)), larger)
    assert is_image(functions.less(ball_of(a), ball_of(b)), smaller)


def test_which_extrema_are_known_not_to_be_negative():
    wide, below = SQUARE, ball(-1, 1)
    for one, other in ((wide, below), (below, wide)):
        assert nonnegative(functions.greater(one, other))
        assert not nonnegative(functions.less(one, other))
    assert nonnegative(functions.less(wide, functions.integer_power(arb(0, 1), 2)))
    assert not nonnegative(functions.greater(below, ball(-2, 1.5)))


def test_sums_and_products_are_known_not_to_be_negative_where_both_terms_are():
    wide, plain = SQUARE, ball(0.5, 1)
    below = ball(-1, 1)
    for act in (functions.plus, functions.times):
        assert nonnegative(act(wide, wide)) and nonnegative(act(wide, plain))
        assert nonnegative(act(plain, wide))
        assert not nonnegative(act(wide, below)) and not nonnegative(act(below, wide))
        assert not nonnegative(act(below, below))
    for none in (functions.plus(wide, arb(0)), functions.plus(arb(0), wide)):
        assert nonnegative(none)
    for less in (functions.times(wide, arb(2)), functions.times(arb(2), wide)):
        assert nonnegative(less)
    assert is_image(functions.plus(wide, plain), (0.5, 3.25))
    assert is_image(functions.times(wide, arb(2)), (0, 4.5))
    for lost in (wide - arb(1), -wide, functions.times(wide, arb(-1))):
        assert not nonnegative(lost) and functions.square_root(lost).is_nan()


LIMITS = {
    # at -inf, at inf, at 0, at 1
    "neg": (math.inf, -math.inf, 0, -1), "abs": (math.inf, math.inf, 0, 1),
    "sqrt": (None, math.inf, 0, 1), "rsqrt": (None, 0, None, 1),
    "cbrt": (-math.inf, math.inf, 0, 1),
    "square": (math.inf, math.inf, 0, 1), "exp": (0, math.inf, 1, math.e),
    "exp2": (0, math.inf, 1, 2.0), "expm1": (-1, math.inf, 0, math.expm1(1)),
    "log": (None, math.inf, -math.inf, 0), "log1p": (None, math.inf, 0, math.log(2)),
    "logistic": (0, 1, 0.5, 1 / (1 + math.exp(-1))), "tanh": (-1, 1, 0, math.tanh(1)),
    "sinh": (None, None, 0, math.sinh(1)), "cosh": (None, None, 1, math.cosh(1)),
    "sin": (None, None, 0, math.sin(1)), "cos": (None, None, 1, math.cos(1)),
    "tan": (None, None, 0, math.tan(1)), "asin": (None, None, 0, math.pi / 2),
    "acos": (None, None, math.pi / 2, 0.0), "atan": (-math.pi / 2, math.pi / 2, 0, math.pi / 4),
    "asinh": (None, None, 0, math.asinh(1)), "acosh": (None, None, None, 0.0),
    "atanh": (None, None, 0, None), "erf": (-1, 1, 0, math.erf(1)),
    "erfc": (None, None, 1, math.erfc(1)), "erf_inv": (None, None, 0, None),
    "lgamma": (None, None, None, 0.0), "digamma": (None, None, None, -0.5772156649015329),
    "sign": (-1, 1, 0, 1), "floor": (-math.inf, math.inf, 0, 1),
    "ceil": (-math.inf, math.inf, 0, 1),
}  # fmt: skip


def test_every_function_has_its_limits_here():
    assert set(LIMITS) == set(UNARY)


@pytest.mark.parametrize("name", UNARY)
def test_limits_and_two_values(name):
    for x, value in zip((-INF, INF, arb(0), arb(1)), LIMITS[name]):
        found = UNARY[name](x)
        if value is None or math.isinf(value):
            assert is_image(found, value), (x, found)
        else:
            assert found.is_finite() and float(found.rad()) < 1e-12
            assert float(found.mid()) == pytest.approx(value, rel=1e-14, abs=1e-14), x
            assert float(value) not in (0, 1, -1) or value == 0.0 or found.contains(int(value))
    assert UNARY[name](ANY).is_nan()
    assert name == "neg" or UNARY[name](UNBOUNDED).is_nan()


@pytest.mark.parametrize(
    ("name", "x", "value"),
    [
        ("exp", -INF, 0), ("exp", 0, 1), ("exp2", -INF, 0), ("expm1", -INF, -1), ("expm1", 0, 0),
        ("logistic", -INF, 0), ("sqrt", 0, 0), ("cbrt", 0, 0), ("square", 0, 0), ("rsqrt", INF, 0),
        ("logistic", INF, 1), ("tanh", INF, 1), ("erf", -INF, -1), ("log1p", -1, -math.inf),
        ("log1p", -2, None), ("log1p", ball(-1, 1), None), ("log1p", ball(-1.5, 1), None),
        ("log", -1, None), ("log", AROUND, None), ("log", ball(0, 1), None), ("log", SQUARE, None),
        ("rsqrt", SQUARE, None), ("rsqrt", AROUND, None), ("rsqrt", 4, 0.5), ("sqrt", 2.25, 1.5),
        ("sqrt", AROUND, None), ("sqrt", -1, None), ("sqrt", SQUARE, (0, 1.5)),
        ("sqrt", ball(-2, -1), None),
        ("sqrt", ball(1, 4), (1, 2)), ("cbrt", ball(-8, 27), (-2, 3)), ("cbrt", -8, (-2, -2)),
        ("cbrt", 27, (3, 3)), ("cbrt", ball(1, 8), (1, 2)), ("cbrt", ball(-8, -1), (-2, -1)),
        ("exp", ball(0, 1), (1, math.nextafter(math.e, 0))), ("exp2", ball(-1, 2), (0.5, 4)),
        ("lgamma", -0.5, None), ("lgamma", AROUND, None), ("lgamma", 3, (math.log(2),) * 2),
        ("digamma", -1, None), ("tan", AROUND, None), ("acosh", 0.5, None), ("atanh", 2, None),
        ("asin", 2, None), ("acos", -2, None), ("erf_inv", 2, None), ("sin", arb(2) ** 2049, None),
        ("cos", arb(2) ** 2049, None), ("tan", -(arb(2) ** 2049), None),
        ("atan", AROUND, (math.atan(-0.75), math.atan(1.75))),
        ("logistic", ball(-1, 1), (0.2689414213699951, 0.7310585786300048)),
        ("tanh", AROUND, (math.tanh(-0.75), math.tanh(1.75))),
        ("erf", AROUND, (math.erf(-0.75), math.erf(1.75))),
        ("expm1", AROUND, (math.expm1(-0.75), math.expm1(1.75))),
    ],
)  # fmt: skip
def test_ends_of_domains_and_images(name, x, value):
    found = UNARY[name](ball_of(x))
    if isinstance(value, tuple):  # libm rounds the ends
        low, high = value
        assert all(found.overlaps(arb(end, 1e-12 * max(1, abs(end)))) for end in value)
        width = (high - low) * (1.6 if name == "atan" else 1.000001)  # FLINT's own is wider
        assert float(found.rad()) <= width / 2 + 1e-9
    else:
        assert is_image(found, value)


@pytest.mark.parametrize("x", [-60, -800, ball(-60, -59), ball(-900, -800)])
def test_what_is_raised_is_known_not_to_be_negative(x):
    """So that a root or a logarithm of one plus it is defined, however far below zero."""
    for name in ("exp", "exp2"):
        assert nonnegative(UNARY[name](ball_of(x)))
        assert UNARY["sqrt"](UNARY[name](ball_of(x))).is_finite()
    assert UNARY["logistic"](ball_of(x)).is_finite() and UNARY["logistic"](-ball_of(x)).is_finite()


ANGLES = [
    (1, 1, math.pi / 4), (1, -1, 3 * math.pi / 4), (-1, -1, -3 * math.pi / 4),
    (-1, 1, -math.pi / 4),
    (0, 1, 0.0), (1, 0, math.pi / 2), (-1, 0, -math.pi / 2),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "value"), ANGLES)
def test_angles(a, b, value):
    found = functions.angle(ball_of(a), ball_of(b))
    assert float(found.mid()) == pytest.approx(value, abs=1e-15) and float(found.rad()) < 1e-14


@pytest.mark.parametrize(
    ("a", "b"),
    [(0, -1), (0, 0), (ball(-1, 1), -1), (ball(-1, 1), 0), (0, ball(-1, 1)), (0, SQUARE)],
)
def test_an_angle_at_the_cut_is_any(a, b):
    found = functions.angle(ball_of(a), ball_of(b))
    assert found.contains(arb.pi().lower()) and found.contains(-arb.pi().lower())
    assert float(found.rad()) < 3.1416


@pytest.mark.parametrize(("a", "b"), [(ANY, 1), (1, ANY), (INF, 1), (1, INF), (1, UNBOUNDED)])
def test_an_angle_of_what_is_not_finite_is_unknown(a, b):
    assert functions.angle(ball_of(a), ball_of(b)).is_nan()


def test_the_angle_beside_the_axis_is_small():
    found = functions.angle(ball(-1, 1), arb(1))
    assert found.contains(arb(0.785)) and found.contains(arb(-0.785)) and float(found.rad()) < 1.6


def test_incomplete_gammas():
    """P(1, x) = 1 - exp(-x), and Q its rest."""
    for x in (0.5, 2.0):
        lower, upper = (BINARY[name](arb(1), ball_of(x)) for name in ("igamma", "igammac"))
        assert float(lower.mid()) == pytest.approx(-math.expm1(-x), rel=1e-12)
        assert float(upper.mid()) == pytest.approx(math.exp(-x), rel=1e-12)
    for name in ("igamma", "igammac"):
        for a, x in (
            (0, 1),
            (-1, 1),
            (1, -1),
            (AROUND, 1),
            (1, AROUND),
            (ANY, 1),
            (1, ANY),
            (INF, 1),
        ):
            assert BINARY[name](ball_of(a), ball_of(x)).is_nan(), (name, a, x)
        assert not BINARY[name](arb(1), arb(0)).is_nan()


ORDERS = [
    # a, b: lt, le, gt, ge, eq, ne
    (1, 2, (1, 1, 0, 0, 0, 1)), (2, 1, (0, 0, 1, 1, 0, 1)), (1, 1, (0, 1, 0, 1, 1, 0)),
    (INF, 1, (0, 0, 1, 1, 0, 1)), (INF, INF, (0, 1, 0, 1, 1, 0)), (-INF, INF, (1, 1, 0, 0, 0, 1)),
    (ANY, 1, (2, 2, 2, 2, 2, 2)), (1, ANY, (2, 2, 2, 2, 2, 2)), (ANY, ANY, (2, 2, 2, 2, 2, 2)),
    (AROUND, 1, (2, 2, 2, 2, 2, 2)), (AROUND, AROUND, (2, 2, 2, 2, 2, 2)),
    (AROUND, 2, (1, 1, 0, 0, 0, 1)),
    (SQUARE, 0, (0, 2, 2, 1, 2, 2)), (0, SQUARE, (2, 1, 0, 2, 2, 2)),
    (SQUARE, -(2.0**-60), (0, 2, 2, 1, 2, 2)), (-(2.0**-60), SQUARE, (2, 1, 0, 2, 2, 2)),
    (SQUARE, 1, (2, 2, 2, 2, 2, 2)), (SQUARE, SQUARE, (2, 2, 2, 2, 2, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "answers"), ORDERS)
def test_comparisons(a, b, answers):
    names = ("lt", "le", "gt", "ge", "eq", "ne")
    assert tuple(COMPARISONS[name](ball_of(a), ball_of(b)) for name in names) == answers


def test_an_exponent_that_is_large_is_not_taken_as_whole():
    """x^(2^20 + 1) of an exact negative number is a number, beyond what is computed."""
    with precision(53):
        assert functions.power(arb(-1), arb(2**21 + 1)).is_nan()
        assert is_image(functions.power(arb(-1), arb(2**19 + 1)), -1)


def test_a_square_away_from_zero_does_not_reach_it():
    """Of [1, 2] and of [-2, -1]: from 1 to 4; the ball may be a little wider."""
    for x in (1.5, -1.5):
        square = functions.integer_power(arb(x, 0.5), 2)
        assert 0 < square.lower() <= 1 and 4 <= square.upper() < 5


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_of_two_arguments_none_may_be_infinite(name):
    for a, b in ((INF, arb(2)), (arb(2), INF), (INF, INF)):
        assert BINARY[name](a, b).is_nan()
