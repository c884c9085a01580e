"""Roots of differences that cancel: violations that are rounding, and the claim without them."""

import jax
import jax.numpy as jnp
import pytest

import jaxbounds as jb

pytest.importorskip("flint")
FEW = jb.Budget(samples=64, restarts=3, steps=40)
LAWS = {"p": jb.Simplex("n"), "q": jb.Simplex("n")}


@pytest.fixture(autouse=True)
def as_a_user():
    """Types and ranks are promoted as in a session of a user."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _distance(p, q):
    return 0.5 * jnp.sum(jnp.abs(p - q))


def _root(p, q):
    return jnp.sqrt(1 - jnp.sum(jnp.sqrt(p * q)) ** 2)


def _judged(lhs, relation, rhs, over=LAWS, **given):
    sizes = {"sizes": {"n": 2}, "budget": FEW}
    claim = jb.claim("mine.root", lhs, relation, rhs, over=over, **sizes, **given)
    return jb.falsify(claim)


def test_the_root_of_a_difference_that_cancels_refutes_no_true_claim():
    found, twin = _judged(_distance, "<=", _root, false=[lambda p, q: 0.9 * _root(p, q)])
    assert (found.status, twin.status) == ("holds", "fails"), found.reason


def test_a_violation_with_larger_sides_still_fails():
    (found,) = _judged(_distance, "<=", lambda p, q: 0.99 * _root(p, q))
    assert found.status == "fails"


def test_a_divergence_with_terms_that_cancel_holds():
    divergence = lambda p, q: jnp.sum(p * jnp.log(p / q))
    inside = lambda i, size: {"p > 0": jnp.all(i["p"] > 0), "q > 0": jnp.all(i["q"] > 0)}
    (found,) = _judged(divergence, ">=", lambda p, q: 2 * _distance(p, q) ** 2, hypotheses=inside)
    assert found.status == "holds", found.reason


@pytest.mark.parametrize("relation", ["<=", ">="])
def test_two_rounding_errors_have_no_ratio(relation):
    """The mean and the median differ by at most 0.8165 standard deviations of five numbers."""
    gap = lambda x: jnp.abs(jnp.mean(x) - jnp.median(x))
    sides = (gap, jnp.std) if relation == "<=" else (jnp.std, gap)
    lhs, rhs = (lambda x, side=side: side(x) for side in sides)
    claim = jb.claim("t.median", lhs, relation, rhs, over={"x": jb.Reals("n")}, sizes={"n": (3, 5)})
    (found,) = jb.falsify(claim)
    assert (found.status, found.near) == ("holds", False)
    assert found.worst_ratio == pytest.approx(2 / 6**0.5, rel=1e-6)
