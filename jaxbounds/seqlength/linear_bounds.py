"""The paper's bounds on the logarithm of covering numbers of {x -> W x}, W in R^{k x d}.

The argument x of every function is B_w B_x / epsilon. Here epsilon is the radius of the cover, and
B_w and B_x bound norms of W and of the inputs. If the log size is C / epsilon^2, as in Theorem 4.1,
then C is the value at x = B_w B_x.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.renamed import renamed
from jaxbounds.numerics.arrays import Count, array_module, log, real, traced
from jaxbounds.numerics.chaining import LogCovering
from jaxbounds.seqlength.counting import log_counts_signed

Values = Float[np.ndarray, "*shape"] | np.float64


def _checked(x: ArrayLike, **dimensions: Count) -> Any:
    for name, value in dimensions.items():
        if not traced(value) and value < 1:
            raise Refused(f"{name}={value}, expected at least 1. Try {name}=1")
    if traced(x):
        return x
    scales = np.asarray(x, dtype=np.float64)
    if not (np.isfinite(scales).all() and (scales >= 0).all()):
        raise Refused(
            f"x = B_w B_x / epsilon = {scales}, expected finite numbers that are not negative;"
            " epsilon may be 0. Try a positive epsilon"
        )
    return scales


def sparsity_needed(x: ArrayLike, /) -> Values | Array:
    """Return the least whole K with B / (1 + sqrt K) < epsilon, for x = B / epsilon; 0 if x < 1.

    For x >= 1 the number of terms is K = floor((x - 1)^2) + 1 <= x^2, so Lemmas 3.3 and 3.6 need no
    rounding of x^2.

    Raises:
        Refused: if x is negative or not finite.
    """
    scale, xp = _checked(x), array_module(x)
    return xp.where(scale < 1, 0.0, xp.floor((xp.maximum(scale, 1.0) - 1.0) ** 2) + 1.0)


def lemma_3_3(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Compute Lemma 3.3's bound d x^2 ln(2k + 1).

    The bound holds if ||W||_{1,infinity} <= B_w (columns) and inputs have l_1 norm at most B_x.

    Raises:
        Refused: if k or d is below 1, or x is negative or not finite. Every function of this module
            raises `Refused` in these cases.
    """
    return real(d) * _checked(x, k=k, d=d) ** 2 * log(2 * k + 1, x)


