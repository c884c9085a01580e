"""Norms against loops and random maximisation in numpy, which share no code with the library."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from jaxbounds.numerics import norms

MATRIX = np.random.default_rng(0).normal(size=(3, 4))


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
def test_vector_norm_is_numpys(p, x64):
    rows = norms.vector_norm(jnp.asarray(MATRIX), p)
    np.testing.assert_allclose(rows, [np.linalg.norm(row, p) for row in MATRIX], rtol=1e-14)


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
def test_vector_norm_has_finite_derivatives_at_zero(p, x64):
    zero = jnp.zeros(3)
    assert np.all(np.isfinite(jax.grad(lambda x: norms.vector_norm(x, p))(zero)))
    assert norms.vector_norm(zero, p) == 0
    assert norms.vector_norm(jnp.asarray([1e200, 1e200]), 2) == pytest.approx(2**0.5 * 1e200)


def test_vector_norm_derivative_is_the_unit_vector(x64):
    x = jnp.asarray(MATRIX[0])
    np.testing.assert_allclose(
        jax.grad(norms.vector_norm)(x), MATRIX[0] / np.linalg.norm(MATRIX[0]), rtol=1e-13
    )


def test_entrywise_norm_runs_over_columns(x64):
    columns = [np.linalg.norm(MATRIX[:, j], 1) for j in range(4)]
    assert norms.entrywise_norm(jnp.asarray(MATRIX), 1, 2) == pytest.approx(np.linalg.norm(columns))


def test_the_papers_induced_norms(x64):
    assert norms.max_entry(jnp.asarray(MATRIX)) == np.max(np.abs(MATRIX))
    longest = max(np.linalg.norm(row) for row in MATRIX)
    assert norms.max_row_norm(jnp.asarray(MATRIX)) == pytest.approx(longest, rel=1e-14)


@pytest.mark.parametrize(
    "p, q", [(1, 1), (1, 2), (1, np.inf), (2, np.inf), (3, np.inf), (2, 2), (np.inf, 1)]
)
def test_induced_norm_dominates_samples_and_is_attained(p, q, x64):
    value = float(norms.induced_norm(jnp.asarray(MATRIX), p, q))
    rng = np.random.default_rng(1)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    dual = {np.inf: 1.0, 3: 1.5, 2: 2.0}.get(p, 2.0)
    aligned = np.sign(MATRIX) * np.abs(MATRIX) ** (dual - 1)
    singular = np.linalg.svd(MATRIX)[2]
    points = np.concatenate([rng.normal(size=(2000, 4)), np.eye(4), signs, aligned, singular])
    ratios = [np.linalg.norm(MATRIX @ x, q) / np.linalg.norm(x, p) for x in points]
    assert max(ratios) <= value * (1 + 1e-12)
    assert max(ratios) >= value * (1 - 1e-9)


def test_induced_norm_refuses_what_it_cannot_do(x64):
    with pytest.raises(ValueError, match="no closed form"):
        norms.induced_norm(jnp.eye(2), 2, 1)
    with pytest.raises(ValueError, match="at most 16 columns"):
        norms.induced_norm(jnp.eye(17), np.inf, 1)
    with pytest.raises(ValueError, match="at least 1"):
        norms.induced_norm(jnp.eye(2), 0.5, 1)


def _nearest(target, constraint):
    """The projection by a general solver: independent of sorting and of singular values."""
    found = optimize.minimize(
        lambda x: np.sum((x - target.ravel()) ** 2),
        0.1 * target.ravel(),
        constraints={"type": "ineq", "fun": constraint},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x.reshape(target.shape)


def test_projection_onto_the_l1_ball(x64):
    target = MATRIX[0] * 2
    expected = _nearest(target, lambda x: 1.0 - np.sum(np.abs(x)))
    np.testing.assert_allclose(norms.project_l1(jnp.asarray(target), 1.0), expected, atol=1e-5)
    inside = jnp.asarray([0.1, -0.2])
    np.testing.assert_array_equal(norms.project_l1(inside, 1.0), inside)


def test_projection_of_rows(x64):
    projected = np.asarray(norms.project_rows(jnp.asarray(MATRIX), 0.5))
    np.testing.assert_allclose(np.linalg.norm(projected, axis=1), 0.5, rtol=1e-14)
    cosine = np.sum(projected * MATRIX, 1) / (0.5 * np.linalg.norm(MATRIX, axis=1))
    np.testing.assert_allclose(cosine, 1, rtol=1e-14)
