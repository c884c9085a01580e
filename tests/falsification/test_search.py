"""Searches from one start: their first steps by hand, and what they keep."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stubs import Dice, statement

from jaxbounds.claims.statements import Sides, Size
from jaxbounds.falsification.bench import Bench
from jaxbounds.falsification.move_search import measuring
from jaxbounds.falsification.programs import UNKEPT
from jaxbounds.falsification.search import (
    gradient_search,
    host_search,
    leading,
    projection,
    random_search,
    slopes,
)

pytestmark = pytest.mark.usefixtures("x64")
ONE = Size({"d": 1})


def test_what_meets_the_hypotheses_stays_and_the_rest_is_put_back():
    one = {"x": np.array([0.5, 3.0])}
    half = lambda i, s: {"x": np.minimum(i["x"], 0.25 * s["d"])}
    below = lambda i, s: {"x < 9": i["x"] < 9, "x < 4": i["x"] < 4}
    for given, x, found in (
        ({}, [0.5, 3.0], [0.5, 3.0]), ({"project": half}, [0.5, 3.0], [0.25, 0.25]),
        ({"project": half, "hypotheses": below}, [0.5, 3.0], [0.5, 3.0]),
        ({"project": half, "hypotheses": below}, [0.5, 5.0], [0.25, 0.25]),
        ({"hypotheses": below}, [0.5, 5.0], [0.5, 5.0]),
        ({"project": lambda i, s: {"x": np.zeros(2)}, "hypotheses": below}, [0.5, np.inf], [0, 0]),
    ):  # fmt: skip
        onto = projection(statement(**given), ONE)
        assert np.asarray(onto({"x": np.array(x)})["x"]).tolist() == found
    assert one["x"].tolist() == [0.5, 3.0]


# Along slopes


def _product(instance, size):
    a, b = instance["x"]
    return Sides(a * b, {"printed": jnp.asarray(1.0), "control": jnp.asarray(0.5)})


def _by_hand(x, each, steps):
    """Adam by its paper, with decays .8 and .95, on log(x0 x1); steps fall by a cosine."""
    x, m, v, path = np.array(x), 0.0, 0.0, []
    for t in range(steps):
        path.append(x.copy())
        slope = 1 / x
        m, v = 0.8 * m + 0.2 * slope, 0.95 * v + 0.05 * slope**2
        step = (m / (1 - 0.8 ** (t + 1))) / (np.sqrt(v / (1 - 0.95 ** (t + 1))) + 1e-8)
        rate = 0.1 * (0.99 * (1 + np.cos(np.pi * t / steps)) / 2 + 0.01)
        x = x + rate * (np.abs(x) if each else np.sqrt(np.mean(x**2))) * step
    return path


def test_an_ascent_is_adam_s_relative_to_the_leaf_or_to_each_entry():
    limit = lambda i, s: {"x0 < 1.3": i["x"][0] < 1.3}
    claim = statement(_product, host=False, hypotheses=limit)
    along = leading(claim, jax.jit(jax.vmap(slopes(claim, ONE))))
    starts = {"n": np.array([[7], [8], [9]]), "x": np.array([[1.0, 3.0], [1.0, 3.0], [2.0, 3.0]])}
    each = np.array([False, True, False])
    found = gradient_search(along, lambda batch: batch, 4)(starts, np.zeros(3, int), each)
    for chain, own in enumerate(each[:2]):
        path = _by_hand([1.0, 3.0], own, 4)
        counts = [bool(x[0] < 1.3) for x in path]
        best = max((x[0] * x[1], i) for i, x in enumerate(path) if counts[i])[1]
        np.testing.assert_allclose(found.best["x"][chain], path[best], rtol=1e-6)
        # The start is no step.
        assert found.accepted[chain] == best and found.met[chain] == sum(counts[1:])
    assert found.best["n"].tolist() == [[7], [8], [9]] and found.met[0] < 3 == found.met[1]
    # Where the start does not count it is kept, and nothing was met.
    assert found.best["x"][2].tolist() == [2, 3] and found.accepted[2] == found.met[2] == 0
    assert starts["x"].tolist() == [[1, 3], [1, 3], [2, 3]]  # what was given is as it was


def test_an_ascent_is_each_chain_s_own_form_s_and_put_back_at_each_step():
    claim = statement(_product, host=False)
    along = leading(claim, jax.jit(jax.vmap(slopes(claim, ONE))))
    starts = {"x": np.array([[1.0, 2.0], [1.0, 2.0]])}
    score, leads, slope = along(starts, np.array([0, 1]))  # the form's, and the control's
    np.testing.assert_allclose(score, np.log([2, 4]))
    np.testing.assert_allclose(slope[0], [[1, 0.5], [1, 0.5]])
    assert leads.tolist() == [True, True]
    seen = []

    def onto(batch):
        seen.append(batch["x"])
        return {"x": np.minimum(batch["x"], 1.05)}

    found = gradient_search(along, onto, 3)(starts, np.array([0, 1]), np.zeros(2, bool))
    assert len(seen) == 3 and found.best["x"].tolist() == [[1, 2], [1, 2]]
    np.testing.assert_allclose(seen[1], [1.05 + 0.1 * 0.7525 * 1.05 * _ratios()] * 2, rtol=1e-6)


def _ratios():
    """The second step's direction by hand: slopes (1, 1/2), then 1/1.05 twice."""
    g, h = np.array([1.0, 0.5]), np.full(2, 1 / 1.05)
    m, v = 0.8 * 0.2 * g + 0.2 * h, 0.95 * 0.05 * g**2 + 0.05 * h**2
    return m / (1 - 0.64) / np.sqrt(v / (1 - 0.95**2))


# By random moves


