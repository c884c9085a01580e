"""Instances near the draws, and the instances that chains of moves leave in the pool."""

import jax.numpy as jnp
import numpy as np
import pytest
from stubs import measured, statement

from jaxbounds.claims.statements import Budget, Form, Size
from jaxbounds.falsification.bench import Bench, Pool
from jaxbounds.falsification.move_search import (
    projected,
    search_by_moves,
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


class _Fake(Bench):
    """Two forms: x[0], and -x[0]; the width of the error and what counts are as asked."""

    def __init__(self, *, batch=8, width=0.0, counts=lambda x: True, met=lambda x: True, **options):
        forms = (Form(name="printed"), Form(name="derived"))
        claim = statement(host=False, forms=forms, sizes=({"d": 1}, {"d": 2}), **options)
        super().__init__(claim, batch, UNKEPT)
        self.width, self.counts, self.met = width, counts, met

    def __call__(self, batch, size):
        x = batch["x"][:, 0]
        value = np.stack([x, -x, 0 * x], axis=1)
        flag = lambda given: np.array([given(row) for row in x])[:, None] & np.ones(3, bool)
        width = self.width * np.maximum(np.abs(value), 1.0)
        return measured(value, low=value - width / 2, high=value + width / 2, rhs=-1.0,
                        counted=flag(self.counts) & flag(self.met), met=flag(self.met))  # fmt: skip

    def mapped(self, function, what, size):
        return lambda batch: {"x": jnp.asarray(np.minimum(batch["x"], 50.0))}


def _hopped(bench, steps=120, rows=4):
    pool = Pool()
    batch = {"x": np.arange(1.0, rows + 1)[:, None] * np.ones((1, 2))}
    pool.add("draws", 0, batch, bench(batch, {}))
    found = search_by_moves(bench, pool, Budget(steps=steps), (0, 0), again=False)
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
