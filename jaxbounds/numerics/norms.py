"""The matrix norms that the papers use, and projections onto balls of two norms.

The papers use the same subscripts for two families of norms. The functions of this module have
distinct names for the two families:

* entrywise norms `entrywise_norm(a, q, p)`: the l_p norm of the vector of the columns' l_q norms;
* induced norms `induced_norm(a, p, q)`: sup ||a x||_q / ||x||_p.

In the multi-head paper ||X||_{1,infinity} and ||X||_{2,infinity} are *induced* norms of x -> X x,
from l_1 or l_2 to l_infinity. The first norm, ||X||_{1,infinity}, is the largest absolute entry.
The second norm, ||X||_{2,infinity}, is the largest l_2 norm of a row. All gradients are finite,
because each norm takes the subgradient zero at zero.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused

Scalar = Float[Array, ""]


def vector_norm(x: Float[Array, "... n"], p: float = 2, /) -> Float[Array, "..."]:
    """Return the l_p norm along the last axis for 1 <= p <= infinity; its gradient at 0 is 0.

    Raises:
        Refused: if p < 1 (not a norm).
    """
    if not p >= 1:
        raise Refused(f"p must be at least 1 (below 1, l_p is no norm), got p={p}. Try p=1 or p=2")
    if p == math.inf:
        return jnp.max(jnp.abs(x), axis=-1, initial=0.0)
    if p == 1 or x.shape[-1] == 1:
        return jnp.sum(jnp.abs(x), axis=-1)
    # A division by the largest entry keeps the powers finite. The inner `where` keeps the
    # derivative of the root finite at x = 0.
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis=-1, initial=0.0, keepdims=True))
    scale = jnp.where(largest > 0, largest, 1.0)
    total = jnp.sum(jnp.abs(x / scale) ** p, axis=-1)
    zero = total == 0
    root = jnp.where(zero, 1.0, total) ** (1.0 / p)
    return jnp.where(zero, 0.0, root * scale[..., 0])


def frobenius_norm(a: Float[Array, "m n"], /) -> Scalar:
    """Return the Frobenius norm: the l_2 norm of all entries."""
    return vector_norm(a.ravel())


def entrywise_norm(a: Float[Array, "m n"], q: float, p: float, /) -> Scalar:
    """Return ||A||_{q,p}: the l_p norm of the vector of the l_q norms of A's columns.

    Pass the transpose of A to use the norms of rows instead of columns.
    """
    return vector_norm(vector_norm(a.T, q), p)


def max_entry(a: Float[Array, "m n"], /) -> Scalar:
    """Return max |A_ij|, the induced 1 -> infinity norm (paper multihead: ||A||_{1,infinity})."""
    return jnp.max(jnp.abs(a))


def max_row_norm(a: Float[Array, "m n"], /) -> Scalar:
    """Return max_i ||A_i||_2, the induced 2 -> infinity norm (multihead's ||A||_{2,infinity})."""
    return jnp.max(vector_norm(a))


def spectral_norm(a: Float[Array, "m n"], /) -> Scalar:
    """Return the spectral norm of a matrix: its largest singular value."""
    return jnp.max(jnp.linalg.svd(a, compute_uv=False), initial=0.0)


def dual_exponent(p: float, /) -> float:
    """Return the dual exponent p*, which satisfies 1/p + 1/p* = 1."""
    if p == 1:
        return math.inf
    return 1.0 if p == math.inf else p / (p - 1.0)


def induced_norm(a: Float[Array, "m n"], p: float, q: float, /) -> Scalar:
    """Return sup over x of ||A x||_q / ||x||_p, for exponents (p, q) with an exact formula.

    For p = 1 the norm is the largest l_q norm of a column. For q = infinity the norm is the largest
    l_{p*} norm of a row, with 1/p + 1/p* = 1. For p = q = 2 the norm is the largest singular value.
    For p = infinity the function enumerates the sign vectors x of at most 16 columns.

    Raises:
        Refused: for another pair (p, q), whose norm is NP-hard to compute in general; for more than
            16 columns with p = infinity; and for p or q below 1.
    """
    import chex  # slow to import

    chex.assert_rank(a, 2)
    if min(p, q) < 1:
        raise Refused(f"p and q must be at least 1, got p={p}, q={q}. Try p=2, q=2")
    if p == 1:
        return jnp.max(vector_norm(a.T, q))
    if q == math.inf:
        return jnp.max(vector_norm(a, dual_exponent(p)))
    if p == 2 and q == 2:
        return spectral_norm(a)
    if p == math.inf:
        columns = a.shape[1]
        if columns > 16:
            raise Refused(
                f"the infinity -> {q} norm enumerates 2^columns sign vectors, for at most 16 "
                f"columns, got columns={columns}. Try the sum of the column l_{q} norms as a bound"
            )
        bits = (jnp.arange(2 ** max(columns - 1, 0))[:, None] >> jnp.arange(columns)[None, :]) & 1
        signs = 1.0 - 2.0 * bits.astype(a.dtype)
        return jnp.max(vector_norm(signs @ a.T, q))
    raise Refused(
        f"the induced {p} -> {q} norm has no closed form here, got p={p}, q={q}. Try "
        "p=1, q=inf, p=q=2 or p=inf, or search for a lower estimate"
    )


@jax.jit
def project_rows(a: Float[Array, "*batch n"], radius: float | Array, /) -> Float[Array, "*batch n"]:
    """Return the nearest array whose rows (along the last axis) have l_2 norms <= `radius`."""
    norm = vector_norm(a)[..., None]
    return a * jnp.where(norm > radius, radius / jnp.where(norm > 0, norm, 1.0), 1.0)


@jax.jit
def project_l1(x: Float[Array, "*batch n"], radius: float | Array, /) -> Float[Array, "*batch n"]:
    """Return the nearest array whose rows (along the last axis) have l_1 norms <= `radius`."""
    absolute = jnp.abs(x)
    ordered = -jnp.sort(-absolute, axis=-1)
    count = jnp.arange(1, x.shape[-1] + 1).astype(x.dtype)
    shortfall = (jnp.cumsum(ordered, axis=-1) - radius) / count.reshape((1,) * (x.ndim - 1) + (-1,))
    # The soft threshold is the last shortfall that is smaller than the entry at its index.
    active = jnp.sum((ordered > shortfall).astype(jnp.int32), axis=-1, keepdims=True)
    last = jnp.maximum(active - 1, 0)
    threshold = jnp.maximum(jnp.take_along_axis(shortfall, last, axis=-1), 0.0)
    return jnp.sign(x) * jnp.maximum(absolute - threshold, 0.0)
