"""The number of vectors of n whole numbers whose absolute values sum to at most K.

This number gives the cover sizes of Lemmas 3.1, 3.3 and 3.6.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.arrays import Count, traced

LARGEST_LIST = 200_000
"""The largest number of vectors that a function lists; a longer list needs more memory."""
LARGEST_BLOCK = 2_000_000
"""The number of terms of a sum that are in memory at once. A larger number needs more memory and
less time."""

Counts = Float[np.ndarray, "*shape"] | np.float64


def _check(n: int, K: float) -> None:
    if n < 1 or K < 0:
        raise Refused(f"n={n} and K={K}, expected n >= 1 coordinates and K >= 0. Try n=1")


def count_nonnegative(n: int, K: int, /) -> int:
    """Count the k in Z_{>=0}^n with sum k <= K: C(n + K, K).

    Section 3's bound n^K is false (erratum E2); the bound (n + 1)^K is true.

    Raises:
        Refused: if n < 1 or K < 0.
    """
    _check(n, K)
    return math.comb(n + K, K)


def count_signed(n: int, K: int, /) -> int:
    """Count the z in Z^n with ||z||_1 <= K, as an exact integer.

    The count is the Delannoy number sum_j 2^j C(n,j) C(K,j).

    Raises:
        Refused: if n < 1 or K < 0.
    """
    _check(n, K)
    return sum(2**j * math.comb(n, j) * math.comb(K, j) for j in range(min(n, K) + 1))


def log_counts_signed(n: Count, K: Counts | Array, /) -> Counts | Array:
    """Compute the logarithm of `count_signed` for an array of whole numbers K of any size.

    Raises:
        Refused: if n < 1 or some K < 0. The function does not check traced values.
    """
    if traced(n, K):
        return _log_counts_traced(jnp.asarray(n).astype(float), jnp.asarray(K).astype(float))
    n = int(n)
    _check(n, float(np.min(K)))
    distinct, where = np.unique(K, return_inverse=True)
    most = min(n, int(distinct[-1]))
    blocks = np.array_split(distinct, 1 + distinct.size * most // LARGEST_BLOCK)
    logs = np.concatenate([_log_counts(n, block, min(n, int(block[-1]))) for block in blocks])
    return logs[where].reshape(np.shape(K))


def _log_counts(n: int, K: np.ndarray, terms: int) -> np.ndarray:
    j = np.arange(terms)
    # ln C(N, j + 1) - ln C(N, j) = ln (N - j) - ln (j + 1), for N = n and for N = K; the sum
    # ends where K - j = 0.
    with np.errstate(divide="ignore"):
        of_K = np.log(np.maximum(K[:, None] - j, 0.0))
    steps = math.log(2.0) + np.log(n - j) + of_K - 2.0 * np.log(j + 1.0)
    partial = np.concatenate([np.zeros((len(K), 1)), np.cumsum(steps, axis=1)], axis=1)
    return scipy.special.logsumexp(partial, axis=1)


def _log_counts_traced(n: Array, K: Array) -> Array:
    def add(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        j, term, total = state
        there = j < K
        ratio = 2.0 * (n - j) * jnp.where(there, K - j, 1.0) / (j + 1.0) ** 2
        term = term + jnp.log(ratio)
        return j + 1.0, term, jnp.where(there, jnp.logaddexp(total, term), total)

    one = jnp.zeros_like(K)  # ln 1, the term j = 0
    start = (jnp.zeros_like(n), one, one)
    return jax.lax.while_loop(lambda s: s[0] < jnp.minimum(n, jnp.max(K)), add, start)[2]


def nonnegative_vectors(n: int, K: int, /) -> Int[np.ndarray, "count n"]:
    """List all k in Z_{>=0}^n with sum k <= K, as rows.

    Raises:
        Refused: if n < 1, K < 0, or there are more than 200000 vectors.
    """
    count = count_nonnegative(n, K)
    _check_length(count, n, K)
    # Stars and bars: the positions of n bars among n + K places.
    bars = np.array(list(itertools.combinations(range(n + K), n)), dtype=np.int64)
    return np.diff(bars, axis=1, prepend=-1) - 1


def signed_vectors(n: int, K: int, /) -> Int[np.ndarray, "count n"]:
    """List all z in Z^n with ||z||_1 <= K, as rows.

    Raises:
        Refused: if n < 1, K < 0, or there are more than 200000 vectors.
    """
    _check_length(count_signed(n, K), n, K)
    pieces = []
    for sizes in nonnegative_vectors(n, K):
        support = np.flatnonzero(sizes)
        signs = np.array(list(itertools.product((1, -1), repeat=len(support))), dtype=np.int64)
        piece = np.zeros((len(signs), n), dtype=np.int64)
        piece[:, support] = signs.reshape(len(signs), len(support)) * sizes[support]
        pieces.append(piece)
    return np.concatenate(pieces)


def _check_length(count: int, n: int, K: int) -> None:
    if count > LARGEST_LIST:
        raise Refused(
            f"n={n} and K={K} give {count} vectors, expected at most {LARGEST_LIST}. Try a"
            " smaller n or K, or count the vectors without a list"
        )
