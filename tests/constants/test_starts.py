"""Starts of every kind: what each does to an instance, and which of them are climbed from."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds import sharp_constant
from jaxbounds.claims.statements import Budget
from jaxbounds.constants import starts
from jaxbounds.constants.starts import KINDS, Fresh, Start, _best, _middle, first_starts
from jaxbounds.falsification.bench import Pool
from jaxbounds.falsification.measure import Measured


def drawn(kind, leaf, seeds=60, **others):
    """What a kind of start makes of a leaf, with so many seeds."""
    instance = {"x": np.array(leaf, float)} | others
    return [KINDS[kind](instance, np.random.default_rng(s)) for s in range(seeds)]


@pytest.mark.parametrize("leaf, middle", [([1, 4, 0, -2], 2), ([0, 0], 1), ([], 1), ([-3], 3)])
def test_the_middle_is_a_geometric_mean(leaf, middle):
    assert _middle(np.array(leaf, float)) == pytest.approx(middle)


def test_wide_starts_are_powers_about_the_middle():
    # The middle of 1 and 4 is 2: at a power s they are 2^(1 - s) and 2^(1 + s).
    found = [i["x"] for i in drawn("wide", [1, -4, 0])]
    powers = {round(float(np.log2(-x[1]) - 1), 9) for x in found}
    assert powers == {2, 3, 10}
    for x in found:
        assert x[0] * -x[1] == pytest.approx(4) and x[0] < 1 and x[2] == 0
    ends = [i["x"] for i in drawn("wide", [1e-200, -1e300, 1e300])]
    assert all(np.all(np.abs(x) <= 1e100) for x in ends)
    assert any(x[1] == -1e100 and x[2] == 1e100 for x in ends)


def test_scaled_starts_take_each_array_by_one_factor():
    found = drawn("scaled", [1, -2, 0], 200, y=np.array([1.0]))
    factors = {round(float(i["x"][0]), 6) for i in found}
    assert factors == {0.1, round(1 / 3, 6), 0.5, 1, 2, 3, 10}
    assert all(np.array_equal(i["x"], i["x"][0] * np.array([1, -2, 0])) for i in found)
    assert any(i["x"][0] != i["y"][0] for i in found)


def shares(found, changed):
    return [float(np.mean(changed(i["x"]))) for i in found]


def test_vertices_are_entries_of_one_size():
    found = drawn("vertex", np.append(np.full(399, 0.5), 3.0))
    assert all(np.all(np.abs(i["x"]) == 3) for i in found)
    flips = shares(found, lambda x: x < 0)
    assert {0.0} < {round(2 * f, 1) / 2 for f in flips} <= {0, 0.05, 0.1, 0.15, 0.45, 0.5, 0.55}
    assert any(0.05 < f < 0.16 for f in flips) and any(f > 0.4 for f in flips)
    # Signs stay where none is flipped, and zero has the sign of positive numbers.
    signs = np.tile([-2.0, 1.0, 0.0], 30)
    kept = [np.array_equal(i["x"], np.tile([-2, 2, 2], 30)) for i in drawn("vertex", signs)]
    assert 5 < sum(kept) < 40
    assert KINDS["vertex"]({"x": np.zeros(0)}, np.random.default_rng(0))["x"].size == 0


def test_one_sign_or_a_third_of_them_is_flipped():
    found = drawn("flipped", np.ones((20, 20)))
    flips = [int(np.sum(i["x"] == -1)) for i in found]
    assert {f for f in flips if f < 50} == {1}
    some = [f for f in flips if f > 1]
    assert 15 < len(some) < 45 and all(90 < f < 176 for f in some)
    places = {int(np.argmin(i["x"])) for i in found if np.sum(i["x"] == -1) == 1}
    assert len(places) > 5
    assert KINDS["flipped"]({"x": np.zeros(0)}, np.random.default_rng(0))["x"].size == 0
    assert all(np.array_equal(np.abs(i["x"]), [1, 2]) for i in drawn("flipped", [1, -2]))
    assert {float(i["x"][0]) for i in drawn("flipped", [1])} == {1, -1}


def test_a_fifth_or_a_half_is_left():
    left = shares(drawn("sparse", np.full(4000, 7.0)), lambda x: x == 7)
    assert any(0.15 < f < 0.25 for f in left) and any(0.45 < f < 0.55 for f in left)
    assert all(0.15 < f < 0.25 or 0.45 < f < 0.55 for f in left)
    assert all(set(np.unique(i["x"])) <= {0, 7} for i in drawn("sparse", np.full(90, 7.0)))


def test_square_arrays_are_permutations():
    square = [i["x"] for i in drawn("identity", [[1, -5, 0], [2, 2, 2], [0, 0, 1]])]
    for x in square:
        assert np.all(np.sum(x, axis=0) == 5) and np.all(np.sum(x, axis=1) == 5)
        assert np.all(np.isin(x, [0, 5]))
    assert len({x.tobytes() for x in square}) == 6
    for other in ([1, 2], [[1, 2]], [[1], [2]]):
        assert all(np.array_equal(i["x"], other) for i in drawn("identity", other, 3))
    (stack,) = drawn("identity", [[[1, 2], [3, 4]], [[9, 0], [0, 9]]], 1)
    assert stack["x"].shape == (2, 2, 2) and np.all(np.sum(stack["x"], axis=-1) == 9)


def test_what_is_no_float_stays():
    for make in KINDS.values():
        found = make({"n": np.array([3]), "x": np.ones(2)}, np.random.default_rng(0))
        assert found["n"] == 3 and found["n"].dtype == int


def measured(value, rhs=1.0, counted=True):
    value = np.asarray(value, float)[:, None] * np.ones(2)
    same = np.ones_like(value)
    flags = np.broadcast_to(np.asarray(counted).reshape(-1, 1), value.shape)
    right = np.broadcast_to(np.asarray(rhs, float).reshape(-1, 1), value.shape)
    return Measured(value, value, value, flags, value, right, ~flags, flags, 0 * same)


def pool_of(draws, searched=(), **more):
    pool, numbers = Pool(), np.arange(100.0)
    pool.add("draws", 0, {"x": numbers[: len(draws)]}, measured(draws, **more))
    if len(searched):
        some = {"x": 1000 + numbers[: len(searched)]}
        pool.add("search", 0, some, measured(searched))
    return pool


def numbered(found):
    return [(start.kind, float(start.instance["x"])) for start in found]


def test_the_worst_of_searches_and_of_draws():
    found, ratios = first_starts(pool_of([0.1, 0.8, 0.7], [0.5, 0.9, 0.2]), 6)
    wanted = [("searched", 1001), ("drawn", 1), ("searched", 1000), ("searched", 1002)]
    assert numbered(found) == wanted and isinstance(found[0], Start)
    np.testing.assert_array_equal(ratios, [0.1, 0.8, 0.7])
    # The two largest in any case, and the best draw.
    assert numbered(first_starts(pool_of([0.9, 0.8, 0.1], [0.5]), 6)[0]) == [
        ("drawn", 0), ("drawn", 1), ("searched", 1000),
    ]  # fmt: skip
    assert numbered(first_starts(pool_of([0.2], [0.5, 0.4, 0.3]), 2)[0]) == [
        ("searched", 1000), ("searched", 1001), ("drawn", 0),
    ]  # fmt: skip


def test_what_does_not_count_is_no_start():
    pool = pool_of([0.3, np.nan, np.inf, 0.0, -1.0, 0.4, 0.5, 0.1],
                   rhs=[1, 1, 1, 1, 1, 0, 1, 1], counted=np.arange(8) != 6)  # fmt: skip
    found, ratios = first_starts(pool, 6)
    assert numbered(found) == [("drawn", 0), ("drawn", 7)]
    np.testing.assert_array_equal(np.isfinite(ratios), [1, 0, 0, 1, 1, 0, 0, 1])


@pytest.mark.parametrize(
    "kind, others", [("drawn", 7), ("scaled", 1), ("log-normal", 10), ("wide", 2)]
)
def test_the_best_and_others_that_count(kind, others, known):
    problem = known(lambda x: x[0])
    instances = [{"x": np.array([v])} for v in (1.0, -1.0, 99.0, 0.0, *np.arange(2.0, 20.0))]
    found = list(_best(problem, kind, instances, np.random.default_rng(0)))
    values = [float(s.instance["x"][0]) for s in found]
    assert values[0] == 99 and len(values) == 1 + others == len(set(values))
    assert min(values) > 0 and {s.kind for s in found} == {kind}
    assert not list(_best(problem, kind, instances[1:2], np.random.default_rng(0)))


def test_fresh_draws_are_those_of_the_pool_until_they_are_used_up(known, monkeypatch):
    asked = []

    def draw(bench, pool, budget, seed):
        asked.append(seed)
        pool.add("draws", 0, {"x": 500 + np.arange(50.0)[:, None]}, measured(np.ones(50)))

    monkeypatch.setattr(starts, "draw", draw)
    problem = known(lambda x: x[0])
    problem.bench = None
    fresh = Fresh(problem, pool_of(np.ones(70), [0.5]), Budget(), 3)
    first, second = ([float(i["x"]) for i in fresh()] for _ in range(2))
    # Each draw once, in an order by chance; what a search found is none.
    assert len({*first, *second}) == 64 and max(first + second) < 70 and not asked
    assert first != sorted(first)
    third = [float(np.ravel(i["x"])[0]) for i in fresh()]
    assert len(third) == 32 and asked == [1003]
    assert sum(v < 70 for v in third) == 6 and not {*third} & {*first, *second}


@pytest.mark.slow_cases("3-1e+150")
@pytest.mark.parametrize("power, end", [(2, 1e200), (3, 1e150)])
def test_a_constant_beyond_floats_is_open_and_the_claim_false(power, end):
    found = sharp_constant(lambda x: x**power, 1.0, over={"x": jb.Box(-end, end)}, seconds=3)
    (size,) = found.sizes
    assert found.fails and size.where == "rising" and "overflows" in size.reason
    assert size.ratio > 1e200


def test_a_constant_of_which_every_side_overflows_is_not_called_none():
    over = {"x": jb.Box(800, 900)}
    (size,) = sharp_constant(lambda x: jnp.exp(x), 1.0, over=over, seconds=3).sizes
    assert (size.where, size.ratio) == ("rising", 0.0) and "overflows" in size.reason
