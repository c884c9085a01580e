"""What is drawn, where searches start, what they leave, and which ends agree."""

import sys
import zlib

import jax
import numpy as np
import pytest
from stubs import measured, statement

from jaxbounds.claims.statements import Budget, Form, Sides
from jaxbounds.falsification.bench import Bench, Pool
from jaxbounds.falsification.explore import (
    End,
    Searched,
    _key,
    _slopes,
    _starts,
    _steps_for,
    _with_moves,
    agreeing,
    draw,
    search,
)
from jaxbounds.falsification.move_search import FoundByMoves
from jaxbounds.falsification.programs import UNKEPT, Programs
from jaxbounds.falsification.search import Found

INF, NAN = np.inf, np.nan
MODULE = sys.modules[draw.__module__]


def test_a_key_is_of_a_seed_and_names():
    wanted = jax.random.fold_in(jax.random.fold_in(jax.random.key(5), zlib.crc32(b"one")), 3)
    assert _key(5, "one", 3) == wanted
    assert (
        len({str(jax.random.key_data(_key(*of))) for of in ((0,), (1,), (0, "a"), (0, "b"))}) == 4
    )


class _Eager(Programs):
    """Maps over keys as it is; nothing is compiled."""

    def __call__(self, function, /, *name, calls=0, watch=None):
        return jax.vmap(function)


def _drawn(seed=0, **options):
    """Sources, sizes and first entries of what is drawn, and what was left out."""
    uniform = lambda key, size: {"x": jax.random.uniform(key)}
    given = {"sample": uniform, "cases": None, "sizes": ({"d": 1}, {"d": 2})} | options
    bench, pool = Bench(statement(**given), 8, _Eager()), Pool()
    left_out = draw(bench, pool, Budget(samples=6), seed)
    return pool, left_out


@pytest.mark.usefixtures("x64")
class TestDraws:
    """Of a host statement, without a compiled program of its own."""

    def test_each_sampler_and_the_cases_are_measured_at_each_size(self):
        other = lambda key, size: {"x": 5.0 + jax.random.uniform(key)}
        first = lambda key, size: {"x": jax.random.uniform(key)}
        pool, left_out = _drawn(sample={"a": first, "b": other},
                                cases=lambda size: {"x": np.full(3, float(size["d"]))})  # fmt: skip
        assert pool.sources == ["a", "b", "cases"] * 2 and pool.sizes == [0] * 3 + [1] * 3
        assert [len(batch["x"]) for batch in pool.instances] == [6, 6, 3] * 2
        assert pool.instances[5]["x"].tolist() == [2.0] * 3 and left_out == {}
        for batch, m in zip(pool.instances, pool.measured):
            np.testing.assert_array_equal(m.value[:, 0], batch["x"] / 2)
            assert isinstance(batch["x"], np.ndarray)
        assert len(np.unique(pool.instances[0]["x"])) == 6 and (pool.instances[1]["x"] >= 5).all()

    @pytest.mark.parametrize("limit", [True, False])
    def test_of_a_limit_the_same_instances_are_followed(self, limit):
        sizes = {"sizes": tuple({"d": d} for d in (1, 2, 3))}
        kind = {"kind": "limit", "towards": {"d": INF}} if limit else {}
        pool, _ = _drawn(**sizes, **kind)
        same = [np.array_equal(batch["x"], pool.instances[0]["x"]) for batch in pool.instances]
        assert same == [True, limit, limit]

    def test_the_seed_and_the_statement_say_what_is_drawn(self):
        first = lambda **of: _drawn(**of)[0].instances[0]["x"].tolist()
        assert first() == first() != first(seed=1)
        assert first(id="mine.other") != first()

    def test_what_does_not_count_is_counted_over_all_sizes(self):
        cases = lambda size: {"x": np.array([-1.0, 1.0, 3.0])}
        flags = lambda i, size: {"x > 0": i["x"] > 0, "x < 2": (i["x"] < 2) | (size["d"] == 1)}
        _, left_out = _drawn(sample={}, cases=cases, hypotheses=flags)
        assert left_out == {"x > 0": 2, "x < 2": 1}


