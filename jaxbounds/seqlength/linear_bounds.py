"""Logarithms of covering numbers of {x -> W x} with W in R^{k x d}, as the paper bounds them.

All are functions of x = B_w B_x / epsilon, evaluated on the host in float64 for arrays of x, or
traced, x and the dimensions alike. Which norms B_w and B_x bound is part of each docstring. Where
the size is C / epsilon^2, as Theorem 4.1 and Corollary 4.2.1 want it, C is the value at
x = B_w B_x. `at_scale` turns a bound into a function of epsilon, as Dudley's integral wants it.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.renamed import renamed
from jaxbounds.numerics.arrays import Count, array_module, log, real, traced
from jaxbounds.numerics.chaining import LogCovering
from jaxbounds.seqlength.counting import log_counts_signed

Values = Float[np.ndarray, "*shape"] | np.float64


def _checked(x: ArrayLike, **dimensions: Count) -> Any:
    for name, value in dimensions.items():
        if not traced(value) and value < 1:
            raise ValueError(f"{name}={value}, expected at least 1. Try {name}=1")
    if traced(x):
        return x
    scales = np.asarray(x, dtype=np.float64)
    if not (np.isfinite(scales).all() and (scales >= 0).all()):
        raise ValueError(
            f"x = B_w B_x / epsilon = {scales}, expected finite numbers that are not negative;"
            " epsilon may be 0. Try a positive epsilon"
        )
    return scales


def sparsity_needed(x: ArrayLike, /) -> Values | Array:
    """The least whole K with B / (1 + sqrt K) < epsilon, for x = B / epsilon; 0 where x < 1.

    K = floor((x - 1)^2) + 1 <= x^2 for x >= 1, so Lemmas 3.3 and 3.6 need no rounding up.

    Raises:
        ValueError: if x is negative or not finite.
    """
    scale, xp = _checked(x), array_module(x)
    return xp.where(scale < 1, 0.0, xp.floor((xp.maximum(scale, 1.0) - 1.0) ** 2) + 1.0)


def lemma_3_3(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Lemma 3.3, d x^2 ln(2k + 1): ||W||_{1,infinity} <= B_w (columns), ||x||_1 <= B_x.

    Constants explicit.

    Raises:
        ValueError: if k or d is below 1, or x is negative or not finite; so for all functions here.
    """
    return real(d) * _checked(x, k=k, d=d) ** 2 * log(2 * k + 1, x)


