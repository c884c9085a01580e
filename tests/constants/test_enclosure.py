"""The ratio in balls: what is refused, what is united, and what slopes promise.

The interpreter is tested where it lives; here its answers are written down.
"""

import math
import time

import numpy as np
import pytest
from flint import arb

from jaxbounds.claims.statements import Sides
from jaxbounds.constants import enclosure
from jaxbounds.constants.enclosure import BITS, Ratio, ascent, at_values, digits_of
from jaxbounds.constants.polish import Point, at
from jaxbounds.constants.snapping import tied
from jaxbounds.programs.balls.interpreter import Enclosed, precision
from jaxbounds.programs.balls.values import Undecided

E = {"x": np.array([1.0, 2.0])}


class Answered(Ratio):
    """A ratio by the sides that each way of a program gives."""

    def __init__(self, *ways):
        self.answers = ways

    def _ways(self, instance, reading):
        boxed = lambda side: np.array(side, object)
        return [(boxed(lhs), boxed(rhs), list(named)) for lhs, rhs, *named in self.answers]


def test_the_ratio_is_the_union_over_all_ways():
    with precision(BITS):
        one = Answered((arb(3), arb(4), True))(E)
        assert one == arb(3) / 4 and one.rad() == 0
        hull = Answered((arb(1), arb(4), True), (arb(1), arb(2), True), (arb(3), arb(8), True))(E)
    assert abs(hull.lower() - 0.25) < 1e-9 and abs(hull.upper() - 0.5) < 1e-9
    small = Answered((arb(1) / 16, arb(1) / 4, True))(E)
    assert small.contains(0.25)  # any positive right side is one
    later = Answered((arb(1), arb(2), True), (arb(1), arb(4), True))(E)
    assert later.contains(0.25) and later.contains(0.5)


@pytest.mark.parametrize(
    "lhs, rhs, words",
    [
        (arb(1), arb(0), "not be positive"), (arb(1), arb(-1), "not be positive"),
        (arb(1), arb(1, 2), "may not be positive"), (arb("nan"), arb(1), "may be infinite"),
        (arb("inf"), arb(1), "may be infinite"),
    ],
)  # fmt: skip
def test_sides_that_decide_nothing(lhs, rhs, words):
    with pytest.raises(Undecided, match=words):
        Answered((arb(1), arb(1), True), (lhs, rhs, True))(E)


@pytest.mark.parametrize("flags", [[False], [True, False], [np.array([True, False])]])
def test_a_hypothesis_that_is_not_certain(flags):
    with pytest.raises(Undecided, match="hypothesis"):
        Answered((arb(1), arb(1), *flags))(E)


@pytest.fixture
def hosted(claim, known, monkeypatch):
    """A ratio whose program runs on the host; `enclosures` gives what is put into the fixture."""
    own = claim(
        host=True,
        hypotheses=lambda i, size: {"a": i["x"][0] > 0},
        project=lambda i, size: {"x": i["x"] * 3},
        evaluate=lambda i, size: Sides(i["x"][0], {"printed": 7.0, "control": i["x"][1]}),
    )
    return known(lambda x: 1.0, statement=own)


@pytest.mark.parametrize("project, first", [(False, 1.0), (True, 3.0)])
def test_what_is_enclosed_are_both_sides_and_all_hypotheses(project, first, hosted, monkeypatch):
    seen = {}

    def enclosures(program, instance, **options):
        seen.update(options, out=program(instance))
        return Enclosed(["found"], computed=False)

    monkeypatch.setattr(enclosure, "enclosures", enclosures)
    ratio = Ratio(hosted, E, seconds=5, project=project)
    assert ratio._ways(E, "ulp") == ["found"]
    # What is looked at is the control: of a form alone it is the form again.
    lhs, rhs, named = seen["out"]
    assert (lhs, rhs) == (first, 2 * first) and [bool(n) for n in named] == [True]
    assert seen["reading"] == "ulp" and seen["bits"] == BITS and 0 < seen["seconds"] <= 5


@pytest.mark.parametrize("computed, whole", [(True, True), (False, False)])
def test_numbers_of_the_host_are_not_taken(computed, whole, hosted, monkeypatch):
    found = Enclosed(["found"], computed=computed, whole=whole)
    monkeypatch.setattr(enclosure, "enclosures", lambda *a, **k: found)
    with pytest.raises(Undecided, match="host"):
        Ratio(hosted, E, seconds=5)._ways(E, "ulp")


def test_the_time_allowed(hosted, monkeypatch):
    monkeypatch.setattr(enclosure, "enclosures", lambda *a, **k: 1 / 0)
    with pytest.raises(Undecided, match="time"):
        Ratio(hosted, E, seconds=-1)._ways(E, "ulp")
    ratio = Ratio(hosted, E, seconds=0)
    assert abs(ratio._until - time.process_time()) < 5


