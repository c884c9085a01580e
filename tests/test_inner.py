"""Suprema that corners and points with a zero decide; the truth of each is on paper."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb

MANY = np.random.default_rng(3).normal(size=(6, 16, 4))
HEIGHT = np.random.default_rng(23).permutation(12) + 1.0


@pytest.fixture(autouse=True)
def as_a_user():
    """Types and ranks are promoted as in a session of a user."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def test_a_convex_function_is_largest_at_a_corner_of_a_box():
    longest = lambda w: jb.supremum(
        lambda y: jnp.max(jnp.abs(w @ y)), {"y": jb.Box(-1, 1, 4)}, size={}
    )
    with jb.float64_on_cpu():
        found = np.asarray(jax.jit(jax.vmap(longest))(MANY))
    np.testing.assert_allclose(found, np.max(np.sum(np.abs(MANY), -1), -1), rtol=1e-12)


def test_a_convex_function_is_largest_at_a_vertex_of_a_simplex():
    with jb.float64_on_cpu():
        square = lambda p: jnp.sum(HEIGHT * p) ** 2
        found = jax.jit(lambda: jb.supremum(square, {"p": jb.Simplex(12)}, size={}))()
    assert float(found) == pytest.approx(144.0, rel=1e-12)


def test_corners_are_all_extreme_points_where_there_are_few():
    box = {tuple(p) for p in jb.Box(-1, 2, 3).corners({}).tolist()}
    assert box == set(itertools.product((-1.0, 2.0), repeat=3))
    assert jb.Simplex(3).corners({}).tolist() == np.eye(3).tolist()
    assert jb.Box(0, jnp.inf).corners({}) is None and jb.Box(0, 1, 9).corners({}) is None
    assert jb.Ball(1, 2).corners({}) is None
