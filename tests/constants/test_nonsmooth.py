"""Descents at kinks: each decision of a step, of a cutting plane and of a linear program.

Losses are piecewise linear, or parabolas, so that steps, slopes and least values are known by hand.
"""

import math
import time

import numpy as np
import pytest

from jaxbounds.constants import nonsmooth
from jaxbounds.constants.nonsmooth import _step, bundled, by_cma, program, walked


def counted(loss):
    """The loss, and the points at which it was asked for."""
    asked = []

    def one(x):
        asked.append(np.array(x))
        return loss(x)

    return one, asked


def parabola(bend):
    return lambda x: (float(bend * x @ x / 2), bend * x)


ONE = np.ones(1)


def along(loss, start, way):
    """A step of the line search, and the lengths that it tried."""
    x, asked = np.array([start]), []

    def noted(z):
        asked.append(float(z[0] - start) / way)
        return loss(z)

    f, g = loss(x)
    return _step(noted, x, f, g, np.array([way])), asked


def test_a_step_is_taken_where_it_falls_enough_and_is_flat_enough():
    # f = x^2 / 2 from 1, way -1: at t = 1 it is at the least value, with slope zero.
    (t, value, slope), asked = along(parabola(1.0), 1.0, -1.0)
    assert (t, value, slope.tolist()) == (1.0, 0.0, [0.0]) and asked == [1.0]


def test_a_step_that_does_not_fall_is_halved():
    # Way -4: at -3 it is higher, at -1 as high (a fall by 1e-4 of the slope is asked for), then 0.
    (t, value, _), asked = along(parabola(1.0), 1.0, -4.0)
    assert (t, value) == (0.25, 0.0) and asked == [1.0, 0.5, 0.25]


def test_a_step_that_is_still_steep_is_doubled_then_halved():
    # From 64 by ones: the slope must rise to nine tenths of that at the start, 57.6: at t = 7 at
    # least, so at 1, 2, 4, 8.
    (t, _, _), asked = along(parabola(1.0), 64.0, -1.0)
    assert t == 8.0 and asked == [1, 2, 4, 8]

    # A kink at 3, and beyond it ten times as steep: halved between 2 and 4.
    def kink(x):
        return (float(x[0]), ONE) if x[0] > 0 else (-10 * float(x[0]), -10 * ONE)

    (t, value, _), asked = along(kink, 3.0, -1.0)
    assert (t, value) == (3.0, 0.0) and asked == [1, 2, 4, 3]


def test_no_step_where_none_helps():
    found, asked = along(lambda x: (1.0, ONE), 0.0, -1.0)
    assert found is None and len(asked) == 60
    # Nothing is said of what is no number.
    assert along(lambda x: (math.nan if x[0] else 0.0, ONE), 0.0, -1.0)[0] is None


def test_walks_learn_the_bends():
    # Bends of 1 and 10,000: in two dimensions BFGS ends soon; slopes alone need thousands of steps.
    bends = np.array([1.0, 1e4])
    loss, asked = counted(lambda x: (float(x @ (bends * x) / 2), bends * x))
    found = walked(loss, np.array([3.0, 2.0]))
    assert np.max(np.abs(found)) < 1e-6 and len(asked) < 60


def rosenbrock(x):
    a, b = x
    slope = np.array([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)])
    return float((1 - a) ** 2 + 100 * (b - a * a) ** 2), slope


def test_walks_turn():
    loss, asked = counted(rosenbrock)
    found = walked(loss, np.array([-1.2, 1.0]))
    np.testing.assert_allclose(found, [1, 1], atol=1e-6)
    assert len(asked) < 100


def test_walks_end_when_they_must():
    loss, asked = counted(parabola(1.0))
    start = np.array([5.0, -3.0])
    assert walked(loss, start, until=0.0) is start and len(asked) == 1
    assert walked(loss, start, steps=0) is start
    one = walked(lambda x: (float(np.sum(np.abs(x))), np.sign(x)), start, steps=1)
    assert 0 < np.sum(np.abs(one)) < 8
    # At the least value nothing is tried at all.
    loss, asked = counted(parabola(1.0))
    assert np.array_equal(walked(loss, np.zeros(2)), np.zeros(2)) and len(asked) == 1


def faces(*slopes):
    """The largest of some linear functions."""
    slopes = np.array(slopes, float)

    def loss(x):
        best = int(np.argmax(slopes @ x))
        return float(slopes[best] @ x), slopes[best]

    return loss


TRIANGLE = faces([2, 1], [-1, 2], [-1, -3])  # zero is inside the hull of the slopes


def test_cutting_planes_end_where_pieces_meet():
    loss, asked = counted(TRIANGLE)
    found = bundled(loss, np.array([0.7, -0.4]))
    assert TRIANGLE(found)[0] < 1e-15 and len(asked) < 30
    # The first region is a cube of half a side of a tenth: a first step is no longer.
    assert np.max(np.abs(asked[1] - asked[0])) == pytest.approx(0.1)
    assert np.max(np.abs(bundled(TRIANGLE, np.ones(2), radius=0.5, until=0.0) - 1)) == 0


