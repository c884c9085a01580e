"""What is said of a constant: its digits, the gain left, limits and exponents, worked out by hand.

The ratios are functions whose logarithm, slopes and limits are known without a computer; digits are
counted by whole numbers and fractions, which share nothing with ball arithmetic.
"""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

from jaxbounds.claims.statements import Budget, Form, Sides, Statement
from jaxbounds.constants import dependence
from jaxbounds.constants.constant import sharp_constant
from jaxbounds.constants.enclosure import Ratio, ascent, digits_of
from jaxbounds.constants.limits import limit
from jaxbounds.constants.polish import at, curvature
from jaxbounds.constants.problem import Problem
from jaxbounds.falsification import float64_on_cpu


def _ratio_of(function, entries=1, **options):
    """The claim function(x) <= 1."""

    def evaluate(instance, size):
        one = jnp.ones(())
        return Sides(lhs=function(instance["x"]), rhs={"printed": one, "control": one / 2})

    return Statement(
        id="own.known",
        label="known",
        formula="f(x) <= 1",
        kind="inequality",
        evaluate=evaluate,
        sample=lambda key, size: {"x": jax.random.uniform(key, (entries,), minval=0.5, maxval=2.0)},
        sizes=({},),
        forms=(Form(name="printed"),),
        control="half of it",
        **options,
    )


@pytest.fixture
def placed():
    """From f and a point to the problem, the ratio in balls and the point, in float64."""

    def place(function, *x):
        problem = Problem(_ratio_of(function, len(x)), "printed", {})
        instance = {"x": np.array(x)}
        return problem, Ratio(problem, instance, seconds=60), at(problem, instance, 0.0)

    with float64_on_cpu():
        yield place


def _digits(middle: Fraction, radius: Fraction) -> int:
    """The most digits d with radius 10^d <= middle."""
    d = 0
    while radius * 10 ** (d + 1) <= middle:
        d += 1
    return d


@pytest.mark.parametrize("middle", [(1, 0), (3, -1), (8191, -13), (16385, -14), (1234567, 30)])
def test_digits_are_never_more_than_a_count_by_fractions(middle):
    # The ball's middle and radius are whole multiples of powers of two, so exact in both.
    mantissa, exponent = middle
    for bits in range(2, 300, 7):
        ball = arb((mantissa, exponent), (1, exponent - bits))
        truth = _digits(Fraction(mantissa), Fraction(1, 2**bits))
        assert truth - 1 <= digits_of(ball) <= truth
        assert digits_of(-ball) == digits_of(ball)
    assert digits_of(arb(0, 1)) == digits_of(arb("nan")) == digits_of(arb("inf")) == 0


def test_the_digits_of_a_constant_are_those_that_its_two_ends_share():
    # .1 may be off by 1,024 units in its last place, 2^-46 of 2^-4: that leaves not quite 13
    # digits. The ends are decimals that anybody can subtract.
    statement = _ratio_of(lambda x: 0.1 * x[0] / x[0], search="none")
    (s,) = sharp_constant(statement, budget=Budget(samples=8)).sizes
    low, high = Fraction(s.low), Fraction(s.high)
    assert low <= Fraction(1, 10) <= high
    assert 12 <= s.digits <= _digits((low + high) / 2, (high - low) / 2)


def test_directions_and_bends_are_those_of_the_logarithm(placed):
    # log f = -.7 x^2 / 2 - 3 y^2 / 2: in coordinates relative to x = 2 and y = .5 it bends by
    # .7 x^2 = 2.8 and 3 y^2 = .75, along axes of these lengths.
    problem, _, point = placed(lambda x: jnp.exp(-0.35 * x[0] ** 2 - 1.5 * x[1] ** 2), 2.0, 0.5)
    directions, bent = curvature(problem, point)
    np.testing.assert_allclose(np.sort(bent), [0.75, 2.8], rtol=1e-6)
    order = np.argsort(point.values)
    np.testing.assert_allclose(np.abs(directions[order]), [[0.5, 0], [0, 2]], atol=1e-6)
    # A slope alone bends nothing.
    problem, _, point = placed(lambda x: jnp.exp(x[0]), 1.0)
    assert curvature(problem, point)[1].tolist() == [0.0]


def test_the_gain_of_a_flat_direction_is_its_slope(placed):
    # log(x y^3) has slopes 1/x and 3/y, 1/2 and 3/4 here, and both are promised.
    _, ratio, point = placed(lambda x: x[0] * x[1] ** 3, 2.0, 4.0)
    flat = np.zeros(2)
    _, gain, _ = ascent(ratio, point, np.eye(2), flat)
    assert gain == pytest.approx(1 / 2 + 3 / 4, rel=1e-12)
    # Downwards it is as long: the sign of a direction means nothing.
    assert ascent(ratio, point, -np.eye(2), flat)[1] == pytest.approx(gain, rel=1e-12)
    assert ascent(ratio, point, 2 * np.eye(2), flat)[1] == pytest.approx(2 * gain, rel=1e-12)


