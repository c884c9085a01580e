"""Follow slopes from a search's result up to a stationary point of lhs/rhs, in float64."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from jaxbounds.claims.statements import Instance
from jaxbounds.constants.nonsmooth import LARGEST, Loss, bundled, by_cma, walked
from jaxbounds.constants.problem import UNCOUNTED, Problem, flat, floats_of, unflat
from jaxbounds.constants.snapping import Basis, Ties, neighbours, snapped, tied
from jaxbounds.constants.starts import Start

SAME = 1e-9
"""Two ratios lhs/rhs count as equal up to this relative difference. If this difference is larger,
more pairs of ratios lhs/rhs count as equal.
"""
SLOPE = 1e-7
"""The ascent of lhs/rhs in float64 stops at this relative slope, because a smaller slope is
rounding.

Newton's method in ball arithmetic continues from the end of the ascent. If this slope is larger,
the ascent stops earlier.
"""
CURVED = 1e-6
"""A direction counts as flat if the second derivative of lhs/rhs is at most this fraction of the
largest second derivative. If this fraction is larger, more directions count as flat.
"""
STALLED = 1e-5
"""The end of a climb (ascent of lhs/rhs) counts as a kink if the relative slope there exceeds this
value.

If this value is larger, fewer ends of climbs count as kinks.
"""


SPREAD = ("wide", "log-normal")
"""Kinds of starting instances with values of very different sizes.

