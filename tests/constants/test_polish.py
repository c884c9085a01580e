"""From a start to a stationary point: what is climbed, what is kept, and when it ends.

Ratios are given with their slopes; that these agree is calculus.
"""

import math
import time

import numpy as np
import pytest

from jaxbounds.constants import polish
from jaxbounds.constants.polish import (
    SAME,
    Point,
    _climbed,
    _finer,
    _in_logs,
    _relative,
    at,
    best_neighbour,
    curvature,
    evolved,
    polished,
)
from jaxbounds.constants.problem import UNCOUNTED
from jaxbounds.constants.snapping import Ties, tied
from jaxbounds.constants.starts import Start

NEVER = math.inf


def vector(*x):
    return {"x": np.array(x, float)}


@pytest.fixture
def hill(known):
    """exp(-(x - c)^2): one at c, with its slope."""

    def build(*centre, **more):
        c = np.array(centre, float)
        return known(lambda x: np.exp(-np.sum((x - c) ** 2)), lambda x: -2 * (x - c), **more)

    return build


def test_a_point_has_the_ties_of_its_instance(known):
    point = at(known(lambda x: 7 * x[0]), vector(2, -2, 0), 0.0)
    assert point.ratio == 14 and point.values.tolist() == [2] and not point.stalled
    near = at(known(lambda x: x[0] + x[1]), vector(2, 2.5), 0.3)
    assert near.instance["x"].tolist() == [2.25, 2.25] and near.ratio == 4.5
    empty = at(known(lambda x: 3.0), {"n": np.array([4])}, 0.0)
    assert empty.ratio == 3 and len(empty.values) == 0


def test_coordinates_relative_to_the_largest(hill):
    problem, instance = hill(1, 1, 1), vector(4, -2, 1e-5)
    ties, values = tied(instance, 0.0)
    scale, loss = _relative(problem, ties, values, instance)
    np.testing.assert_allclose(np.sort(scale), [4e-3, 2, 4])
    z = values / scale
    value, slope = loss(z)
    assert value == pytest.approx(9 + 9 + (1 - 1e-5) ** 2)
    for i, e in enumerate(np.eye(3)):
        rise = (loss(z + 1e-6 * e)[0] - loss(z - 1e-6 * e)[0]) / 2e-6
        assert slope[i] == pytest.approx(rise, rel=1e-5, abs=1e-8)
    value, slope = loss(np.array([1.0, np.nan, 1.0]))
    assert value == UNCOUNTED and slope.tolist() == [0, 0, 0]


def test_a_climb_ends_at_the_top(hill):
    problem, instance = hill(3, 5), vector(1, 2)
    found, stalled = _climbed(problem, *tied(instance, 0.0), instance, NEVER)
    np.testing.assert_allclose(found["x"], [3, 5], rtol=1e-6)
    assert not stalled
    # Back onto the hypotheses in the end.
    problem = hill(3, 5, back=lambda i: {"x": i["x"] + 10})
    assert _climbed(problem, *tied(instance, 0.0), instance, NEVER)[0]["x"][0] == pytest.approx(13)


def kinked(known, centre):
    c = np.array(centre, float)
    slope = lambda x: -np.where(x < c, -1.0, 1.0) * np.arange(1, len(c) + 1)
    height = lambda x: np.exp(-np.abs(x - c) @ np.arange(1, len(c) + 1))
    return known(height, slope)


def test_at_a_kink_it_goes_on_along_it(known, monkeypatch):
    problem, instance = kinked(known, [3, 5]), vector(1, 2)
    found, stalled = _climbed(problem, *tied(instance, 0.0), instance, NEVER)
    assert stalled and problem.ratios([found])[0] > 1 - 1e-5
    # After the time it does not.
    monkeypatch.setattr(polish, "walked", lambda *a, **k: 1 / 0)
    assert _climbed(problem, *tied(instance, 0.0), instance, 0.0)[1]
    assert not _climbed(known(lambda x: 1.0, np.zeros_like), *tied(instance, 0.0), instance,
                        NEVER)[1]  # fmt: skip