def test_the_gain_of_a_curved_direction_is_half_its_squared_slope_over_the_bend(placed):
    # log f = -x^2 / 2 has slope -x. Told that it bends by 100, Newton goes 1% of the way, from 1 to
    # .99, where x^2 / 2 / 100 is promised still; then it stops, as too little was gained.
    gaussian = lambda x: jnp.exp(-(x[0] ** 2) / 2)
    _, ratio, point = placed(gaussian, 1.0)
    ball, gain, _ = ascent(ratio, point, np.eye(1), np.array([100.0]))
    assert gain == pytest.approx(0.99**2 / 200, rel=1e-9)
    assert abs(float(ball.mid()) - math.exp(-(0.99**2) / 2)) < 1e-12
    # Told the truth, it arrives in one step, and nothing is left.
    ball, gain, _ = ascent(ratio, point, np.eye(1), np.ones(1))
    assert gain < 1e-40 and abs(ball.mid() - 1) < 1e-12
    # Of two such directions the promises add up.
    pair = lambda x: jnp.exp(-(x[0] ** 2 + x[1] ** 2) / 2)
    _, ratio, point = placed(pair, 1.0, 2.0)
    _, gain, _ = ascent(ratio, point, np.eye(2), np.array([100.0, 50.0]))
    assert gain == pytest.approx(0.99**2 / 200 + 1.96**2 / 100, rel=1e-9)


def test_a_ridge_promises_nothing_and_a_valley_its_steeper_side(placed):
    # Kinks, at the point 1: 1 - 2 |x - 1| falls both ways; where both rise, by 2 and 3, the larger
    # counts.
    _, ratio, point = placed(lambda x: 1 - 2 * jnp.abs(x[0] - 1), 1.0)
    ball, gain, _ = ascent(ratio, point, np.eye(1), np.zeros(1))
    assert gain == 0 and abs(ball.mid() - 1) < 1e-12
    _, ratio, point = placed(lambda x: 1 + jnp.maximum(2 * (1 - x[0]), 3 * (x[0] - 1)), 1.0)
    assert ascent(ratio, point, np.eye(1), np.zeros(1))[1] == pytest.approx(3.0, rel=1e-12)


def test_a_rise_without_end_is_a_limit(placed):
    # 2 - 1/(1 + x): 2 in the limit, never above.
    found = limit(*placed(lambda x: 2 - 1 / (1 + x[0]), 1.0))
    assert found.words == "x -> infinity" and found.settled
    assert abs(found.ratio.mid() - 2) < 1e-12
    # 2 - x/(1 + x) rises to 2 as x goes to 0.
    found = limit(*placed(lambda x: 2 - x[0] / (1 + x[0]), 1.0))
    assert found.words == "x -> 0" and found.settled
    assert abs(found.ratio.mid() - 2) < 1e-12
    # x has none: 2^100 of the point 3.
    found = limit(*placed(lambda x: x[0], 3.0))
    assert not found.settled and float(found.ratio.mid()) == pytest.approx(3 * 2.0**100)
    # Nor has the logarithm, which takes its time: 21 log 2 and 101 log 2 are far apart.
    assert not limit(*placed(lambda x: jnp.log(1 + x[0]), 1.0)).settled


@pytest.mark.parametrize(
    "function, at",
    [
        # It falls both ways, by so little that float64 lets it pass: 3e-7 at x = 256.
        (lambda x: 1 - 1e-8 * (jnp.log(x[0]) ** 2), 1.0),
        # Above the point from there on, 2 in the end; but it falls to that, from 1 + (1 + sqrt 2)/2
        # at x = 1 + sqrt 2.
        (lambda x: 1 + (x[0] ** 2 + x[0]) / (1 + x[0] ** 2), 0.1),
        # Constant: it neither rises nor falls.
        (lambda x: jnp.maximum(1.0, 1 - 0 * x[0]), 1.0),
    ],
    ids=["falls", "rises and falls", "constant"],
)
def test_what_falls_on_the_way_is_no_limit(function, at, placed):
    assert limit(*placed(function, at)) is None


def test_the_interval_of_an_exponent_of_a_constant_by_hand():
    # log2 T = 0, 1, 2 and log2 C = 0, 3, 0: slope 0, residuals -1, 2, -1, variance 6 with one
    # degree of freedom, over 2: sqrt 3. Student's law is Cauchy's there: tan(.495 pi).
    sizes = [{"T": 1}, {"T": 2}, {"T": 4}]
    (t,), left = dependence(sizes, [1.0, 8.0, 1.0])
    half = math.tan(0.495 * math.pi) * math.sqrt(3)
    assert t.value == pytest.approx(0, abs=1e-12) and left == pytest.approx(2 * math.log(2))
    assert (t.low, t.high) == pytest.approx((-half, half), rel=1e-9)
    # Of two axes, in all four combinations of 0 and 1, with noise 1, -1, -1, 1: one degree of
    # freedom, variance 4, over 1 for each.
    sizes = [{"T": t, "d": d} for t in (1, 2) for d in (1, 2)]
    (t, d), _ = dependence(sizes, [2.0, 0.5 * 2, 0.5 * 8, 2.0 * 16])
    assert (t.value, d.value) == pytest.approx((3, 1))
    half = math.tan(0.495 * math.pi) * 2
    for exponent in (t, d):
        assert exponent.high - exponent.value == pytest.approx(half, rel=1e-9)
        assert exponent.value - exponent.low == pytest.approx(half, rel=1e-9)


def test_the_interval_of_an_exponent_of_a_constant_misses_one_time_in_a_hundred():
    # Gaussian noise in log C: Student's interval is exact. Of 2000 it misses 20, give or take 4.5.
    rng = np.random.default_rng(3)
    sizes = [{"T": t, "d": d} for t in (2, 4, 8) for d in (3, 9)]
    law = np.array([s["T"] ** 0.5 * s["d"] ** 2.0 for s in sizes])
    found = [dependence(sizes, law * np.exp(0.2 * rng.normal(size=6)))[0] for _ in range(2000)]
    for exponents, truth in zip(zip(*found), (0.5, 2.0)):
        assert 5 <= sum(not e.low <= truth <= e.high for e in exponents) <= 38