def _started(value, restarts, *, counted=True, wide=False, form=0, seed=0, equality=True):
    value = np.asarray(value, float)
    zero = np.zeros_like(value)
    m = measured(np.stack([zero, value] if form else [value, zero], axis=1),
                 counted=np.broadcast_to(counted, value.shape)[:, None])  # fmt: skip
    rng = np.random.default_rng(seed)
    wide = np.broadcast_to(wide, value.shape)
    rows, kinds = _starts(m, wide, form, restarts, rng, equality=equality)
    return rows.tolist(), kinds.tolist()


@pytest.mark.parametrize(
    "value, equality, worst, wide",
    [
        ([1.0, 0.5, 0.2], True, 1, 8),
        ([1 + 9e-7, 0.5, 0.2], True, 1, 8),
        ([1 - 9e-7, 0.5, 0.2], True, 1, 8),
        ([1 - 2e-6, 0.5, 0.2], True, 3, 5),  # 12 are asked for, of which 6 may be the worst
        ([1 + 2e-6, 0.5, 0.2], True, 3, 5),  # violated already: how far is what is asked
        ([1.0, 0.5, 0.2], False, 3, 5),
    ],
)
def test_beside_an_equality_one_of_the_worst_is_enough(value, equality, worst, wide):
    wide_ones = np.array([False, False, True])
    rows, kinds = _started(value, 12, wide=wide_ones, equality=equality)
    assert len(rows) == 12 and rows[:worst] == list(range(worst))
    assert (kinds.count("worst"), kinds.count("wide")) == (worst, wide)
    assert all(row == 2 for row, kind in zip(rows, kinds) if kind == "wide")
    assert _started(value, 0, wide=wide_ones) == ([], [])


def test_half_of_the_starts_are_the_worst_and_the_rest_are_drawn():
    value = [1.0, 5.0, 3.0, 4.0, 2.0]
    for restarts, worst in ((1, [1]), (2, [1]), (3, [1, 3]), (4, [1, 3]), (5, [1, 3, 2])):
        for form in (0, 1):
            rows, kinds = _started(value, restarts, form=form)
            assert rows[: len(worst)] == worst and len(rows) == restarts
            assert kinds == ["worst"] * len(worst) + ["drawn"] * (restarts - len(worst))
    # More than there are are drawn again.
    assert len(_started([1.0, 2.0], 12)[0]) == 12
    assert _started(value, 0) == ([], []) and _started(value, 4, counted=False) == ([], [])


def test_half_of_those_that_are_drawn_are_wide():
    value, wide = np.arange(9.0), np.arange(9) >= 7
    for restarts, many in ((4, 1), (5, 1), (6, 2), (8, 2), (2, 1), (1, 0)):
        rows, kinds = _started(value, restarts, wide=wide)
        assert kinds.count("wide") == many
        assert kinds == sorted(kinds, key=["worst", "wide", "drawn"].index)
        assert all(row >= 7 for row, kind in zip(rows, kinds) if kind == "wide")
    # Only those that count: here the other one.
    rows, kinds = _started(value, 8, wide=wide, counted=np.arange(9) != 8)
    assert {row for row, kind in zip(rows, kinds) if kind == "wide"} == {7} and 8 not in rows
    assert "wide" not in _started(value, 8, wide=wide, counted=np.arange(9) < 7)[1]


def test_what_counts_and_is_a_number_is_a_start():
    value = [9.0, NAN, INF, 3.0, 2.0]
    for seed in range(9):
        rows, _ = _started(value, 8, counted=[0, 1, 1, 1, 1], seed=seed)
        assert set(rows) == {3, 4} and rows[:2] == [3, 4]