def test_what_is_no_number_leads_back(known, monkeypatch):
    end = type("End", (), {"x": np.array([np.nan]), "jac": np.zeros(1)})
    monkeypatch.setattr(polish.scipy.optimize, "minimize", lambda *a, **k: end)
    problem = known(lambda x: 1.0, np.zeros_like)
    assert _climbed(problem, *tied(vector(2), 0.0), vector(2), 0.0)[0]["x"] == 2


def test_in_logarithms_signs_stay_and_sizes_become_very_different(known):
    # exp(-(log|x| - 40)^2 - (log|y| + 40)^2): from (1, -1) by eighty in logarithms.
    far = np.array([40.0, -40.0])
    log = lambda x: np.log(np.abs(x)) - far
    problem = known(lambda x: np.exp(-np.sum(log(x) ** 2) / 1e3), lambda x: -2e-3 * log(x) / x)
    found = _in_logs(problem, *tied(vector(1, -1.5), 0.0), vector(1, -1.5))["x"]
    np.testing.assert_allclose(np.log(np.abs(found)), far, atol=1e-3)
    assert found[0] > 0 > found[1]


def test_logarithms_are_kept_within_floats(known, monkeypatch):
    seen = []
    problem = known(lambda x: 1.0, lambda x: seen.append(x) or np.zeros_like(x))

    def minimize(loss, start, **_):
        loss(np.array([1000.0, -1000.0]))
        return type("End", (), {"x": np.array([np.nan, -1000.0])})

    monkeypatch.setattr(polish.scipy.optimize, "minimize", minimize)
    found = _in_logs(problem, *tied(vector(1, 2), 0.0), vector(1, 2))["x"]
    np.testing.assert_allclose(seen[0], [math.exp(300), 2 * math.exp(-300)])
    np.testing.assert_allclose(found, [1, 2 * math.exp(-300)])


def test_finer_points_are_taken_where_they_are_better(known):
    problem = kinked(known, [3, 5])
    rough = at(problem, vector(3.001, 4.999), 0.0)
    fine = _finer(problem, rough, NEVER)
    assert fine.ratio > 1 - 1e-9 > rough.ratio and fine.stalled
    best = at(problem, vector(3, 5), 0.0)
    assert _finer(problem, best, NEVER) is best
    nothing = at(problem, vector(0, 0), 0.0)
    assert _finer(problem, nothing, NEVER) is nothing


def test_each_start_leads_to_a_point_of_its_kind(hill):
    starts = [Start("drawn", vector(1, 2)), Start("wide", vector(2, 4))]
    found = polished(hill(3, 5), starts, until=NEVER)
    assert [p.kind for p in found] == ["drawn", "wide"]
    assert all(p.ratio == pytest.approx(1) for p in found)
    # The first is polished in any case, the others as long as there is time.
    assert [p.kind for p in polished(hill(3, 5), starts, until=0.0)] == ["drawn"]


def test_of_points_that_are_alike_the_one_with_fewest_values(hill):
    # Tied by 0.1 both are 4: the top, with one value; free they lead there too.
    start = Start("drawn", vector(3.9, 4.1))
    (tight,) = polished(hill(4, 4), [start], until=NEVER)
    assert len(tight.values) == 1 and tight.ratio == pytest.approx(1, abs=1e-12)
    # Without snapping only equal ones move together.
    (free,) = polished(hill(4, 4.1), [start], until=NEVER, snap=False)
    assert len(free.values) == 2
    (better,) = polished(hill(3.9, 4.15), [start], until=NEVER)
    assert len(better.values) == 2 and better.ratio == pytest.approx(1)


def climbs(monkeypatch, ratios):
    """In the place of climbing: each further way to tie leads to the next of these ratios."""
    seen, left = [], list(ratios)

    def climbed(problem, ties, values, instance, until, scaling):
        seen.append(len(values))
        return vector(left.pop(0), 0.0), False

    monkeypatch.setattr(polish, "_climbed", climbed)
    return seen


