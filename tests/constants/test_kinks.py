"""Where pieces meet: found, solved for, and refused where balls see otherwise.

The ratios are e^-F with F the largest of some linear functions, which is zero in one known point.
"""

import math

import numpy as np
import pytest
from flint import arb

from jaxbounds.constants import kinks
from jaxbounds.constants.enclosure import BITS
from jaxbounds.constants.kinks import Piece, _equal, met, pieces
from jaxbounds.constants.polish import at
from jaxbounds.programs.balls.interpreter import precision

SLOPES = np.array([[3.0, 1.0], [-1.0, 2.0], [-1.0, -3.0]])  # zero is (5, 8, 7)/20 of them
CENTRE = np.array([1.0, 2.0])


def face(x):
    best = int(np.argmax(SLOPES @ (x - CENTRE)))
    return float(SLOPES[best] @ (x - CENTRE)), SLOPES[best]


def test_the_active_pieces_and_their_multipliers():
    x, active = pieces(face, CENTRE + np.array([3e-4, -2e-4]))
    np.testing.assert_allclose(x, CENTRE, atol=1e-12)
    order = sorted(active, key=lambda p: tuple(-p.slope))
    np.testing.assert_array_equal([p.slope for p in order], SLOPES)
    np.testing.assert_allclose([p.weight for p in order], [0.25, 0.4, 0.35], atol=1e-6)
    # Each offset leads to where its piece is the largest, within the last cube.
    for p in active:
        assert face(x + p.offset)[1] is not None and np.max(np.abs(p.offset)) < 1e-2
        np.testing.assert_array_equal(face(x + p.offset)[1], p.slope)


def test_no_pieces_without_a_program(monkeypatch):
    monkeypatch.setattr(kinks, "program", lambda *a: (None, 0.0, np.zeros(1)))
    start = CENTRE + 1e-3
    x, active = pieces(face, start)
    assert active == [] and np.array_equal(x, start)


def height(x, rise=0.0):
    """In balls: the largest of the linear functions, and how much is put on top to one side."""
    far = [x[0] - 1, x[1] - 2]
    values = [arb(a) * far[0] + arb(b) * far[1] for a, b in SLOPES.tolist()]
    top = values[0]
    for v in values[1:]:
        top = top.max(v)
    return (-top + rise * far[0]).exp()


@pytest.fixture
def problem(known):
    def slope(x):
        return -face(x)[1]

    return known(lambda x: math.exp(-face(x)[0]), slope)


def near(problem):
    return at(problem, {"x": CENTRE + np.array([1e-5, 2e-5])}, 0.0)


def test_the_ratio_where_all_pieces_meet(problem, known_ratio):
    ball, gain = met(problem, known_ratio(height), near(problem))
    with precision(BITS):
        assert abs(ball - 1) < 1e-40
    assert gain < 1e-18


def test_nothing_is_said_where_it_rises_to_some_side(problem, known_ratio):
    # By four along x it rises, though floats saw it fall.
    assert met(problem, known_ratio(lambda x: height(x, 4)), near(problem)) is None


def test_nothing_is_said_where_there_is_no_kink(known, known_ratio):
    hill = known(lambda x: math.exp(-np.sum((x - 1) ** 2)), lambda x: -2 * (x - 1))
    balls = known_ratio(lambda x: (-((x[0] - 1) ** 2) - (x[1] - 1) ** 2).exp())
    found = met(hill, balls, at(hill, {"x": np.array([1.1, 0.9])}, 0.0))
    assert found is None or found[1] > 1e-12
    # Nor where the ratio is constant, or does not count.
    for height_ in (1.0, -1.0):
        flat, one = known(lambda x, h=height_: h, np.zeros_like), known_ratio(lambda x: arb(1))
        assert met(flat, one, at(flat, {"x": np.array([1.0, 2])}, 0.0)) is None


def linear(at_zero, slopes):
    """The pieces' own heights: -log of the ratio on the side of each."""
    with precision(BITS):

        def value(values, d):
            moved = [v + arb(float(x)) for v, x in zip(values, d)]
            heights = [
                arb(h) + sum(arb(float(a)) * m for a, m in zip(s, moved))
                for h, s in zip(at_zero, slopes)
            ]
            top = heights[0]
            for h in heights[1:]:
                top = top.max(h)
            return (-top).exp()

        return value


def test_equal_pieces_by_newtons_steps():
    # max(x, -2 x + 3e-9) near 0: equal at 1e-9.
    slopes = [np.array([1.0]), np.array([-2.0])]
    active = [Piece(slopes[0], np.array([1e-8]), 0.5), Piece(slopes[1], np.array([-1e-8]), 0.5)]
    with precision(BITS):
        value = linear([0.0, 3e-9], slopes)
        values, apart = _equal([arb(0)], active, np.ones(1), value)
        assert abs(values[0] - arb(3e-9) / 3) < 1e-40 and apart < 1e-13
        # One piece alone is equal to nothing.
        assert _equal([arb(0)], active[:1], np.ones(1), value) is None
        # Pieces whose heights jump about never meet.
        jumps = iter(range(1, 100))
        assert _equal([arb(0)], active, np.ones(1), lambda v, d: arb(next(jumps))) is None
