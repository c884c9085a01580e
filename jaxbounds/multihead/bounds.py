"""The constants of Section 3 and Appendix A, as printed and sharpened. All constants are explicit.

`size` stands for ||theta||_{2,infinity} (Corollary 1) or max_h ||U_h||_F (Lemma 6, and every
sharpened form: the attention weights W_h do not enter, sharpening S7). R bounds the token norms.
"""

import math

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

C_STAR = 4 / (3 * math.sqrt(3))
"""The optimal constant of |kappa_3(A, B, B)| <= c max|A| max|B|^2 (sharpening S3)."""


def beta1(size: ArrayLike, radius: ArrayLike, *, T: int) -> ArrayLike:
    """sqrt(T) R (2 R^2 size + 1), Corollary 1 (1)."""
    return math.sqrt(T) * radius * (2 * radius**2 * size + 1)


def beta3(size: ArrayLike, radius: ArrayLike, *, T: int, d: int) -> ArrayLike:
    """2 sqrt(T d) R^3 (3 sqrt(d) R^2 size + 1), Corollary 1 (3)."""
    return 2 * math.sqrt(T * d) * radius**3 * (3 * math.sqrt(d) * radius**2 * size + 1)


def beta2(size: ArrayLike, radius: ArrayLike, *, T: int, d: int, H: int) -> ArrayLike:
    """beta_3 / sqrt(H) + beta_1^2 / 4, Corollary 1 (2)."""
    return beta3(size, radius, T=T, d=d) / math.sqrt(H) + beta1(size, radius, T=T) ** 2 / 4


def beta1_sharp(squares: ArrayLike, radius: ArrayLike, *, T: int) -> ArrayLike:
    """sqrt(T) R sqrt(1 + R^4 m) with m the mean over heads of ||U_h||_F^2 (sharpening S2).

    The gradients of different heads are orthogonal, so the root mean square replaces the maximum.
    """
    return math.sqrt(T) * radius * jnp.sqrt(1 + radius**4 * squares)


def beta3_sharp(size: ArrayLike, radius: ArrayLike, *, T: int) -> ArrayLike:
    """sqrt(T) R^3 (c* R^2 size + 1) with c* = 4 / (3 sqrt(3)) (sharpening S6)."""
    return math.sqrt(T) * radius**3 * (C_STAR * radius**2 * size + 1)


def beta2_sharp(
    size: ArrayLike, squares: ArrayLike, radius: ArrayLike, *, T: int, H: int
) -> ArrayLike:
    """beta_3# / sqrt(H) + beta_1#^2 / 4 (sharpening S6)."""
    smooth = beta3_sharp(size, radius, T=T) / math.sqrt(H)
    return smooth + beta1_sharp(squares, radius, T=T) ** 2 / 4


def two_block_norm(inner: ArrayLike, mixed: ArrayLike, /) -> ArrayLike:
    """The spectral norm of [[0, B], [B^T, C]] is at most (c + sqrt(c^2 + 4 b^2)) / 2 (S5)."""
    return (inner + jnp.sqrt(inner**2 + 4 * mixed**2)) / 2


def summed_scores(
    projection: Float[Array, "T d"], tokens: Float[Array, "T d"], /
) -> Float[Array, ""]:
    """sum_t ||X u_t||_infinity."""
    return jnp.sum(jnp.max(jnp.abs(tokens @ projection.T), axis=0))


def convexity_horizon(curvature: ArrayLike, /) -> ArrayLike:
    """Max of g on a segment over max of its ends, if g'' >= -k g there, k < pi^2 (S8).

    By Sturm comparison it is sec(sqrt(k) / 2); Proposition 4 has k <= 1/2 and prints 4/3.
    """
    return 1 / jnp.cos(jnp.sqrt(curvature) / 2)