def lemma_3_3_ceil(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Compute d ceil(x^2) ln(2k + 1), Lemma 3.3's log size with Maurey's radius B / sqrt K."""
    return real(d) * array_module(x).ceil(_checked(x, k=k, d=d) ** 2) * log(2 * k + 1, x)


def lemma_3_3_sharp(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Return the log size of the cover `linear_covers.columns_cover`; it is at most `lemma_3_3`."""
    return real(d) * log_counts_signed(k, sparsity_needed(_checked(x, k=k, d=d)))


def lemma_3_4_leading(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Compute x^2 ln(dk), the leading term of Lemma 3.4 with hidden constant 1.

    The lemma needs ||W^T||_{2,1} <= B_w (rows) and inputs of l_1 norm at most B_x. The lemma is
    false with the printed norm over columns (erratum E3).
    """
    return _checked(x, k=k, d=d) ** 2 * log(d * k, x)


def lemma_3_4_explicit(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Compute Lemma 3.4 with constants: `lemma_3_5_explicit` with q = 2 at the d points B_x e_i.

    The bound holds if ||W^T||_{2,1} <= B_w (rows) and inputs have l_1 norm at most B_x.
    """
    return lemma_3_5_explicit(x, k=k, points=d)


def lemma_3_5_explicit(
    x: ArrayLike, /, *, k: Count, points: Count, ratio: float = 2.0
) -> Values | Array:
    """Compute Lemma 3.5 with constants: floor(q x^2) ln(2 k N levels + 1), and 0 for x < 1.

    The bound holds if ||W^T||_{2,1} <= B_w (rows) and the N points have l_2 norm at most B_x. Here
    q = `ratio` > 1 and levels = ceil(log_q(q x^2)) + 1. The module `correction_covers` contains the
    proof.
    """
    scale, xp = _checked(x, k=k, points=points), array_module(x, k, points)
    corrections = ratio * xp.maximum(scale, 1.0) ** 2
    levels = xp.ceil(xp.log2(corrections) / math.log2(ratio)) + 1.0
    size = xp.floor(corrections) * xp.log(2.0 * real(k) * real(points) * levels + 1.0)
    return xp.where(scale < 1, 0.0, size)


RATIOS = (2.0, 1.5, 1.25, 1.1, 1.05, 1.02)
"""The ratios q > 1 that `lemma_3_5_sharp` tries in q x^2 ln(2 k N levels + 1); a larger q has fewer
levels."""


def lemma_3_5_sharp(x: ArrayLike, /, *, k: Count, points: Count) -> Values | Array:
    """Return the least value of `lemma_3_5_explicit` for the ratios q in `RATIOS`."""
    sizes = [lemma_3_5_explicit(x, k=k, points=points, ratio=q) for q in RATIOS]
    return array_module(x, k, points).stack(sizes).min(axis=0)


def packing_of_points(x: ArrayLike, /, *, points: Count) -> Values | Array:
    """Compute ln(2^s C(N, s)), s = floor(x^2 / 4), a lower bound on covers of maps with one row.

    The points are N <= d orthonormal vectors (B_x = 1, x = B_w / epsilon). Consider the rows (B_w /
    sqrt s) times a sum of s signed points. Two such rows differ by B_w / sqrt s >= 2 epsilon at
    some point, so no open ball of radius epsilon contains both.
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
    """Compute hidden_constant x^2 ln(k N), Edelman et al.'s bound for a sample of N = m T tokens.

    The bound needs ||W^T||_{2,1} <= B_w (rows) and N points of l_2 norm at most B_x. The paper does
    not state the hidden constant; with the default 1 the value is no proved bound.
    """
    return hidden_constant * _checked(x, k=k, points=points) ** 2 * log(k * points, x)


def lemma_3_6(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Compute Lemma 3.6's bound x^2 ln(2dk + 1).

    The bound holds if ||W||_{1,1} <= B_w and inputs have l_2 norm at most B_x.
    """
    return _checked(x, k=k, d=d) ** 2 * log(2 * d * k + 1, x)


def lemma_3_6_ceil(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Compute ceil(x^2) ln(2dk + 1), Lemma 3.6's log size with Maurey's radius B / sqrt K."""
    return array_module(x).ceil(_checked(x, k=k, d=d) ** 2) * log(2 * d * k + 1, x)


def lemma_3_6_sharp(x: ArrayLike, /, *, k: Count, d: Count) -> Values | Array:
    """Return the log size of the cover `linear_covers.entries_cover`; it is at most `lemma_3_6`."""
    return log_counts_signed(k * d, sparsity_needed(_checked(x, k=k, d=d)))


def volumetric(x: ArrayLike, /, *, parameters: Count) -> Values | Array:
    """Compute p ln(1 + 2x), x = B_w B_x / epsilon: the log size of a cover of R^p's B_w-ball."""
    xp = array_module(x, parameters)
    return real(parameters) * xp.log1p(2.0 * _checked(x, parameters=parameters))


def volumetric_lower_column(x: ArrayLike, /, *, k: Count) -> Values | Array:
    """Compute k ln(max(x, 1)), at most the log size of any cover of {v e_1^T : ||v||_2 <= B_w}.

    Inputs have l_1 norm at most B_x. These matrices satisfy ||W||_{2,1} <= B_w with the paper's
    column norm. For large k, this lower bound exceeds the upper bound x^2 ln(dk) that Lemma 3.4
    prints (erratum E3).
    """
    xp = array_module(x, k)
    return real(k) * xp.log(xp.maximum(_checked(x, k=k), 1.0))


def volumetric_lower_cube(x: ArrayLike, /, *, k: Count) -> Values | Array:
    """Compute ln(volume of [-x, x]^k / volume of the l_2 unit ball in R^k), but at least 0.

    Let maps send one input to every point of the cube [-B, B]^k. Any cover of these maps has at
    least the computed log size for x = B / epsilon. Matrices with *rows* of l_1 norm at most B are
    an example.
    """
    scale, xp, half = _checked(x, k=k), array_module(x, k), real(k) / 2.0
    log_gamma: Any = jax.scipy.special.gammaln if traced(x, k) else math.lgamma
    log_pi = 2.0 * log_gamma(0.5) if traced(x, k) else math.log(math.pi)
    ball = half * log_pi - log_gamma(half + 1.0)
    cube = real(k) * xp.log(2.0 * xp.maximum(scale, 2.0**-1000))
    return xp.maximum(cube - ball, 0.0)


def at_scale(log_size: Callable[..., Any], B: float, /, **dimensions: float) -> LogCovering:
    """Return epsilon -> log_size(B / epsilon, **dimensions), a bound on log covering numbers.

    The returned function stores its values for later calls on the same grid.

    Raises:
        Refused: if B is negative or not finite.
    """
    if not 0 <= B < math.inf:
        raise Refused(
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
