"""Sides that are no numbers at a vertex, and the same sides written so that they are."""

import textwrap

import jax
import jax.numpy as jnp
import pytest
from jax.scipy.special import entr, rel_entr, xlogy

import jaxbounds as jb

P = {"p": jb.Simplex("d")}
FEW = jb.Budget(samples=64, restarts=2, steps=20)


@pytest.fixture(autouse=True)
def as_a_user():
    """Types and ranks are promoted as in a session of a user."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _judged(lhs, relation, rhs, over=P, **given):
    claim = jb.claim("mine.ent", lhs, relation, rhs, over=over, sizes={"d": 3}, budget=FEW, **given)
    (row,) = jb.verify(jb.Paper(id="mine", title="Mine", statements=(claim,)))
    return row


def _most(d):
    return jnp.log(1.0 * d)


def test_the_reason_names_the_vertex_at_which_evaluate_is_not_finite():
    found = _judged(lambda p: -jnp.sum(p * jnp.log(p)), "<=", _most, equality="p uniform")
    assert found.status == "inconclusive"
    assert "evaluate gives NaN on" in found.reason and "Try jax.scipy.special" in found.reason
    assert "an entry of p is 0, at a vertex or an edge of Simplex" in found.reason


def test_an_edge_of_a_box_is_named_and_a_point_inside_of_a_set_is_no_edge():
    log = lambda x: x * jnp.log(x) ** 2
    found = _judged(log, "<=", 2.0, {"x": jb.Box(0, 1)})
    assert "an entry of x is 0, at a vertex or an edge of Box" in found.reason
    inside = lambda x: jnp.sum(jnp.where(x == 0, x / x, jnp.tanh(x)))
    found = _judged(inside, "<=", 9.0, {"x": jb.Reals("d")})
    assert "an entry of x is 0. Try" in found.reason
    assert '{"x!=0": jnp.all(i["x"] != 0)}' in found.reason


def test_a_form_that_fails_elsewhere_still_fails():
    naive = lambda p: -jnp.sum(p * jnp.log(p))
    assert _judged(naive, "<=", lambda d: 0.9 * _most(d)).status == "fails"


@pytest.mark.parametrize("entropy", [
    lambda p: -jnp.sum(xlogy(p, p)), lambda p: jnp.sum(entr(p)),
], ids=["xlogy", "entr"])  # fmt: skip
def test_an_entropy_that_is_zero_at_the_vertices_is_attained_at_the_middle(entropy):
    # The uniform point is no float where d = 3; it is an equality case all the same.
    found = _judged(entropy, "<=", _most, equality="p uniform")
    assert (found.status, found.evidence) == ("holds", "attained"), found.reason


def test_a_divergence_is_not_negative():
    over = {"p": jb.Simplex("d"), "q": jb.Simplex("d")}
    found = _judged(lambda p, q: jnp.sum(rel_entr(p, q)), ">=", 0.0, over, equality="p = q")
    assert found.status == "holds"


def test_a_ratio_that_comes_to_one_is_not_said_to_be_attained():
    not_zero = lambda x: {"x!=0": x != 0}
    found = _judged(lambda x: jnp.sin(x) / x, "<=", 1.0, {"x": jb.Box(-1, 1)}, equality="x to 0",
                    hypotheses=not_zero)  # fmt: skip
    assert (found.status, found.evidence) == ("holds", "approached")
    assert "no measured instance reaches it" in found.reason and "attained" not in found.reason


def _pasted(reason):
    """The argument that a reason shows, as a user copies it from a narrow screen into a call."""
    shown = textwrap.fill(reason.partition("hypotheses=")[2], 20, break_long_words=False)
    return eval(f"({shown})", {"jnp": jnp})


def test_the_hypothesis_that_a_reason_shows_can_be_pasted():
    over = {"p": jb.Simplex("d"), "q": jb.Simplex("d")}
    chi = lambda p, q: jnp.log(q[0]) - jnp.log(q[0]) + 0 * p[0] + jnp.sum(p)
    found = _judged(chi, "<=", 2.0, over)
    assert '{"q>0": jnp.all(i["q"] > 0)}' in found.reason
    again = _judged(chi, "<=", 2.0, over, hypotheses=_pasted(found.reason))
    assert again.status == "holds", again.reason


def test_a_nan_away_from_zero_is_said_with_a_hypothesis_in_its_whole_form():
    root, over = (lambda x: jnp.sqrt(x)), {"x": jb.Box(-1, 1, ())}
    found = _judged(root, "<=", 3.0, over)
    assert "evaluate gives NaN on" in found.reason
    again = _judged(root, "<=", 3.0, over, hypotheses=_pasted(found.reason))
    assert again.status == "holds", again.reason


def test_two_arrays_whose_zeros_give_nan_are_named_together():
    over = {"p": jb.Simplex("d"), "q": jb.Simplex("d")}
    naive = lambda p, q: jnp.sum(p * jnp.log(p / q))
    found = _judged(naive, "<=", lambda p, q: jnp.sum((p - q) ** 2 / q), over)
    assert '"p>0": jnp.all(i["p"] > 0), "q>0": jnp.all(i["q"] > 0)}' in found.reason
    again = _judged(naive, "<=", lambda p, q: jnp.sum((p - q) ** 2 / q), over,
                    hypotheses=_pasted(found.reason))  # fmt: skip
    assert again.status == "holds", again.reason


def test_where_all_is_nan_no_hypothesis_is_advised():
    found = _judged(lambda x: jnp.nan * jnp.sum(x), "<=", 1.0, {"x": jb.Reals("d")})
    assert "gave NaN, which is every one" in found.reason and "hypotheses" not in found.reason
