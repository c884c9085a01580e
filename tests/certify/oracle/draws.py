"""Balls and arrays drawn at random, and the points in them."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

SPECIAL = (
    0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    -2.0,
    7.0,
    1e300,
    -1e300,
    1e-300,
    -1e-300,
)
EVERYWHERE = (-1e300, -1.0, 0.0, 0.5, 1e300)
"""Some points of the ball of infinite radius, which stands for any real number."""


def number(rng: np.random.Generator) -> float:
    """Ordinary, tie, zero, huge or tiny."""
    kind = rng.random()
    if kind < 0.4:
        return float(rng.normal() * 3)
    if kind < 0.65:
        return float(rng.choice(SPECIAL))
    if kind < 0.8:
        return float(rng.integers(-12, 13)) / 4
    return float(rng.choice((-1, 1)) * 10 ** rng.uniform(-8, 8))


def ball(rng: np.random.Generator) -> arb:
    """A point, narrow, wide, touching or around zero, unbounded, or unknown."""
    kind = rng.random()
    if kind < 0.06:
        return arb(str(rng.choice(("inf", "-inf", "nan", "0 +/- inf"))))
    middle = number(rng)
    if kind < 0.4:
        return arb(middle)
    width = float(rng.choice((2.0**-150, 2.0**-60, 2.0**-20, 0.25, 1.0, 3.0)))
    return arb(middle, abs(middle or 1.0) * width)


def exactly(x: arb) -> Fraction | float:
    """The number that an exact ball is: its mantissa and exponent."""
    if not x.is_finite():
        return math.inf if x > 0 else -math.inf if x < 0 else math.nan
    mantissa, exponent = (int(v) for v in x.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def points(x: arb, rng: np.random.Generator, count: int = 1) -> list[Any]:
    """Both ends, the middle, and `count` points in between."""
    if x.is_nan():
        return [math.nan]
    if x.is_exact():
        return [exactly(x)]
    if not x.is_finite():
        return list(map(Fraction, EVERYWHERE))
    middle, radius = exactly(x.mid()), exactly(x.rad())
    between = (int(k) for k in rng.integers(-63, 64, size=count))
    return [middle - radius, middle + radius, middle, *(middle + radius * k / 64 for k in between)]


def entries(
    rng: np.random.Generator, shape: tuple[int, ...], low: float = -4, high: float = 4
) -> np.ndarray:
    """Floats between two numbers, with ties: a third of them quarters, a few of them repeated."""
    smooth = rng.uniform(low, high, size=shape)
    ties = np.clip(np.round(4 * smooth) / 4, low, high)
    return np.where(rng.random(shape) < 0.35, ties, smooth)


RADII = (0.0, 2.0**-40, 2.0**-4, 0.5)


def box(x: np.ndarray, rng: np.random.Generator, radii: tuple[float, ...] = RADII) -> np.ndarray:
    """Balls around the entries, of those radii."""
    radius = rng.choice(radii, size=x.shape)
    out = np.empty(x.shape, dtype=object)
    for index in np.ndindex(x.shape):
        out[index] = arb(float(x[index]), float(radius[index]))
    return out


def places(balls: np.ndarray, rng: np.random.Generator, count: int) -> Iterator[np.ndarray]:
    """Points of a box, entry by entry, as an array of fractions: corners and others."""
    for _ in range(count):
        out = np.empty(balls.shape, dtype=object)
        for index in np.ndindex(balls.shape):
            inside = points(balls[index], rng)
            out[index] = inside[int(rng.integers(len(inside)))]
        yield out
