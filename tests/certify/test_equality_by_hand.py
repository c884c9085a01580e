"""Where points of equality are looked for, how they are written down, and what a region covers.

Margins are plain NumPy functions of the point, whose least value is seen on paper; what is proved
around a point, and whether a box is settled, is given by stubs.
"""

import math
import time
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.certification import Box, equality
from jaxbounds.certification.equality import Equalities, point_program
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls.contact import Number, Region
from jaxbounds.programs.balls.values import NotSupported, Undecided

pytestmark = pytest.mark.usefixtures("x64")
DOMAIN, UNIT = Box((-4.0, -4.0), (4.0, 4.0)), Box((0.0, 0.0), (1.0, 1.0))
PROGRAM = point_program(lambda p: (p[0], 1.0 * p[0], 0.0 * p[0], p[0] > 0), 2)


def looked_for(margin=None, scale=1.0, needed=True, domain=DOMAIN, until=math.inf):
    """What looks for equalities of a margin in NumPy; `batches` keeps what was measured."""
    found = Equalities(lambda p: p, domain, PROGRAM, "ulp", until)
    found.batches = []

    def batch(points):
        points = np.asarray(points)
        found.batches.append(points)
        parts = (margin, scale, 0.0, needed)
        return [
            np.broadcast_to(part(points) if callable(part) else part, len(points))
            for part in parts
        ]  # fmt: skip

    found._batch = batch
    return found


def test_the_program_of_a_point_gives_the_margin_and_whether_it_counts():
    names = [v.aval.dtype.kind for v in PROGRAM.jaxpr.outvars]
    assert names == ["f", "b"] and PROGRAM.jaxpr.invars[0].aval.shape == (2,)


# --- what a region covers ---


def with_regions(*regions):
    found = looked_for()
    found.regions = [Region(*region) for region in regions]
    return found


def test_a_point_is_covered_by_any_of_the_regions():
    found = with_regions(((0.0, 0.0), (1.0, 2.0)), ((3.0, 3.0), (4.0, 4.0)))
    for point in ((0.5, 1.0), (0.0, 0.0), (1.0, 2.0), (3.5, 3.5)):
        assert found.covered(point)
    for point in ((1.5, 1.0), (0.5, 2.5), (-0.5, 1.0), (3.5, 1.0), (2.0, 2.5)):
        assert not found.covered(point)
    assert not with_regions().covered((0.0, 0.0))


def test_a_box_is_held_by_one_region_or_by_none():
    found = with_regions(((0.0, 0.0), (1.0, 2.0)), ((1.0, 0.0), (4.0, 4.0)))
    assert found.holds(Box((0.0, 0.0), (1.0, 2.0)))
    assert found.holds(Box((2.0, 1.0), (3.0, 4.0)))
    assert not found.holds(Box((0.5, 0.5), (1.5, 1.0)))  # in both, but in neither all of it
    assert not found.holds(Box((2.0, 1.0), (3.0, 4.5)))
    assert not found.holds(Box((2.0, -1.0), (3.0, 4.0)))
    assert not with_regions().holds(Box((0.0, 0.0), (0.0, 0.0)))


@pytest.mark.parametrize(
    ("lower", "upper", "cut"),
    [
        ((-1.0, 0.5), (0.5, 1.0), (0, 0.0)),
        ((0.5, 0.5), (3.0, 1.0), (0, 1.0)),
        ((0.0, 1.0), (1.0, 3.0), (1, 2.0)),
        ((0.0, -1.0), (1.0, 2.0), (1, 0.0)),
        ((-1.0, -1.0), (3.0, 3.0), (0, 0.0)),
        ((0.25, 0.5), (0.75, 1.0), None),  # inside
        ((0.0, 0.0), (1.0, 2.0), None),
        ((2.0, 0.5), (3.0, 1.0), None),  # beside it
        ((0.5, 3.0), (0.75, 3.5), None),
        ((-2.0, 0.5), (-1.0, 1.0), None),
        ((-1.0, -3.0), (0.5, -2.0), None),  # would be cut, if it touched it
        ((-1.0, 3.0), (0.5, 4.0), None),
        ((1.0, 0.0), (2.0, 1.0), None),  # touched at an end
        ((-1.0, 0.0), (0.0, 1.0), None),
        ((1.0, 1.0), (2.0, 3.0), (1, 2.0)),
    ],
)
def test_a_box_is_cut_where_a_region_ends(lower, upper, cut):
    assert with_regions(((0.0, 0.0), (1.0, 2.0))).cut(Box(lower, upper)) == cut
    far = ((50.0, 50.0), (60.0, 60.0))
    assert with_regions(far, ((0.0, 0.0), (1.0, 2.0))).cut(Box(lower, upper)) == cut
    assert with_regions().cut(Box(lower, upper)) is None


