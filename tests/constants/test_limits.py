"""Suprema at infinity: the families through a point, what floats see of them, and which is taken.

Ratios are functions of one or two numbers whose limits are known by hand.
"""

import math

import numpy as np
import pytest
from flint import arb

from jaxbounds.constants.limits import _families, _ways, limit, looks
from jaxbounds.constants.polish import Point, at
from jaxbounds.constants.snapping import tied
from jaxbounds.programs.balls.values import NotSupported, Undecided


def point_at(ratio=1.0, **leaves):
    instance = {name: np.array(leaf) for name, leaf in leaves.items()}
    return Point(instance, *tied(instance, 0.0), ratio)


def test_up_to_three_arrays_go_all_ways_together_few_first():
    found = list(_ways(2))
    assert [sum(map(abs, w)) for w in found] == [1] * 4 + [2] * 4
    assert set(found) == {(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)} - {(0, 0)}
    assert len(list(_ways(3))) == 26 and not list(_ways(0))


def test_of_more_arrays_pairs_and_all_of_them():
    found = list(_ways(4))
    assert len(found) == len(set(found))
    weights = [sum(map(abs, w)) for w in found]
    # 4 alone and 6 pairs of equal or other ways, all up, each of them down too.
    assert weights == [1] * 8 + [2] * 24 + [4] * 2
    assert {w for w in found if sum(map(abs, w)) == 4} == {(1,) * 4, (-1,) * 4}
    pairs = [w for w in found if sum(map(abs, w)) == 2]
    assert (1, 0, 0, 1) in pairs and (0, 1, -1, 0) in pairs and (0, -1, 1, 0) in pairs


def test_the_families_through_a_point():
    place = point_at(a=[3.0, 1.0], Q=[5], b=[1.0, 1.0], Z=[0.0, 0.0], w=2.0)
    families = dict(_families(place, False))
    alone = {"a -> infinity", "a -> 0", "b -> infinity", "w -> 0"}
    assert alone <= set(families) and not any("Q" in name for name in families)
    assert not any("Z" in name for name in families)  # zero stays zero
    found = families["a, w -> infinity, b -> 0"](4.0)
    assert found["a"].tolist() == [12, 4] and found["b"].tolist() == [0.25, 0.25]
    assert found["w"] == 8 and found["Q"] == 5 and found["Z"].tolist() == [0, 0]
    assert families["b -> infinity, a -> 0"](2.0)["a"].tolist() == [1.5, 0.5]
    # One onto another of its shape, around their middles 2 and 1; numbers by themselves do not.
    near = families["a - b -> 0"](4.0)
    assert near["a"].tolist() == [2.25, 1.0] and near["b"].tolist() == [1.75, 1.0]
    assert not any("- w" in name for name in families)
    # All entries of one size, in whatever array.
    ones = families["entries of size 1 -> infinity"](8.0)
    assert ones["a"].tolist() == [3, 8] and ones["b"].tolist() == [8, 8] and ones["w"] == 2
    assert families["entries of size 3 -> 0"](8.0)["a"].tolist() == [0.375, 1]
    assert "entries of size 0 -> 0" not in families


def test_shapes_must_agree_to_come_near():
    names = [n for n, _ in _families(point_at(a=[3.0, 1.0], b=[1.0], c=[2.0]), False)]
    assert "b - c -> 0" in names and "a - b -> 0" not in names and "a - c -> 0" not in names


def test_the_largest_entries_are_scaled_by_themselves():
    names = [n for n, _ in _families(point_at(a=np.arange(1.0, 31.0)), False)]
    alone = [n for n in names if n.startswith("entries")]
    assert len(alone) == 2 * 24 and alone[0] == "entries of size 30 -> infinity"
    assert alone[-1] == "entries of size 7 -> 0"


def test_balls_know_no_largest_number():
    exact = dict(_families(point_at(a=[3.0, -1.0], Q=[5]), True))
    far = exact["a -> infinity"](arb((1, 5000)))
    assert far["a"][0] == arb((3, 5000)) and far["a"].shape == (2,) and far["Q"].dtype == int
    assert exact["entries of size 3 -> 0"](arb((1, 5000)))["a"][0] == arb((3, -5000))
    assert exact["entries of size 3 -> 0"](arb(2))["a"][1] == -1


def seen(known, ratio, x=1.0, until=math.inf):
    problem = known(lambda v: ratio(v[0]))
    return {
        name: look for (name, _), look in zip(
            list(_families(at(problem, {"x": np.array([x])}, 0.0), False)),
            sorted(looks(problem, at(problem, {"x": np.array([x])}, 0.0), until=until)),
        )
    }  # fmt: skip