A climb (ascent of lhs/rhs) from a start of these kinds first changes the logarithms of the values.
"""


class Point(NamedTuple):
    """The end of a climb (ascent of lhs/rhs): a local optimum of the ratio.

    Tied coordinates are coordinates that move together.

    Attributes:
        ties: the coordinates that move together (see `snapping.Ties`).
        values: one value for each set of coordinates that move together, of shape (k,).
        kind: a word for the kind of instance from which the ascent of lhs/rhs started.
        stalled: whether the ascent by slopes ended at a kink of lhs/rhs.
    """

    instance: Instance
    ties: Ties
    values: np.ndarray
    ratio: float
    kind: str = ""
    stalled: bool = False


def at(
    problem: Problem, instance: Instance, /, tolerance: float, basis: Basis | None = None
) -> Point:
    """Return an instance as a `Point`, with its groups of equal coordinates and its ratio lhs/rhs.

    Two entries of a leaf are tied if they differ by at most `tolerance` times its largest entry.
    """
    instance = problem.put(instance)
    ties, values = tied(instance, tolerance, basis)
    same = unflat(instance, ties.expand(values)) if len(values) else instance
    return Point(same, ties, values, float(problem.ratios([same])[0]))


def _by_value(ties: Ties, values: np.ndarray, instance: Instance) -> np.ndarray:
    """Return |v| as the scale of each value v, so that the search moves a small value little."""
    return np.maximum(np.abs(values), 1e-3 * np.max(np.abs(values)))


def _by_leaf(ties: Ties, values: np.ndarray, instance: Instance) -> np.ndarray:
    """Return for each value the root mean square of the array that holds the value."""
    scale = np.ones(len(values))
    ends = np.cumsum([leaf.size for leaf in floats_of(instance)])[:-1]
    moving, x = ties.signs != 0, values[ties.labels]
    for rows in np.split(np.arange(len(x)), ends):
        if len(own := rows[moving[rows]]):
            largest = np.max(np.abs(x[own]))  # the square of an entry may overflow
            scale[ties.labels[own]] = largest * np.sqrt(np.mean((x[own] / largest) ** 2))
    return scale


Scaling = Callable[[Ties, np.ndarray, Instance], np.ndarray]
"""A function that returns a scale (a typical size) for each value, as an array of shape (k,)."""


def _climbed(
    problem: Problem,
    ties: Ties,
    values: np.ndarray,
    instance: Instance,
    until: float,
    scaling: Scaling = _by_value,
) -> tuple[Instance, bool]:
    """Raise log(lhs/rhs) by BFGS in scaled coordinates; if BFGS stops at a kink, move along it."""
    scale, loss = _relative(problem, ties, values, instance, scaling)
    with np.errstate(all="ignore"):
        found = scipy.optimize.minimize(
            loss, values / scale, jac=True, method="BFGS", options={"gtol": SLOPE, "maxiter": 300}
        )
        best = found.x if np.all(np.isfinite(found.x)) else values / scale
        stalled = not np.max(np.abs(found.jac), initial=0.0) < STALLED
        if stalled and time.process_time() < until:
            best = walked(loss, best, until=until)
        return problem.back(unflat(instance, ties.expand(scale * best))), stalled


def _in_logs(problem: Problem, ties: Ties, values: np.ndarray, instance: Instance) -> Instance:
    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        moved = values * np.exp(np.clip(w, -300, 300))
        score, slope = problem.slope(moved, ties, instance)
        return -score, -slope * moved

    with np.errstate(all="ignore"):
        found = scipy.optimize.minimize(
            loss, np.zeros(len(values)), jac=True, method="BFGS", options={"gtol": SLOPE}
        )
        best = np.clip(np.nan_to_num(found.x), -300, 300)
    return problem.back(unflat(instance, ties.expand(values * np.exp(best))))


def _relative(
    problem: Problem,
    ties: Ties,
    values: np.ndarray,
    instance: Instance,
    scaling: Scaling = _by_value,
) -> tuple[np.ndarray, Loss]:
    scale = scaling(ties, values, instance)

    def loss(z: np.ndarray) -> tuple[float, np.ndarray]:
        if not np.all(np.isfinite(z)):
            return UNCOUNTED, np.zeros(len(z))
        score, slope = problem.slope(scale * z, ties, instance)
        return -score, -slope * scale

    return scale, loss


def _finer(problem: Problem, point: Point, until: float) -> Point:
    ties, values = tied(point.instance, 0.0)
    if not 0 < len(values) <= LARGEST:
        return point
    scale, loss = _relative(problem, ties, values, point.instance)
    with np.errstate(all="ignore"):
        x = bundled(loss, values / scale, until=until)
    there = problem.back(unflat(point.instance, ties.expand(scale * x)))
    better = at(problem, there, 1e-9)._replace(stalled=True)
    return better if better.ratio > point.ratio else point


def polished(
    problem: Problem,
    starts: Sequence[Start],
    /,
    *,
    until: float,
    snap: bool = True,
    reach: float = np.inf,
) -> list[Point]:
    """Raise lhs/rhs from each start, and return the best point that each start leads to.

    Each start is tried with several sets of tied (equal) coordinates.

    If an ascent reaches the known ratio `reach`, the function tries no further ties for its start.
    After `time.process_time()` reaches `until`, no ascent begins, except the first.
    """
    found: list[Point] = []
    for kind, start in starts:
        if found and time.process_time() > until:
            break
        points = [at(problem, start, 0.0)]
        if kind in SPREAD and len((own := tied(start, 0.0))[1]):
            start = _in_logs(problem, *own, start)
            points.append(at(problem, start, 1e-9))
        ways = list(snapped(problem, start)) if snap else [tied(start, 0.0)]
        scaling = _by_value
        if reach < np.inf:
            ways.reverse()  # try few ties first, because many ties often give the known ratio
            scaling = _by_value if kind in SPREAD else _by_leaf
        for ties, values in ways:
            best = max(point.ratio for point in points)
            if len(points) > 1 and (
                time.process_time() > until or reach * (1 - SAME / 10) <= best < np.inf
            ):
                break
            climbed, stalled = _climbed(problem, ties, values, start, until, scaling)
            points.append(at(problem, climbed, 1e-9, ties.basis)._replace(stalled=stalled))
        # Among points with equal ratios, the first point has the fewest free values.
        best = max(point.ratio for point in points)
        same = (p for p in points[1:] + points[:1] if p.ratio >= best * (1 - SAME / 10))
        point = next(same)
        if point.stalled and time.process_time() < until:
            point = _finer(problem, point, until)
        found.append(point._replace(kind=kind))
    return found


def evolved(problem: Problem, point: Point, /, *, seed: int, until: float) -> Point:
    """Search around a point at a kink by CMA-ES, a random search; then move along the kinks."""
    ties, values = tied(point.instance, 0.0)
    if not len(values):
        return point
    free = Ties(np.ones(len(ties.labels)), np.arange(len(ties.labels)), ties.basis)
    x = np.asarray(flat(point.instance), float)
    scale = np.full(len(x), np.sqrt(np.mean(x**2)))
    losses = lambda z: -problem.scores(scale * z, free, point.instance)
    best = by_cma(losses, x / scale, spread=0.1, seed=seed, until=until)
    found = problem.back(unflat(point.instance, scale * best))
    climbed, _ = _climbed(problem, free, np.asarray(flat(found), float), found, until)
    there = at(problem, climbed, 1e-9)._replace(stalled=True)
    return _finer(problem, there, until)._replace(kind="CMA-ES")


def best_neighbour(problem: Problem, instance: Instance, seed: int, /) -> tuple[Instance, float]:
    """Return the neighbour of an instance with the largest lhs/rhs, and this largest ratio.

    A neighbour that meets the hypotheses counts even if the statement's `project` would change it.
    """
    with np.errstate(all="ignore"):  # moves next to the largest floats may overflow
        near = list(neighbours(instance, np.random.default_rng(seed)))
    found = [problem.back(moved) for moved in near]
    if problem.statement.project is not None and problem.statement.hypotheses is not None:
        found += near
    ratios = problem.ratios(found)
    best = int(np.argmax(ratios))
    return found[best], float(ratios[best])


def curvature(problem: Problem, point: Point, /) -> tuple[np.ndarray, np.ndarray]:
    """Return directions, as columns, and -d^2 log(lhs/rhs) along each direction (0 if flat).

    The second derivatives of lhs/rhs are difference quotients of its slopes. The coordinates are
    the free values divided by their absolute values at the point.
    """
    scale, step = np.abs(point.values), 1e-5
    slope = lambda z: scale * problem.slope(scale * z, point.ties, point.instance)[1]
    centre, eye = np.sign(point.values), np.eye(len(scale))
    rows = [(slope(centre + step * e) - slope(centre - step * e)) / (2 * step) for e in eye]
    second = np.array(rows).reshape(len(scale), len(scale))
    bent, directions = np.linalg.eigh(-(second + second.T) / 2)
    flat_below = max(CURVED * np.max(np.abs(bent), initial=0.0), CURVED)
    return scale[:, None] * directions, np.where(bent > flat_below, bent, 0.0)
