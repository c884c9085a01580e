"""Packings of the unit ball of R^d (Lemma 41): two upper bounds, lower bounds, and examples.

P is the packing number: the largest number of points of the ball whose pairwise distances are at
least eps. Lemma 41 bounds log P by the smaller of two terms. The first term, a comparison of
volumes, is a valid bound. The second term is Maurey's bound for covers of the l1 ball; for the l2
ball, it is not an upper bound.
"""

import math
from typing import Any

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.renamed import renamed
from jaxbounds.numerics.arrays import array_module, real


def volume_upper(d: ArrayLike, eps: ArrayLike, /) -> Any:
    """Return d log(1 + 2/eps), a valid upper bound on log P (P is the packing number)."""
    return real(d) * array_module(d, eps).log1p(2.0 / eps)


def maurey(d: ArrayLike, eps: ArrayLike, /) -> Any:
    """Return (1 + log(1 + 2 d eps^2)) / eps^2, the paper's false upper bound on log P."""
    return (1.0 + array_module(d, eps).log1p(2.0 * real(d) * eps**2)) / eps**2


def volume_lower(d: ArrayLike, eps: ArrayLike, /) -> Any:
    """Return d log(1/eps), a lower bound on log P for eps < 1 (P is the packing number).

    The bound holds because the balls of radius eps around a maximal packing cover the unit ball.
    """
    xp = array_module(d, eps)
    return xp.maximum(0.0, real(d) * xp.log(1.0 / eps))


def golay_points() -> Float[np.ndarray, "4096 24"]:
    """Return the 4096 words of the extended Golay code as unit vectors of R^24.

    Any two of these vectors are at least sqrt(4/3) apart.
    """
    # The polynomial generates the [23, 12, 7] cyclic code.
    polynomial = 0b101011100011
    rows = []
    for shift in range(12):
        word = polynomial << shift
        bits = [(word >> k) & 1 for k in range(23)]
        rows.append([*bits, sum(bits) % 2])
    messages = (np.arange(4096)[:, None] >> np.arange(12)[None, :]) & 1
    words = (messages @ np.array(rows)) % 2
    return (1.0 - 2.0 * words) / math.sqrt(24)


def covering_number(distances: Float[np.ndarray, "n n"], eps: float, /) -> int:
    """Return exactly the least number of balls of radius eps that cover a finite set.

    The centres of the balls are points of the finite set.

    Raises:
        Refused: if there are more than 16 points, because the function tries all subsets of the
            points.
    """
    n = len(distances)
    if n > 16:
        raise Refused(
            f"points={n}, expected at most 16, because all subsets are enumerated. Try fewer points"
        )
    balls = (distances <= eps) @ (1 << np.arange(n))
    covered = np.zeros(1, dtype=np.int64)
    # The loop forms unions over all subsets, in the order of their binary names.
    for ball in balls:
        covered = np.concatenate([covered, covered | int(ball)])
    full = np.flatnonzero(covered == 2**n - 1)
    return int(np.bitwise_count(full).min())


def smallest_distance(points: Float[np.ndarray, "M d"], /) -> float:
    """Return the smallest distance between two rows of an array."""
    squares, least = np.sum(points**2, axis=1), math.inf
    # Each block of rows is compared with itself and with the later rows.
    for start in range(0, len(points), 256):
        rows = np.s_[start : start + 256]
        distances = points[rows] @ (-2 * points[start:].T)
        distances += squares[start:]
        distances += squares[rows, None]
        np.fill_diagonal(distances, np.inf)
        least = min(least, float(distances.min()))
    return math.sqrt(max(0.0, least))


__getattr__ = renamed(
    __name__,
    {
        "maurey_printed": "maurey",
    },
)
