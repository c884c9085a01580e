"""Gradient and Hessian bounds of Section 3 and Appendix A, as printed and as sharpened.

The argument `radius` is R, the largest token norm, and `scores` is sum_t ||X u_t||_infinity. The
argument `size` is ||theta||_{2,infinity} in Corollary 1. Lemma 6 and the sharpened bounds need only
max_h ||U_h||_F as `size` (sharpening S7).

Codes such as S1 and E14 name sharpenings and errata; `jaxbounds show multihead.S1` explains S1.
"""

import math

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.multihead.model import Readout
from jaxbounds.numerics.arrays import array_module

C_STAR = 4 / (3 * math.sqrt(3))
"""The least constant c* with |kappa_3(A, B, B)| <= c* max|A| max|B|^2: c* = 4 / (3 sqrt(3)).

Here kappa_3(A, B, B) is the third central moment of random variables A and B with values in bounded
intervals (sharpening S3). The sharpened Hessian bounds contain the factor c*; a larger c* makes
these bounds larger.
"""


def covariance_bound(scores: Float[Array, " T"], radius: ArrayLike, /) -> Float[Array, ""]:
    """Return 2 ||X u||_infinity R, which bounds ||X^T phi' X u|| for one vector u, equation (42).

    Here phi' is the derivative of the softmax at one query's attention logits.
    """
    return 2 * covariance_sharp(scores, radius)


def covariance_sharp(scores: Float[Array, " T"], radius: ArrayLike, /) -> Float[Array, ""]:
    """Return ||X u||_infinity R, half of the bound (42) (sharpening S1).

    The vector X^T phi' X u is a covariance of tokens, and a covariance is at most the product of
    the standard deviations.
    """
    return jnp.max(jnp.abs(scores)) * radius


def covariance_half_range(scores: Float[Array, " T"], radius: ArrayLike, /) -> Float[Array, ""]:
    """Return R (max X u - min X u) / 2, a smaller bound than equation (42) (sharpening S1).

    Popoviciu's inequality bounds the standard deviation of X u by half of the range of X u.
    """
    return (jnp.max(scores) - jnp.min(scores)) / 2 * radius


def third_moment_bound(
    first: Float[Array, " S"], second: Float[Array, " S"], /
) -> Float[Array, ""]:
    """Return c* max|A| max|B|^2 >= |kappa_3(A, B, B)|, the third central moment (sharpening S3)."""
    return C_STAR * jnp.max(jnp.abs(first)) * jnp.max(jnp.abs(second)) ** 2


def summed_scores(
    projection: Float[Array, "T d"], tokens: Float[Array, "T d"], /
) -> Float[Array, ""]:
    """Return sum_t ||X u_t||_infinity, the argument `scores` of the bounds in this module."""
    return jnp.sum(jnp.max(jnp.abs(tokens @ projection.T), axis=0))


def outer_gradient_bound(radius: ArrayLike, /, *, T: int, readout: Readout = "full") -> ArrayLike:
    """Return the bound sqrt(T) R on ||grad_U Phi||, equation (37).

    The bound is T R for the read-out by pooling (erratum E14), and R for the last token.
    """
    return {"full": math.sqrt(T), "pooling": float(T), "last": 1.0}[readout] * radius


def readout_inner_gradient(
    radius: ArrayLike, size: ArrayLike, /, *, T: int, readout: Readout = "full"
) -> ArrayLike:
    """Return a bound on ||grad_W Phi||_F: R^2 ||u|| times `outer_gradient_bound` (sharpening S1).

    For U = 1_T u^T or e_T u^T, this bound is `inner_gradient_sharp` with R ||u|| in place of ||X
    u||_infinity.
    """
    return outer_gradient_bound(radius, T=T, readout=readout) * radius**2 * size


def inner_gradient_bound(radius: ArrayLike, scores: ArrayLike, /) -> ArrayLike:
    """Return the bound 2 R^2 sum_t ||X u_t||_infinity on ||grad_W Phi||_F, equation (43)."""
    return 2 * inner_gradient_sharp(radius, scores)


def inner_gradient_sharp(radius: ArrayLike, scores: ArrayLike, /) -> ArrayLike:
    """Return R^2 sum_t ||X u_t||_infinity, half of the bound (43) (sharpening S1)."""
    return radius**2 * scores


def gradient_bound(radius: ArrayLike, scores: ArrayLike, /, *, T: int) -> ArrayLike:
    """Return the sum of the bounds (43) and (37); the sum bounds ||grad Phi||, equation (44)."""
    return inner_gradient_bound(radius, scores) + outer_gradient_bound(radius, T=T)


def gradient_sharp(radius: ArrayLike, scores: ArrayLike, /, *, T: int) -> ArrayLike:
    """Return sqrt(T R^2 + (R^2 sum_t ||X u_t||_infinity)^2), a bound on ||grad Phi||.

    The gradients in U and W are orthogonal, so their squares add (sharpening S2).
    """
    inner, outer = inner_gradient_sharp(radius, scores), outer_gradient_bound(radius, T=T)
    return jnp.sqrt(outer**2 + inner**2)


