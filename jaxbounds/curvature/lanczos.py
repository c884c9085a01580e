"""Extreme eigenvalues of a symmetric operator with residuals, sound on rank-deficient spectra.

Lanczos started from one vector stops being a three-term recurrence when the Krylov space is
exhausted: the next off-diagonal entry is rounding noise, and dividing by it produces vectors that
are not orthogonal to the old ones and eigenvalues that do not exist. Loss Hessians of small data
sets are rank-deficient, so this is the normal case. Here every new vector is orthogonalised twice
against all earlier ones, and when what is left is rounding noise the iteration continues from a
fresh random direction in the orthogonal complement (which also finds repeated eigenvalues).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Operator = Callable[[Float[Array, " n"]], Float[Array, " n"]]


class Extremes(NamedTuple):
    """Both ends of a spectrum.

    Attributes:
        minimum: the least eigenvalue found.
        maximum: the greatest eigenvalue found.
        residual_minimum: ||A v - minimum v|| for its unit vector: an eigenvalue of A lies within
            this distance of `minimum`. Only a dense computation shows that it is the least.
        residual_maximum: the same for `maximum`.
        iterations: products used; 0 for a dense computation.
        converged: both residuals are below the tolerance times the spectral scale.
    """

    minimum: Float[Array, ""]
    maximum: Float[Array, ""]
    residual_minimum: Float[Array, ""]
    residual_maximum: Float[Array, ""]
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


def dense_extremes(matrix: Float[Array, "n n"], /) -> Extremes:
    """Both ends of the spectrum of a symmetric matrix, by a full eigendecomposition."""
    values, vectors = jnp.linalg.eigh(matrix)
    residuals = jnp.linalg.norm(matrix @ vectors - vectors * values[None, :], axis=0)
    scale = jnp.max(jnp.abs(values))
    allowed = 1e3 * jnp.finfo(matrix.dtype).eps * matrix.shape[0] * scale
    return Extremes(
        minimum=values[0],
        maximum=values[-1],
        residual_minimum=residuals[0],
        residual_maximum=residuals[-1],
        iterations=jnp.int32(0),
        converged=jnp.maximum(residuals[0], residuals[-1]) <= allowed,
    )


def _basis(operator: Operator, size: int, key: jax.Array, iterations: int, dtype: jnp.dtype):
    """An orthonormal Krylov basis (rows), its images, and the projection of the operator on it."""
    eps = jnp.finfo(dtype).eps
    noise = jax.random.normal(key, (iterations, size), dtype)

    def orthogonal(vector, basis):
        for _ in range(2):
            vector = vector - basis.T @ (basis @ vector)
        return vector

    def step(carry, inputs):
        basis, images, vector, scale = carry
        k, fresh = inputs
        image = operator(vector)
        basis, images = basis.at[k].set(vector), images.at[k].set(image)
        rest = orthogonal(image, basis)
        scale = jnp.maximum(scale, jnp.linalg.norm(image))
        exhausted = jnp.linalg.norm(rest) <= 64 * eps * scale
        rest = jnp.where(exhausted, orthogonal(fresh, basis), rest)
        rest = orthogonal(rest / jnp.linalg.norm(rest), basis)
        return (basis, images, rest / jnp.linalg.norm(rest), scale), None

    start = noise[0] / jnp.linalg.norm(noise[0])
    empty = jnp.zeros((iterations, size), dtype)
    carry = (empty, empty, start, jnp.zeros((), dtype))
    # Entry k+1 of the noise replaces a vector lost at step k; the last one is never used.
    inputs = (jnp.arange(iterations), jnp.roll(noise, -1, axis=0))
    (basis, images, _, _), _ = jax.lax.scan(step, carry, inputs)
    projected = basis @ images.T
    return basis, images, (projected + projected.T) / 2


def lanczos_extremes(
    operator: Operator,
    size: int,
    key: jax.Array,
    /,
    *,
    iterations: int = 200,
    tolerance: float = 1e-8,
    dtype: jnp.dtype | None = None,
) -> Extremes:
    """Both ends of the spectrum of a symmetric `operator` on vectors of length `size`.

    Stores `2 * iterations * size` numbers. The values are Rayleigh quotients: `minimum` is never
    below the least eigenvalue nor `maximum` above the greatest, up to rounding. When
    `iterations >= size` the whole space is spanned and the result is exact.

    Args:
        operator: a linear map, `v -> A v`.
        size: the dimension.
        key: the random start.
        iterations: products with `operator`, capped at `size`.
        tolerance: relative to the spectral scale, for `converged`.
        dtype: of the vectors; the default float type unless given.

    Raises:
        ValueError: if size or iterations is below 1.
    """
    if size < 1 or iterations < 1:
        raise ValueError(f"size and iterations must be positive, got {size} and {iterations}")
    iterations = min(iterations, size)
    dtype = jnp.dtype(dtype or jnp.zeros(()).dtype)
    basis, images, projected = _basis(operator, size, key, iterations, dtype)
    values, vectors = jnp.linalg.eigh(projected)
    ends = vectors[:, jnp.array([0, -1])]
    theta = values[jnp.array([0, -1])]
    residual = jnp.linalg.norm(ends.T @ images - theta[:, None] * (ends.T @ basis), axis=1)
    scale = jnp.max(jnp.abs(values))
    finite = jnp.all(jnp.isfinite(theta))
    return Extremes(
        minimum=theta[0],
        maximum=theta[1],
        residual_minimum=residual[0],
        residual_maximum=residual[1],
        iterations=jnp.int32(iterations),
        converged=finite & (jnp.max(residual) <= tolerance * scale),
    )
