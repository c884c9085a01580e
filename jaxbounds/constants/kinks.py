"""Find optima at kinks, the points at which smooth pieces of the ratio lhs/rhs meet.

Near a kink the ratio lhs/rhs is the minimum of several smooth functions (pieces). Linear programs
find the smooth functions that meet at a kink. Newton's method, in ball arithmetic with slopes in
float64, finds the point at which the smooth functions are equal.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy
from flint import arb

from jaxbounds.constants.enclosure import BITS, Ratio, at_values
from jaxbounds.constants.nonsmooth import Loss, program
from jaxbounds.constants.polish import Point
from jaxbounds.constants.problem import UNCOUNTED, Problem
from jaxbounds.programs.balls.interpreter import precision

RADII = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
"""Half side lengths of the cubes in which the search looks for smooth pieces of the ratio lhs/rhs.

The lengths are relative to the point's values, in decreasing order.
"""
MOST = 30
"""The search examines a kink of the ratio lhs/rhs only at a point with at most this many
coordinates.

If this number of coordinates is larger, the search examines more points, which takes longer.
"""
WITHIN = 1e-4
"""The search assumes that lhs/rhs has its measured slopes within this relative radius of a point.

The predicted gain of lhs/rhs is the slope times this radius, so a larger radius predicts larger
gains.
"""
ROUNDS, SURE = 16, 1e-45
"""The largest number of Newton steps towards a kink, and the step size below which the steps end.

More Newton steps give more digits of the kink.
"""
PROBE = 1e-9
"""Ball arithmetic compares lhs/rhs at a kink with lhs/rhs at points at this relative distance from
the kink. A larger distance tests a larger neighbourhood of the kink."""


class Piece(NamedTuple):
    """A smooth piece of lhs/rhs near a kink: its slope, offset and weight in a linear program."""

    slope: np.ndarray
    offset: np.ndarray
    weight: float


def pieces(loss: Loss, x: np.ndarray, /) -> tuple[np.ndarray, list[Piece]]:
    """Minimise a piecewise linear model of the loss near x; return the minimiser and pieces."""
    rng, found = np.random.default_rng(0), list[Piece]()
    for radius in RADII:
        sides = rng.uniform(-1, 1, (2 * len(x) + 4, len(x))) * radius
        cuts = [(z, *loss(z)) for z in (x, *(x + side for side in sides))]
        for _ in range(3 * len(x) + 10):
            step, _, weights = program(cuts, x, None, radius)
            if step is None:
                return x, []
            there = (x + step, *loss(x + step))
            found = [Piece(g, z, w) for (z, _, g), w in zip(cuts, weights) if w > 1e-7]
            model = max(f + g @ (x + step - z) for z, f, g in cuts)
            cuts.append(there)
            if there[1] - model < 1e-3 * radius**2 + 1e-15:
                break
        if there[1] <= cuts[0][1] + radius**2:
            x = x + step
    return x, [Piece(p.slope, (p.offset - x), p.weight) for p in found]


def met(problem: Problem, ratio: Ratio, point: Point, /) -> tuple[arb, float] | None:
    """Certify lhs/rhs at a kink: the point near `point` where smooth pieces of lhs/rhs are equal.

    Returns:
        A ball (interval) that contains the ratio lhs/rhs, and the further gain of the ratio that
        its slopes predict. None if the function finds no smooth pieces, or no point where they are
        equal.

    Raises:
        Undecided: if ball arithmetic cannot decide a hypothesis or a side.
        NotSupported: if an operation has no rule in ball arithmetic.
    """
    k = len(point.values)
    if not 0 < k <= MOST:
        return None
    scale = np.maximum(np.abs(point.values), 1e-3 * np.max(np.abs(point.values)))

    def loss(z: np.ndarray) -> tuple[float, np.ndarray]:
        score, slope = problem.slope(scale * z, point.ties, point.instance)
        return -score, -slope * scale

    x, active = pieces(loss, point.values / scale)
    if not active or loss(x)[0] >= UNCOUNTED:
        return None
    slopes = np.array([p.slope for p in active])
    largest = float(np.max(np.abs(slopes)))
    if not largest > 0:
        return None
    # Find the convex combination of the slopes that is nearest to zero.
    rows = np.vstack([slopes.T / largest, np.ones(len(active))])
    weights = scipy.optimize.nnls(rows, np.append(np.zeros(k), 1.0))[0]
    left = float(np.max(np.abs(weights @ slopes)))
    if left > 1e-4 * largest:
        return None
    with precision(BITS):
        values = [arb(v) * arb(s) for v, s in zip(x, scale)]
        height = lambda moved: ratio(at_values(point, [v + arb(d) * arb(s) for v, d, s in moved]))
        value: Callable[[list[arb], np.ndarray], arb] = lambda at, d: height(zip(at, d, scale))
        solved = _equal(values, active, scale, value)
        if solved is None:
            return None
        values, apart = solved
        here = ratio(at_values(point, values), "ulp")
        # If no piece is missing, the ratio falls in every direction.
        rng, top = np.random.default_rng(1), value(values, np.zeros(k))
        for way in (*np.eye(k), *-np.eye(k), *rng.normal(size=(k + 4, k))):
            if value(values, PROBE * way) > top * (
                1 + arb(PROBE) ** 2 * 1e4 + apart + left * PROBE
            ):
                return None
    return here, float(apart * largest + left * WITHIN)


def _equal(
    values: list[arb],
    active: list[Piece],
    scale: np.ndarray,
    value: Callable[[list[arb], np.ndarray], arb],
) -> tuple[list[arb], float] | None:
    first, *others = active
    ways = [p.offset / max(np.max(np.abs(p.offset)), 1e-300) for p in active]
    differences = np.array([p.slope - first.slope for p in others])
    if not others:
        return None
    solve = np.linalg.pinv(differences, rcond=1e-9)
    radius, before = RADII[-1], np.inf
    for _ in range(ROUNDS):
        heights = [
            -(value(values, radius * way).log()) - arb(float(radius)) * arb(float(p.slope @ way))
            for p, way in zip(active, ways)
        ]
        step = solve @ np.array([float((heights[0] - h).mid()) for h in heights[1:]])
        size = float(np.max(np.abs(step)))
        if not size < before:
            break
        values = [(v + arb(float(d)) * arb(float(s))).mid() for v, d, s in zip(values, step, scale)]
        before, radius = size, min(radius, max(size * 1e-2, 1e-60))
        if size < SURE:
            break
    return (values, before) if before < 1e-13 else None
