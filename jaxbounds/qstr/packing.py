"""Packing the unit ball of R^d (Lemma 41): its two branches, lower bounds, and explicit packings.

The first branch is a volume bound and true. The second is Maurey's covering bound of the l1 ball,
printed for the l2 ball, whose packing numbers it does not bound.
"""

import math
from typing import Any

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float

from jaxbounds.ground.renamed import renamed
from jaxbounds.numerics.arrays import array_module, real


def volume_upper(d: ArrayLike, eps: ArrayLike, /) -> Any:
    """Volume bound: log P <= d log(1 + 2/eps), valid."""
    return real(d) * array_module(d, eps).log1p(2.0 / eps)


def maurey(d: ArrayLike, eps: ArrayLike, /) -> Any:
    """(1 + log(1 + 2 d eps^2)) / eps^2: printed as an upper bound on log P, and false."""
    return (1.0 + array_module(d, eps).log1p(2.0 * real(d) * eps**2)) / eps**2


def volume_lower(d: ArrayLike, eps: ArrayLike, /) -> Any:
    """Volume bound: log P >= d log(1/eps) for eps < 1: a maximal packing covers the ball."""
    xp = array_module(d, eps)
    return xp.maximum(0.0, real(d) * xp.log(1.0 / eps))


def golay_points() -> Float[np.ndarray, "4096 24"]:
    """The extended Golay code's 4096 words as unit vectors of R^24, at distance >= sqrt(4/3)."""
    polynomial = 0b101011100011  # generates the [23, 12, 7] cyclic code
    rows = []
    for shift in range(12):
        word = polynomial << shift
        bits = [(word >> k) & 1 for k in range(23)]
        rows.append([*bits, sum(bits) % 2])
    messages = (np.arange(4096)[:, None] >> np.arange(12)[None, :]) & 1
    words = (messages @ np.array(rows)) % 2
    return (1.0 - 2.0 * words) / math.sqrt(24)


def covering_number(distances: Float[np.ndarray, "n n"], eps: float, /) -> int:
    """The least number of balls of radius eps, centred in a finite set, that cover it: exactly.

    Raises:
        ValueError: if there are more than 16 points, whose subsets are too many.
    """
    n = len(distances)
    if n > 16:
        raise ValueError(f"{n} points have too many subsets: give at most 16")
    balls = (distances <= eps) @ (1 << np.arange(n))
    covered = np.zeros(1, dtype=np.int64)
    for ball in balls:  # unions over all subsets, in the order of their binary names
        covered = np.concatenate([covered, covered | int(ball)])
    full = np.flatnonzero(covered == 2**n - 1)
    return int(np.bitwise_count(full).min())


def smallest_distance(points: Float[np.ndarray, "M d"], /) -> float:
    """The smallest distance of two rows."""
    squares, least = np.sum(points**2, axis=1), math.inf
    for start in range(0, len(points), 256):  # some rows against them and the later ones
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
