"""Dudley's entropy integral: exact for step functions, closed forms, and sharpened variants.

For classes with values in [-B, B], the Rademacher complexity is at most c inf_delta (delta +
int_delta^B sqrt(ln N(epsilon) / m) d epsilon). The paper does not state c; c = 12 is proved, and so
is the smaller bound 4 delta + 12 int. A function without an argument for c has c = 1.
"""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.numerics.arrays import array_module
from jaxbounds.numerics.chaining import LogCovering, chaining, require_range
from jaxbounds.seqlength.covering_numbers import Staircase
from jaxbounds.seqlength.linear_bounds import Values

CERTIFIED = 12.0
"""A constant c with which Dudley's bound is proved; a larger factor gives a weaker bound."""


def staircase_dudley(
    staircase: Staircase, m: int, B: float, /, *, near: float = 1.0, far: float = 1.0
) -> float:
    """Minimise `near` delta + `far` int_delta^B sqrt(ln N / m) over delta, exactly.

    For a step function N, the sum is piecewise linear in delta. Its minimum is therefore at 0, at
    B, or at a radius at which N jumps.

    Raises:
        Refused: if m < 1 or B is negative or not finite.
    """
    require_range(m, B)
    knots = np.unique(np.concatenate([[0.0, B], staircase.radii[staircase.radii < B]]))
    widths = np.diff(knots)
    step = np.searchsorted(staircase.radii, knots[:-1], side="right") - 1
    heights = np.sqrt(np.log(staircase.counts[step]) / m)
    tails = np.concatenate([np.cumsum((widths * heights)[::-1])[::-1], [0.0]])
    return float((near * knots + far * tails).min())


def _floats(xp: Any, /, *values: ArrayLike) -> Iterator[Array | np.ndarray]:
    return (xp.asarray(value, float) for value in values)


def inverse_square(A: ArrayLike, m: ArrayLike, B: ArrayLike, /) -> Values | Array:
    """Compute b + b ln(B / b), the minimum over delta of Dudley's bound for ln N = A / epsilon^2.

    Here b = sqrt(A / m). If b >= B, the minimum of Dudley's bound is B.
    """
    xp = array_module(A, m, B)
    return with_offset(0.0, xp.sqrt(xp.asarray(A, float) / m), B)


@np.errstate(divide="ignore", invalid="ignore")
def interior_value(a: ArrayLike, b: ArrayLike, B: ArrayLike, /) -> Values | Array:
    """Compute B a + b + b ln(B (1 - a) / b), Dudley's bracket at delta = b / (1 - a) (Appendix C).

    If this delta is not in (0, B), the value is no bound: it can be negative or NaN (erratum E5). 0
    ln(1/0) counts as 0.
    """
    xp = array_module(a, b, B)
    a, b, B = _floats(xp, a, b, B)
    return B * a + b + b * xp.log(B * (1.0 - a) / xp.where(b > 0, b, 1.0))


def best_delta(a: ArrayLike, b: ArrayLike, B: ArrayLike, /) -> Values | Array:
    """Return the delta that minimises delta + (B - delta) a + b ln(B / delta) on (0, B].

    The minimiser is b / (1 - a) if a < 1 and b < B (1 - a), and B otherwise.
    """
    xp = array_module(a, b, B)
    a, b, B = _floats(xp, a, b, B)
    inside = (a < 1) & (b < B * (1.0 - a))
    return xp.where(inside, b / xp.where(inside, 1.0 - a, 1.0), B)


def with_offset(a: ArrayLike, b: ArrayLike, B: ArrayLike, /) -> Values | Array:
    """Minimise delta + (B - delta) a + b ln(B / delta) over 0 < delta <= B.

    For a covering number with ln N = A / epsilon^2 and an offset a (Appendix C), Dudley's bound is
    the minimum of this expression over delta. The minimum is `interior_value` if `best_delta` is
    below B, and B otherwise.
    """
    xp = array_module(a, b, B)
    a, b, B = _floats(xp, a, b, B)
    inside = best_delta(a, b, B) < B
    # If the minimiser is not below B, the interior value is computed at harmless numbers, for
    # finite gradients.
    value = interior_value(*(xp.where(inside, v, 0.5) for v in (a, b, B)))
    return xp.where(inside, value, B)


@functools.cache
def _grid(points: int) -> np.ndarray:
    return np.geomspace(1e-6, 1.0, points)


def dudley(
    log_covering: LogCovering,
    m: int,
    B: float,
    /,
    *,
    near: float = CERTIFIED,
    far: float = CERTIFIED,
    points: int = 400,
) -> float:
    """Bound inf_delta (near delta + far int_delta^B sqrt(ln N / m)) from above; at most B.

    An upper Riemann sum on a geometric grid replaces the integral. The sum is at least the
    integral, because ln N decreases in epsilon.

    Raises:
        Refused: if m < 1 or B is negative or not finite.
    """
    require_range(m, B)
    if B == 0:
        return 0.0
    grid = B * _grid(points)
    heights = np.sqrt(np.maximum(log_covering(grid), 0.0) / m)
    pieces = np.diff(grid) * heights[:-1]
    tails = np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]])
    return float(min(B, (near * grid + far * tails).min()))


def one_scale(log_covering: LogCovering, m: int, B: float, /, *, points: int = 400) -> float:
    """Minimise delta + B sqrt(2 ln N(delta) / m) over delta (one cover and Massart's lemma).

    The minimum, or B if B is smaller, bounds the Rademacher complexity, because members of an
    internal cover have values in [-B, B].

    Raises:
        Refused: if m < 1 or B is negative or not finite.
    """
    require_range(m, B)
    if B == 0:
        return 0.0
    grid = B * _grid(points)
    values = grid + B * np.sqrt(2.0 * np.maximum(log_covering(grid), 0.0) / m)
    return float(min(B, values.min()))


def best_certified(log_covering: LogCovering, m: int, B: float, /) -> float:
    """Return the least of `dudley` with near=4 and far=12, `chaining`, `one_scale`, and B.

    Raises:
        Refused: if m < 1 or B is negative or not finite.
    """
    refined = dudley(log_covering, m, B, near=4.0, far=CERTIFIED)
    return min(refined, chaining(log_covering, m, B), one_scale(log_covering, m, B))
