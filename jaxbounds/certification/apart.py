"""Enclose the relative distance between the two sides of a claim."""

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from jaxbounds.falsification.second_opinion import UNDEFINED
from jaxbounds.programs.balls.values import (
    INF,
    ZERO,
    NotSupported,
    Undecided,
    as_reals,
    nonnegative,
)


class Gap(NamedTuple):
    """A lower bound on the relative distance between two sides that are enclosed by balls.

    Attributes:
        amount: a lower bound on the distance minus the rounding error that `evaluate` states,
            relative to the larger side; negative if the sides certainly satisfy a `<=`.
        entry: the index, in the flattened sides, of the entry at which the distance is largest.
        most: an upper bound on the distance at all entries, relative to the larger side; None if
            unknown.
    """

    amount: arb
    entry: int
    lhs: arb
    rhs: arb
    most: arb | None = None


def _stated(error: Any) -> arb:
    errors = as_reals(error).ravel()
    if not all(map(nonnegative, errors)):
        raise Undecided(
            "Sides.error, the stated error of the sides, is not certainly a number >= 0"
        )
    return max((v.upper() for v in errors), default=ZERO)


def apart(relation: str, lhs: Any, rhs: Any, error: Any = 0.0, /, *, by_entry: bool = False) -> Gap:
    """Enclose the relative distance of two sides, minus the rounding error that `evaluate` states.

    Args:
        relation: the claim's relation "<=", ">=" or "="; for a bound, `lhs` is the side that the
            claim says is smaller.
        lhs: the left side of the claim, enclosed in ball arithmetic.
        rhs: the right side of the claim, enclosed in ball arithmetic.
        error: the error of lhs - rhs that `evaluate` states.
        by_entry: if True, the distance at each entry of an identity is relative to the sides at
            this entry; else it is relative to the largest entry.

    Raises:
        Undecided: if a side has no enclosure, or the error may be negative or NaN.
    """
    left, right = as_reals(lhs).ravel(), as_reals(rhs).ravel()
    if left.shape != right.shape:
        left, right = np.broadcast_arrays(left, right)
    if any(v.is_nan() for v in (*left, *right)):
        raise Undecided(UNDEFINED)
    stated = _stated(error)
    if relation in ("<=", ">="):  # `lhs` is the side claimed to be smaller
        if len(left) != 1:
            raise NotSupported(
                f"both sides of a <= must be scalars, got entries={len(left)}. Try jnp.max of "
                "each side"
            )
        l, r = left[0], right[0]
        above = l == INF and (r.is_finite() or r == -INF)
        if (above or (r == -INF and l.is_finite())) and stated.is_finite():
            return Gap(arb(1), 0, l, r)
        scale = max(abs(l).upper(), abs(r).upper())
        gap = (l - r - stated) / scale if scale > 0 else ZERO
        return Gap(gap.lower() if gap.is_finite() else ZERO, 0, l, r)
    scale = max((abs(v).upper() for v in (*left, *right)), default=ZERO)
    own = lambda a, b: max(abs(a).upper(), abs(b).upper()) if by_entry else scale
    per = lambda amount, a, b: amount / own(a, b) if own(a, b) > 0 else ZERO
    pairs = list(zip(left, right))
    gaps = [(abs(a - b) - stated).lower() for a, b in pairs]
    finite = scale > 0 and scale.is_finite() and stated.is_finite()
    if by_entry and finite:
        gaps = [per(gap, *pair).lower() for gap, pair in zip(gaps, pairs)]
    entry = max(range(len(gaps)), key=lambda i: float(gaps[i]), default=0)
    if not gaps or not finite:
        return Gap(ZERO, entry, ZERO, ZERO)
    most = max((per(abs(a - b).upper(), a, b) for a, b in pairs), default=ZERO)
    amount = gaps[entry] if by_entry else (gaps[entry] / scale).lower()
    return Gap(amount, entry, left[entry], right[entry], most)


def hull(balls: Iterable[arb], /) -> arb:
    """Return the smallest ball that contains all given balls."""
    return functools.reduce(arb.union, balls)