def lemma_3_3_ceil(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Lemma 3.3 rounded up, d ceil(x^2) ln(2k + 1): what Maurey's own radius B / sqrt K gives."""
    return real(d) * array_module(x).ceil(_checked(x, k=k, d=d) ** 2) * log(2 * k + 1, x)


def lemma_3_3_sharp(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """The size of the cover that `linear_covers.columns_cover` builds; never above `lemma_3_3`."""
    return real(d) * log_counts_signed(k, sparsity_needed(_checked(x, k=k, d=d)))


def lemma_3_4_leading(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Lemma 3.4, x^2 ln(dk): the leading term with hidden constant 1: not certified.

    True to leading order for ||W^T||_{2,1} <= B_w (rows), ||x||_1 <= B_x; with the printed
    orientation it is false (erratum E3).
    """
    return _checked(x, k=k, d=d) ** 2 * log(d * k, x)


def lemma_3_4_explicit(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Lemma 3.4 with constants: `lemma_3_5_explicit` at the d points B_x e_i, q = 2.

    For ||W^T||_{2,1} <= B_w (rows), ||x||_1 <= B_x. A cover of that size without Lemma 3.5 is
    `linear_covers.cover_by_truncation`.
    """
    return lemma_3_5_explicit(x, k=k, points=d)


def lemma_3_5_explicit(
    x: ArrayLike, /, *, k: Count, points: Count, ratio: float = 2.0
) -> Values | Array:
    """Lemma 3.5 with constants, floor(q x^2) ln(2 k N levels + 1), and 0 for x < 1.

    For ||W^T||_{2,1} <= B_w (rows), ||x_i||_2 <= B_x on N points; q = `ratio` > 1 and levels =
    ceil(log_q(q x^2)) + 1. The cover and the proof are in `correction_covers`; constants explicit.
    """
    scale, xp = _checked(x, k=k, points=points), array_module(x, k, points)
    corrections = ratio * xp.maximum(scale, 1.0) ** 2
    levels = xp.ceil(xp.log2(corrections) / math.log2(ratio)) + 1.0
    size = xp.floor(corrections) * xp.log(2.0 * real(k) * real(points) * levels + 1.0)
    return xp.where(scale < 1, 0.0, size)


RATIOS = (2.0, 1.5, 1.25, 1.1, 1.05, 1.02)
"""The q that `lemma_3_5_sharp` tries: levels cost a logarithm, corrections a factor."""


def lemma_3_5_sharp(x: ArrayLike, /, *, k: Count, points: Count) -> Values | Array:
    """The least `lemma_3_5_explicit` over q in `RATIOS`: nearly x^2 ln(2 k N levels + 1)."""
    sizes = [lemma_3_5_explicit(x, k=k, points=points, ratio=q) for q in RATIOS]
    return array_module(x, k, points).stack(sizes).min(axis=0)


def packing_of_points(x: ArrayLike, /, *, points: Count) -> Values | Array:
    """ln(2^s C(N, s)), s = floor(x^2 / 4): no cover of one row on N orthonormal points is smaller.

    The rows (B_w / sqrt s) sum of s signed points are B_w / sqrt s >= 2 epsilon apart at some point
    (B_x = 1), and an open ball of radius epsilon holds one of them. At most N <= d points.
    """
    scale, xp = _checked(x, points=points), array_module(x, points)
    log_gamma: Any = jax.scipy.special.gammaln if traced(x, points) else scipy.special.gammaln
    n = real(points)
    s = xp.minimum(xp.floor(scale**2 / 4.0), n)
    chosen = log_gamma(n + 1.0) - log_gamma(s + 1.0) - log_gamma(n - s + 1.0)
    return s * xp.log(2.0) + chosen


def lemma_3_5_corrected_leading(
    x: ArrayLike, /, *, k: Count, points: Count, hidden_constant: float = 1.0
) -> Values | Array:
    """hidden_constant x^2 ln(k N): ||W^T||_{2,1} <= B_w, ||x||_2 <= B_x, N points (N = m T tokens).

    The bound of Edelman et al. that grows with the sequence length. Their constant is not stated in
    this paper: with the default this is its leading term, not a certified bound.
    """
    return hidden_constant * _checked(x, k=k, points=points) ** 2 * log(k * points, x)


def lemma_3_6(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """x^2 ln(2dk + 1): ||W||_{1,1} <= B_w, ||x||_2 <= B_x. Constants explicit."""
    return _checked(x, k=k, d=d) ** 2 * log(2 * d * k + 1, x)


def lemma_3_6_ceil(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Lemma 3.6 rounded up, ceil(x^2) ln(2dk + 1): what Maurey's own radius B / sqrt K gives."""
    return array_module(x).ceil(_checked(x, k=k, d=d) ** 2) * log(2 * d * k + 1, x)


def lemma_3_6_sharp(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """The size of the cover that `linear_covers.entries_cover` builds; never above `lemma_3_6`."""
    return log_counts_signed(k * d, sparsity_needed(_checked(x, k=k, d=d)))


def volumetric(x: ArrayLike, /, *, parameters: Count) -> Values | Array:
    """Parameter counting, p ln(1 + 2x), for p parameters in an l_2 ball of radius B_w."""
    xp = array_module(x, parameters)
    return real(parameters) * xp.log1p(2.0 * _checked(x, parameters=parameters))


def volumetric_lower_column(x: ArrayLike, /, *, k: Count) -> Values | Array:
    """At least k ln x: no cover of {v e_1^T : ||v||_2 <= B_w} on ||x||_1 <= B_x can be smaller.

    The class lies in {||W||_{2,1} <= B_w} with the paper's column norm, so this exceeds the printed
    Lemma 3.4, x^2 ln(dk), for large k (erratum E3).
    """
    xp = array_module(x, k)
    return real(k) * xp.log(xp.maximum(_checked(x, k=k), 1.0))


def volumetric_lower_cube(x: ArrayLike, /, *, k: Count) -> Values | Array:
    """Ln of the volume of the cube [-x, x]^k over that of the l_2 unit ball, in R^k; not below 0.

    At least so large is a cover of maps whose images of one input fill the cube [-B, B]^k,
    x = B / epsilon: as where *rows* of W have l_1 norm at most B and the input is e_1, or where
    W is one row of entries at most B and the inputs are the l_2 unit ball of R^k.
    """
    scale, xp, half = _checked(x, k=k), array_module(x, k), real(k) / 2.0
    log_gamma: Any = jax.scipy.special.gammaln if traced(x, k) else math.lgamma
    log_pi = 2.0 * log_gamma(0.5) if traced(x, k) else math.log(math.pi)
    ball = half * log_pi - log_gamma(half + 1.0)
    cube = real(k) * xp.log(2.0 * xp.maximum(scale, 2.0**-1000))
    return xp.maximum(cube - ball, 0.0)


def at_scale(log_size: Callable[..., Any], B: float, /, **dimensions: float) -> LogCovering:
    """The bound as a function of epsilon: epsilon -> log_size(B / epsilon, **dimensions).

    It remembers what it was asked: Dudley's grids come back for every sample size.

    Raises:
        ValueError: if B is negative or not finite.
    """
    if not 0 <= B < math.inf:
        raise ValueError(
            f"B_w B_x = {B}, expected a finite scale that is not negative. Try B_w B_x = 1"
        )
    known: dict[tuple[tuple[int, ...], bytes], Any] = {}

    def recall(epsilon: Any) -> Any:
        scales = np.asarray(epsilon, dtype=np.float64)
        key = scales.shape, scales.tobytes()
        if key not in known:
            known[key] = log_size(B / scales, **dimensions)
        return known[key]

    return recall


__getattr__ = renamed(
    __name__,
    {
        "lemma_3_5_leading": "lemma_3_5_corrected_leading",
    },
)
