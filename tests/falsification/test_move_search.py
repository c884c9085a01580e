"""Where chains of moves start, what is near the draws, and what they leave in the pool."""

import jax.numpy as jnp
import numpy as np
import pytest
from stubs import measured, statement

from jaxbounds.claims.statements import Budget, Form, Size
from jaxbounds.falsification.bench import Bench, Pool
from jaxbounds.falsification.move_search import (
    _grown,
    _starts,
    projected,
    search_by_moves,
    spread_out,
    within_range_of,
)
from jaxbounds.falsification.programs import UNKEPT

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("x, near", [
    # A thousand times the largest entry that was drawn, and a thousandth of the smallest.
    ([2000, 1], True), ([2001, 1], False), ([1, -2000], True), ([1, -2001], False),
    ([0.0005, 1], True), ([0.00049, 1], False), ([0, -1], True), ([0, 0], True), ([NAN, 1], False),
])  # fmt: skip
def test_entries_not_far_from_those_drawn_are_near(x, near):
    batch = {
        "x": np.array([[0.5, -2.0], [0.0, INF]]),
        "n": np.array([1, 2]),
        "y": np.array([1.0, 1.0]),
    }
    instances = {
        "x": np.array([[1.0, 1.0], x]),
        "n": np.array([10**9, 0]),
        "y": np.array([1.0, 1.0]),
    }
    assert within_range_of(batch)(instances).tolist() == [True, near]
    # Each leaf has its own, and one that is far is enough.
    far = {"x": np.array([[1.0, 1], [1.0, 1]]), "n": np.zeros(2, int), "y": np.array([1001.0, 1.0])}
    assert within_range_of(batch)(far).tolist() == [False, True]


@pytest.mark.parametrize("x, near", [(1000, True), (1001, False), (0.001, True), (0.00099, False)])
def test_of_zeros_alone_what_is_around_one_is_near(x, near):
    for nothing in ({"x": np.zeros(3)}, {"x": np.full(3, NAN)}):
        assert within_range_of(nothing)({"x": np.array([float(x)])}).tolist() == [near]


def _pool(*sizes):
    pool = Pool()
    for index, x in enumerate(sizes):
        if x is None:
            continue
        x = np.asarray(x, float)
        first = x.reshape(len(x), -1)[:, 0]
        pool.add("draws", index, {"x": x}, measured(np.stack([first, -first, 0 * first], 1)))
    return pool


RNG = lambda: np.random.default_rng(0)


def test_what_was_worst_at_the_size_before_is_made_larger():
    pool = _pool([[1.0, 2], [5, 6], [3, 4]], np.ones((2, 3)))
    drawn = {"x": np.full((400, 3), 9.0)}
    found = {tuple(row) for row in _grown(pool, 1, drawn, RNG())["x"].tolist()}
    assert found == {(5, 6, 5), (5, 6, 6), (5, 6, 0), (5, 6, 9)}
    # Without a size before, or with other axes or types, it is what is drawn.
    assert _grown(pool, 0, drawn, RNG()) is drawn
    assert _grown(_pool(None, np.ones((2, 3))), 1, drawn, RNG()) is drawn
    for other in (
        {"x": np.full((4, 3, 1), 9.0)},
        {"x": np.full((4, 3), 9)},
        {"y": np.full((4, 3), 9.0)},
    ):
        assert _grown(pool, 1, other, RNG()) is other


@pytest.mark.parametrize("spoil", ["counted", "nan"])
def test_what_does_not_count_is_not_made_larger(spoil):
    pool = _pool([[1.0, 2], [5, 6], [3, 4]])
    m = pool.measured[0]
    if spoil == "counted":
        m.counted[1] = False
    else:
        pool.measured[0] = m._replace(value=np.where(np.arange(3)[:, None] == 1, NAN, m.value))
    found = _grown(pool, 1, {"x": np.full((50, 3), 9.0)}, RNG())["x"]
    assert set(found[:, 0].tolist()) == {3.0}


