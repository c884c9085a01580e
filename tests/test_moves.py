"""The search's moves: what each does to an entry, and claims that only they refute.

The truth of each claim is mathematics on paper; the violating points stand beside them.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.falsification import moves
from jaxbounds.falsification.engine import verdicts_on
from jaxbounds.falsification.explore import End, Searched, agreeing
from jaxbounds.falsification.second_opinion import Referee

LEAF = np.random.default_rng(0).normal(size=(5, 3, 2))


@pytest.mark.parametrize("move", dict.fromkeys(moves.MOVES), ids=lambda move: move.__name__)
@pytest.mark.parametrize("shape", [(5,), (5, 4), (5, 3, 2)])
def test_a_move_keeps_the_shape_and_what_it_is_given(move, shape):
    leaf = np.random.default_rng(1).normal(size=shape)
    before = leaf.copy()
    moved = move(leaf, np.random.default_rng(2))
    assert moved.shape == shape and np.all(np.isfinite(moved))
    np.testing.assert_array_equal(leaf, before)


@pytest.mark.parametrize("move", [moves.entry_to_end, moves.entry_flipped, moves.entry_scaled])
def test_a_move_of_an_entry_moves_one(move):
    moved = move(LEAF, np.random.default_rng(3))
    assert np.max(np.sum(moved != LEAF, axis=(1, 2))) <= 1
    assert np.any(moved != LEAF)


def test_ends_flips_vertices_and_even_entries():
    leaf = np.array([[3.0, -1.0, 0.0, 0.1]])
    ends = {tuple(moves.entry_to_end(leaf, np.random.default_rng(s))[0]) for s in range(99)}
    assert {(3, -1, 0, -3), (3, 3, 0, 0.1), (3, -1, 3, 0.1), (0, -1, 0, 0.1)} <= ends
    rng = np.random.default_rng(0)
    assert tuple(moves.vertex(leaf, rng)[0]) == (3, -3, 0, 0)
    np.testing.assert_allclose(np.abs(moves.even(leaf, rng)[0]), [s := np.sqrt(10.01 / 3), s, 0, s])
    kept = {tuple(moves.sparse(leaf, np.random.default_rng(s))[0]) for s in range(40)}
    assert kept == {(3, 0, 0, 0), (3, -1, 0, 0), (3, -1, 0, 0.1)}


def test_a_row_is_copied_or_scaled_whole():
    for seed in range(20):
        moved = moves.row_copied(LEAF, np.random.default_rng(seed))
        for chain, was in zip(moved, LEAF):
            changed = chain != was
            assert changed.all(axis=1).sum() == changed.any(axis=1).sum() <= 1 or (
                changed.all(axis=0).sum() == changed.any(axis=0).sum() <= 1
            )


@pytest.mark.parametrize(("how", "last"), [(0, 1.0), (1, 2.0), (2, 0.0), (3, 7.0)])
def test_an_instance_grows_by_repeating_its_edge_zeros_or_another(how, last):
    small = {"x": np.array([1.0, 2.0]), "a": np.asarray(5.0)}
    large = {"x": np.full(3, 7.0), "a": np.asarray(6.0)}
    found = list(moves.grown(small, large))[how]
    assert (found["x"].tolist(), float(found["a"])) == ([1.0, 2.0, last], 5.0)


def test_chains_leave_a_place_that_no_slope_leads_out_of():
    """-2 at the start, 0 at ones, -8 between: the number of flipped signs is what counts."""
    target = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0])

    def score(instances):
        wrong = np.sum(instances["x"] != target, axis=1)
        return instances, -wrong.astype(float), np.ones(len(wrong), bool)

    found = moves.climb(
        score, {"x": np.ones((16, 8))}, np.random.default_rng(0), 200, moves.one_leaf
    )
    assert np.max(found.score) == 0
    np.testing.assert_array_equal(found.instances["x"][np.argmax(found.score)], target)


def test_a_chain_that_never_counted_may_begin_to():
    score = lambda i: (i, np.where(i["x"][:, 0] == 0, 1.0, -np.inf), np.ones(8, bool))
    found = moves.climb(
        score, {"x": np.ones((8, 2))}, np.random.default_rng(0), 100, moves.one_leaf
    )
    assert np.all(found.score == 1.0)


def statement(name, sample, lhs, rhs, **options):
    return jb.Statement(
        id=f"moves.{name}", label=name, formula=name, kind="inequality", sample=sample,
        evaluate=lambda i, s: jb.Sides(lhs(i), {"printed": rhs(i), "control": rhs(i) / 2}),
        forms=(jb.Form(name="printed"),), control="half", **{"sizes": ({"n": 8},), **options},
    )  # fmt: skip


def _head(n, bound):
    """|J| of x -> softmax(a x x^T) x on [-1, 1]^n, |a| <= 1: more at (1, .., 1, -1), a = -1."""
    uniform = lambda key, shape: jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)

    def norm(i):
        head = lambda x: jax.nn.softmax(i["a"] * x[:, None] * x[None, :], axis=1) @ x
        return jnp.linalg.norm(jax.jacobian(head)(i["x"]), 2)

    return statement(
        "head", lambda key, s: {"x": uniform(key, (s["n"],)), "a": uniform(key, ())}, norm,
        lambda i: jnp.asarray(bound), sizes=({"n": n},),
        project=lambda i, s: jax.tree.map(lambda leaf: jnp.clip(leaf, -1.0, 1.0), i),
        hypotheses=lambda i, s: {n: jnp.all(jnp.abs(leaf) <= 1) for n, leaf in i.items()},
    )  # fmt: skip


@pytest.mark.default_cases("7")
@pytest.mark.parametrize("seed", range(10))
def test_the_vertex_of_an_attention_head_is_found(seed):
    (verdict,) = jb.falsify(_head(8, 2.66), seed=seed)
    assert verdict.status == "fails" and verdict.worst_ratio * 2.66 == pytest.approx(
        2.874, abs=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize(("n", "bound"), [(12, 2.8), (16, 2.8)])
@pytest.mark.parametrize("seed", range(10))
def test_the_vertex_of_a_longer_head_is_found(n, bound, seed):
    (verdict,) = jb.falsify(_head(n, bound), seed=seed)
    assert verdict.status == "fails"


@pytest.mark.slow_cases("0")
@pytest.mark.parametrize("seed", range(3))
def test_a_clique_is_found_on_the_simplex(seed):
    """x^T A x of a pentagon is at most 1/2 (Motzkin and Straus), at the middle of an edge."""
    A = np.roll(np.eye(5), 1, axis=1) + np.roll(np.eye(5), -1, axis=1)
    claim = statement(
        "clique", lambda key, s: {"x": jax.random.dirichlet(key, jnp.ones(5))},
        lambda i: i["x"] @ A @ i["x"], lambda i: jnp.asarray(0.495),
        project=lambda i, s: {"x": jnp.abs(i["x"]) / jnp.sum(jnp.abs(i["x"]))},
        hypotheses=lambda i, s: {
            "simplex": jnp.all(i["x"] >= 0) & (jnp.abs(jnp.sum(i["x"]) - 1) < 1e-9)
        },
    )  # fmt: skip
    (verdict,) = jb.falsify(claim, seed=seed)
    assert verdict.status == "fails"


def _positive(name, lhs, rhs):
    return statement(
        name, lambda key, s: {"x": jnp.exp(jax.random.normal(key))},
        lambda i: lhs(i["x"]), lambda i: rhs(i["x"]),
        project=lambda i, s: {"x": jnp.abs(i["x"])},
        hypotheses=lambda i, s: {"x > 0": i["x"] > 0},
    )  # fmt: skip


SLOW = {
    "logarithm": lambda x: jnp.log1p(x) / (1 + jnp.log1p(x)),
    "two humps": lambda x: 0.9 * jnp.exp(-((x - 1) ** 2)) + x / (100 + x),
}


@pytest.mark.parametrize("name", ["logarithm", "two humps"])
def test_a_supremum_of_one_at_infinity_is_seen(name):
    (verdict,) = jb.falsify(_positive("slow", SLOW[name], lambda x: 0.99 + 0.0 * x))
    assert verdict.status == "fails"


TRUE_FAR_AWAY = {
    # log(1 + x) >= x - x^2/2, but in floats it is 0 where x is 1e-20.
    "log1p by log": (lambda x: x - x**2 / 2, lambda x: jnp.log(1 + x)),
    # sqrt(x^2 + 1) - x <= 1/(2x); the root is x in floats where x is 1e8 or more.
    "a difference of roots": (lambda x: 1 / (2 * x + 1 / x), lambda x: jnp.sqrt(x**2 + 1) - x),
    "1 - cos": (lambda x: x**2 / 2 - x**4 / 24, lambda x: 1 - jnp.cos(x)),
}


@pytest.mark.parametrize("name", TRUE_FAR_AWAY)
def test_what_rounding_does_far_away_refutes_nothing(name):
    (verdict,) = jb.falsify(_positive("true", *TRUE_FAR_AWAY[name]))
    assert verdict.status != "fails"


def test_without_a_referee_nothing_far_away_counts():
    claim = _positive("slow", SLOW["logarithm"], lambda x: 0.99 + 0.0 * x)
    asked = []

    def nobody(statement, form, instance, size):
        asked.append(float(instance["x"]))
        return Referee("undecided", "nobody knows")

    (verdict,) = verdicts_on(claim, referee=nobody)
    assert verdict.status == "holds" and max(asked) > 1e43


def test_kinds_of_starts_that_agree_are_counted_at_the_worst_size():
    ends = (
        End(np.array(["worst", "wide"]), np.array([0, 0]), np.array([0.5, 0.4])),
        End(np.array(["worst", "wide", "wide"]), np.array([0, 0, 1]), np.array([0.9, 0.9, 2.0])),
    )
    searched = Searched(2, np.zeros(2, int), 0, ends)
    assert agreeing(searched, 0) == {"worst": (1, 1), "wide": (1, 1)}
    assert agreeing(searched, 1) == {"wide": (1, 1)}
