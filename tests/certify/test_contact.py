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
from jaxbounds.programs.balls.contact import Place, rational, touching
from jaxbounds.programs.balls.interpreter import precision, traced
from jaxbounds.programs.balls.symmetry import flows, reduced


def program(function, count):
    return traced(lambda x: (function(x), jnp.asarray(True)), jnp.zeros(count))[0]


@pytest.fixture(autouse=True)
def arithmetic():
    with float64_on_cpu(), precision(128):
        yield


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
        for seed in rng.integers(10**9, size=30).tolist():
            for value, true in again(lambda f, seed=seed: drawn(f, seed)):
                assert value.ball.contains(arb(mp.nstr(true, 50))) or abs(
                    float(value.ball.mid()) - float(true)
                ) < 1e-25 * max(1.0, abs(float(true)))
                assert not value.is_zero() or abs(true) < 1e-45
                seen += 1
    assert seen > 150


def polynomial(coefficients):
    """sum c_k x^k with small whole coefficients."""
    return lambda x: sum(float(c) * x[0] ** k for k, c in enumerate(coefficients) if c) + 0 * x[0]


def test_no_region_holds_a_point_at_which_a_polynomial_is_negative():
    """x^m times a random polynomial: its sign near zero, by fractions, at points as near as any."""
    rng, proved = np.random.default_rng(4), 0
    for _ in range(30):
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
    assert proved > 5


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
