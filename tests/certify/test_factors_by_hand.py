"""Margins written down on boxes by hand: their signs are those of their factors, by school."""

import jax.numpy as jnp
import pytest
from flint import arb, fmpq

from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls import factors
from jaxbounds.programs.balls.boxes import Box
from jaxbounds.programs.balls.exact import Field
from jaxbounds.programs.balls.factors import holds_on, not_negative
from jaxbounds.programs.balls.interpreter import precision, traced
from jaxbounds.programs.balls.jets import Coefficient, Jet, Jets
from jaxbounds.programs.balls.values import NAN, nonnegative


@pytest.fixture(autouse=True)
def arithmetic():
    with float64_on_cpu(), precision(128):
        yield


ENDS = [(-2.0, -1.0), (-1.0, 0.0), (-1.0, 1.0), (0.0, 1.0), (1.0, 3.0), (0.5, 0.5), (0.0, 0.0)]


@pytest.mark.parametrize("low, high", ENDS)
def test_coordinates_of_a_box(low, high):
    jets = Jets(Field(), 0, 1)
    (jet,) = factors._coordinates(jets, Box((low,), (high,)))
    (value,) = jet.of
    if low == high == 0:
        assert value is None
        return
    assert value.over.contains(arb(low)) and value.over.contains(arb(high))
    assert float(value.over.rad()) <= 0.51 * (high - low)
    written = value.at.field.value(value.at.num) / value.at.field.value(value.at.den)
    assert written.contains(arb(low)) and written.contains(arb(high))
    if low == high:
        assert value.at.as_rational() == fmpq(1, 2) and not jets.field.balls
        return
    (atom,) = jets.field.balls
    assert nonnegative(atom) == (low >= 0 or high <= 0) == bool(jets.field.nonnegative)
    assert atom.contains(arb(-high if high <= 0 else high))


def test_coordinates_are_different_atoms():
    jets = Jets(Field(), 0, 1)
    one, two = factors._coordinates(jets, Box((0.0, -1.0), (1.0, 0.0)))
    assert len(jets.field.balls) == 2 and jets.field.nonnegative == {0, 1}
    assert not jets.apply("sub", one, two).of[0].at.is_zero()
    assert not jets.apply("add", one, two).of[0].at.is_zero()


def test_signs_of_margins():
    field = Field()
    x = field.symbol("x", arb(0, 1))
    sign = lambda at, over: factors._sign(Jet([Coefficient(at, over)]))
    assert factors._sign(Jet([None]))
    assert (
        sign(x, arb(0.5)) and sign(x, arb(0)) and sign(x * x, arb(0, 1)) and not sign(x, arb(0, 1))
    )
    assert not sign(x * x, NAN) and not sign(None, arb(0, 1)) and not sign(-(x * x), arb(0, 1))
    assert sign(x - x, arb(0, 1)) and sign(field.rational(0), arb(0))


def test_factors_by_their_signs():
    """X is in [-1, 1], u in [0.1, 1.9]."""
    field = Field()
    x, u, r = field.symbol("x", arb(0, 1)), field.symbol("u", arb(1, 0.9)), field.rational
    below = u - r(2)
    yes = [x * x, u, x**4 * u**3, r(3), x - x, below * below * u, -below * u, below**3 * r(-2),
           x * x * below.inverse() * r(-1), u.inverse(), below.inverse() * below * u,
           (x * x - r(2) * x + r(1)) * u, (x + u) ** 2, (below * (u - r(3))), below.inverse() ** 2,
           x * x * u.inverse() ** 3, r(-1) * below.inverse() ** 3]  # fmt: skip
    no = [x, -u, x * u, x**3, x * x * below, r(-3), -(x * x), u.inverse() * x, below.inverse(),
          (x + u) ** 3, -((x + u) ** 2), x + u, below * u, u * below.inverse(),
          r(-1) * u.inverse(), below.inverse() ** 3]  # fmt: skip
    for k, one in enumerate(yes):
        assert not_negative(one), k
    for k, one in enumerate(no):
        assert not not_negative(one), k


UP, DOWN, OPEN = (0.0, 1.0), (-1.0, 0.0), (-1.0, 1.0)
CLAIMS = [
    (lambda x, y: (x - y) ** 2, OPEN, OPEN, True), (lambda x, y: x - y, OPEN, OPEN, False),
    (lambda x, y: x - x, OPEN, OPEN, True), (lambda x, y: x + 0 * y, UP, OPEN, True),
    (lambda x, y: x, DOWN, OPEN, False), (lambda x, y: -x, DOWN, OPEN, True),
    (lambda x, y: -x, UP, OPEN, False), (lambda x, y: x * y, DOWN, DOWN, True),
    (lambda x, y: x * y, UP, DOWN, False), (lambda x, y: x * y, UP, OPEN, False),
    (lambda x, y: x**2 * y**3, OPEN, UP, True), (lambda x, y: x**3 * y**2, OPEN, UP, False),
    (lambda x, y: x**2 * y**3, OPEN, DOWN, False), (lambda x, y: x / (1 + y), UP, UP, True),
    (lambda x, y: (x - 2) / (-2 - y), UP, UP, True),
    (lambda x, y: (x - 2) / (2 + y), UP, UP, False),
    (lambda x, y: (x + y) ** 2 - 4 * x * y, UP, UP, True),
    (lambda x, y: x**2 - y**2, UP, UP, False),
    (lambda x, y: x - 0.25, (0.5, 0.5), UP, True), (lambda x, y: x - 0.75, (0.5, 0.5), UP, False),
    (lambda x, y: x + y * y - 0.5, (0.5, 0.5), OPEN, True),
    (lambda x, y: jnp.sqrt(x) ** 2 - x, (0.5, 2.0), UP, True),
    (lambda x, y: jnp.exp(x + y) - jnp.exp(x) * jnp.exp(y), OPEN, UP, True),
    (lambda x, y: jnp.sqrt(x), OPEN, UP, False), (lambda x, y: 1 / x, OPEN, UP, False),
    (lambda x, y: jnp.floor(x), (0.0, 2.0), UP, False),
    (lambda x, y: jnp.maximum(x, y) - x, OPEN, OPEN, False),
    # Which is larger is seen from what is written down: balls leave it open.
    (lambda x, y: jnp.maximum(x * y * x * y, 0.0) - x * y * x * y, OPEN, OPEN, True),
    (lambda x, y: x / x - 1, (1.0, 2.0), UP, True),
]  # fmt: skip


@pytest.mark.parametrize("margin, x, y, holds", CLAIMS)
def test_claims_on_boxes(margin, x, y, holds):
    closed = traced(lambda p: (margin(p[0], p[1]), jnp.asarray(True)), jnp.zeros(2))[0]
    assert holds_on(closed, Box((x[0], y[0]), (x[1], y[1])), "exact") == holds


@pytest.mark.parametrize(
    "low, high, holds", [(1.0, 2.0, False), (-2.0, -1.0, True), (-1.0, 0.25, True)]
)
def test_nothing_is_asked_where_a_hypothesis_is_missed(low, high, holds):
    """-x is negative for x > 1/2, and for x < 1/2 nothing is claimed."""
    closed = traced(lambda p: (-p[0], p[0] > 0.5), jnp.zeros(1))[0]
    assert holds_on(closed, Box((low,), (high,)), "exact") == holds
