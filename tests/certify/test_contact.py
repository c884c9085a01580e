"""The parts of proofs at equality, each against arithmetic that shares nothing with it."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fields import again
from flint import arb, fmpq
from mpmath import mp

from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls.boxes import Box
from jaxbounds.programs.balls.contact import Number, Place, candidates, rational, touching
from jaxbounds.programs.balls.factors import holds_on
from jaxbounds.programs.balls.interpreter import precision, traced
from jaxbounds.programs.balls.jets import Coefficient, JetRun, Jets
from jaxbounds.programs.balls.symmetry import flows, reduced
from jaxbounds.programs.balls.values import reals


def program(function, count):
    return traced(lambda x: (function(x), jnp.asarray(True)), jnp.zeros(count))[0]


@pytest.fixture(autouse=True)
def arithmetic():
    with float64_on_cpu(), precision(128):
        yield


def root(field, q):
    return field.rational(q).power(fmpq(1, 2))


ZEROS = {
    "log 9 = 2 log 3": lambda f: f.rational(9).log() - f.rational(2) * f.rational(3).log(),
    "roots": lambda f: root(f, 12) - f.rational(2) * root(f, 3),
    "nested": lambda f: (
        f.rational(3) + root(f, 8) - (f.rational(1) + root(f, 2)) ** 2
    ),
    "exp of logs": lambda f: (
        (f.rational(2).log() * f.rational(Fraction(3, 2))).exp() - root(f, 8)
    ),
    "halves of e": lambda f: f.rational(Fraction(1, 2)).exp() ** 2 - f.rational(1).exp(),
    "sine of a sixth": lambda f: (
        (f.pi() * f.rational(Fraction(5, 6))).sin_cos()[0] - f.rational(Fraction(1, 2))
    ),
    "arctangent": lambda f: f.rational(4) * f.rational(1).atan() - f.pi(),
}  # fmt: skip


@pytest.mark.parametrize("name", ZEROS)
def test_what_is_zero_is_seen_and_nothing_next_to_it(name):
    zero = again(ZEROS[name])
    assert zero.is_zero()
    assert zero.ball.contains(0)
    near = again(lambda f: ZEROS[name](f) + f.rational(Fraction(1, 10**60)))
    assert not near.is_zero()


def test_no_number_that_is_not_zero_is_called_zero():
    """Random sums, products and functions; mpmath at 60 digits says which are not zero."""
    rng, seen = np.random.default_rng(2), 0

    def drawn(field, seed):
        rng = np.random.default_rng(seed)
        values = [(field.rational(q), mp.mpf(q.numerator) / q.denominator)
                  for q in (Fraction(1, 2), Fraction(3), Fraction(-2), Fraction(4, 3))]  # fmt: skip
        for _ in range(7):
            (x, a), (y, b) = (values[int(rng.integers(len(values)))] for _ in range(2))
            kind = rng.integers(7)
            if kind == 0:
                new = x + y, a + b
            elif kind == 1:
                new = x - y, a - b
            elif kind == 2:
                new = x * y, a * b
            elif kind == 3 and abs(a) < 4:
                new = x.exp(), mp.exp(a)
            elif kind == 4 and a > 1e-9:
                new = x.log(), mp.log(a)
            elif kind == 5 and a > 1e-9:
                new = x.power(fmpq(1, 2)), mp.sqrt(a)
            else:
                pair = x.sin_cos()
                new = (pair[0], mp.sin(a)) if pair else (None, a)
            if new[0] is not None:
                values.append(new)
        return values

    with mp.workdps(60):
        for seed in rng.integers(10**9, size=60).tolist():
            for value, true in again(lambda f, seed=seed: drawn(f, seed)):
                assert value.ball.contains(arb(mp.nstr(true, 50))) or abs(
                    float(value.ball.mid()) - float(true)
                ) < 1e-25 * max(1.0, abs(float(true)))
                assert not value.is_zero() or abs(true) < 1e-45
                seen += 1
    assert seen > 300


SERIES = {
    "exp": (jnp.exp, mp.exp), "log": (jnp.log, mp.log), "tanh": (jnp.tanh, mp.tanh),
    "sin": (jnp.sin, mp.sin), "cos": (jnp.cos, mp.cos), "sinh": (jnp.sinh, mp.sinh),
    "cosh": (jnp.cosh, mp.cosh), "arctan": (jnp.arctan, mp.atan), "erf": (jax.lax.erf, mp.erf),
    "sigmoid": (jax.nn.sigmoid, lambda x: 1 / (1 + mp.exp(-x))), "log1p": (jnp.log1p, mp.log1p),
    "expm1": (jnp.expm1, mp.expm1), "exp2": (jnp.exp2, lambda x: mp.mpf(2) ** x),
    "sqrt": (jnp.sqrt, mp.sqrt), "cbrt": (jnp.cbrt, mp.cbrt),
    "lgamma": (jax.lax.lgamma, mp.loggamma),
    "arcsin": (lambda x: jnp.arcsin(x / 2), lambda x: mp.asin(x / 2)),
    "arccos": (lambda x: jnp.arccos(x / 4), lambda x: mp.acos(x / 4)),
    "power": (lambda x: x**1.5, lambda x: x ** mp.mpf(1.5)),
    "powers": (lambda x: x**x, lambda x: x**x),
    "quotient": (lambda x: (1 + x) / (2 + x * x), lambda x: (1 + x) / (2 + x * x)),
    "sorted": (
        lambda x: jnp.sort(jnp.stack([x, -x, 3 - x])) @ jnp.array([1.0, 2.0, 4.0]),
        lambda x: -x + 2 * x + 4 * (3 - x),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SERIES)
def test_coefficients_contain_those_of_every_point_near(name):
    """mpmath differentiates numerically, at 60 digits, at points of the neighbourhood."""
    function, oracle = SERIES[name]
    closed = traced(lambda p: function(p[0]), jnp.zeros(1))[0]
    middle, reach = Fraction(5, 8), 2.0**-6

    def run(field):
        jets = Jets(field, 1, 4)
        at = field.rational(middle)
        entry = jets.variable(0, Coefficient(at, arb(0.625, reach)))
        ((jet,),) = JetRun(jets, "exact").ways(closed, reals((1,), [entry]))
        return jet.item().of

    found = again(run)
    for x in (0.625, 0.625 + reach, 0.625 - reach / 2):
        with mp.workdps(60):
            true = mp.taylor(oracle, mp.mpf(x), 4)
        for value, t in zip(found, true):
            over = arb(0) if value is None else value.over
            middle_of, radius = float(over.mid()), float(over.rad())
            assert abs(float(t) - middle_of) <= radius + 1e-12
            if x == 0.625 and value is not None and value.at is not None:
                assert float(value.at.ball.mid()) == pytest.approx(float(t), abs=1e-12)
    wide = 100.0 if name == "lgamma" else 2.0  # FLINT's series of balls is loose
    assert max(float(v.over.rad()) for v in found if v is not None) < wide


def polynomial(coefficients):
    """sum c_k x^k with small whole coefficients."""
    return lambda x: sum(float(c) * x[0] ** k for k, c in enumerate(coefficients) if c) + 0 * x[0]


def test_no_region_holds_a_point_at_which_a_polynomial_is_negative():
    """x^m times a random polynomial: its sign near zero, by fractions, at points as near as any."""
    rng, proved = np.random.default_rng(4), 0
    for _ in range(60):
        order = int(rng.integers(1, 6))
        tail = rng.integers(-3, 4, size=3)
        coefficients = [0] * order + tail.tolist()
        side = int(rng.integers(-1, 2))
        closed = program(polynomial(coefficients), 1)
        region = touching(closed, Place((rational(0.0),), (0,), (side,)), "exact")
        value = lambda x, c=coefficients: sum(Fraction(int(v)) * x**k for k, v in enumerate(c))
        signs = [s for s in (1, -1) if side * s >= 0]
        near = [s * Fraction(1, 10**k) for s in signs for k in range(1, 40, 3)]
        if region is None:
            lead = next((int(v) for v in tail if v), 0)
            holds = lead > 0 and (
                side > 0 or (side == 0 and (order + list(tail).index(lead)) % 2 == 0)
            )
            assert not (holds and order <= 4), coefficients
            continue
        proved += 1
        low, high = Fraction(region.lower[0]), Fraction(region.upper[0])
        inside = [x for x in near if low <= x <= high] + [low, high]
        assert all(value(x) >= 0 for x in inside), (coefficients, side, region)
    assert proved > 10


FORMS = [(1, 0, 1), (1, 1, 1), (1, -2, 1), (1, 3, 1), (2, -2, 1), (1, 2, 2), (-1, 0, 1), (1, -1, 0)]


@pytest.mark.parametrize("a, b, c", FORMS)
def test_quadratic_forms_by_their_discriminant(a, b, c):
    closed = program(lambda x: a * x[0] ** 2 + b * x[0] * x[1] + c * x[1] ** 2, 2)
    place = Place((rational(0.0), rational(0.0)), (0, 1), (0, 0))
    definite = a > 0 and 4 * a * c - b * b > 0
    assert (touching(closed, place, "exact") is not None) == definite
    # On the quadrant more is true: b may be anything that is not too negative.
    corner = Place((rational(0.0), rational(0.0)), (0, 1), (1, 1))
    found = touching(closed, corner, "exact") is not None
    assert found == (a > 0 and c > 0 and (b >= 0 or 4 * a * c > b * b))
    # A square is nothing for a neighbourhood, and seen by its factor.
    square = a > 0 and 4 * a * c == b * b
    found = holds_on(closed, Box((-1.0, -1.0), (1.0, 1.0)), "exact")
    assert found or not square
    assert not found or definite or square


NAMED = [0.5, 1 / 3, np.sqrt(2), np.sqrt(1 / 3), np.pi / 2, np.log(2), np.e, 5 ** (1 / 3)]


@pytest.mark.parametrize("x", NAMED)
def test_numbers_are_recognised(x):
    found = list(candidates(float(x), 1e-9))
    assert any(isinstance(n, Number) and abs(n.as_float - x) < 1e-12 for n in found)


HOMOGENEOUS = {
    "means": (lambda x: (x[0] + x[1]) / 2 - jnp.sqrt(x[0] * x[1]), (0.0, 0.0), (1.0, 1.0)),
    "Young": (lambda x: x[0] ** 3 / 3 + x[1] ** 1.5 / 1.5 - x[0] * x[1], (0.0, 0.0), (1.0, 2.0)),
    "shift": (lambda x: jax.nn.logsumexp(x) - jnp.max(x), (-1.0, -2.0, 0.0), (1.0, 1.0, 3.0)),
    "signs": (
        lambda x: jnp.abs(x[0]) + jnp.abs(x[1]) - jnp.abs(x[0] + x[1]), (-1.0, -1.0), (1.0, 2.0)
    ),
    "quotient": (lambda x: x[0] / x[1] + x[1] / x[0] - 2, (0.5, 0.25), (1.0, 2.0)),
    "softmax": (
        lambda x: 0.25 - jax.nn.softmax(x)[0] * jax.nn.softmax(x)[1], (-1.0, -1.0), (1.0, 1.0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_every_point_flows_to_a_face_with_the_same_sign(name):
    """In floats, by the flow itself: its sign stays, and the end is in a box that is left."""
    function, lower, upper = HOMOGENEOUS[name]
    closed, count = program(function, len(lower)), len(lower)
    scaled, basis = next(iter(flows(closed, count)))
    faces = reduced(closed, Box(lower, upper))
    assert all(any(a == b for a, b in zip(f.lower, f.upper)) for f in faces)
    margin, rng = jax.jit(function), np.random.default_rng(1)
    weights = np.array([float(w) for w in basis[0]])
    assert np.all(weights >= 0)
    for _ in range(40):
        x = rng.uniform(lower, upper)
        times = []
        for j in np.flatnonzero(weights):
            if not scaled[j]:
                times.append((upper[j] - x[j]) / weights[j])
            else:
                end = upper[j] if x[j] > 0 else lower[j]
                times.append(np.log(end / x[j]) / weights[j])
        t = min(times)
        moved = np.where(scaled, x * np.exp(weights * t), x + weights * t)
        held = [f for f in faces if np.all(moved >= np.array(f.lower) - 1e-9)
                and np.all(moved <= np.array(f.upper) + 1e-9)]  # fmt: skip
        assert held
        before, after = float(margin(jnp.asarray(x))), float(margin(jnp.asarray(moved)))
        assert before * after >= -1e-12


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[0] + x[1] - x[0] * x[1] - 0.1,
        lambda x: jnp.exp(x[0]) + x[1] + 1,
        lambda x: jnp.sin(x[0]) - x[1],
        lambda x: jnp.floor(x[0]) - x[1],
        lambda x: jnp.where(x[0] > 0.5, x[0], x[1]),
        lambda x: jnp.sort(x)[0] + 1,
    ],
)
def test_what_is_not_homogeneous_is_not_reduced(function):
    box = Box((0.25, 0.25), (1.0, 1.0))
    assert reduced(program(function, 2), box) == [box]