def test_what_is_no_number_is_not_gone_to():
    loss, asked = counted(lambda x: (float(x[0]) if x[0] > -0.05 else math.nan, ONE))
    found = bundled(loss, np.zeros(1))
    assert -0.05 < found[0] < 0
    # An eighth of the region after each that failed.
    assert asked[1][0] == pytest.approx(-0.1) and asked[2][0] == pytest.approx(-0.0125)
    steep = lambda x: (float(x[0]), ONE if x[0] > -0.05 else math.nan * ONE)
    assert -0.05 < bundled(steep, np.zeros(1))[0] < 0


@pytest.mark.parametrize(
    "cuts, x, f, radius, step, promised",
    [
        # One slope: to the corner of the cube, 3 * .5 + 4 * .5 lower.
        ([([0, 0], 1.0, [3, -4])], [0, 0], 1.0, 0.5, [-0.5, 0.5], 3.5),
        # |x| from 2 by cuts at both sides: to the kink, 2 lower; the region reaches farther.
        ([([2], 2.0, [1]), ([-1], 1.0, [-1])], [2], 2.0, 5.0, [-2], 2.0),
        # The cut at 1 is linear, 3 + 2 (x - 1): at x = 0 it is 1.
        ([([1], 3.0, [2])], [0], 1.0, 0.25, [-0.25], 0.5),
        # A cut above the value at x is let down to it: 5 becomes 0.
        ([([0], 5.0, [1]), ([0], 0.0, [-1])], [0], 0.0, 1.0, [0], 0.0),
        # Without a value cuts stay: 5 + x and -x meet beyond the region.
        ([([0], 5.0, [1]), ([0], 0.0, [-1])], [0], None, 1.0, [-1], 1.0),
    ],
)
def test_the_best_step_for_the_largest_of_the_cuts(cuts, x, f, radius, step, promised):
    cuts = [(np.array(z, float), v, np.array(g, float)) for z, v, g in cuts]
    found, by, weights = program(cuts, np.array(x, float), f, radius)
    np.testing.assert_allclose(found, step, atol=1e-9)
    assert by == pytest.approx(promised, abs=1e-9) and np.sum(weights) == pytest.approx(1)


def test_the_multipliers_are_those_of_a_convex_combination():
    # At the kink of 3 x and -x: one part of the first slope, three of the second.
    cuts = [(np.zeros(1), 0.0, 3 * ONE), (np.zeros(1), 0.0, -ONE)]
    _, _, weights = program(cuts, np.zeros(1), 0.0, 1.0)
    np.testing.assert_allclose(weights, [0.25, 0.75])


def test_a_program_that_has_no_solution(monkeypatch):
    found = type("Found", (), {"success": False})
    monkeypatch.setattr(nonsmooth.scipy.optimize, "linprog", lambda *a, **k: found)
    step, by, weights = program([(ONE, 1.0, ONE), (ONE, 1.0, ONE)], ONE, 1.0, 1.0)
    assert step is None and by == 0 and weights.tolist() == [0, 0]
    assert np.array_equal(bundled(parabola(1.0), ONE), ONE)


def test_what_is_too_steep_for_floats_is_no_program():
    for steep in ([1e308], [np.inf], [np.nan]):
        cuts = [(np.zeros(1), 0.0, ONE), (10 * ONE, 0.0, np.array(steep))]
        step, by, weights = program(cuts, np.zeros(1), 0.0, 1.0)
        assert step is None and by == 0 and weights.tolist() == [0, 0]


def test_where_a_cut_teaches_nothing_the_region_shrinks():
    # Rounding hides what slopes promise: 3 programs for each halving, down to 1e-15.
    asked = []
    found = bundled(lambda x: asked.append(x) or (0.0, ONE), ONE)
    assert np.array_equal(found, ONE) and len(asked) < 150


def test_evolution_finds_what_slopes_do_not_lead_to():
    pytest.importorskip("cma")
    steps = lambda many: np.sum(np.ceil(np.abs(np.asarray(many) - 2) * 1e3), axis=1)
    before = np.random.get_state()[1].copy()  # noqa: NPY002, which is left as it was
    end = time.process_time() + 20
    found = by_cma(steps, np.zeros(2), spread=0.5, seed=1, until=end)
    assert np.max(np.abs(found - 2)) < 2e-3
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    start = np.array([4.0, 5.0])
    assert by_cma(steps, start, spread=0.5, seed=1, until=0.0) is start


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setattr(nonsmooth, "has_cma", lambda: False)
    with pytest.raises(ModuleNotFoundError, match=r"jaxbounds\[search\]"):
        by_cma(lambda x: x, ONE, spread=1.0, seed=0, until=math.inf)
    monkeypatch.undo()
    monkeypatch.setattr(nonsmooth.importlib.util, "find_spec", lambda name: None)
    assert not nonsmooth.has_cma()
    monkeypatch.setattr(nonsmooth.importlib.util, "find_spec", lambda name: name == "cma")
    assert nonsmooth.has_cma()