def test_values_are_put_back_into_the_instance():
    instance = {"x": np.array([2.0, -2.0, 0.0]), "n": np.array([3])}
    ties, values = tied(instance, 0.0)
    point = Point(instance, ties, values, 1.0)
    found = at_values(point, [arb(5)])
    assert [float(v) for v in found["x"]] == [5, -5, 0] and found["n"] == 3
    none = {"n": np.array([3])}
    assert at_values(Point(none, *tied(none, 0.0), 1.0), []) == none


@pytest.fixture
def point(known):
    def place(*x):
        return at(known(lambda x: 1.0), {"x": np.array(x, float)}, 0.0)

    return place


def test_newtons_steps_go_along_each_direction(point, known_ratio):
    # log f = -(a - 2)^2 - 3 (b - 5)^2, from (1, 4): bends 2 and 6 along the axes, and one step.
    f = lambda x: (-((x[0] - 2) ** 2) - 3 * (x[1] - 5) ** 2).exp()
    ratio = known_ratio(f)
    ball, gain, _ = ascent(ratio, point(1, 4), np.eye(2), np.array([2.0, 6.0]))
    assert gain < 1e-40 and abs(ball - 1) < 1e-30
    last = [x for x, reading in ratio.asked if reading == "ulp"]
    assert [[round(float(v), 9) for v in x] for x in last] == [[2, 5], [1, 4]]
    # Each column is a direction: -(a + b - 7)^2 - 3 (a - 2 b)^2 falls along (4, 2) by 36 t^2 and
    # along (1, -1) by 27 t^2, without a mixed term.
    f = lambda x: (-((x[0] + x[1] - 7) ** 2) - 3 * (x[0] - 2 * x[1]) ** 2).exp()
    ball, gain, _ = ascent(
        known_ratio(f), point(1, 4), np.array([[4.0, 1.0], [2.0, -1.0]]), np.array([72.0, 54.0])
    )
    assert gain < 1e-30 and abs(ball - 1) < 1e-25


def test_steps_end_when_too_little_is_gained(point, known_ratio):
    # Told ten times the bend, each step takes a tenth away: x^2 falls by .81, which is no tenth.
    ratio = known_ratio(lambda x: (-(x[0] ** 2) / 2).exp())
    _, gain, _ = ascent(ratio, point(1), np.eye(1), np.array([10.0]))
    assert gain == pytest.approx(0.81 / 20, rel=1e-9)
    # Told 8/7, each takes 7/8 away: x^2 by 64, so on it goes, but for five steps at most.
    bell = known_ratio(lambda x: (-(x[0] ** 2) / 2).exp())
    _, gain, _ = ascent(bell, point(1), np.eye(1), np.array([8 / 7]))
    assert gain == pytest.approx(0.125**8 / 2 * 7 / 8, rel=1e-6)
    # At 1e-20 the gain is 5e-41: none is made. At 2e-20 it is 2e-40.
    for x, steps in ((1e-20, 0), (2e-20, 1)):
        ratio = known_ratio(lambda x: (-(x[0] ** 2) / 2).exp())
        ascent(ratio, point(x), np.eye(1), np.ones(1))
        ends = [at[0] for at, reading in ratio.asked if reading == "ulp"]
        assert (ends[0] != ends[1]) == bool(steps)


def test_a_step_over_a_jump_is_taken_back(point, known_ratio):
    # The slope leads from 1 to 0, but there the ratio is 1/2 only.
    jump = lambda x: (-(x[0] ** 2) / 2).exp() / (2 if abs(x[0]) < 0.5 else 1)
    ball, gain, _ = ascent(known_ratio(jump), point(1), np.eye(1), np.ones(1))
    assert abs(ball - arb(-0.5).exp()) < 1e-12 and gain == math.inf


def test_a_flat_direction_is_not_gone_along(point, known_ratio):
    # log f = 3 a - b^2 / 2 from (1, 2), flat along a: the slope, 3, is what it promises.
    ratio = known_ratio(lambda x: (3 * x[0] - x[1] ** 2 / 2).exp())
    ball, gain, _ = ascent(ratio, point(1, 2), np.eye(2), np.array([0.0, 1.0]))
    last = next([float(v) for v in x] for x, how in ratio.asked if how == "ulp")
    assert last == pytest.approx([1, 0], abs=1e-12) and gain == pytest.approx(3, rel=1e-9)
    assert abs(ball - arb(3).exp()) < 1e-9


def test_where_it_falls_both_ways_no_step_is_made(point, known_ratio):
    ratio = known_ratio(lambda x: 1 - abs(x[0] - 1) - abs(x[0] - 1) * (x[0] > 1))
    ball, gain, _ = ascent(ratio, point(1), np.eye(1), np.ones(1))
    assert gain == 0 and ball == 1


def test_digits_are_at_most_those_of_the_precision():
    assert digits_of(arb(1)) == 134 and digits_of(arb("inf")) == 0  # 448 bits
    with precision(BITS):
        assert digits_of(arb(1, 2)) == 0
