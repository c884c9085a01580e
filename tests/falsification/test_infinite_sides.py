"""Sides that are infinite by definition satisfy a bound; ball arithmetic decides overflows."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp, rel_entr

import jaxbounds as jb

P = jb.Simplex("d")
PAIR = {"p": P, "q": P}
FEW = jb.Budget(samples=64, restarts=2, steps=20)
LINE = {"x": jb.Box(-5e3, 5e3, "d")}


@pytest.fixture(autouse=True)
def as_a_user():
    """Types and ranks are promoted as in a session of a user."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _judged(lhs, relation, rhs, over, d=2, **given):
    sizes = {"d": d} if any("d" in repr(one) for one in over.values()) else {}
    claim = jb.claim("mine.x", lhs, relation, rhs, over=over, sizes=sizes, budget=FEW, **given)
    return jb.verify(jb.Paper(id="mine", title="Mine", statements=(claim,)))


def _kl(p, q):
    return jnp.sum(rel_entr(p, q))


def test_divergences_that_are_infinite_on_both_sides_satisfy_a_bound():
    over = PAIR | {"W": jb.Each(jb.Simplex(2), "d")}
    rows = _judged(lambda p, q, W: _kl(p @ W, q @ W), "<=", _kl, over,
                   false={"0.98": lambda p, q: 0.98 * _kl(p, q)})  # fmt: skip
    assert [row.status for row in rows] == ["holds", "fails"], rows[0].reason
    assert "instances with an infinite side do not count" in rows[0].reason


@pytest.mark.parametrize("relation, rhs, status", [
    ("<=", -math.inf, "fails"), (">=", math.inf, "fails"), ("<", -math.inf, "fails"),
    ("<=", math.inf, "vacuous"), (">=", -math.inf, "vacuous"),
])  # fmt: skip
def test_an_infinite_bound_of_a_finite_side_is_decided(relation, rhs, status):
    (row,) = _judged(lambda x: jnp.sum(x), relation, rhs, {"x": jb.Box(-1, 1, 2)})
    assert row.status == status, row.reason


def test_two_infinite_sides_are_equal_in_a_strict_claim():
    (row,) = _judged(_kl, "<", lambda p, q: 2 * _kl(p, q) + 1, PAIR)
    assert row.status != "holds", row.reason


def _below(x):
    return jnp.log(jnp.sum(jnp.exp(x)))


def test_a_sum_that_underflows_is_judged_in_ball_arithmetic():
    rows = _judged(_below, ">=", lambda x: jnp.max(x), {"x": jb.Reals("d")},
                   false={"more": lambda x: jnp.max(x) + 1e-3})  # fmt: skip
    assert [row.status for row in rows] == ["holds", "fails"], rows[0].reason


@pytest.mark.parametrize("lowest, expected", [(800.0, "fails"), (5e3, "holds")])
def test_a_claim_that_is_false_only_beyond_floats_fails(lowest, expected):
    """Both sides overflow from 710 on, and differ from `lowest` on."""
    large = lambda x: jnp.exp(jnp.abs(x[0]))
    rows = _judged(lambda x: 0.5 * large(x), "<=",
                   lambda x: large(jnp.clip(x, -lowest, lowest)), LINE)  # fmt: skip
    assert rows[0].status == expected, rows[0].reason


def test_many_overflows_of_a_long_program_never_hold_unasked():
    """The claim is false in a band that few draws meet."""
    band = lambda x: jnp.where(jnp.abs(x[0] - 800) < 20, 2.0, 0.5)
    long = lambda y: jax.lax.fori_loop(0, 400, lambda i, total: total + 0.0, y)
    rows = _judged(lambda x: band(x) * jnp.exp(long(jnp.abs(x[0]))), "<=",
                   lambda x: jnp.exp(jnp.abs(x[0])), LINE)  # fmt: skip
    assert rows[0].status in ("inconclusive", "fails"), rows[0].reason


def test_the_advice_leaves_out_as_little_as_explains_the_nan():
    mixed = lambda p, q, t: _kl(t * p + (1 - t) * q, q)
    mean = lambda p, q, t: t * _kl(p, q) + (1 - t) * _kl(q, p)
    (row,) = _judged(lambda p, q, t: mixed(p, q, t) - 9, "<=", mean, PAIR | {"t": jb.Box(0, 1)})
    assert row.status == "inconclusive"
    assert "an entry of t is an end of Box(lo=0, hi=1" in row.reason
    assert '{"t_inside": jnp.all((0 < i["t"]) & (i["t"] < 1))}' in row.reason


