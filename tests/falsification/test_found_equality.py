"""Bounds that reach one without a named equality case: ball arithmetic decides at the worst."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.claims.statements.statement import ALONE
from jaxbounds.falsification.wording import in_words

pytest.importorskip("flint")
FEW = jb.Budget(samples=64, restarts=2, steps=20)
POSITIVE = {"x": jb.Box(0.1, 9, "d")}


@pytest.fixture(autouse=True)
def as_a_user():
    """Types and ranks are promoted as in a session of a user."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _judged(lhs, relation, rhs, over, **given):
    claim = jb.claim("mine.one", lhs, relation, rhs, over=over, budget=FEW, **given)
    return jb.falsify(claim)[0]


def _geometric(x):
    return jnp.exp(jnp.mean(jnp.log(x)))


@pytest.mark.parametrize("lhs, relation, rhs, over", [
    (_geometric, "<=", jnp.mean, POSITIVE),
    (lambda x: jnp.abs(jnp.sum(x)), "<=", lambda x: jnp.sum(jnp.abs(x)), {"x": jb.Reals("d")}),
    (
        lambda x: jnp.cosh(x[0]), "<=", lambda x: jnp.exp(x[0] ** 2 / 2), {"x": jb.Box(-9, 9, "d")}
    ),
], ids=["means", "triangle", "cosine"])  # fmt: skip
def test_an_equality_case_that_ball_arithmetic_finds_needs_no_name(lhs, relation, rhs, over):
    named = lambda x: lhs(x)
    found = _judged(named, relation, lambda x: rhs(x), over, sizes={"d": 2})
    assert (found.status, found.evidence) == ("holds", "attained"), found.reason
    assert "both sides equal at x = " in found.reason


def test_sides_that_come_ever_closer_hold_and_are_not_said_to_be_equal():
    log_sum_exp = lambda x: jnp.log(jnp.sum(jnp.exp(x)))
    over = {"x": jb.Box(-99, 99, "d")}
    found = _judged(log_sum_exp, ">=", lambda x: jnp.max(x), over, sizes={"d": 2})
    assert found.status == "holds" and found.evidence != "attained", found.reason
    assert "equal at" not in found.reason


@pytest.mark.parametrize("excess", [1e-10, 1e-13])
def test_a_violation_below_the_tolerance_never_holds(excess):
    larger = lambda x: (1 + excess) * jnp.mean(x)
    found = _judged(larger, "<=", lambda x: jnp.mean(x), POSITIVE, sizes={"d": 2})
    assert found.status in ("inconclusive", "fails"), found.reason


def _norm(a):
    return jnp.sqrt(jnp.sum(a**2))


def _to_polar(a):
    u, _, v = jnp.linalg.svd(a)
    return _norm(a - u @ v)


PLANE = {"A": jb.Reals(("n", "n"))}
TO_A_ROTATION = {**PLANE, "Q": jb.Orthogonal(("n", "n"))}


@pytest.mark.parametrize("excess", [0, 1e-14, 1e-13, 1e-10])
def test_floats_decide_at_ties_of_singular_values_and_hide_no_small_violation(excess):
    """Ball arithmetic encloses no polar factor of a matrix with equal singular values."""
    nearest = lambda A: (1 + excess) * _to_polar(A)
    found = _judged(nearest, "<=", lambda A, Q: _norm(A - Q), TO_A_ROTATION, sizes={"n": 2})
    if excess:
        assert found.status == "inconclusive", found.reason
    else:
        assert (found.status, found.evidence) == ("holds", "searched"), found.reason
        assert "both sides agree in floats at A = " in found.reason


@pytest.mark.parametrize("least, status", [(1.0, "holds"), (1 - 1e-6, "inconclusive")])
def test_promised_entries_that_reach_equality_need_no_name(least, status):
    """Eckart and Young's theorem, with its rank one approximation as the witness."""

    def rank_one(A):
        u, s, v = jnp.linalg.svd(A)
        return {"b": s[0] * u[:, 0], "c": v[0]}

    claim = jb.claim(
        "mine.young", lambda A, b, c: _norm(A - jnp.outer(b, c)), "<=",
        lambda A: least * jnp.linalg.svd(A, compute_uv=False)[1], over=PLANE, sizes={"n": 2},
        there_is={"b": jb.Reals("n"), "c": jb.Reals("n")}, witness=rank_one, budget=FEW,
    )  # fmt: skip
    assert jb.falsify(claim)[0].status == status


def test_a_supremum_that_reaches_its_bound_needs_no_name():
    norm = lambda a: jb.supremum(
        lambda x: a @ x, {"x": jb.Ball(1, (2,))}, size={}, starts=2, steps=20
    )
    claim = jb.claim(
        "mine.dual", lambda a: norm(a), "<=", lambda a: _norm(a), over={"a": jb.Reals("n")},
        sizes={"n": 2}, estimates={"lhs": "below"}, budget=FEW,
    )  # fmt: skip
    found = jb.falsify(claim)[0]
    assert found.status == "holds", found.reason


def test_a_false_twin_that_is_true_is_not_refuted():
    twin = {"the bound itself": lambda x: jnp.mean(x)}
    claim = jb.claim(
        "mine.means", _geometric, "<=", lambda x: 2 * jnp.mean(x), over=POSITIVE, sizes={"d": 2},
        false=twin, budget=FEW,
    )  # fmt: skip
    assert [row.status for row in jb.falsify(claim)] == ["holds", "holds"]


def test_an_instance_is_named_in_few_words():
    one = {"p": np.array([0.5, 0.5]), "q": np.array([0.5, 0.5]), "x": np.arange(3.0)}
    assert in_words(one) == "p = 0.5 in every entry, q = p, x = (0, 1, 2)"
    assert in_words({"S": np.eye(2)}) == "S = ((1, 0), (0, 1))"
    assert in_words({"S": np.arange(3.0)[None]}) == "S = ((0, 1, 2))"
    assert in_words({"S": np.array([[0.5]])}) == "S = 0.5"
    assert in_words({ALONE: np.int64(0)}) == "some size"
    assert in_words({"x": np.arange(12.0)}) == "x = an array of shape (12,)"
    assert in_words({"n": np.int64(3)}) == "n = 3"
    # Typed in, a printed number is the number, and short numbers stay short.
    assert in_words({"x": np.nextafter(0.5, 1)}) == "x = 0.5000000000000001"
    assert in_words({"x": np.array([0.1, 1 / 3])}) == "x = (0.1, 0.333) (rounded)"
    assert in_words({"x": np.float32(0.1)}) == "x = 0.1"


def test_a_small_violation_is_more_than_the_tolerance_of_a_set():
    """A search moves to the edge of the set's tolerance; the excess vanishes at the projection."""
    over = {"a": jb.Matrices(("d", "d"), norm="operator", at_most=1)}
    square = lambda a: jnp.linalg.norm(a, 2) ** 2
    assert _judged(square, "<=", lambda a: 1.0, over, sizes={"d": 2}).status == "holds"
    less = lambda a: 1 - 3e-12
    assert _judged(square, "<=", less, over, sizes={"d": 2}).status != "holds"