def _tried(bench, start, chains, donors, steps=60, seed=0):
    """The chains of a statement's first form from copies of one start."""
    at = measuring(bench, ONE, np.zeros(chains, int))

    def score(moved):
        there, found, leads = at(moved)
        return there, np.where(leads, found.value, -np.inf), found.met

    starts = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[None], chains, axis=0), start)
    return random_search(score, donors, steps)(np.random.default_rng(seed), starts)


def test_random_moves_keep_what_is_worse_and_counts():
    draws = lambda key, size: {"n": jax.random.randint(key, (3,), 0, 9), "x": jnp.full(2, 0.25)}
    value = lambda i: jnp.sum(i["n"], axis=-1).astype(float) + jnp.sum(i["x"], axis=-1)
    sides = lambda i, s: Sides(value(i), {"printed": jnp.asarray(1.0), "control": jnp.asarray(0.5)})
    claim = statement(sides, host=False, sample=draws, cases=None, search="random",
                      hypotheses=lambda i, s: {"x < 1": jnp.all(jnp.abs(i["x"]) < 1)})  # fmt: skip
    bench = Bench(claim, 4, UNKEPT)
    donors = jax.tree.map(np.asarray, jax.vmap(lambda k: draws(k, ONE))(
        jax.random.split(jax.random.key(0), 32)))  # fmt: skip
    start = {"n": np.array([0, 1, 2]), "x": np.array([0.5, 0.5])}
    found = _tried(bench, start, 6, donors)
    assert np.all(value(found.best) > 15) and np.abs(found.best["x"]).max() < 1
    assert found.best["n"].dtype == start["n"].dtype and found.best["n"].min() >= 0
    assert found.best["n"].max() <= 8
    assert np.all((found.accepted > 3) & (found.accepted < found.met) & (found.met <= 60))
    assert np.all(np.any(found.best["x"] != 0.5, axis=1))
    # Where nothing counts the start is kept.
    bad = {"n": np.array([0, 1, 2]), "x": np.array([np.nan, 0.5])}
    stuck = _tried(bench, bad, 3, donors)
    assert all(a == 0 or np.isfinite(x).all() for a, x in zip(stuck.accepted, stuck.best["x"]))


# On the host


def _stepped(*answers, start=None, steps=1, form=0, evaluate=None, **options):
    sides = lambda i, s: Sides(np.sum(i["x"]) + np.sum(i["n"]), {
        "printed": 2.0, "control": -9.0})  # fmt: skip
    claim = statement(evaluate or sides, search="random", **options)
    dice = Dice(*answers)
    start = start or {"n": np.array([0, 0]), "x": np.array([3.0, 4, 0, 0])}
    donors = {"n": np.array([[5, 6], [7, 8]]), "x": np.array([[9.0] * 4, [20.0] * 4])}
    return host_search(claim, ONE, steps)(dice, start, form, donors), dice


HALF = np.array([0.4, 0.6, 0.4, 0.6])


def test_what_is_better_and_counts_is_kept():
    worse = (1, 1.0, HALF, 0.1, 0.0, -np.ones(4))
    found, _ = _stepped(*worse)
    assert found.best["x"].tolist() == [3, 4, 0, 0] and (found.accepted, found.met) == (0, 1)
    same = (1, 1.0, HALF, 0.1, 0.0, np.zeros(4))
    assert int(_stepped(*same)[0].accepted) == 0
    up = (1, 1.0, HALF, 0.1, 0.0, np.ones(4))
    found, _ = _stepped(*up, hypotheses=lambda i, s: {"x < 5": np.all(i["x"] < 5)})
    assert found.best["x"].tolist() == [3, 4, 0, 0] and (found.accepted, found.met) == (0, 0)
    # From a start that does not count any that does is better.
    low = {"hypotheses": lambda i, s: {"x < 4": np.all(i["x"] < 4)}}
    found, _ = _stepped(1, 1.0, HALF, 0.1, 0.0, -np.ones(4), **low)
    np.testing.assert_allclose(found.best["x"], np.array([3, 4, 0, 0]) - 2.5)
    assert (found.accepted, found.met) == (1, 1)
    # Two steps, of which the second starts at the first's.
    found, _ = _stepped(*up, *up, steps=2)
    once = np.array([3.0, 4, 0, 0]) + 2.5
    np.testing.assert_allclose(found.best["x"], once + np.sqrt(np.mean(once**2)))
    assert (found.accepted, found.met) == (2, 2)


def test_what_the_functions_refuse_is_projected_though_it_meets_the_hypotheses():
    def evaluate(instance, size):
        if np.any(instance["x"] > 5):
            raise ValueError("no such thing")
        return Sides(np.sum(instance["x"]), {"printed": 2.0, "control": -9.0})

    up, always = (1, 1.0, HALF, 0.1, 0.0, np.ones(4)), lambda i, s: {"always": True}
    back = lambda i, s: i | {"x": np.minimum(i["x"], 4.5)}
    found, _ = _stepped(*up, evaluate=evaluate, project=back, hypotheses=always)
    assert found.best["x"].tolist() == [4.5, 4.5, 2.5, 2.5]
    with pytest.raises(ValueError, match="no such thing"):
        _stepped(*up, evaluate=evaluate)


def test_the_form_is_the_one_asked_for():
    down = (1, 1.0, HALF, 0.1, 0.0, -np.ones(4))
    assert int(_stepped(*down, form=1)[0].accepted) == 0
    # Forms of which one grows where the other falls.
    two = lambda i, s: Sides(np.sum(i["x"]), {"printed": 2.0, "control": np.sum(i["x"]) ** 3})
    assert int(_stepped(*down, form=0, evaluate=two)[0].accepted) == 0
    assert int(_stepped(*down, form=1, evaluate=two)[0].accepted) == 1