@pytest.mark.parametrize("value, first", [
    # Of instances that are equally bad, to a millionth, one: the others come last.
    ([5, 5, 5, 4], [0, 3]), ([5 - 4.9e-6, 5, 4], [1, 2]), ([5 - 5.1e-6, 5, 4], [1, 0]),
    ([5, 5 - 4.5e-6, 5 - 9e-6, 4], [0, 3]),
    ([-5 - 4.9e-6, -5, -6], [1, 2]), ([-5 - 5.1e-6, -5, -6], [1, 0]),
])  # fmt: skip
def test_alike_instances_are_one_start(value, first):
    assert _started(value, 4)[0][:2] == first
    assert sorted(_started(value, 2 * len(value))[0][: len(value)]) == list(range(len(value)))


def _end(kinds, values, forms=0):
    return End(np.array(kinds), np.broadcast_to(forms, len(kinds)), np.array(values, float))


@pytest.mark.parametrize("ends, found", [
    ([], {}), ([_end(["worst"], [-INF])], {}), ([_end(["worst"], [1.0], 1)], {}),
    # To a millionth of the largest.
    ([_end(["worst", "wide", "wide"], [2.0, 2 - 1.9e-6, 2 - 2.1e-6])],
     {"worst": (1, 1), "wide": (1, 2)}),
    ([_end(["worst", "wide"], [-2.0, -2 - 1.9e-6])], {"worst": (1, 1), "wide": (1, 1)}),
    ([_end(["worst", "wide"], [-2.0, -2 - 2.1e-6])], {"worst": (1, 1), "wide": (0, 1)}),
    ([_end(["worst", "drawn"], [-INF, 1.0])], {"worst": (0, 1), "drawn": (1, 1)}),
    # Those of the size with the worst end, and of each with the same end: both.
    ([_end(["worst"], [1.0]), _end(["wide"], [3.0])], {"wide": (1, 1)}),
    ([_end(["wide"], [3.0]), _end(["worst"], [1.0])], {"wide": (1, 1)}),
    ([_end(["worst"], [3.0]), _end(["wide"], [3.0])], {"worst": (1, 1), "wide": (1, 1)}),
    ([_end(["worst", "wide"], [3.0, 9.0], [0, 1])], {"worst": (1, 1)}),
])  # fmt: skip
def test_ends_agree_to_a_millionth_at_the_worst_size(ends, found):
    assert agreeing(Searched(1, np.zeros(2, int), 1, tuple(ends)), 0) == found


def test_what_chains_came_to_is_added():
    before = Searched(4, np.array([1, 2, 0]), 5, (_end(["worst"], [1.0]),))
    hopped = FoundByMoves(np.array(["a", "b", "c"]), np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]),
                    np.array([10, 20, 30]), np.array([3, 4, 5]))  # fmt: skip
    after = _with_moves(before, hopped)
    assert after.accepted.tolist() == [41, 22, 0] and after.met == 17 and after.runs == 4
    assert len(after.ends) == 2 and after.ends[1].value.tolist() == [1, 2, 3]
    assert before.accepted.tolist() == [1, 2, 0]


# Searches


def _host(**options):
    """x <= 9 of three numbers on the host, whose search takes entries from one to another."""
    sides = lambda i, s: Sides(i["x"] @ i["x"], {"printed": 9.0, "control": -9.0})
    given = {
        "search": "random",
        "cases": lambda s: {"x": np.eye(3)[:2]},
        "sizes": ({"d": 1}, {"d": 2}),
    }
    return Bench(statement(sides, **(given | options)), 8, UNKEPT)


def _ran(bench, restarts=4, steps=3, seed=0):
    pool = Pool()
    draw(bench, pool, Budget(), 0)
    before = len(pool.sources)
    return search(bench, pool, Budget(restarts=restarts, steps=steps), seed), pool, before


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "options, restarts, steps", [({"search": "none"}, 4, 3), ({}, 0, 3), ({}, 4, 0)]
)
def test_nothing_is_searched_where_nothing_is_to_be(options, restarts, steps):
    found, pool, before = _ran(_host(**options), restarts, steps)
    assert (found.runs, found.accepted.tolist(), found.met) == (0, [0, 0], 0)
    assert found.ends == found.far == () and len(pool.sources) == before