START = [Start("drawn", vector(1.0, 0.96))]  # which is tied by 0.3 and by 0.03: one value, two


@pytest.mark.parametrize(
    "reach, ratios, tried",
    [
        (np.inf, [5.0, 6.0], [1, 2]),
        (10.0, [10 * (1 - 0.9 * SAME / 10), 0.0], [2]),  # all coordinates first, and that is enough
        (10.0, [10 * (1 - 1.1 * SAME / 10), 0.0], [2, 1]),
        (10.0, [99.0, 6.0], [2, 1]),  # which has no finite ratio: nothing is settled by it
        (10.0, [10.0, 0.0], [2]),
    ],
)
def test_ties_are_tried_until_what_is_known_is_reached(reach, ratios, tried, known, monkeypatch):
    seen = climbs(monkeypatch, ratios)
    height = lambda x: math.inf if x == 99 else x
    problem = known(lambda x: height(x[0]), np.zeros_like)
    (found,) = polished(problem, START, until=NEVER, reach=reach)
    assert seen == tried and found.ratio == max(map(height, ratios))


def test_after_the_time_one_way_was_tried(known, monkeypatch):
    seen = climbs(monkeypatch, [5.0, 6.0])
    polished(known(lambda x: x[0], np.zeros_like), START, until=0.0)
    assert seen == [1]


def test_a_start_that_nothing_improves_is_kept(known, monkeypatch):
    climbs(monkeypatch, [0.5, 0.25])
    (found,) = polished(known(lambda x: x[0], np.zeros_like), START, until=NEVER)
    assert found.ratio == 1.0 and found.kind == "drawn"


@pytest.mark.parametrize(
    "kind, logs", [("wide", True), ("log-normal", True), ("drawn", False), ("scaled", False)]
)
def test_spread_starts_are_climbed_in_logarithms_first(kind, logs, hill, monkeypatch):
    seen = []

    def in_logs(problem, ties, values, instance):
        seen.append(len(values))
        return instance

    monkeypatch.setattr(polish, "_in_logs", in_logs)
    polished(hill(3, 5), [Start(kind, vector(1, 2))], until=NEVER)
    assert seen == [2] * logs
    polished(hill(0, 0), [Start(kind, vector(0, 0))], until=NEVER)
    assert seen == [2] * logs  # nothing moves there


@pytest.mark.parametrize("until, fine", [(NEVER, True), (0.0, False)])
@pytest.mark.parametrize("stalled", [True, False])
def test_points_at_kinks_are_made_finer(until, fine, stalled, known, monkeypatch):
    climbed = lambda problem, ties, values, instance, until, scaling: (vector(7, 7), stalled)
    better = lambda problem, point, until: point._replace(ratio=9.0)
    monkeypatch.setattr(polish, "_climbed", climbed)
    monkeypatch.setattr(polish, "_finer", better)
    (found,) = polished(known(lambda x: x[0], np.zeros_like), START, until=until)
    assert found.ratio == (9.0 if fine and stalled else 7.0)


def test_evolution_in_all_coordinates(known, monkeypatch):
    problem = kinked(known, [3, 3])
    seen = {}

    def by_cma(losses, x, *, spread, seed, until):
        seen.update(x=x, spread=spread, seed=seed, losses=losses(np.array([x, 2 * x])))
        return x

    monkeypatch.setattr(polish, "by_cma", by_cma)
    point = at(problem, vector(1, -7), 0.0)._replace(kind="drawn")
    end = time.process_time() + 60
    found = evolved(problem, point, seed=3, until=end)
    # Relative to the root of the mean square, 5; losses are minus the logarithms, 2 + 20.
    np.testing.assert_allclose(seen["x"], [0.2, -1.4])
    np.testing.assert_allclose(seen["losses"], [22, 1 + 34])
    assert seen["seed"] == 3 and seen["spread"] == 0.1
    assert found.kind == "CMA-ES" and found.stalled and found.ratio > 1 - 1e-6
    nothing = at(problem, vector(0, 0), 0.0)
    assert evolved(problem, nothing, seed=3, until=end) is nothing