def _chosen(forms, chains, again, rows=4):
    x = np.arange(1.0, rows + 1)[:, None] * np.array([[1.0, 0.05, 0.5]])
    targets = np.arange(chains) % forms
    return _starts(_pool(x), (0, 0), targets, again), x


def test_starts_are_of_each_kind_in_turn_and_of_each_kind_for_each_form():
    (found, kinds), x = _chosen(2, 26, False)
    turn = ("worst", "drawn", "vertex", "sparse", "wide", "grown")
    assert kinds.tolist() == [turn[(i // 2) % 6] for i in range(26)]
    # The worst of the first form is the largest, of the second the smallest; then the next.
    assert [found["x"][i].tolist() for i in (0, 1, 12, 13, 24, 25)] == [
        x[3].tolist(), x[0].tolist(), x[2].tolist(), x[1].tolist(), x[1].tolist(), x[2].tolist()
    ]  # fmt: skip
    rows = {tuple(row) for row in x.tolist()}
    for i, kind in enumerate(kinds):
        row = found["x"][i]
        if kind in ("worst", "drawn", "grown"):
            assert tuple(row) in rows
        elif kind == "vertex":  # a twentieth of the largest is nothing
            assert row[0] == row[2] > row[1] == 0
        elif kind == "sparse":
            assert row[0] > 0 and (row == 0).sum() <= 2
        else:
            assert tuple(row) not in rows


def test_after_slopes_were_climbed_chains_start_at_the_worst_alone():
    (found, kinds), _ = _chosen(1, 12, True)
    assert kinds.tolist() == ["worst", "drawn", "vertex", "sparse"] * 3
    assert found["x"][[0, 4, 8], 0].tolist() == [4, 3, 2]
    # Vertices and few entries are those of the worst.
    assert found["x"][[2, 6, 10]].tolist() == [[4, 0, 4], [3, 0, 3], [2, 0, 2]]
    assert found["x"][[3, 7, 11], 0].tolist() == [4, 3, 2]
    # More turns than rows begin again.
    (found, _), _ = _chosen(1, 12, True, rows=2)
    assert found["x"][[0, 4, 8], 0].tolist() == [2, 1, 2]


@pytest.mark.parametrize("spoil", ["counted", "nan"])
def test_the_worst_start_counts(spoil):
    pool = _pool(np.arange(1.0, 5)[:, None])
    if spoil == "counted":
        pool.measured[0].counted[3] = False
    else:
        m = pool.measured[0]
        pool.measured[0] = m._replace(value=np.where(np.arange(4)[:, None] == 3, NAN, m.value))
    found, _ = _starts(pool, (0, 0), np.zeros(4, int), True)
    assert found["x"][0, 0] == 3


class _Fake(Bench):
    """Two forms: x[0], and -x[0]; the width of the error and what counts are as asked."""

    def __init__(self, *, batch=8, width=0.0, counts=lambda x: True, met=lambda x: True, **options):
        forms = (Form(name="printed"), Form(name="derived"))
        claim = statement(host=False, forms=forms, sizes=({"d": 1}, {"d": 2}), **options)
        super().__init__(claim, batch, UNKEPT)
        self.width, self.counts, self.met, self.measures = width, counts, met, 0

    def __call__(self, batch, size):
        self.measures += 1
        x = batch["x"][:, 0]
        value = np.stack([x, -x, 0 * x], axis=1)
        flag = lambda given: np.array([given(row) for row in x])[:, None] & np.ones(3, bool)
        width = self.width * np.maximum(np.abs(value), 1.0)
        return measured(value, low=value - width / 2, high=value + width / 2,
                        counted=flag(self.counts) & flag(self.met), met=flag(self.met))  # fmt: skip

    def mapped(self, function, what, size):
        return lambda batch: {"x": jnp.asarray(np.minimum(batch["x"], 50.0))}


def _hopped(bench, steps=120, again=False, rows=4):
    pool = Pool()
    batch = {"x": np.arange(1.0, rows + 1)[:, None] * np.ones((1, 2))}
    pool.add("draws", 0, batch, bench(batch, {}))
    bench.measures = 0
    found = search_by_moves(bench, pool, Budget(steps=steps), (0, 0), again=again)
    return found, pool


def test_chains_climb_each_for_its_form_and_go_into_the_pool():
    bench = _Fake()
    found, pool = _hopped(bench)
    assert found.forms.tolist() == [0, 1] * 4 and len(found.kinds) == 8
    assert (found.score > 4).sum() >= 4 and np.isfinite(found.score).all()
    assert pool.sources == ["draws", "search"] and pool.sizes == [0, 0]
    x = pool.instances[1]["x"][:, 0]
    np.testing.assert_array_equal(found.score, np.where(found.forms == 0, x, -x))
    np.testing.assert_array_equal(pool.measured[1].value[:, 0], x)
    # Not further than a thousand times the largest draw.
    assert np.abs(x).max() <= 4000
    assert found.accepted.max() > 0 and found.met.max() > 0
    # The starts, as many steps as a third or a sixth, and once what they found.
    assert bench.measures == 1 + 40 + 1
    other = _Fake()
    _hopped(other, again=True)
    assert other.measures == 1 + 20 + 1
    few = _Fake()
    _hopped(few, steps=2)
    assert few.measures == 1 + 1 + 1
    # As many chains as are measured at once, and one for each form at the least.
    assert len(_hopped(_Fake(batch=1))[0].forms) == 2


@pytest.mark.parametrize("given, ended", [
    ({"counts": lambda x: False}, False), ({"width": 0.9e-9}, True), ({"width": 1.1e-9}, False),
    ({"width": NAN}, False), ({"counts": lambda x: x > 0}, True),
])  # fmt: skip
def test_what_does_not_count_or_is_hidden_by_the_error_is_no_end(given, ended):
    found, pool = _hopped(_Fake(**given))
    assert np.isfinite(found.score).any() == ended
    assert pool.sources == (["draws", "search"] if ended else ["draws"])
    assert found.met.max() > 0  # the hypotheses are met all the same
    if given == {"width": 0.9e-9}:  # relative to what is more than one
        np.testing.assert_array_equal(found.score, _hopped(_Fake())[0].score)


def test_what_misses_a_hypothesis_is_no_step():
    found, _ = _hopped(_Fake(met=lambda x: x in (1.0, 2.0, 3.0, 4.0)))
    assert set(np.abs(found.score[np.isfinite(found.score)])) <= {1.0, 2.0, 3.0, 4.0}


def test_instances_go_back_onto_the_hypotheses():
    bench = _Fake(project=lambda i, s: i)
    back = projected(bench, Size({"d": 1}))
    found = back({"x": np.array([[99.0, 1.0]])})
    assert found["x"].tolist() == [[50, 1]] and isinstance(found["x"], np.ndarray)
    batch = {"x": np.array([[99.0]])}
    assert projected(_Fake(), Size({"d": 1}))(batch) is batch
    ends, _ = _hopped(bench, steps=600)
    assert ends.score[ends.forms == 0].max() == 50


def test_draws_spread_out_are_as_many_as_are_measured_at_once():
    for project, most in ((None, np.inf), (lambda i, s: i, 50.0)):
        bench = _Fake(batch=32, project=project)
        pool = Pool()
        batch = {"x": np.full((3, 2), 10.0), "n": np.arange(3)}
        pool.add("draws", 1, batch, measured(np.zeros((3, 3))))
        if project is not None:
            batch.pop("n")
        found = spread_out(bench, pool, (0, 1))
        assert found["x"].shape == (32, 2) and found["x"].max() <= most
        sizes = np.abs(np.log(found["x"] / 10))
        assert sizes.max() > 1.5 and (found["x"] > 0).all()
        if project is None:
            assert set(found["n"].tolist()) <= {0, 1, 2} and found["n"].dtype == batch["n"].dtype