@pytest.mark.usefixtures("x64")
def test_a_search_on_the_host_runs_at_each_size():
    found, pool, before = _ran(_host(), restarts=8, steps=40)
    assert found.runs == 16 and pool.sources[before:] == ["search"] * 2
    assert pool.sizes[before:] == [0, 1] and len(found.ends) == 2
    # Eight for the form and a quarter of them for the control, at each size.
    assert [end.form.tolist() for end in found.ends] == [[0] * 8 + [1] * 2] * 2
    assert found.accepted[0] > 0 and 0 < found.met <= 2 * 10 * 40
    assert max(end.value.max() for end in found.ends) > 1 / 9


class _Fake(Bench):
    """Forms x and -x, on no host; whether it counts is that x is not 7."""

    def __init__(self, **options):
        given = {"host": False, "forms": (Form(name="printed"), Form(name="derived")),
                 "sizes": ({"d": 1}, {"d": 2}), "search": "random",
                 "sample": lambda key, size: {"x": np.zeros(())}}  # fmt: skip
        super().__init__(statement(**(given | options)), 8, UNKEPT)

    def __call__(self, batch, size):
        x = batch["x"]
        return measured(np.stack([x, -x, 0 * x], axis=1), counted=(x != 7)[:, None])


def _sloped(
    monkeypatch, ends, restarts=8, *, near=lambda batch: batch["x"] < 50, draws=(0.5, 0.25, 0.1)
):
    """One round of slopes from these draws, of which each ends where `ends` puts it."""
    bench, pool, started = _Fake(), Pool(), []
    batch = {"x": np.array(draws)}
    pool.add("draws", 1, batch, bench(batch, {}))
    monkeypatch.setattr(MODULE, "spread_out", lambda *_: {"x": np.array([0.375, 7.0])})

    def climb(bench, steps, place, size, batch, starts):
        instances, targets, each = starts
        started.append((instances["x"], targets, each, steps, place, dict(size), batch["x"]))
        x = ends(instances["x"], targets)
        return Found({"x": x}, np.arange(len(x)) + 1, np.full(len(x), 2))

    monkeypatch.setattr(MODULE, "_climb", climb)
    before = Searched(3, np.array([100, 0, 0]), 1, (), ())
    found = _slopes(bench, pool, Budget(restarts=restarts, steps=5), (3, 1), near, before)
    return found, pool, started


def test_slopes_are_climbed_for_each_form_and_less_for_the_control(monkeypatch):
    found, pool, ((x, targets, each, steps, place, size, batch),) = _sloped(
        monkeypatch, lambda x, t: x
    )
    assert targets.tolist() == [0] * 8 + [1] * 8 + [2] * 2
    assert (steps, place, size) == (5, (3, 1), {"d": 2})
    assert batch.tolist() == [0.5, 0.25, 0.1, 0.375, 7.0]
    # The worst for each form; wide ones, of which one does not count, some by logarithms.
    wide = found.ends[0].kind == "wide"
    assert (x[0], x[8]) == (0.5, 0.1) and set(x[wide]) == {0.375} and 7.0 not in x
    assert found.ends[0].kind[0] == "worst" and 0 < each.sum() < wide.sum()
    assert each.tolist() == [bool(own and i % 3 == 0) for i, own in enumerate(wide)]
    assert found.runs == 11 and found.met == 1 + 2 * 18
    assert found.accepted.tolist() == [100 + sum(range(1, 9)), sum(range(9, 17)), 17 + 18]
    assert (
        found.ends[0].value.tolist()
        == np.where(targets == 0, x, np.where(targets == 1, -x, 0)).tolist()
    )
    assert pool.sources == ["draws", "search"] and pool.sizes == [1, 1] and found.far == ()
    assert len(pool.instances[1]["x"]) == 18
    assert [
        len(s[0][1]) and s[0][1].tolist().count(2)
        for s in (_sloped(monkeypatch, lambda x, t: x, n)[2] for n in (1, 3, 4, 12))
    ] == [1, 1, 1, 3]