# --- when it is enough ---


def test_half_of_the_time_that_is_left_is_for_looking(monkeypatch):
    monkeypatch.setattr(time, "process_time", lambda: 100.0)
    found = looked_for(until=160.0)
    monkeypatch.setattr(equality, "holds_on", lambda *given: True)
    for now, spent in ((129.0, False), (130.0, False), (131.0, True)):
        monkeypatch.setattr(time, "process_time", lambda now=now: now)
        assert found.spent == spent
        assert found.settles(DOMAIN) != spent


# --- what is measured ---


def test_a_margin_is_measured_beside_the_larger_side():
    """4, 1, 0 and -1 beside sides of 4, 2^-30, 0 and 2; small ones count as 4e-6."""
    given = np.array([4.0, 1.0, 0.0, -1.0]), np.array([4.0, 2.0**-30, 0.0, 2.0])
    found = looked_for(lambda p: given[0], lambda p: given[1])
    points = np.zeros((4, 2))
    assert found._measured(points) == pytest.approx([1.0, 1 / 4e-6, 0.0, -0.5])
    given = np.array([4.0, 1.0, 0.0, -1.0]), np.array([0.5, 0.0, 1e300, math.inf])
    assert found._measured(points) == pytest.approx([8.0, 1 / 4e-6, 0.0, 0.0])
    assert found._scale == 4.0


def test_what_does_not_count_or_is_undefined_is_no_equality():
    values = np.array([1.0, math.nan, math.inf, -1.0, -2.0])
    needed = np.array([True, True, True, False, True])
    found = looked_for(lambda p: values, 1.0, lambda p: needed)
    assert found._measured(np.zeros((5, 2))).tolist() == [1.0, math.inf, math.inf, math.inf, -2.0]
    found = looked_for(lambda p: values, math.nan, lambda p: needed)
    assert found._measured(np.zeros((5, 2)))[0] == 0.0
    found = looked_for(lambda p: p[:, 0], 0.0)
    assert found._measured(np.zeros((5, 2)))[0] == 0.0  # of sides that are zero, all of them


def test_what_is_proved_is_not_looked_for_again():
    found = looked_for(lambda p: p[:, 0] * 0 - 1.0)
    found.regions = [Region((0.0, 0.0), (1.0, 2.0)), Region((3.0, 3.0), (4.0, 4.0))]
    points = np.array([(0, 0), (1, 2), (0.5, 1), (3.5, 3.5), (2, 1), (0.5, 3), (-1, 1), (0.5, -1)],
                      float)  # fmt: skip
    assert found._measured(points).tolist() == [math.inf] * 4 + [-1.0] * 4
    assert found._measured(points, masked=False).tolist() == [-1.0] * 8


def test_the_least_margin_is_looked_for_first_in_the_box_then_in_the_domain():
    """|x - 3| + |y - 1/2| on [0, 1] x {2}: least at (3, 2), outside; of y nothing is moved."""
    found = looked_for(lambda p: np.abs(p[:, 0] - 3) + np.abs(p[:, 1] - 0.5))
    best = found._lowest(Box((0.0, 2.0), (1.0, 2.0)))
    assert abs(best[0] - 3) < 1e-4 and best[1] == 2.0
    assert len(found.batches) == equality.ROUNDS
    first = found.batches[0]
    assert first.shape == (512, 2)
    assert first[:5].tolist() == [[0, 2], [0, 2], [1, 2], [1, 2], [0.5, 2]]
    assert np.histogram(first[5:, 0], 4, (0, 1))[0].min() > 80
    for k, points in enumerate(found.batches):
        least, most = (0.0, 1.0) if k < 3 else (-4.0, 4.0)
        assert points[:, 0].min() >= least and points[:, 0].max() <= most
        assert set(points[:, 1]) == {2.0}
    assert found.batches[4][:, 0].max() > 1.5
    spread = [np.median(np.abs(p[:, 0] - best[0])) for p in found.batches[4:]]
    assert spread[0] > 0.05 and spread[-1] < 1e-5