def test_what_evolution_finds_is_climbed_from(known, monkeypatch):
    # Relative to the scale, 5, (0.4, 0.6) is (2, 3); then slopes, then the pieces.
    seen = []

    def climbed(problem, ties, values, instance, until):
        seen.append((values.tolist(), instance["x"].tolist()))
        return instance, False

    monkeypatch.setattr(polish, "by_cma", lambda *a, **k: np.array([0.4, 0.6]))
    monkeypatch.setattr(polish, "_climbed", climbed)
    monkeypatch.setattr(polish, "_finer", lambda problem, point, until: point)
    problem = known(lambda x: 1.0, np.zeros_like)
    found = evolved(problem, at(problem, vector(1, -7), 0.0), seed=0, until=NEVER)
    assert seen == [([2, 3], [2, 3])] and found.instance["x"].tolist() == [2, 3]


def test_the_worst_neighbour(known):
    problem = known(lambda x: x[0], back=lambda i: {"x": i["x"] + 100})
    found, ratio = best_neighbour(problem, vector(50, 1), 0)
    # Random moves go farthest, some beyond one percent of 50.
    assert ratio == found["x"][0] > 150.5
    again, _ = best_neighbour(problem, vector(50, 1), 0)
    assert np.array_equal(again["x"], found["x"])
    assert not np.array_equal(best_neighbour(problem, vector(50, 1), 1)[0]["x"], found["x"])


def bends(known, *bent, x=(1.0, -2.0)):
    """Of a Gaussian with these bends in coordinates relative to x."""
    b = np.array(bent) / np.array(x) ** 2
    problem = known(lambda x: np.exp(-(x**2) @ b / 2), lambda x: -b * x)
    found = curvature(problem, at(problem, vector(*x), 0.0))[1]
    return found


@pytest.mark.parametrize(
    "bent, found",
    [
        ((4.0, 9.0), (4.0, 9.0)),
        ((-4.0, 9.0), (0.0, 9.0)),
        ((9 * 0.9e-6, 9.0), (0.0, 9.0)), ((9 * 1.1e-6, 9.0), (9 * 1.1e-6, 9.0)),
        ((0.9e-6, 0.9e-6), (0.0, 0.0)), ((1.1e-6, 1.05e-6), (1.05e-6, 1.1e-6)),
    ],
)  # fmt: skip
def test_what_is_flat(bent, found, known):
    # Relative to the largest bend, and to one; slopes here are exact, differences by 1e-5 nearly.
    np.testing.assert_allclose(np.sort(bends(known, *bent)), found, rtol=1e-4)


def test_bends_are_relative_to_the_sizes_of_values(known):
    mixed = np.array([[2.0, 1.0], [1.0, 2.0]])
    problem = known(lambda x: np.exp(-x @ mixed @ x / 2), lambda x: -mixed @ x)
    point = at(problem, vector(1, 2), 0.0)
    directions, bent = curvature(problem, point)
    # In z = x / (1, 2) the bends are those of ((2, 2), (2, 8)): 5 -+ sqrt(13).
    np.testing.assert_allclose(bent, [5 - math.sqrt(13), 5 + math.sqrt(13)], rtol=1e-6)
    for d, b in zip(directions.T, bent):
        np.testing.assert_allclose(np.linalg.norm(d / [1, 2]), 1)
        np.testing.assert_allclose(d @ mixed @ d, b, rtol=1e-6)
    none = {"n": np.array([1])}
    assert curvature(problem, Point(none, *tied(none, 0.0), 1.0))[1].shape == (0,)
    assert isinstance(point.ties, Ties)
