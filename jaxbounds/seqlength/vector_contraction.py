"""Theorem 5.1 with explicit constants: from scalar complexities to that of the cross entropy.

*In l_2.* Maurer (2016): for h_i L-Lipschitz in l_2, E sup sum_i sigma_i h_i(f(x_i)) <= sqrt(2) L
E sup sum_{i,s} sigma_{is} f_s(x_i). The cross entropy is sqrt(2)-Lipschitz in l_2, so its
complexity is at most 2 sum_s Rad(F_s): 2 K max_s Rad(F_s), no logarithm.

*In l_infinity*, as Foster and Rakhlin (2019) whose constant is open, in three steps. R is the
largest complexity of any F_s on any m points, with values in [-B, B].

1. If n points are shattered with margin g > R, then n <= 4 m R^2 / g^2. (More than m points would
   give R >= g. Repeat each q = floor(m / n) >= m / (2n) times or once more; the signs at a point
   add up to S with E|S| >= sqrt(q / 2) (Szarek), so m R >= n g sqrt(q / 2) >= (g / 2) sqrt(m n).)
2. A 2-separated set M of functions from n points to b levels, of which no more than d points are
   shattered with a level between, has |M| < 2 (n (b-1)(b-2))^r for the least r with 2^r > y =
   sum_{i=1}^d C(n,i) (b-2)^i (Alon et al., 1997). (Pair p n (b-1)(b-2) functions: p of the pairs
   differ at the same point x in the same two values u, v >= u + 2. The p functions with u and the
   p with v are 2-separated on the other n-1 points, and what both shatter there F shatters with x
   too: the number of shattered (A, z) doubles, from 1 for two functions on. There are at most y.)
3. Values rounded down to multiples of epsilon / 2 turn epsilon-separated into 2-separated and
   margin epsilon / 4 into levels, b = floor(4B / epsilon) + 1. Covers of the K classes at
   epsilon / 2 cover the loss at epsilon: it is 2-Lipschitz in l_infinity; then Dudley's integral.
"""

import math

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.numerics.arrays import array_module
from jaxbounds.seqlength.dudley import best_certified
from jaxbounds.seqlength.linear_bounds import LogCovering, Values
from jaxbounds.seqlength.multi_layer import Terms


def theorem_5_1_l2(scalar_rademachers: ArrayLike, /) -> Values | Array:
    """2 sum_s Rad(F_s) >= Rad(cross entropy): Maurer's sqrt 2 times the l_2 constant sqrt 2.

    Constants explicit, any K, the complexities on the sample itself; over the last axis.
    """
    xp = array_module(scalar_rademachers)
    return 2.0 * xp.sum(xp.asarray(scalar_rademachers, float), axis=-1)


def shattered_points(R: ArrayLike, m: int, margin: ArrayLike, /) -> Values:
    """floor(4 m R^2 / margin^2), and infinity for margin <= R: step 1.

    R bounds the complexity on every sample of m points, repetitions among them.
    """
    g = np.asarray(margin, float)
    return np.where(g > R, np.floor(4.0 * m * np.square(R) / g**2), np.inf)


def log_separated(n: int, levels: ArrayLike, shattered: ArrayLike, /) -> Values:
    """ln(2 (n (b-1)(b-2))^r), r the least with 2^r > sum_{i=1}^d C(n,i) (b-2)^i: step 2.

    b = `levels` and d = `shattered`; 0 where b <= 2 or d = 0, and infinity where d is. For d beyond
    1000 the sum is bounded by (e n (b-2) / d)^d.
    """
    b, d = np.broadcast_arrays(np.asarray(levels, float), np.asarray(shattered, float))
    some = (b > 2) & (d > 0)
    between, size = np.where(some, b - 2.0, 1.0), np.minimum(np.where(some, d, 1.0), n)
    log_sum = np.array(size * (1.0 + np.log(n * between / size)))
    few = size <= 1000
    i = np.arange(1.0, np.max(size[few], initial=1.0) + 1.0)
    # ln C(n, i) without ln n!, of which rounding leaves nothing for large n.
    terms = np.cumsum(np.log((n - i + 1.0) / i)) + i * np.log(between[few])[:, None]
    terms = np.where(i <= size[few][:, None], terms, -np.inf)
    top = terms.max(axis=1, keepdims=True)
    log_sum[few] = top[:, 0] + np.log(np.exp(terms - top).sum(axis=1))
    # Rounding must not lose a doubling where the sum is a power of two.
    doublings = np.floor(log_sum / math.log(2.0) + 1e-9) + 1.0
    size = math.log(2.0) + doublings * np.log(n * np.maximum((b - 1.0) * (b - 2.0), 1.0))
    return np.where(np.isinf(d), np.inf, np.where(some, size, 0.0))


def scalar_entropy(R: float, m: int, B: float, /) -> LogCovering:
    """Ln N_infinity(F_s, epsilon, m) from R and B by steps 1 to 3; infinite for epsilon <= 4 R."""

    def log_size(epsilon: ArrayLike) -> Values:
        epsilon = np.asarray(epsilon, float)
        shattered = shattered_points(R, m, epsilon / 4.0)
        return log_separated(m, np.floor(4.0 * B / epsilon) + 1.0, shattered)

    return log_size


def theorem_5_1_infinity(R: float, K: int, m: int, B: float, /) -> float:
    """The sqrt(K) of Theorem 5.1 with every constant: K times `scalar_entropy`, then Dudley.

    Never above 2 B, for the loss is within 2 B of ln K. Certified, constants explicit; its order is
    sqrt(K) R log^2(m). `theorem_5_1_l2` is smaller unless K is very large.

    Args:
        R: the largest complexity of any F_s on any m points.
        K: words.
        m: samples.
        B: the largest |f_s|.

    Raises:
        ValueError: if K < 2, m < 1, or R or B is not positive.
    """
    if not (K >= 2 and m >= 1 and R > 0 and B > 0):
        raise ValueError(
            f"K={K}, m={m}, R={R}, B={B}: expected K >= 2, m >= 1 and R, B > 0. Try K=2"
        )
    scalar = scalar_entropy(R, m, B)
    return best_certified(lambda epsilon: K * scalar(np.asarray(epsilon) / 2.0), m, 2.0 * B)


def terms_word_masking(terms: Terms, K: int, /) -> Terms:
    """The covers of Theorem 4.2 for the cross entropy of K scores: K covers of w, every beta twice.

    |CE(W g) - CE(What ghat)| <= 2 max_s (|(w_s - what_s) . ghat| + ||w_s|| ||g - ghat||): the
    sqrt(K) of Theorem 5.1 without logarithms, and only beside the term of the read-out.

    Raises:
        ValueError: if K < 2.
    """
    if K < 2:
        raise ValueError(f"K={K}, expected at least 2 words. Try K=2")
    xp = array_module(terms.C)
    copies = xp.where(xp.arange(terms.C.shape[0]) == 0, float(K), 1.0)
    return terms._replace(C=copies * terms.C, beta=2.0 * terms.beta)
