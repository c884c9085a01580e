"""Theorem 5.1 with explicit constants: scalar complexities bound the cross entropy's complexity.

*In l_2.* Maurer (2016) proves E sup sum_i sigma_i h_i(f(x_i)) <= sqrt(2) L E sup sum_{i,s}
sigma_{is} f_s(x_i), for functions h_i that are L-Lipschitz in l_2. The cross entropy is
sqrt(2)-Lipschitz in l_2. The Rademacher complexity of the cross entropy is therefore at most 2
sum_s Rad(F_s) <= 2 K max_s Rad(F_s), without a logarithm.

*In l_infinity*, Foster and Rakhlin (2019) prove an inequality without stating its constant. The
proof with an explicit constant has three steps. The number R is the largest Rademacher complexity
of any scalar class F_s on any m points. All values of the functions f_s lie in [-B, B].

1. If n points are shattered with margin g > R, then n <= 4 m R^2 / g^2. Proof: if more than m
   points were shattered with margin g, then R >= g. Repeat each point q times or q + 1 times, where
   q = floor(m / n) >= m / (2n). The random signs of the copies of one point have a sum S with E|S|
   >= sqrt(q / 2) (Szarek). It follows that m R >= n g sqrt(q / 2) >= (g / 2) sqrt(m n).
2. Let M be a 2-separated set of functions from n points to b integer levels: any two functions of M
   differ by at least 2 at some point. Let M shatter at most d points, with values at least 1 above
   or below integer levels. Then |M| < 2 (n (b-1)(b-2))^r for the least r with 2^r > y = sum_{i=1}^d
   C(n,i) (b-2)^i (Alon et al., 1997). For any integer p, the proof divides p n (b-1)(b-2) functions
   of M into pairs. At least p of these pairs have the same two values u and v >= u + 2 at the same
   point x. In these pairs, p functions have the value u at x, and p functions have the value v. On
   the other n-1 points, the p functions with the value u are 2-separated, and so are the p
   functions with v. If both halves (the functions with u, the functions with v) shatter a set of
   other points, all functions shatter this set together with x. The step from p to p n (b-1)(b-2)
   functions therefore doubles the number of shattered pairs (A, z) of points A and levels z. Each
   pair of functions shatters at least one pair (A, z), and at most y pairs (A, z) exist.
3. Rounding values down to multiples of epsilon / 2 turns epsilon-separated functions into
   2-separated functions. The values become b levels, with b = floor(4B / epsilon) + 1. A threshold
   between two values is then at least epsilon / 4 from the values. The loss is 2-Lipschitz in
   l_infinity, so covers of the K classes at epsilon / 2 give a cover of the loss at epsilon.
   Dudley's integral of the log sizes of these covers bounds the Rademacher complexity of the loss.
"""

import math

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.arrays import array_module
from jaxbounds.seqlength.dudley import best_certified
from jaxbounds.seqlength.linear_bounds import LogCovering, Values
from jaxbounds.seqlength.multi_layer import Terms


def theorem_5_1_l2(scalar_rademachers: ArrayLike, /) -> Values | Array:
    """Compute 2 sum_s Rad(F_s), a bound on the cross entropy's Rademacher complexity.

    The sum over s runs over the last axis of the argument, which contains the complexities on the
    sample itself.
    """
    xp = array_module(scalar_rademachers)
    return 2.0 * xp.sum(xp.asarray(scalar_rademachers, float), axis=-1)


def shattered_points(R: ArrayLike, m: int, margin: ArrayLike, /) -> Values:
    """Compute floor(4 m R^2 / margin^2), a bound on the number of points shattered with `margin`.

    The bound is infinite for margin <= R. The argument R bounds the Rademacher complexity on every
    sample of m points, repeated points included.
    """
    g = np.asarray(margin, float)
    return np.where(g > R, np.floor(4.0 * m * np.square(R) / g**2), np.inf)