def test_what_floats_see_far_out(known):
    look = seen(known, lambda x: 2 - 1 / (1 + x))["x -> infinity"]
    assert look.family == 0 and look.high == look.last == 2 and not look.rises
    # 2 - 1/(1 + 2^m) is 2 within 1e-10 of it first at 2^48 of the scales (2^32 is 1.2e-10 short).
    assert look.first["x"][0] == 2.0**48
    # The logarithm rises to the last; where its entries are infinite nothing counts any more.
    rise = seen(known, lambda x: np.log(x) if np.isfinite(x) else -np.inf, 2.0)["x -> infinity"]
    assert rise.rises and rise.last == rise.high == pytest.approx(501 * math.log(2))
    # A bump on the way is the highest, not the last.
    bump = seen(known, lambda x: 5.0 if x == 16 else 1 + 1 / x)["x -> infinity"]
    assert bump.high == 5 and bump.first["x"][0] == 16 and bump.last == 1.0 and not bump.rises


def test_where_nothing_counts_balls_are_asked(known):
    look = seen(known, lambda x: 1.0 if x <= 1 else -np.inf)["x -> infinity"]
    assert (look.high, look.last, look.rises) == (0.0, 0.0, True) and look.first["x"] == 1
    flat = seen(known, lambda x: 0.0 if x > 1 else 1.0)["x -> infinity"]
    assert (flat.high, flat.rises) == (0.0, True)


def test_the_most_promising_first_and_none_after_the_time(known):
    problem = known(lambda x: 1 / x[0])
    point = at(problem, {"x": np.array([1.0])}, 0.0)
    found = looks(problem, point, until=math.inf)
    assert [look.high for look in found] == sorted([look.high for look in found], reverse=True)
    assert found[0].family == 1 and found[0].high == 2.0**500
    assert looks(problem, point, until=0.0) == []


def along(known, known_ratio, floats, balls, x=1.0, until=math.inf):
    problem = known(lambda v: floats(v[0]))
    ratio = known_ratio(lambda v: balls(v[0]))
    return limit(problem, ratio, at(problem, {"x": np.array([x])}, 0.0), until=until)


def test_the_limit_and_an_instance_on_the_way(known, known_ratio):
    rise = lambda x: 2 - 1 / (1 + x)
    found = along(known, known_ratio, rise, rise)
    assert found.words == "x -> infinity" and found.settled and not found.endless
    assert found.instance["x"][0] == 2.0**8 and found.rise == pytest.approx(1 / 3)
    assert found.family(2.0)["x"].dtype == float and abs(found.ratio - 2) < 1e-25
    assert along(known, known_ratio, rise, rise, until=0.0) is None


def test_what_has_no_bound_is_taken_before_what_is_larger(known, known_ratio):
    # To zero it goes to 1e6, to infinity it grows as the logarithm: only the latter has no bound.
    balls = lambda x: 1e6 / (1 + 1e6 * x) + (1 + x).log()
    floats = lambda x: 1e6 / (1 + 1e6 * x) + math.log1p(x) if math.isfinite(x) else -np.inf
    found = along(known, known_ratio, floats, balls)
    assert found.endless and "infinity" in found.words
    # Of two that settle, the larger one: 2 at infinity, 3 at zero.
    both = lambda x: 1 + (3 + x * x) / (1 + x * x) - 1 + (3 - 3) - 2 * x / (1 + x * x)
    found = along(known, known_ratio, both, both)
    assert found.words == "x -> 0" or found.words.startswith("entries")
    assert abs(found.ratio - 3) < 1e-20


@pytest.mark.parametrize("short, followed", [(0.95e-6, True), (1.05e-6, False)])
def test_what_comes_near_is_followed_what_falls_short_not(short, followed, known, known_ratio):
    # Floats see it end by a part `short` below the point; balls would see a limit there.
    floats = lambda x: 1 - short if x > 1 else 1.0 if x == 1 else 0.5
    assert (along(known, known_ratio, floats, lambda x: 2 - 1 / (1 + x)) is not None) == followed


def test_what_rises_is_followed_from_below_too(known, known_ratio):
    floats = lambda x: 0.25 + max(math.log2(x), 0) / 1e4 if x != 1 else 1.0
    rise = lambda x: 2 - 1 / (1 + x)
    assert along(known, known_ratio, floats, rise).settled
    assert along(known, known_ratio, lambda x: 1.0 if x == 1 else 0.25, rise) is None


@pytest.mark.parametrize("refusal", [Undecided, NotSupported])
def test_families_that_balls_refuse_are_left_out(refusal, known, known_ratio):
    def balls(x):
        raise refusal("no")

    assert along(known, known_ratio, lambda x: 2 - 1 / (1 + x), balls) is None
