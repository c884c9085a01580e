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
    _better,
    _Flat,
    _score,
    gradient_search,
    host_search,
    leading,
    projection,
    random_search,
    slopes,
)

pytestmark = pytest.mark.usefixtures("x64")
ONE = Size({"d": 1})


def test_a_score_is_a_logarithm_and_below_all_of_them_where_there_is_none():
    found = [_score(jnp.asarray(x)) for x in (2.0, 1.0, 1e-299, 1e-301, 0.0, -5.0)]
    wanted = [np.log(2), 0, np.log(1e-299), 1e-301 - 1e3, -1e3, -1005]
    np.testing.assert_allclose(found, wanted)
    slope = [jax.grad(_score)(jnp.asarray(x)) for x in (2.0, 0.0, -5.0)]
    np.testing.assert_allclose(slope, [0.5, 1, 1])
    told = [bool(_better(score, np.bool_(counts), 1.0)) for score, counts in
            ((2.0, True), (2.0, False), (1.0, True), (0.5, True))]  # fmt: skip
    assert told == [True, False, False, False]


def test_the_floats_of_all_chains_are_columns():
    leaves = [np.array([[3.0, -4], [0, 0]]), np.array([7, 8]), np.array([2.0, -5.0])]
    flat = _Flat(leaves)
    x = flat.joined([leaves[i] for i in flat.moving])
    assert flat.moving == [0, 2] and x.tolist() == [[3, -4, 2], [0, 0, -5]]
    assert [part.tolist() for part in flat.parts(x)] == [leaves[0].tolist(), leaves[2].tolist()]
    root = 12.5**0.5
    np.testing.assert_allclose(flat.scale(x), [[root, root, 2], [1e-3, 1e-3, 5]])
    none = _Flat(leaves[1:2])
    assert none.joined([]).shape == none.scale(none.joined([])).shape == (2, 0)


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


def test_a_random_move_is_of_one_leaf_or_adds_to_all_floats():
    # Taken from the only donor, or moved by no more than 10^.5 root mean squares times a normal.
    leaves = {"n": np.zeros(4, int), "x": np.array([3.0, 4, 0, 0]), "y": np.array(2.0)}
    donors = {"n": np.full((1, 4), 7), "x": np.full((1, 4), 9.0), "y": np.full(1, 9.0)}
    moves = []

    def score(moved):
        moves.append(moved)
        return moved, np.zeros(len(moved["y"])), np.ones(len(moved["y"]), bool)

    starts = jax.tree.map(lambda leaf: np.repeat(leaf[None], 2000, axis=0), leaves)
    found = random_search(score, donors, 1)(np.random.default_rng(0), starts)
    assert not found.accepted.any() and len(moves) == 2
    went = {k: moves[1][k].reshape(2000, -1) != starts[k].reshape(2000, -1) for k in leaves}
    some = {k: went[k].any(axis=1) for k in leaves}
    taken = {k: some[k] & np.all(~went[k] | (moves[1][k].reshape(2000, -1) == donors[k].ravel()[0]),
                                 axis=1) for k in leaves}  # fmt: skip
    assert np.array_equal(some["n"], taken["n"])  # integers are never nudged
    assert not np.any(taken["n"] & (some["x"] | some["y"])) and not np.any(taken["x"] & some["y"])
    # A sixth of the chains takes from each leaf: half of them all of it, half about a fifth.
    share = np.mean(went["n"][some["n"]])
    assert abs(share - 0.6 / (1 - 0.8**4 / 2)) < 0.05
    assert abs(np.mean(some["n"]) - (1 / 2 + (1 - 0.8**4) / 2) / 6) < 0.03
    nudged = some["x"] & ~taken["x"]
    assert abs(np.mean(nudged) - (1 - 0.8**4) / 2) < 0.05
    assert np.abs(moves[1]["x"] - starts["x"])[nudged].max() < 5 * 10**0.5 * 2.5


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


@pytest.mark.parametrize("chance, rest, x", [
    (0.49, (-1.0, np.ones(4)), [3.25, 4, 0.25, 0]),  # a tenth of the root mean square, 5/2
    (0.5, (1,), [20, 4, 20, 0]),
])  # fmt: skip
def test_a_move_adds_noise_or_takes_from_another_draw(chance, rest, x):
    found, dice = _stepped(1, 0.5, HALF, chance, *rest)
    assert found.best["x"].tolist() == x and (found.accepted, found.met) == (1, 1)
    asked = [("integers", 2), ("choice", [0.25, 0.2, 1.0]), ("random", (4,)), ("random",)]
    more = [("integers", 2)] if len(rest) == 1 else [("uniform", -4, 0.5), ("normal", (4,))]
    assert dice.asked == asked + more and dice.answers == []


def test_integers_are_taken_and_never_nudged():
    found, dice = _stepped(0, 1.0, np.array([0.5, 0.9]), 1)
    assert found.best["n"].tolist() == [7, 8] and found.best["n"].dtype == np.int64
    assert dice.asked[1] == ("choice", [0.5, 0.2, 1.0])
    none = {"n": np.array([0, 0]), "x": np.zeros(0)}
    _, dice = _stepped(0, 1.0, np.array([0.5, 0.9]), 1, start=none)
    small = {"n": np.array([0, 0]), "x": np.full(4, 1e-9)}  # of a scale of a thousandth at least
    found, _ = _stepped(1, 1.0, HALF, 0.1, 0.0, np.ones(4), start=small)
    np.testing.assert_allclose(found.best["x"], 1e-3 + 1e-9)


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


@pytest.mark.parametrize("value, better", [(1e-299, True), (1e-301, False), (-0.5, False)])
def test_scores_on_the_host_are_those_elsewhere(value, better):
    # The start has a ratio of nothing, whose score is -1000: to 1e-300 that is the same float.
    def evaluate(instance, size):
        moved = np.any(instance["x"] != 3)
        return Sides(value if moved else 0.0, {"printed": 1.0, "control": -9.0})

    start = {"n": np.array([0, 0]), "x": np.full(4, 3.0)}
    found, _ = _stepped(1, 1.0, HALF, 0.1, 0.0, np.ones(4), start=start, evaluate=evaluate)
    assert bool(found.accepted) == better


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
