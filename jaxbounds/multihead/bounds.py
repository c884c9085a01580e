"""The constants of Section 3 and Appendix A, as printed and sharpened. All constants are explicit.

`radius` is R, the largest token norm. `scores` is sum_t ||X u_t||_infinity (`summed_scores`).
`size` stands for ||theta||_{2,infinity} (Corollary 1) or max_h ||U_h||_F (Lemma 6, and every
sharpened form: the attention weights W_h do not enter, sharpening S7).
"""

import math

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.multihead.model import Readout
from jaxbounds.numerics.arrays import array_module

C_STAR = 4 / (3 * math.sqrt(3))
"""The optimal constant of |kappa_3(A, B, B)| <= c max|A| max|B|^2 (sharpening S3)."""


def covariance_bound(scores: Float[Array, " T"], radius: ArrayLike, /) -> Float[Array, ""]:
    """2 ||X u||_infinity R for the scores X u of one u, eq. (42)."""
    return 2 * covariance_sharp(scores, radius)


def covariance_sharp(scores: Float[Array, " T"], radius: ArrayLike, /) -> Float[Array, ""]:
    """||X u||_infinity R (sharpening S1: X^T phi' X u is a covariance)."""
    return jnp.max(jnp.abs(scores)) * radius


def covariance_half_range(scores: Float[Array, " T"], radius: ArrayLike, /) -> Float[Array, ""]:
    """Half the range of X u, times R (S1 with Popoviciu's inequality)."""
    return (jnp.max(scores) - jnp.min(scores)) / 2 * radius


def third_moment_bound(
    first: Float[Array, " S"], second: Float[Array, " S"], /
) -> Float[Array, ""]:
    """c* max|A| max|B|^2 >= |kappa_3(A, B, B)| (sharpening S3)."""
    return C_STAR * jnp.max(jnp.abs(first)) * jnp.max(jnp.abs(second)) ** 2


def summed_scores(
    projection: Float[Array, "T d"], tokens: Float[Array, "T d"], /
) -> Float[Array, ""]:
    """sum_t ||X u_t||_infinity."""
    return jnp.sum(jnp.max(jnp.abs(tokens @ projection.T), axis=0))


def outer_gradient_bound(radius: ArrayLike, /, *, T: int, readout: Readout = "full") -> ArrayLike:
    """||grad_U Phi|| <= sqrt(T) R, eq. (37); T R for pooling (E14), R for the last token."""
    return {"full": math.sqrt(T), "pooling": float(T), "last": 1.0}[readout] * radius


def readout_inner_gradient(
    radius: ArrayLike, size: ArrayLike, /, *, T: int, readout: Readout = "full"
) -> ArrayLike:
    """||grad_W Phi||_F <= R^2 ||u|| `outer_gradient_bound`, S1; half of (46) where U is full.

    For U = 1_T u^T or e_T u^T: `inner_gradient_sharp` with ||X u||_infinity <= R ||u||.
    """
    return outer_gradient_bound(radius, T=T, readout=readout) * radius**2 * size


def inner_gradient_bound(radius: ArrayLike, scores: ArrayLike, /) -> ArrayLike:
    """||grad_W Phi||_F <= 2 R^2 sum_t ||X u_t||_infinity, eq. (43)."""
    return 2 * inner_gradient_sharp(radius, scores)


def inner_gradient_sharp(radius: ArrayLike, scores: ArrayLike, /) -> ArrayLike:
    """R^2 sum_t ||X u_t||_infinity (S1)."""
    return radius**2 * scores


def gradient_bound(radius: ArrayLike, scores: ArrayLike, /, *, T: int) -> ArrayLike:
    """||grad Phi|| <= (43) + (37), eq. (44)."""
    return inner_gradient_bound(radius, scores) + outer_gradient_bound(radius, T=T)


def gradient_sharp(radius: ArrayLike, scores: ArrayLike, /, *, T: int) -> ArrayLike:
    """sqrt(T R^2 + (R^2 sum_t ||X u_t||_infinity)^2): the two blocks are orthogonal (S2)."""
    inner, outer = inner_gradient_sharp(radius, scores), outer_gradient_bound(radius, T=T)
    return jnp.sqrt(outer**2 + inner**2)


def two_block_norm(inner: ArrayLike, mixed: ArrayLike, /) -> Float[Array, ""]:
    """The spectral norm of [[0, B], [B^T, C]] is at most (c + sqrt(c^2 + 4 b^2)) / 2 (S5)."""
    return (jnp.sqrt(inner**2 + 4 * mixed**2) + inner) / 2


