"""Dudley's entropy integral: exactly for staircases, in closed form, and sharpened.

Rad_m <= c inf_delta (delta + int_delta^B sqrt(ln N(epsilon) / m) d epsilon) for classes with values
in [-B, B]. The paper leaves c open; c = 12 is certified (and 4 delta + 12 int is smaller). Every
function here that takes no c returns the bracket with c = 1, "the shape".
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
"""A constant c with which Dudley's bound is a theorem."""


def staircase_dudley(
    staircase: Staircase, m: int, B: float, /, *, near: float = 1.0, far: float = 1.0
) -> float:
    """The minimum over delta of near delta + far int_delta^B sqrt(ln N / m), exactly.

    The objective is piecewise linear in delta, so its minimum is at a radius of the staircase, at 0
    or at B. `near=4, far=12` is the refined certified form; `near=far=12` the paper's with c = 12.

    Raises:
        ValueError: if m < 1 or B is negative or not finite.
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
    """For ln N = A / epsilon^2: b + b ln(B / b) with b = sqrt(A / m), or B if b >= B."""
    xp = array_module(A, m, B)
    return with_offset(0.0, xp.sqrt(xp.asarray(A, float) / m), B)


@np.errstate(divide="ignore", invalid="ignore")
def interior_value(a: ArrayLike, b: ArrayLike, B: ArrayLike, /) -> Values | Array:
    """B a + b + b ln(B (1 - a) / b), the value at delta = b / (1 - a), as Appendix C takes it.

    Where that delta is not in (0, B) it bounds nothing: it can be negative, or the logarithm of a
    negative number (erratum E5). 0 ln(1/0) is 0.
    """
    xp = array_module(a, b, B)
    a, b, B = _floats(xp, a, b, B)
    return B * a + b + b * xp.log(B * (1.0 - a) / xp.where(b > 0, b, 1.0))


def best_delta(a: ArrayLike, b: ArrayLike, B: ArrayLike, /) -> Values | Array:
    """The delta of `with_offset`: b / (1 - a) if a < 1 and b < B (1 - a), else B."""
    xp = array_module(a, b, B)
    a, b, B = _floats(xp, a, b, B)
    inside = (a < 1) & (b < B * (1.0 - a))
    return xp.where(inside, b / xp.where(inside, 1.0 - a, 1.0), B)


def with_offset(a: ArrayLike, b: ArrayLike, B: ArrayLike, /) -> Values | Array:
    """The minimum over 0 < delta <= B of delta + (B - delta) a + b ln(B / delta).

    `interior_value` where the minimiser `best_delta` is inside, else B, at delta = B.
    """
    xp = array_module(a, b, B)
    a, b, B = _floats(xp, a, b, B)
    inside = best_delta(a, b, B) < B
    # Elsewhere the interior value is taken at harmless numbers, for finite gradients.
    value = interior_value(*(xp.where(inside, v, 0.5) for v in (a, b, B)))
    return xp.where(inside, value, B)


@functools.cache
def _grid(points: int) -> np.ndarray:
    """From 1e-6 to 1, the same for every sample size."""
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
    """An upper bound on B and on the least near delta + far int_delta^B sqrt(ln N / m).

    The integral is replaced by its upper sum on a geometric grid (ln N decreases in epsilon), so
    the value is certified wherever `log_covering` is.

    Raises:
        ValueError: if m < 1 or B is negative or not finite.
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
    """The least delta + B sqrt(2 ln N(delta) / m), and B: one cover and Massart's lemma.

    Certified: members of an internal cover have values in [-B, B].

    Raises:
        ValueError: if m < 1 or B is negative or not finite.
    """
    require_range(m, B)
    if B == 0:
        return 0.0
    grid = B * _grid(points)
    values = grid + B * np.sqrt(2.0 * np.maximum(log_covering(grid), 0.0) / m)
    return float(min(B, values.min()))


def best_certified(log_covering: LogCovering, m: int, B: float, /) -> float:
    """The least of 12 x Dudley, chaining, the one-scale bound and B. Certified, constants explicit.

    Raises:
        ValueError: if m < 1 or B is negative or not finite.
    """
    refined = dudley(log_covering, m, B, near=4.0, far=CERTIFIED)
    return min(refined, chaining(log_covering, m, B), one_scale(log_covering, m, B))
