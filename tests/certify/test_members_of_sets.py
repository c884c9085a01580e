"""A disproof is about the points of a set, and not about floats that meet it up to rounding."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds import testing

TENTHS = {"p": np.full(10, 0.1)}
UNIT = {"x": np.array([0.6, 0.8])}


def claim(lhs, rhs, over=None, hypotheses=None, sample=None):
    side = lambda i: jnp.broadcast_to(
        jnp.asarray(rhs(**i) if callable(rhs) else rhs), lhs(**i).shape
    )
    return testing.claim(
        lambda i: lhs(**i), side, kind="identity", over=over, hypotheses=hypotheses, sample=sample
    )


def tolerant(i, s):
    return {"adds up to 1": jnp.abs(jnp.sum(i["p"]) - 1) <= 1e-9}


total = lambda p: jnp.sum(p) * jnp.sum(p) - 1
square = lambda x: 1 - x @ x
TRUE = {
    "simplex": (claim(total, 0.0, {"p": jb.Simplex(10)}), {"p": np.full(10, 0.1)}),
    "off by 3e-13": (claim(total, 0.0, {"p": jb.Simplex(2)}), {"p": np.array([0.5, 0.5 + 3e-13])}),
    "sphere": (claim(square, 0.0, {"x": jb.Sphere(1, 2)}), {"x": np.array([0.6, 0.8 + 1e-13])}),
    "a tolerance": (
        claim(total, 0.0, hypotheses=tolerant, sample=lambda key, size: {"p": jnp.ones(2) / 2}),
        {"p": np.array([0.5, 0.5 + 4e-10])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_what_holds_on_the_set_is_not_disproved(name):
    found = jb.disprove(TRUE[name][0], "printed", TRUE[name][1], {})
    assert found.word == "undecided"


def test_what_is_false_on_the_set_is_disproved():
    over = {"p": jb.Simplex(2)}
    half = {"p": np.array([0.5, 0.5])}
    off = claim(lambda p: p @ p, 0.25, over)
    assert jb.disprove(off, "printed", half, {}).word.startswith("disproved")
    little = claim(lambda p: 1e-8 * p[0] * p[1], 0.0, over)  # small, and no rounding
    assert jb.disprove(little, "printed", half, {}).word.startswith("disproved")