def _variational(p, q, d):
    reach = {"f": jb.Reals("d")}
    return jb.supremum(
        lambda f: p @ f - logsumexp(f, b=q), reach, size={"d": d}, starts=2, steps=40
    )


def test_a_supremum_is_judged_at_the_points_that_its_search_finds():
    """Both sides vanish where p = q, and are infinite where q vanishes."""
    rows = _judged(_variational, "<=", _kl, PAIR, estimates={"lhs": "below"},
                   false={"0.98": lambda p, q: 0.98 * _kl(p, q)})  # fmt: skip
    assert [row.status for row in rows] == ["holds", "fails"], rows[0].reason
    assert rows[0].evidence != "approached"  # the estimate may miss an equality


PLANE = {"x": jb.Ball(1, "d")}
AT_ZERO = {
    "a small constant": (1e-12, "<=", lambda x: jnp.linalg.norm(x)),
    "a strict claim": (lambda x: jnp.sum(x**2), "<", lambda x: 2 * jnp.sum(x**2)),
    "a strict claim whose ratio comes to one": (
        lambda x: jnp.log1p(jnp.abs(x[0])), "<", lambda x: jnp.abs(x[0])
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_ZERO)
def test_a_claim_that_is_false_at_zero_alone_fails(name):
    (row,) = _judged(*AT_ZERO[name], PLANE)
    assert row.status == "fails", row.reason


@pytest.mark.parametrize("tie, status", [(1.0, "fails"), (np.pi, "fails")])
def test_a_strict_claim_with_a_tie_inside_its_set_never_holds(tie, status):
    """The sides are equal at the tie alone; the search rounds its best instances."""
    over = {"x": jb.Box(0, 20)}
    rows = _judged(lambda x: jnp.log(x / tie), "<", lambda x: x / tie - 1, over,
                   hypotheses=lambda x: {"x > 0": x > 0})  # fmt: skip
    assert rows[0].status == status, rows[0].reason


ENTRY, SMALL = {"y": jb.Reals(())}, {"x": jb.Box(-200, -100)}
SATURATED = {
    "a large witness": (lambda y: jnp.tanh(y), ">=", 1.0, {}, {"there_is": ENTRY, "witness": 1e4}),
    "an end": (lambda y: jnp.tanh(y), "=", lambda x: x, {"x": jb.Box(-1, 1)}, {"there_is": ENTRY}),
    "whole numbers": (lambda k: 1 + 0.5 * 0.8**k, "<=", 1.0, {},
                      {"there_is": {"k": jb.Integers(0, 10**7)}}),
    "small factors": (lambda x, t: 5 + t * jnp.log1p(jnp.exp(x / t)), "<=", 5.0, SMALL,
                      {"there_is": {"t": jb.Box(1e-3, 1)}}),
    "underflow": (lambda x: jnp.exp(-x), "=", 0.0, {"x": jb.Box(800, 900)}, {"false": [1.0]}),
    "a flat end": (lambda x: jnp.tanh(x), "=", 1.0, {"x": jb.Box(30, 50)}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SATURATED)
def test_equal_floats_of_different_numbers_do_not_hold(name):
    *sides, over, more = SATURATED[name]
    row, *_ = _judged(*sides, over, **more)
    assert row.status == "inconclusive", row.reason


@pytest.mark.parametrize("shift, status", [(0, "holds"), (22, "fails")])
def test_a_strict_claim_on_a_finite_set_is_decided_at_its_points(shift, status):
    """The cosine of 355 is 1 - 1e-9 / 2, and the cosine of 0 is 1."""
    over = {"n": jb.Integers(1, 400)}
    (row,) = _judged(lambda n: jnp.cos(jnp.asarray(n - shift, float)), "<", 1.0, over)
    assert row.status == status, row.reason


@pytest.mark.parametrize("below, status", [(1.0, "inconclusive"), (0.999, "holds")])
def test_floats_that_saturate_are_no_promised_entry(below, status):
    """In floats tanh(y) is one from y = 20 on."""
    (row,) = _judged(lambda y: jnp.tanh(y), ">=", below, {}, there_is={"y": jb.Reals(())})
    assert row.status == status, row.reason
    assert ("saturate" in row.reason) == (status == "inconclusive")