def log_separated(n: int, levels: ArrayLike, shattered: ArrayLike, /) -> Values:
    """Compute ln(2 (n (b-1)(b-2))^r), with the least r for which 2^r > y.

    The result bounds the log size of a 2-separated set, with b = `levels` and d = `shattered`. Step
    2 of the module's docstring defines y. The result is 0 if b <= 2 or d = 0, and infinite if d is
    infinite. For d above 1000, y is replaced by its upper bound (e n (b-2) / d)^d.
    """
    b, d = np.broadcast_arrays(np.asarray(levels, float), np.asarray(shattered, float))
    some = (b > 2) & (d > 0)
    between, size = np.where(some, b - 2.0, 1.0), np.minimum(np.where(some, d, 1.0), n)
    log_sum = np.array(size * (1.0 + np.log(n * between / size)))
    few = size <= 1000
    i = np.arange(1.0, np.max(size[few], initial=1.0) + 1.0)
    # ln C(n, i) without ln n!, whose rounding error would exceed the result for large n.
    terms = np.cumsum(np.log((n - i + 1.0) / i)) + i * np.log(between[few])[:, None]
    terms = np.where(i <= size[few][:, None], terms, -np.inf)
    top = terms.max(axis=1, keepdims=True)
    log_sum[few] = top[:, 0] + np.log(np.exp(terms - top).sum(axis=1))
    # Rounding must not lose a doubling if the sum is a power of two.
    doublings = np.floor(log_sum / math.log(2.0) + 1e-9) + 1.0
    size = math.log(2.0) + doublings * np.log(n * np.maximum((b - 1.0) * (b - 2.0), 1.0))
    return np.where(np.isinf(d), np.inf, np.where(some, size, 0.0))


def scalar_entropy(R: float, m: int, B: float, /) -> LogCovering:
    """Bound ln N_infinity(F_s, epsilon, m) as this module's docstring explains.

    The bound is infinite for epsilon <= 4 R.
    """

    def log_size(epsilon: ArrayLike) -> Values:
        epsilon = np.asarray(epsilon, float)
        shattered = shattered_points(R, m, epsilon / 4.0)
        return log_separated(m, np.floor(4.0 * B / epsilon) + 1.0, shattered)

    return log_size


def theorem_5_1_infinity(R: float, K: int, m: int, B: float, /) -> float:
    """Compute the sqrt(K) bound of Theorem 5.1 with every constant.

    The loss has a cover of log size K times `scalar_entropy`, and Dudley's integral gives the
    bound. It has the order sqrt(K) R log^2(m). It is at most 2 B, because the loss differs from ln
    K by at most 2 B. `theorem_5_1_l2` is smaller unless K is very large.

    Args:
        R: the largest Rademacher complexity of a class F_s of scores on any m points.
        K: the number of words; each word s has its own class F_s of scores f_s.
        m: the number of samples.
        B: the largest absolute value |f_s| of a score.

    Raises:
        Refused: if K < 2, m < 1, or R or B is not positive.
    """
    if not (K >= 2 and m >= 1 and R > 0 and B > 0):
        raise Refused(f"K={K}, m={m}, R={R}, B={B}: expected K >= 2, m >= 1 and R, B > 0. Try K=2")
    scalar = scalar_entropy(R, m, B)
    return best_certified(lambda epsilon: K * scalar(np.asarray(epsilon) / 2.0), m, 2.0 * B)


def terms_word_masking(terms: Terms, K: int, /) -> Terms:
    """List the pairs (C_i, beta_i) of Theorem 4.2 for the cross entropy of K scores.

    The read-out w has K covers, and every beta_i doubles. The proof uses the inequality |CE(W g) -
    CE(What ghat)| <= 2 max_s (|(w_s - what_s)^T ghat| + ||w_s|| ||g - ghat||). Theorem 4.2 with
    these pairs gives a bound without Theorem 5.1's factor sqrt(K) and logarithms.

    Raises:
        Refused: if K < 2.
    """
    if K < 2:
        raise Refused(f"K={K}, expected at least 2 words. Try K=2")
    xp = array_module(terms.C)
    copies = xp.where(xp.arange(terms.C.shape[0]) == 0, float(K), 1.0)
    return terms._replace(C=copies * terms.C, beta=2.0 * terms.beta)
