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


BALLS = (*((m, 2.0**-20) for m in (-7.3, -1.7, -0.6, 0.3, 0.8, 1.9, 6.1)), (0.1, 0.6), (-0.1, 0.4),
         (0.2, 3), (-0.5, 0.2), (-2, 1), (3, 1.5), (1.9, 0.7))  # fmt: skip
"""Midpoints and radii of short balls, and of balls that have both signs or one sign."""
LONG = 8.0
"""An enclosure may be this many times longer than the values of the function at nine points."""
NO_LENGTH = {"sign": "jumps", "floor": "jumps", "ceil": "jumps", "lgamma": "FLINT gives no ball",
             "tan": "has poles", "digamma": "has poles"}  # fmt: skip
"""Functions whose enclosures the test does not measure, with the reason."""


@pytest.mark.parametrize("name", sorted(set(functions.UNARY) - set(NO_LENGTH)))
def test_a_function_of_a_ball_is_about_as_long_as_its_values(name):
    measured = 0
    for middle, radius in BALLS:
        at = [Fraction(middle) + Fraction(radius) * k / 4 for k in range(-4, 5)]
        try:
            true = [truth.real(truth.UNARY[name](x)) for x in at]
        except (truth.Unknown, TypeError, ValueError):
            continue
        length = max(true) - min(true)
        if length < 1e-4 * radius:  # near an extremum
            continue
        with precision(192):
            found = functions.UNARY[name](arb(middle, radius))
        assert 2 * truth.real(draws.exactly(found.rad())) <= LONG * length, (middle, radius, found)
        measured += 1
    assert measured >= 3


@pytest.mark.parametrize("name", sorted(functions.BINARY))
def test_a_function_of_two_points_is_tight(name):
    rng = np.random.default_rng(7)
    for x, y in rng.uniform(0.2, 5, size=(20, 2)):
        with precision(192):
            found = functions.BINARY[name](arb(x), arb(y))
        true = abs(truth.real(truth.BINARY[name](Fraction(x), Fraction(y))))
        assert truth.real(draws.exactly(found.rad())) <= TIGHT * max(1, true), (x, y, found)


def test_what_is_no_half_at_a_low_precision_is_not_rounded_as_one():
    x = arb(-2885898165010861) / 2**25  # a little above a half, by less than 32 bits tell
    with precision(32):
        assert truth.encloses(functions.rounded(x, False), Fraction(-86006467))
