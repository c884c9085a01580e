"""How many sparsifications there are: the counts behind Lemmas 3.1, 3.3 and 3.6."""

import itertools
import math

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

LARGEST_LIST = 200_000

Counts = Float[np.ndarray, "*shape"] | np.float64


def _check(n: int, K: float) -> None:
    if n < 1 or K < 0:
        raise ValueError(f"n >= 1 coordinates and K >= 0 are needed, got n={n}, K={K}")


def count_nonnegative(n: int, K: int, /) -> int:
    """#{k in Z_{>=0}^n : sum k <= K} = C(n + K, K).

    Section 3 says "less than or equal to n^K", which is false (erratum E2); (n + 1)^K is a bound.

    Raises:
        ValueError: if n < 1 or K < 0.
    """
    _check(n, K)
    return math.comb(n + K, K)


def count_signed(n: int, K: int, /) -> int:
    """#{z in Z^n : ||z||_1 <= K}, the Delannoy number sum_j 2^j C(n,j) C(K,j), as an exact integer.

    Raises:
        ValueError: if n < 1 or K < 0.
    """
    _check(n, K)
    return sum(2**j * math.comb(n, j) * math.comb(K, j) for j in range(min(n, K) + 1))


def log_count_signed(n: int, K: float, /) -> float:
    """The logarithm of `count_signed`, for sizes at which the integer is too long.

    Raises:
        ValueError: if n < 1 or K < 0.
    """
    _check(n, K)
    j = np.arange(min(n, K))
    # ln C(N, j + 1) - ln C(N, j) = ln (N - j) - ln (j + 1), for N = n and for N = K.
    steps = math.log(2.0) + np.log(n - j) + np.log(K - j) - 2.0 * np.log(j + 1.0)
    return float(logsumexp(np.concatenate([[0.0], np.cumsum(steps)])))


def log_counts_signed(n: int, K: Counts, /) -> Counts:
    """`log_count_signed` for an array of whole numbers K.

    Raises:
        ValueError: if n < 1 or some K < 0.
    """
    distinct, where = np.unique(K, return_inverse=True)
    values = np.array([log_count_signed(n, k) for k in distinct])
    return values[where].reshape(np.shape(K))


def nonnegative_vectors(n: int, K: int, /) -> Int[np.ndarray, "count n"]:
    """All k in Z_{>=0}^n with sum k <= K.

    Raises:
        ValueError: if n < 1, K < 0, or there are more than 200000 of them.
    """
    count = count_nonnegative(n, K)
    _check_length(count, n, K)
    # Stars and bars: the positions of n bars among n + K places.
    bars = np.array(list(itertools.combinations(range(n + K), n)), dtype=np.int64)
    return np.diff(bars, axis=1, prepend=-1) - 1


def signed_vectors(n: int, K: int, /) -> Int[np.ndarray, "count n"]:
    """All z in Z^n with ||z||_1 <= K.

    Raises:
        ValueError: if n < 1, K < 0, or there are more than 200000 of them.
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
        raise ValueError(
            f"n={n}, K={K} gives {count} vectors, more than {LARGEST_LIST}: lower n or K, or use "
            "the counts alone"
        )
