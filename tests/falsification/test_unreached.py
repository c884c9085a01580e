"""Strict inequalities whose sides come close: at infinity, beside excluded points, or nowhere."""

import math

import jax
import jax.numpy as jnp
import pytest

import jaxbounds as jb
from jaxbounds.falsification.engine import verdicts_on
from jaxbounds.runs.falsify import by_balls

pytest.importorskip("flint")
X, HALF = {"x": jb.Reals(())}, {"x": jb.Box(0, jnp.inf, ())}
XY = {"x": jb.Box(1, 5, ()), "y": jb.Box(1, 5, ())}
STEP = {"x": jb.Box(1, 3, ()), "eta": jb.Box(0, 2 / 3, ())}
TRUE = {
    "at infinity": (jnp.tanh, 1.0, X, None),
    "two entries": (lambda x: jnp.max(x), lambda x: jax.nn.logsumexp(x), {"x": jb.Reals(2)}, None),
    "at an open end": (
        lambda x, eta: jnp.abs(1 - eta * x), 1.0, STEP,
        lambda eta: {"0 < eta < 2/3": (eta > 0) & (eta < 2 / 3)},
    ),
    "at zero": (
        lambda x: jnp.exp(x) - 1 - x, lambda x: x**2 / 2 / (1 - x / 3), {"x": jb.Box(0, 3, ())},
        lambda x: {"0 < x < 3": (x > 0) & (x < 3)},
    ),
    "at an excluded end": (
        lambda x: (1 + x) / 2, 1.0, {"x": jb.Box(0, 1, ())}, lambda x: {"x < 1": x < 1},
    ),
    "at an undefined end": (
        lambda x: (1 - x**10) / (1 - x), 10.0, {"x": jb.Box(0, 1, ())},
        lambda x: {"x < 1": x < 1},
    ),
    "at one point": (
        lambda x: x * (1 - x), 0.25, {"x": jb.Box(0, 1, ())}, lambda x: {"x != 1/2": x != 0.5},
    ),
    "largest below one": (
        lambda x, y: 2 * x * y, lambda x, y: x * x + y * y, XY,
        lambda x, y: {"apart": jnp.abs(x - y) >= 0.1},
    ),
}  # fmt: skip
FALSE = {
    "at pi": (lambda x: 1 - jnp.exp(-x) * (x - math.pi) ** 2, 1.0, HALF, None),
    "at pi, not at 3": (
        lambda x: 1 - (x - 3) ** 2 * (x - math.pi) ** 2, 1.0, {"x": jb.Box(0, 5, ())},
        lambda x: {"x != 3": x != 3},
    ),
    "beside an excluded point": (
        lambda x: 2 * (1 + 2.0**-16) * x, lambda x: x**2 + (1 + 2.0**-16) ** 2, X,
        lambda x: {"x != 1": x != 1},
    ),
    "at an undefined end, and inside": (
        lambda x: (1 - x) / (1 - x) * (1 - (x - 0.37) ** 2), 1.0, {"x": jb.Box(0, 1, ())},
        lambda x: {"x < 1": x < 1},
    ),
    "again and again": (lambda x: 1 - jnp.sin(x) ** 2 / (1 + x), 1.0, HALF, None),
    "far away": (lambda x: x * (2000 * math.pi - x), (1000 * math.pi) ** 2, X, None),
    "at a closed end": (
        lambda x, y: jnp.exp(x) * y, 2.0, {"x": jb.Box(0, 3, ()), "y": jb.Box(0, 3, ())},
        lambda x, y: {"closed": x + jnp.log(y) <= math.log(2)},
    ),
    "on a sphere": (lambda x: x[0] * x[1], 0.5, {"x": jb.Sphere(1, 2)}, None),
}  # fmt: skip


def _status(lhs, rhs, over, hypotheses):
    more = {"hypotheses": hypotheses} if hypotheses else {}
    claim = jb.claim("mine.strict", lhs, "<", rhs, over=over, **more)
    (verdict,) = verdicts_on(claim, referee=by_balls)
    return verdict.status


@pytest.mark.parametrize("name", TRUE)
def test_a_strict_claim_holds_if_its_sides_only_come_close(name):
    assert _status(*TRUE[name]) == "holds"


@pytest.mark.parametrize("name", FALSE)
def test_a_strict_claim_with_equal_sides_at_a_point_does_not_hold(name):
    assert _status(*FALSE[name]) in ("fails", "inconclusive")


def test_a_strict_claim_fails_where_transcendental_sides_are_equal():
    over = {"u": jb.Reals(2), "v": jb.Reals(2)}
    chord = lambda u, v: (jax.nn.logsumexp(u) + jax.nn.logsumexp(v)) / 2
    assert _status(lambda u, v: jax.nn.logsumexp((u + v) / 2), chord, over, None) == "fails"


def test_a_hypothesis_that_rounding_decides_refutes_nothing():
    """The least singular value of a matrix of rank one is 1e-16 in floats."""
    values = lambda A: jnp.linalg.svd(A, compute_uv=False)
    claim = jb.claim(
        "mine.rank", lambda A: jnp.linalg.norm(jnp.linalg.pinv(A) @ A - jnp.eye(2)), "=", 0.0,
        over={"A": jb.Reals((3, 2))}, hypotheses=lambda A: {"rank": values(A)[-1] > 0},
    )  # fmt: skip
    (verdict,) = verdicts_on(claim, referee=by_balls)
    assert verdict.status == "inconclusive" and "'rank' is open" in verdict.reason


def test_the_stored_instance_of_a_strict_claim_has_equal_sides():
    sides = (jnp.cosh, "<", lambda x: jnp.exp(x**2 / 2))
    claim = jb.claim("mine.cosh", *sides, over={"x": jb.Box(-5, 5, ())})
    found = jb.verify(jb.Paper(id="mine", title="", statements=(claim,)), jobs=1)
    assert found[0].status == "fails"
    (instance, _) = found.instance()
    assert float(instance["x"]) == 0.0


def _root(x):
    return jnp.sqrt(jnp.sum(x**2))


def _soft(x, t):
    return jnp.sign(x) * jnp.maximum(jnp.abs(x) - t, 0)


@pytest.mark.parametrize("threshold", [1.0, 0.7])
@pytest.mark.parametrize("entries", [2, 3])
def test_sides_that_are_equal_on_a_region_are_not_said_to_come_close(threshold, entries):
    over = {"x": jb.Reals(entries), "y": jb.Reals(entries)}
    sides = (
        lambda x, y: _root(_soft(x, threshold) - _soft(y, threshold)),
        lambda x, y: _root(x - y),
    )
    apart = lambda x, y: {"apart": jnp.all(x != y)}
    assert _status(*sides, over, apart) != "holds"
    (found,) = verdicts_on(
        jb.claim("mine.soft", sides[0], "<=", sides[1], over=over), referee=by_balls
    )
    assert found.status == "holds" and found.evidence != "approached"


def test_a_strict_claim_with_a_gap_holds():
    free = lambda s: jax.nn.logsumexp(jnp.concatenate([jnp.zeros(1), s]))
    box = jb.Box(-3, 3, 3)
    sides = lambda s, t: free((s + t) / 2), lambda s, t: (free(s) + free(t)) / 2
    gap = lambda s, t: {"gap": jnp.linalg.norm(s - t) >= 1}
    assert _status(*sides, {"s": box, "t": box}, gap) == "holds"