def hessian_bound(
    radius: ArrayLike, entry: ArrayLike, scores: ArrayLike, /, *, T: int, d: int
) -> ArrayLike:
    """||Hess Phi||, eq. (58), with entry = ||X||_{1,infinity} = max |X_tj|."""
    inner = 6 * d * radius**2 * entry**2 * scores
    return inner + 2 * math.sqrt(T * d) * radius**2 * entry


def inner_hessian_sharp(radius: ArrayLike, scores: ArrayLike, /) -> ArrayLike:
    """||Hess_WW Phi|| <= c* R^4 sum_t ||X u_t||_infinity (S4)."""
    return C_STAR * radius**4 * scores


def mixed_hessian_sharp(radius: ArrayLike, /, *, T: int) -> ArrayLike:
    """||Hess_UW Phi|| <= sqrt(T) R^3 (S5): its square is at most sum_t ||x_t||^2 ||Cov_t||^2."""
    return math.sqrt(T) * radius**3


def hessian_sharp(radius: ArrayLike, scores: ArrayLike, /, *, T: int) -> ArrayLike:
    """||Hess Phi|| by its blocks: S4 for the one in W, S5 for the mixed one."""
    return two_block_norm(inner_hessian_sharp(radius, scores), mixed_hessian_sharp(radius, T=T))


def beta1(size: ArrayLike, radius: ArrayLike, *, T: int) -> ArrayLike:
    """sqrt(T) R (2 R^2 size + 1), eq. (46) and Corollary 1 (1)."""
    return math.sqrt(T) * radius * (2 * radius**2 * size + 1)


def beta3(size: ArrayLike, radius: ArrayLike, *, T: int, d: int) -> ArrayLike:
    """2 sqrt(T d) R^3 (3 sqrt(d) R^2 size + 1), eq. (60) and Corollary 1 (3)."""
    return 2 * math.sqrt(T * d) * radius**3 * (3 * math.sqrt(d) * radius**2 * size + 1)


def beta2(size: ArrayLike, radius: ArrayLike, *, T: int, d: int, H: ArrayLike) -> ArrayLike:
    """beta_3 / sqrt(H) + beta_1^2 / 4, Corollary 1 (2)."""
    return beta3(size, radius, T=T, d=d) / H**0.5 + beta1(size, radius, T=T) ** 2 / 4


def beta1_sharp(squares: ArrayLike, radius: ArrayLike, *, T: int) -> ArrayLike:
    """sqrt(T) R sqrt(1 + R^4 m) with m the mean over heads of ||U_h||_F^2 (sharpening S2).

    The gradients of different heads are orthogonal, so the root mean square replaces the maximum.
    """
    xp = array_module(squares, radius)
    return math.sqrt(T) * radius * xp.sqrt(1 + radius**4 * squares)


def beta3_sharp(size: ArrayLike, radius: ArrayLike, *, T: int) -> ArrayLike:
    """sqrt(T) R^3 (c* R^2 size + 1) with c* = 4 / (3 sqrt(3)) (sharpening S6)."""
    return math.sqrt(T) * radius**3 * (C_STAR * radius**2 * size + 1)


def beta2_sharp(
    size: ArrayLike, squares: ArrayLike, radius: ArrayLike, *, T: int, H: ArrayLike
) -> ArrayLike:
    """beta_3# / sqrt(H) + beta_1#^2 / 4 (sharpening S6)."""
    return beta3_sharp(size, radius, T=T) / H**0.5 + beta1_sharp(squares, radius, T=T) ** 2 / 4


def self_bounded_smoothness(
    size: ArrayLike, squares: ArrayLike, radius: ArrayLike, *, T: int, H: ArrayLike
) -> ArrayLike:
    """beta_3# / sqrt(H) + beta_1#^2; times L it bounds ||Hess L||, since l'' <= |l'| <= l (S6)."""
    return beta3_sharp(size, radius, T=T) / H**0.5 + beta1_sharp(squares, radius, T=T) ** 2


def convexity_horizon(curvature: ArrayLike, /) -> ArrayLike:
    """Max of g on a segment over max of its ends, if g'' >= -k g there, k < pi^2 (S8).

    By Sturm comparison it is sec(sqrt(k) / 2); Proposition 4 has k <= 1/2 and prints 4/3.
    """
    return 1 / jnp.cos(jnp.sqrt(curvature) / 2)