# --- Newton's method ---


def newton(slope, curve):
    found = looked_for()
    found._newton = lambda x: (np.asarray(slope(np.asarray(x))), np.asarray(curve(np.asarray(x))))
    return found


A = np.array([[2.0, 1.0], [1.0, 4.0]])


def test_newton_s_method_is_exact_for_a_quadratic():
    """Slope A (x - z): one step from anywhere, in the coordinates that are free."""
    z = np.array([0.25, -0.5])
    found = newton(lambda x: A @ (x - z), lambda x: A)
    start = np.array([0.251, -0.501])
    assert found._polished(start, [0, 1]) == pytest.approx(z, abs=1e-15)
    assert start.tolist() == [0.251, -0.501]
    # With y fixed: 2 (x - 1/4) + (y + 1/2) = 0.
    assert found._polished(start, [0]) == pytest.approx([0.2505, -0.501], abs=1e-15)
    assert found._polished(start, [1]) == pytest.approx([0.251, -0.50025], abs=1e-15)


@pytest.mark.parametrize(
    ("slope", "curve"),
    [
        ([0.1, 0.1], A),  # a step of 1/35 and more
        ([-0.1, -0.1], A),
        ([math.nan, 0.0], A),
        ([1e-3, 0.0], np.full((2, 2), math.nan)),
        ([1e-3, math.inf], A),
        ([1e-3, 1e-3], np.array([[math.inf, 0], [0, 1]])),
    ],
)
def test_what_newton_s_method_cannot_improve_stays(slope, curve):
    start = np.array([0.25, -0.5])
    found = newton(lambda x: slope, lambda x: curve)
    assert found._polished(start, [0, 1]).tolist() == [0.25, -0.5]


def test_a_direction_of_no_curvature_is_left_alone():
    """x^2 alone, of a slope of 1e-9 along y: what is flat is not divided by."""
    found = newton(lambda x: np.array([2 * x[0], 1e-9]), lambda x: np.diag([2.0, 1e-12]))
    assert found._polished(np.array([1e-3, 0.5]), [0, 1]) == pytest.approx([0.0, 0.5], abs=1e-15)


def test_slopes_and_curvature_are_those_of_the_margin():
    margin = lambda p: ((p[0] - 0.25) ** 2 + p[0] * p[1] + 2 * p[1] ** 2, p[0], p[0], p[0] > 0)
    found = Equalities(margin, DOMAIN, PROGRAM, "exact", math.inf)
    with float64_on_cpu():
        # 2 (x - 1/4) + y = 0 and x + 4 y = 0: x = 2/7, y = -1/14.
        best = found._polished(np.array([0.285, -0.0715]), [0, 1])
        share = found._measured(np.array([[1.0, 0.0]]))
    assert best == pytest.approx([2 / 7, -1 / 14], abs=1e-14)
    assert share == pytest.approx([0.5625])


# --- from a box to places ---


def near(best, box=DOMAIN, share=0.0, domain=UNIT, found_at=None):
    """The sides that are asked for, where the least margin is at a point."""
    found, asked = looked_for(domain=domain), []
    found._lowest = lambda given: np.array(best)
    found._measured = lambda points: (points.shape, np.full(len(points), share))[1]

    def around(at, free, sides):
        assert at.tolist() == list(best)
        asked.append((tuple(free), *map(int, sides)))
        return len(asked) - 1 == found_at

    found._around = around
    return found.find_region(box), asked, found._looks


OPEN = (0, 1)


