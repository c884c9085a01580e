"""No claim holds whose hypotheses almost no random draw meets, such as an equation."""

import jax
import jax.numpy as jnp
import pytest

import jaxbounds as jb

SQUARE = {"x": jb.Box(0, 1), "y": jb.Box(0, 1)}
THIN = {  # each claim is false, and true at the few points that draws reach
    "an arc": (lambda x, y: x + y, "<=", 1.01, SQUARE, lambda x, y: x**2 + y**2 == 1.0),
    "a band": (lambda x, y: x + y, "<=", 1.4, SQUARE, lambda x, y: jnp.abs(x**2 + y**2 - 1) < 1e-3),
    "a hyperbola": (
        lambda x, y: x + y, ">=", 1.2, SQUARE, lambda x, y: jnp.abs(x * y - 0.3) <= 1e-6,
    ),
    "a simplex in a box": (
        lambda p: jnp.sum(p**2), ">=", 0.6, {"p": jb.Box(0, 1, 3)},
        lambda p: jnp.abs(jnp.sum(p) - 1) < 1e-9,
    ),
}  # fmt: skip
WIDE = {
    "a half space": (
        lambda x: jnp.sum(x), "<=", 2.0, {"x": jb.Box(0, 1, 3)}, lambda x: jnp.sum(x) <= 2,
    ),
    "sorted entries": (
        lambda x: x[0], "<=", lambda x: x[2], {"x": jb.Box(0, 1, 3)},
        lambda x: (x[0] <= x[1]) & (x[1] <= x[2]),
    ),
    "whole numbers": (
        lambda n: n, "<=", 8, {"n": jb.Integers(0, 10)}, lambda n: n == 8,
    ),
}  # fmt: skip


def _judged(lhs, relation, rhs, over, meets):
    arguments = meets.__code__.co_varnames[: meets.__code__.co_argcount]
    names = ", ".join(arguments)
    hypotheses = eval(f"lambda {names}: {{'met': meets({names})}}", {"meets": meets})
    claim = jb.claim("mine.thin", lhs, relation, rhs, over=over, hypotheses=hypotheses)
    (found,) = jb.falsify(claim)
    return found


@pytest.mark.parametrize("name", THIN)
def test_a_claim_on_a_thin_set_does_not_hold(name):
    found = _judged(*THIN[name])
    assert found.status in ("inconclusive", "fails"), found.reason
    assert found.status == "fails" or "in general position" in found.reason


@pytest.mark.parametrize("name", WIDE)
def test_a_claim_with_many_draws_holds(name):
    assert _judged(*WIDE[name]).status == "holds"


def test_an_identity_that_is_off_by_little_does_not_hold():
    over = {"x": jb.Box(24, 100)}
    (found,) = jb.falsify(jb.claim("mine.softplus", jax.nn.softplus, "=", lambda x: x, over=over))
    assert found.status == "inconclusive" and "Try the relation '<='" in found.reason


def test_a_printed_counterexample_is_accepted(tmp_path):
    def claim(**given):
        return jb.claim(
            "mine.indicator", lambda x: jnp.where(x == 0.7, 1.0, 0.0), "<=", 0.0,
            over={"x": jb.OneOf(0.1, 0.7, 0.9)}, **given,
        )  # fmt: skip

    (found,) = jb.falsify(claim())
    assert found.status == "fails"
    paper = jb.Paper(id="mine", title="Mine", statements=(claim(),))
    (verdict,) = jb.verify(paper, out=str(tmp_path / "out"), jobs=1)
    stored = jb.Counterexample(instance={"x": 0.7}, size={}, ratio=verdict.shrunk_ratio)
    (again,) = jb.falsify(claim(expected="fails", note="It is one.", counterexample=stored))
    assert again.status == "fails", again.reason