@pytest.mark.parametrize("end, far, kept", [
    (99.0, True, False),  # far from all draws, and violated there
    (-0.5, False, True), (0.9, False, True), (2.0, False, True),
    (-99.0, True, False),  # of the other form
    (50.5, True, False), (49.5, False, True),
])  # fmt: skip
def test_what_violates_far_away_waits(monkeypatch, end, far, kept):
    found, pool, _ = _sloped(monkeypatch, lambda x, t: np.full(len(x), end),
                             near=lambda batch: np.abs(batch["x"]) < 50)  # fmt: skip
    assert (len(found.far) == 18) == far and (pool.sources[1:] == ["search"]) == kept
    values = found.ends[0].value
    assert np.isneginf(values).all() == far
    if far:
        assert found.far[0].size == 1 and found.far[0].instance["x"] == end


def test_far_away_and_not_violated_is_kept_and_the_control_is_no_form(monkeypatch):
    near = lambda batch: np.zeros(len(batch["x"]), bool)
    found, pool, _ = _sloped(monkeypatch, lambda x, t: np.full(len(x), 0.5), near=near)
    assert found.far == () and pool.sources == ["draws", "search"]
    found, pool, _ = _sloped(monkeypatch, lambda x, t: np.full(len(x), 1.01), near=near)
    assert len(found.far) == 18 and pool.sources == ["draws"]
    # What does not count is no end, and no violation.
    found, pool, _ = _sloped(monkeypatch, lambda x, t: np.full(len(x), 7.0), near=near)
    assert found.far == () and np.isneginf(found.ends[0].value).all()
    # Some of them: each by itself.
    found, pool, _ = _sloped(monkeypatch, lambda x, t: np.where(t == 1, 9.0, x), near=near)
    assert len(found.far) == 8 and len(pool.instances[1]["x"]) == 10
    assert (
        np.isneginf(found.ends[0].value[8:16]).all() and np.isfinite(found.ends[0].value[:8]).all()
    )


def test_where_nothing_counts_nothing_is_climbed(monkeypatch):
    monkeypatch.setattr(_Fake, "__call__", lambda self, batch, size: measured(
        np.stack([batch["x"]] * 3, 1), counted=False))  # fmt: skip
    found, pool, started = _sloped(monkeypatch, lambda x, t: x)
    assert started == [] and pool.sources == ["draws"] and found.runs == 3


def test_elsewhere_chains_are_run_before_and_after_slopes(monkeypatch):
    asked = []
    one = FoundByMoves(
        np.array(["a"]), np.array([0]), np.array([1.0]), np.array([1]), np.array([1])
    )
    hop = lambda bench, pool, budget, at, *, again: asked.append(("hop", at, again)) or one
    slopes = lambda bench, pool, budget, at, near, searched: (
        asked.append(("slopes", at)) or searched
    )
    monkeypatch.setattr(MODULE, "search_by_moves", hop)
    monkeypatch.setattr(MODULE, "_slopes", slopes)
    close = lambda bench, pool, budget, at, searched: asked.append(("close", at)) or searched
    monkeypatch.setattr(MODULE, "_with_close", close)
    bench, pool = _Fake(), Pool()
    for size in range(2):
        pool.add("draws", size, {"x": np.ones(2)}, bench({"x": np.ones(2)}, {}))
    found = search(bench, pool, Budget(), 9)
    assert asked == [
        step
        for i in range(2)
        for step in (
            ("hop", (9, i), False),
            ("slopes", (9, i)),
            ("hop", (9, i), True),
            ("close", (9, i)),
        )
    ]
    assert found.accepted.tolist() == [4, 0, 0] and found.met == 4 and len(found.ends) == 4


@pytest.mark.parametrize("points, steps", [
    (None, 12), (0, 250), (1, 250), (64, 250), (65, 246), (640, 25), (4096, 12),
])  # fmt: skip
def test_more_promised_points_take_steps(points, steps):
    assert _steps_for(points, 250) == steps and _steps_for(points, 1) == 1