@pytest.mark.parametrize(
    ("best", "sides"),
    [
        ((0.5, 0.5), [(0, 0)]),
        ((0.5e-5, 0.5), [(1, 0), (0, 0)]),
        ((0.5, 1 - 0.5e-5), [(0, -1), (0, 0)]),
        ((0.02, 0.98), [(0, 0), (1, -1)]),
        ((0.0, 0.5), [(1, 0), (0, 0)]),
        ((0.5, 1.0), [(0, -1), (0, 0)]),
        ((0.98, 0.02), [(0, 0), (-1, 1)]),
        ((1e-6, 0.02), [(1, 0), (1, 1), (0, 0)]),
        ((0.04, 0.96), [(0, 0)]),
    ],
)
def test_a_point_close_to_an_end_may_be_at_it(best, sides):
    assert near(best) == (False, [(OPEN, *one) for one in sides], 1)
    if len(sides) == 3:
        assert near(best, found_at=1) == (True, [(OPEN, *one) for one in sides[:2]], 1)
    assert near(best, found_at=0) == (True, [(OPEN, *sides[0])], 1)
    # Twice as wide, and moved.
    wide = tuple(2 * x - 1 for x in best)
    moved = near(wide, domain=Box((-1.0, -1.0), (1.0, 1.0)))
    assert moved[1] == [(OPEN, *one) for one in sides]


def test_what_is_fixed_in_a_box_has_no_side():
    assert near((0.5e-5, 0.5), Box((0.0, 0.0), (0.0, 1.0)))[1] == [((1,), 0, 0)]
    assert near((0.5, 0.5e-5), Box((0.0, 0.0), (1.0, 0.0)))[1] == [((0,), 0, 0)]


@pytest.mark.parametrize(
    ("share", "asked"), [(0.99e-7, 1), (1e-7, 0), (-1.0, 1), (1.0, 0), (math.nan, 0)]
)
def test_a_margin_that_is_not_small_is_no_equality(share, asked):
    assert len(near((0.5, 0.5), share=share)[1]) == asked


@pytest.fixture
def around(monkeypatch):
    """`_around` with the places that are asked for; what is proved is given by the caller."""

    def run(best, free, sides, proved=lambda spot: None, spellings=2, found=None):
        found = found or looked_for(domain=Box((0.0, 0.0), (8.0, 8.0)))
        spots = []

        def touching(program, spot, reading):
            assert (program, reading) == (PROGRAM, "ulp")
            spots.append(spot)
            return proved(spot)

        def spelled(point, moving):
            for k in range(spellings):
                yield tuple(Number("rational", Fraction(float(v)) + k) for v in point)

        monkeypatch.setattr(equality, "touching", touching)
        found._polished = lambda at, moving: at + np.isin(np.arange(2), moving) / 8
        found._spelled = spelled
        said = found._around(np.array(best), free, np.array(sides))
        values = [tuple(float(n.q) for n in spot.numbers) for spot in spots]
        return said, values, spots, found

    return run


def test_points_at_an_end_are_there_exactly_and_others_are_polished(around):
    said, values, spots, found = around((0.25, 7.75), [0, 1], [1, -1])
    assert (said, values) == (False, [(0.0, 8.0), (1.0, 9.0)])
    assert {(spot.free, spot.sides) for spot in spots} == {((0, 1), (1, -1))}
    # Polished first, then as it was found; a coordinate that is fixed is not polished.
    _, values, spots, _ = around((0.25, 7.75), [0, 1], [0, -1], spellings=1)
    assert values == [(0.375, 8.0), (0.25, 8.0)] and spots[0].sides == (0, -1)
    _, values, spots, _ = around((0.25, 7.75), [1], [0, 0], spellings=1)
    assert values == [(0.25, 7.875), (0.25, 7.75)]
    assert (spots[0].free, spots[0].sides) == ((1,), (0,))
    assert (found.regions, found.points) == ([], [])


def test_the_first_region_that_is_proved_is_kept(around):
    region = Region((0.0, 0.0), (1.0, 1.0))
    second = lambda spot: region if spot.numbers[0].q == Fraction(11, 8) else None
    said, values, _, found = around((0.25, 0.5), [0, 1], [0, 0], second)
    assert said and values == [(0.375, 0.625), (1.375, 1.625)]
    assert found.regions == [region] and found.points == [(0.375, 0.625)]


@pytest.mark.parametrize("problem", [NotSupported("no"), Undecided("no")])
def test_a_place_that_cannot_be_enclosed_is_left(around, problem):
    def refuse(spot):
        raise problem

    said, values, _, found = around((0.25, 0.5), [0, 1], [0, 0], refuse)
    assert not said and len(values) == 4 and not found.regions


