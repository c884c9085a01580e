"""Steep functions beside a set: floats that meet a set up to rounding refute no true claim."""

import jax.numpy as jnp
import pytest

import jaxbounds as jb


def total_variation(p, q):
    """Half the l_1 distance of two laws."""
    return jnp.sum(jnp.abs(p - q)) / 2.0


def le_cam(p, q):
    """Le Cam's bound; its root is steep where the laws are close."""
    return jnp.sqrt(jnp.maximum(1.0 - jnp.sum(jnp.sqrt(p * q)) ** 2, 0.0))


def chord(x, y):
    """The distance of two points of the sphere."""
    return jnp.linalg.norm(x - y)


def angle(x, y):
    """The angle between two points of the sphere; it is steep where they are close."""
    return jnp.arccos(jnp.clip(x @ y, -1.0, 1.0))


LAWS = {"p": jb.Simplex("d"), "q": jb.Simplex("d")}
POINTS = {"x": jb.Sphere(1, "d"), "y": jb.Sphere(1, "d")}
CLAIMS = {
    "Le Cam": (
        total_variation, le_cam, lambda p, q: 0.95 * le_cam(p, q), LAWS, "disjoint laws",
    ),
    "chord and angle": (chord, angle, lambda x, y: 0.95 * angle(x, y), POINTS, "x = y"),
}  # fmt: skip


@pytest.mark.default_cases("Le Cam-3")
@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("name", CLAIMS)
def test_floats_beside_a_set_refute_no_true_claim(name, seed):
    left, right, twin, over, equality = CLAIMS[name]
    claim = jb.claim("mine.beside", left, "<=", right, over=over, sizes={"d": (2, 4)},
                     equality=equality, false={"0.95": twin})  # fmt: skip
    true, false = jb.falsify(claim, seed=seed)
    assert (true.status != "fails", false.status) == (True, "fails"), (true, false)
