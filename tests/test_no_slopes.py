"""Claims that JAX cannot differentiate: each door answers as it does for any other."""

import jax
import jax.numpy as jnp
import pytest

import jaxbounds as jb
from jaxbounds.claims.statements import Domain, Form, Sides, Statement

SMALL = jb.Budget(samples=32, restarts=4, steps=40)


def root(x):
    """Heron's square root, until it stands still: a loop of unknown length."""
    still = lambda s: jnp.abs(s * s - x) > 1e-13 * (1 + x)
    return jax.lax.while_loop(still, lambda s: (s + x / s) / 2, (x + 1) / 2)


def scaled(x):
    """x (1 + x), one factor after the other into one place."""
    place = jnp.array([0, 0])
    return jnp.ones(1).at[place].mul(jnp.stack([x, 1 + x]))[0]


ABOUT = {"over": {"x": jb.Box(0.25, 4)}, "budget": SMALL}


@pytest.mark.parametrize("lhs, true, false", [
    (root, lambda x: (1 + x) / 2, lambda x: 0.99 * (1 + x) / 2),
    (scaled, lambda x: 5 * x, lambda x: 4.9 * x),
])  # fmt: skip
def test_a_violation_is_looked_for_by_moves(lhs, true, false):
    assert not jb.find_violation(lhs, true, **ABOUT)
    found = jb.find_violation(lhs, false, **ABOUT)
    assert found and found.ratio == pytest.approx(1 / 0.99 if lhs is root else 5 / 4.9, rel=1e-6)


def test_a_constant_is_found_without_them():
    pytest.importorskip("flint")
    found = jb.sharp_constant(root, lambda x: (1 + x) / 2, seconds=1, **ABOUT)
    assert 1 - 1e-5 < found.largest.ratio <= 1


def test_a_proof_of_it_is_undecided_or_right():
    pytest.importorskip("flint")

    def claim(bound):
        def evaluate(instance, size):
            rhs = bound * (1 + instance["x"]) / 2
            return Sides(root(instance["x"]), {"printed": rhs, "control": 0.5 * rhs})

        return Statement(
            id="own.heron", label="heron", formula="sqrt(x) <= (1 + x)/2", kind="inequality",
            over={"x": jb.Box(0.25, 4)}, sizes=({},), evaluate=evaluate,
            forms=(Form(name="printed"),), control="half",
        )  # fmt: skip

    box = Domain(name="D", chart=lambda p, size: {"x": p[0]}, size={}, lower=(0.5,), upper=(2.0,))
    true, false = (jb.prove(claim(bound), "printed", box, seconds=2) for bound in (1.0, 0.9))
    assert true.word in ("undecided", "proved on D", "proved on D as coded")
    assert false.word in ("undecided", "false on D")