def test_no_place_is_tried_twice(around):
    *_, found = around((0.25, 0.5), [0, 1], [0, 0])
    assert len(found._tried) == 2
    _, values, _, _ = around((0.2500001, 0.5), [0, 1], [0, 0], found=found)
    assert values == [] and len(found._tried) == 2
    for best, free, sides in (
        ((0.251, 0.5), [0, 1], [0, 0]), ((0.25, 0.5), [0, 1], [0, 1]), ((0.25, 0.5), [0], [0, 0])
    ):  # fmt: skip
        assert around(best, free, sides, found=found)[1]


# --- how a point is written down ---

CLOSE = lambda p: np.abs(p[:, 0] - 0.5) + np.abs(p[:, 1] - 1 / 3)


def test_the_plainest_spelling_comes_first():
    found = looked_for(CLOSE)
    first, *_ = found._spelled(np.array([0.5 + 1e-9, 1 / 3 - 1e-9]), [0, 1])
    assert first == (Number("rational", Fraction(1, 2)), Number("rational", Fraction(1, 3)))
    assert {b.shape for b in found.batches} == {(512, 2)}


def test_a_coordinate_that_does_not_move_is_the_float_that_it_is():
    found = looked_for(lambda p: np.abs(p[:, 0] - 0.5))
    point = np.array([0.5 + 1e-10, 0.1])
    (first, *rest) = list(found._spelled(point, [0]))
    assert first == (Number("rational", Fraction(1, 2)), Number("rational", Fraction(0.1)))
    assert all(one[1] == first[1] for one in rest)
    everything = list(looked_for(lambda p: 0.0 * p[:, 0])._spelled(point, []))
    assert everything == [tuple(Number("rational", Fraction(v)) for v in point.tolist())]


def test_only_spellings_that_are_equalities_are_tried():
    """Two thirds of the way to them is nothing: 1e-11 is the border, on both sides."""
    for value, tried in ((0.9e-11, True), (1.1e-11, False), (-0.9e-11, True), (-1.1e-11, False)):
        found = looked_for(lambda p, v=value: 0.0 * p[:, 0] + v)
        assert bool(list(found._spelled(np.array([0.5, 0.25]), [0]))) == tried
    found = looked_for(CLOSE)
    assert not list(found._spelled(np.array([0.5, 0.25]), [0]))


def test_a_dozen_spellings_are_enough_the_plainest_first_and_a_region_hides_none():
    """1, 1/2 and 2 are the roots of their squares and of their cubes as well: 27 spellings."""
    found = looked_for(lambda p: 0.0 * p[:, 0])
    found.regions = [Region((-9.0,) * 3, (9.0,) * 3)]
    point = np.array([1.0, 0.5, 2.0])
    many = list(found._spelled(point, [0, 1, 2]))
    assert len(many) == len(set(many)) == 12
    assert all(n.as_float == pytest.approx(x) for one in many for n, x in zip(one, point))
    roots = [sum(n.kind == "root" for n in one) for one in many]
    assert roots[:4] == [0, 1, 1, 1]
    assert [n.q for n in many[0]] == [1, Fraction(1, 2), 2]


def test_a_point_that_has_no_name_is_not_written_down(monkeypatch):
    monkeypatch.setattr(equality, "candidates", lambda x, within: iter(()))
    assert list(looked_for(CLOSE)._spelled(np.array([0.5, 0.25]), [0])) == []


def test_an_equality_in_earnest():
    """x^2 - x + 1/4 + y^2 vanishes at (1/2, 0) alone, in all of the domain."""
    margin = lambda p: (
        p[0] ** 2 - p[0] + 0.25 + p[1] ** 2, 1.0 + 0 * p[0], 0.0 * p[0], p[0] > -99
    )  # fmt: skip
    with float64_on_cpu():
        program = point_program(margin, 2)
        found = Equalities(margin, DOMAIN, program, "exact", math.inf)
        assert found.find_region(Box((0.0, -1.0), (1.0, 1.0)))
    assert found.points[0] == pytest.approx((0.5, 0.0), abs=1e-9)
    assert found.covered((0.5, 0.0)) and jnp.asarray(found.regions[0].lower)[0] < 0.5