def two_block_norm(inner: ArrayLike, mixed: ArrayLike, /) -> Float[Array, ""]:
    """Return (c + sqrt(c^2 + 4 b^2)) / 2, a bound on the spectral norm of [[0, B], [B^T, C]].

    `inner` is a number c >= ||C||, and `mixed` is a number b >= ||B|| (sharpening S5).
    """
    return (jnp.sqrt(inner**2 + 4 * mixed**2) + inner) / 2


def hessian_bound(
    radius: ArrayLike, entry: ArrayLike, scores: ArrayLike, /, *, T: int, d: int
) -> ArrayLike:
    """Return the printed bound (58) on ||Hess Phi||.

    The argument `entry` is ||X||_{1,infinity} = max |X_tj|, the largest entry of the tokens.
    """
    inner = 6 * d * radius**2 * entry**2 * scores
    return inner + 2 * math.sqrt(T * d) * radius**2 * entry


def inner_hessian_sharp(radius: ArrayLike, scores: ArrayLike, /) -> ArrayLike:
    """Return the bound c* R^4 sum_t ||X u_t||_infinity on ||Hess_WW Phi|| (sharpening S4)."""
    return C_STAR * radius**4 * scores


def mixed_hessian_sharp(radius: ArrayLike, /, *, T: int) -> ArrayLike:
    """Return the bound sqrt(T) R^3 on ||Hess_UW Phi|| (sharpening S5).

    The square of ||Hess_UW Phi|| is at most sum_t ||x_t||^2 ||Cov_t||^2, where Cov_t is the
    covariance of the tokens under the attention weights of query t.
    """
    return math.sqrt(T) * radius**3


def hessian_sharp(radius: ArrayLike, scores: ArrayLike, /, *, T: int) -> ArrayLike:
    """Return sharpening S5's bound on ||Hess Phi||, from bounds on the (W, W) and (U, W) blocks."""
    return two_block_norm(inner_hessian_sharp(radius, scores), mixed_hessian_sharp(radius, T=T))


def beta1(size: ArrayLike, radius: ArrayLike, *, T: int) -> ArrayLike:
    """Return beta_1 = sqrt(T) R (2 R^2 size + 1), the gradient bound (46) of Corollary 1 (1)."""
    return math.sqrt(T) * radius * (2 * radius**2 * size + 1)


def beta3(size: ArrayLike, radius: ArrayLike, *, T: int, d: int) -> ArrayLike:
    """Return beta_3 = 2 sqrt(T d) R^3 (3 sqrt(d) R^2 size + 1) of (60) and Corollary 1 (3)."""
    return 2 * math.sqrt(T * d) * radius**3 * (3 * math.sqrt(d) * radius**2 * size + 1)


def beta2(size: ArrayLike, radius: ArrayLike, *, T: int, d: int, H: ArrayLike) -> ArrayLike:
    """Return beta_2 = beta_3 / sqrt(H) + beta_1^2 / 4, the smoothness of Corollary 1 (2)."""
    return beta3(size, radius, T=T, d=d) / H**0.5 + beta1(size, radius, T=T) ** 2 / 4


def beta1_sharp(squares: ArrayLike, radius: ArrayLike, *, T: int) -> ArrayLike:
    """Return beta_1# = sqrt(T) R sqrt(1 + R^4 m), the sharpened beta_1 (sharpening S2).

    Here m = `squares` is the mean of ||U_h||_F^2 over the heads. The gradients of different heads
    are orthogonal, so the bound contains the root mean square over heads instead of the maximum.
    """
    xp = array_module(squares, radius)
    return math.sqrt(T) * radius * xp.sqrt(1 + radius**4 * squares)


def beta3_sharp(size: ArrayLike, radius: ArrayLike, *, T: int) -> ArrayLike:
    """Return beta_3# = sqrt(T) R^3 (c* R^2 size + 1) with c* = 4 / (3 sqrt(3)) (sharpening S6)."""
    return math.sqrt(T) * radius**3 * (C_STAR * radius**2 * size + 1)


def beta2_sharp(
    size: ArrayLike, squares: ArrayLike, radius: ArrayLike, *, T: int, H: ArrayLike
) -> ArrayLike:
    """Return beta_2# = beta_3# / sqrt(H) + beta_1#^2 / 4, the sharpened beta_2 (sharpening S6)."""
    return beta3_sharp(size, radius, T=T) / H**0.5 + beta1_sharp(squares, radius, T=T) ** 2 / 4


def self_bounded_smoothness(
    size: ArrayLike, squares: ArrayLike, radius: ArrayLike, *, T: int, H: ArrayLike
) -> ArrayLike:
    """Return s = beta_3# / sqrt(H) + beta_1#^2, which gives ||Hess L|| <= s L.

    The bound uses l'' <= |l'| <= l for the logistic loss l.
    """
    return beta3_sharp(size, radius, T=T) / H**0.5 + beta1_sharp(squares, radius, T=T) ** 2


def convexity_horizon(curvature: ArrayLike, /) -> ArrayLike:
    """Return sec(sqrt(k) / 2), a factor that bounds a function g along a segment (sharpening S8).

    If g'' >= -k g on the segment and k < pi^2, g is at most this factor times its larger end value
    (Sturm's comparison theorem). Proposition 4 has k <= 1/2 and prints the factor 4/3.
    """
    return 1 / jnp.cos(jnp.sqrt(curvature) / 2)
