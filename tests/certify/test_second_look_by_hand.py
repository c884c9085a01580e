"""The second look at a proof: where it measures, what it takes for rounding, what it objects to.

The points and the thresholds are written out by hand; the programs that are measured are plain
NumPy functions, whose values at a point one sees, and nothing of the library says what they are.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.certification import second_look
from jaxbounds.certification.second_look import Doubt, _largest, _points, _rounding, _special
from jaxbounds.claims.statements import Domain
from jaxbounds.ground.jax_internals import enable_x64

EPS = 2.0**-52


def box(lower, upper, slack=0.0):
    return Domain(name="d", chart=lambda p, s: {}, size={}, lower=lower, upper=upper, slack=slack)


# --- where it looks ---


@pytest.mark.parametrize(
    ("low", "high", "middle", "inside", "whole"),
    [
        (0.2, 2.5, 1.35, [1, 0.5, 2], [1, 2]),
        (-3.5, 20.0, 8.25, [0, 1, -1, 0.5, -0.5, 2, -2, 1e-9, -1e-9], range(-3, 6)),
        (0.0, 1.0, 0.5, [0, 1, 0.5, 1e-9], [0, 1]),
        (-2.0, -0.5, -1.25, [-1, -0.5, -2], [-2, -1]),
        (0.5, 0.75, 0.625, [0.5], []),
        (6.0, 7.25, 6.625, [], [6, 7]),
        (1e-9, 2e-9, 1.5e-9, [1e-9], []),
    ],
)
def test_special_numbers_of_an_interval(low, high, middle, inside, whole):
    """Its ends, the floats next to them, the middle, a few numbers, and nine whole ones: within."""
    found = _special(low, high)
    ends = [low, high, np.nextafter(low, 99.0), np.nextafter(high, -99.0)]
    assert found == pytest.approx([*ends, middle, *inside, *whole], rel=1e-15, abs=0)
    assert found[:4] == ends
    assert all(low <= v <= high for v in found)


LOW, HIGH = np.array([2.0, -40.0]), np.array([4.0, -10.0])


def test_the_points_of_a_box():
    """In order: corners, corners by chance, special ones, mixed ones, two lines, two clouds."""
    points = _points(box(tuple(LOW), tuple(HIGH)), np.random.default_rng(0))
    known = [_special(a, b) for a, b in zip(LOW, HIGH)]
    sizes = [4, 256, 1024, 1024, len(known[0]), len(known[1]), 1024, 1024]
    assert len(points) == sum(sizes)
    assert np.all(points >= LOW) and np.all(points <= HIGH)
    parts = np.split(points, np.cumsum(sizes)[:-1])
    corners, some, special, mixed, first, second, *_ = parts
    assert sorted(map(tuple, corners)) == [(2, -40), (2, -10), (4, -40), (4, -10)]
    assert np.all((some == LOW) | (some == HIGH))
    for j in range(2):
        assert set(special[:, j]) == set(known[j])
        assert np.any(np.isin(mixed[:, j], known[j])) and not np.all(np.isin(mixed[:, j], known[j]))
    assert first[:, 0].tolist() == known[0] and set(first[:, 1]) == {-25.0}
    assert second[:, 1].tolist() == known[1] and set(second[:, 0]) == {3.0}


# --- what it objects to ---


class Program:
    """A margin in NumPy, for points of shape (n, k); what was asked is kept."""

    def __init__(self, margin, scale=1.0, needed=True):
        self.parts, self.asked = (margin, scale, 0.0, needed), []

    def __call__(self, points):
        points = np.asarray(points)
        self.asked.append(points)
        values = [part(points) if callable(part) else part for part in self.parts]
        return [np.broadcast_to(v, len(points)) for v in values]


@pytest.fixture
def asked(monkeypatch):
    """`against` with a program in NumPy, with points, and with what is rounding, all given."""

    def run(program, points=None, tolerance=0.0, domain=None, rounding=(), largest=0.0):
        seen = []

        def by_rounding(measured, point, value):
            seen.append((float(point[0]), value))
            return point[0] in rounding

        monkeypatch.setattr(second_look, "compiled", lambda function: program)
        monkeypatch.setattr(second_look, "_rounding", by_rounding)
        monkeypatch.setattr(second_look, "_largest", lambda margin, point: largest)
        if points is not None:
            monkeypatch.setattr(second_look, "_points", lambda domain, rng: np.array(points))
        with enable_x64():
            found = second_look.against(lambda p: p, domain or box((0.0,), (4096.0,)), tolerance)
        run.seen = seen
        return found

    return run


COLUMN = np.arange(20.0)[:, None]


def at(place, value):
    """That value at one point, and one elsewhere."""
    return Program(lambda p: np.where(p[:, 0] == place, value, 1.0))


@pytest.mark.parametrize("place", [0.0, 1023.0, 1024.0, 1498.0, 1499.0])
def test_every_point_is_measured(asked, place):
    """1500 of them are two batches of 1024, the second filled up."""
    program = at(place, -0.5)
    found = asked(program, np.arange(1500.0)[:, None], 1e-9)
    assert found.point == (place,) and found.looked == 1500
    assert "it has the margin -0.5 at" in found.reason and "a contradiction" in found.reason
    assert [p.shape for p in program.asked] == [(1024, 1)] * 2
    assert program.asked[0][:, 0].tolist() == list(range(1024))
    assert program.asked[1][:477, 0].tolist() == [*range(1024, 1500), 1499]


@pytest.mark.parametrize(
    ("margin", "scale", "slack", "tolerance", "objects"),
    [
        (-0.5, 1.0, 0.0, 0.5, False),  # no more than the tolerance
        (-0.5, 1.0, 0.0, 0.5 - EPS, True),
        (-0.5, 2.0, 0.0, 0.25, False),  # of the larger side
        (-0.5, 2.0, 0.0, 0.25 - EPS, True),
        (-0.5, 0.25, 0.0, 1.9, True),
        (-1.0, 0.25, 0.5, 1.0, False),  # half of it is slack, of which it is all
        (-1.0, 0.25, 0.5, 0.9, True),
        (-1.0, 0.25, 1.0, 0.0, False),
        (-1.0, 4.0, 0.5, 0.125, False),
        (-1.0, 4.0, 0.5, 0.12, True),
        (-1e-310, 0.0, 0.0, 1e-9, False),  # beside two sides that are zero
        (-1e-310, 0.0, 0.0, 1e-11, True),
        (np.nan, 1.0, 0.0, 0.5, True),
        (-np.inf, 1.0, 0.0, 0.5, True),
        (np.inf, 1.0, 0.0, 0.5, False),
        (0.5, 1.0, 0.0, 0.0, False),
    ],
)
def test_a_violation_beyond_the_tolerance_is_objected_to(
    asked, margin, scale, slack, tolerance, objects
):
    domain = box((0.0,), (4096.0,), slack)
    program = Program(lambda p: np.where(p[:, 0] == 7, margin, 9.0), scale)
    found = asked(program, COLUMN, tolerance, domain)
    assert found.point == ((7.0,) if objects else None)
    assert bool(found.reason) == objects
    assert ("is undefined" in found.reason) == np.isnan(margin)
    if objects and not np.isnan(margin):
        assert asked.seen[-1] == (7.0, margin + slack)
        assert f"has the margin {margin + slack:.6g}" in found.reason


def test_where_no_hypothesis_is_met_nothing_is_objected_to(asked):
    for value in (-0.5, np.nan):
        elsewhere = Program(lambda p, v=value: p[:, 0] * 0 + v, 1.0, lambda p: p[:, 0] == 5000.0)
        assert asked(elsewhere, COLUMN) == Doubt("", None, 20 + 5 * 1024)
        there = Program(lambda p, v=value: p[:, 0] * 0 + v, 1.0, lambda p: p[:, 0] == 5.0)
        assert asked(there, COLUMN).point == (5.0,)


def test_what_is_rounding_at_the_worst_points_hides_no_other(asked):
    """Of twenty violations the eight worst are looked at, the worst first."""
    program = Program(lambda p: p[:, 0] / 32 - 1)
    assert asked(program, COLUMN, rounding=set(range(7))).point == (7.0,)
    assert [point for point, _ in asked.seen] == list(range(8))


@pytest.mark.parametrize("largest", [1.0, 2.0**20])
def test_a_few_units_of_the_largest_number_are_rounding(asked, largest):
    """Eight, of 2^-52 each."""
    assert not asked(at(7, -8 * EPS * largest), COLUMN, largest=largest).reason
    assert asked(at(7, -9 * EPS * largest), COLUMN, largest=largest).point == (7.0,)
    assert asked(at(7, np.nan), COLUMN, largest=largest).point == (7.0,)


def test_it_goes_on_around_the_best_points(asked):
    """From the sixteen that are best of forty, by steps of many sizes, within the box."""
    low, high = np.array([0.0, 1000.0]), np.array([1.0, 1001.0])
    program = Program(lambda p: 1 + np.abs(p - [0.5, 1000.5]).sum(1))
    start = low + (high - low) * np.random.default_rng(5).random((40, 2))
    found = asked(program, start, 1e-9, box(tuple(low), tuple(high)))
    assert found == Doubt("", None, 40 + 5 * 1024)
    first, second = program.asked[:2]
    assert len(program.asked) == 6
    assert np.all(second >= low) and np.all(second <= high)
    order = np.argsort(program(start)[0])
    moves = (second.reshape(64, 16, 2) - start[order[:16]]) / (high - low)
    still = np.mean(moves == 0)
    assert 0.4 < still < 0.6
    size = np.abs(moves[moves != 0])
    assert np.median(size) == pytest.approx(10**-3.25, rel=0.5)  # 10^-6 to 10^-.5, times normal
    assert 0.3 < np.max(size) <= 1 and np.quantile(size, 0.05) < 1e-5
    assert abs(np.mean(moves > 0) - np.mean(moves < 0)) < 0.1
    # Later rounds start from what the one before found.
    best = np.min(program(second)[0])
    assert np.min(program(program.asked[2])[0]) < best + 1e-3
    assert first[:40].tolist() == start.tolist()


def test_the_only_coordinate_is_always_moved(asked):
    program = Program(lambda p: 1 + p[:, 0] / 5000)
    asked(program, COLUMN + 100)
    moved = program.asked[1].reshape(64, 16) - (100 + np.arange(16.0))
    assert np.mean(moved == 0) < 0.01


# --- what is rounding ---


def steps_of(point):
    """The steps in the last place of 32 points beside one."""
    seen = []

    def measured(points):
        seen.append(points)
        return second_look._Measured(*[np.zeros(len(points))] * 4)

    _rounding(measured, np.array(point), -1.0)
    return (seen[0] - point) / np.spacing(np.abs(point))


def test_the_last_places_are_moved_by_up_to_eight_units():
    steps = steps_of([1.5, -3.25, 700.0])
    assert steps.shape == (32, 3)
    assert np.all(steps == np.round(steps)) and np.max(np.abs(steps)) == 8
    assert all(len(set(steps[:, j])) > 8 and min(steps[:, j]) < -4 for j in range(3))
    near_zero = np.abs(steps_of([0.0]) * np.spacing(0.0))
    assert 0 < np.max(near_zero) < 1e-300


@pytest.mark.parametrize(
    ("spread", "violation", "rounding"),
    [
        (1.0, -4.0, True),
        (1.0, -4.5, False),
        (1.0, -0.5, True),
        (0.0, -1e-20, False),
        (np.inf, -1.0, False),
        (np.nan, -1.0, False),
        (1.0, np.nan, False),
        (1.0, -np.inf, False),
    ],
)
@pytest.mark.parametrize("up", [True, False])
def test_a_violation_up_to_four_spreads_is_rounding(spread, violation, rounding, up):
    def measured(points):
        margin = np.full(len(points), -3.0)
        margin[3] += spread if up else -spread
        return second_look._Measured(margin, *[np.zeros(len(points))] * 3)

    assert _rounding(measured, np.array([1.0]), violation) == rounding


LARGEST = {
    "a difference of large numbers": (lambda x: x[0] * 1000.0 - x[0] * 999.0, 3000.0),
    "a negative one": (lambda x: -(x[0] * 500.0) + 1.0, 1500.0),
    "an entry of a vector": (lambda x: jnp.sum(x[0] * jnp.array([1.0, -700.0, 2.0])), 2100.0),
    "beside an infinity": (lambda x: jnp.minimum(x[0] * 20.0, 1.0 / (x[0] - 3.0)), 60.0),
    "no number at all": (lambda x: 7.0, 0.0),
    "whole numbers are exact": (
        lambda x: jnp.where(jnp.floor(x[0]).astype(int) * 10**6 > 0, x[0], 0.0), 3.0
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_number_that_is_met(name):
    function, most = LARGEST[name]
    with enable_x64(), np.errstate(all="ignore"):
        assert _largest(function, np.array([3.0])) == most
