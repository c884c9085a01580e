"""The draws, the instances that searches leave, and those that wait for the referee."""

import sys

import jax
import numpy as np
import pytest
from stubs import measured, statement

from jaxbounds.claims.statements import Budget, Form, Sides
from jaxbounds.falsification.bench import Bench, Pool
from jaxbounds.falsification.explore import (
    Searched,
    _slopes,
    draw,
    search,
)
from jaxbounds.falsification.programs import UNKEPT, Programs
from jaxbounds.falsification.search import Found

INF = np.inf
MODULE = sys.modules[draw.__module__]


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
