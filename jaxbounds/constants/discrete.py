"""Constants over sets of finitely many points: all points measured, or moves between neighbours.

Slopes do not exist there. If time allows, every point is measured. Otherwise many chains of moves
climb from draws. Then the largest ratio is attained only if several rounds of chains end there and
no neighbour has a larger ratio.
"""

import time
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import Budget, Instance
from jaxbounds.constants.polish import SAME, Point, at
from jaxbounds.constants.problem import Problem
from jaxbounds.falsification.bench import Bench, Pool, concatenate, length, take
from jaxbounds.falsification.discrete import (
    all_points,
    finite_sets,
    leaves_of,
    neighbours,
)
from jaxbounds.falsification.examples import SOURCE
from jaxbounds.falsification.explore import draw
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import climb, one_leaf
from jaxbounds.falsification.programs import UNKEPT

AT_ONCE = 4096
"""Points that are measured at once; more points hold more memory, fewer take longer for each."""
MOST = 2**24
"""Points of which all may be measured; a larger number counts for minutes."""
SHARE, SEARCHED = 0.6, 0.5
"""Shares of the time: for measuring all points, and for chains of moves. Larger shares leave less
time for other searches.
"""
CHAINS, STEPS = 256, 200
"""Chains that climb at once, and the moves of each; more find rarer points, for longer."""
AGREEING = 3
"""Rounds of chains that must end at the largest ratio. Each round has draws of its own, and the
chains of one round learn from each other. More rounds miss fewer rare points.
"""
ROUNDS = 200
"""Rounds of chains at most; a larger number searches longer."""
NEIGHBOURS = 4096
"""Neighbours of a point, for each array, that must not be larger; more neighbours take longer."""


class Settled(NamedTuple):
    """The constant over finite sets.

    Attributes:
        point: the best point.
        every: whether all points were measured.
        doubt: why the point may not be the largest; empty without a doubt.
    """

    point: Point
    every: bool
    doubt: str


def is_discrete(problem: Problem, /) -> bool:
    """Tell whether every entry of an instance lies in a set of finitely many points."""
    statement = problem.statement
    return not statement.host and all_points(statement, problem.size) is not None


class _Wide:
    """A measurement of many ratios at once, by a program of its own."""

    def __init__(self, problem: Problem, batch: int) -> None:
        self.size = problem.size
        self.bench = Bench(problem.statement, batch, UNKEPT)
        self._back = projected(self.bench, self.size)

    def ratios(self, batch: Instance) -> np.ndarray:
        m = self.bench(batch, self.size).column(0)
        with np.errstate(all="ignore"):
            value = m.lhs / m.rhs
        counts = m.counted & np.isfinite(value) & (m.rhs > 0)
        return np.asarray(np.where(counts, value, -np.inf))

    def score(self, batch: Instance) -> tuple[Instance, np.ndarray, np.ndarray]:
        there = self._back(batch)
        value = self.ratios(there)
        return there, value, np.isfinite(value)


def _every(problem: Problem, like: Instance, until: float) -> Instance | None:
    """Return the best of all points; None where measuring all takes too long."""
    sets = all_points(problem.statement, problem.size)
    count = sets.cardinality(problem.size) if sets else None
    if sets is None or count is None or count > MOST:
        return None
    left, wide = until - time.process_time(), _Wide(problem, min(AT_ONCE, count))
    best, value, started = None, -np.inf, time.process_time()
    for first in range(0, count, AT_ONCE):
        rows = np.arange(first, min(first + AT_ONCE, count))
        points = sets.numbered(rows, problem.size)
        points = jax.tree.map(lambda point, leaf: np.asarray(point, leaf.dtype), points, like)
        ratios = wide.ratios(points)
        if np.max(ratios) > value:
            best, value = take(points, int(np.argmax(ratios))), float(np.max(ratios))
        if first == 0:
            started = time.process_time()  # the program is compiled now
        done = (first // AT_ONCE) or 1
        each = (time.process_time() - started) / done if first else 0.0
        if each * (count / AT_ONCE - done) > SHARE * left - (time.process_time() - started):
            return None
    return best


def neighbour_is_larger(problem: Problem, pool: Pool, point: Point, /) -> bool:
    """Tell whether another integer, or another point of a finite set, has a larger ratio.

    The other entries of the instance stay.
    """
    if problem.statement.host or not finite_sets(problem.statement, problem.size):
        return False
    there = _larger_neighbour(problem, _Wide(problem, CHAINS), point.instance, pool)
    return float(problem.ratios([there])[0]) > point.ratio * (1 + SAME)


def _larger_neighbour(problem: Problem, wide: _Wide, point: Instance, pool: Pool) -> Instance:
    """Return the instance with the largest ratio among the point and its neighbours."""
    batch, _ = pool.of_size(0)
    leaves, structure = jax.tree.flatten(point)
    spread = jax.tree.leaves(batch)
    found = [point]
    for i in sorted(leaves_of(finite_sets(problem.statement, problem.size), point)):
        if not np.size(leaves[i]):
            continue
        ends = np.min(spread[i]).item(), np.max(spread[i]).item()
        for other in neighbours(np.asarray(leaves[i]), ends, NEIGHBOURS):
            moved = [other.astype(leaf.dtype) if j == i else leaf for j, leaf in enumerate(leaves)]
            found.append(jax.tree.unflatten(structure, moved))
    stacked = jax.tree.map(lambda *parts: np.stack(parts), *found)
    there, value, _ = wide.score(stacked)
    return take(there, int(np.argmax(value)))


def settled(
    problem: Problem, pool: Pool, budget: Budget, /, *, seed: int, until: float
) -> Settled | None:
    """Return the best point over finite sets, with a doubt about it; None where no point counts.

    Args:
        problem: a problem with `is_discrete`.
        pool: the pool of draws and earlier results.
        budget: the budget of further draws.
        seed: the seed of all draws.
        until: a time of `time.process_time`.
    """
    batch, _ = pool.of_size(0)
    like = take(batch, 0)
    best = _every(problem, like, until)
    if best is not None:
        point = at(problem, best, 0.0)
        return Settled(point._replace(kind="every"), True, "") if point.ratio > 0 else None
    return _by_moves(problem, pool, budget, seed, until)


def _by_moves(
    problem: Problem, pool: Pool, budget: Budget, seed: int, until: float
) -> Settled | None:
    wide, rng = _Wide(problem, CHAINS), np.random.default_rng([seed, 13])
    discrete = leaves_of(finite_sets(problem.statement, problem.size), take(pool.of_size(0)[0], 0))
    move = partial(one_leaf, discrete=discrete)
    drawn = [b for b, s in zip(pool.instances, pool.sources) if s != SOURCE]
    value, best, tops = -np.inf, None, list[float]()
    search_until = time.process_time() + SEARCHED * (until - time.process_time())
    for number in range(ROUNDS):
        batch = concatenate(drawn)
        starts = take(batch, rng.integers(length(batch), size=CHAINS))
        found = climb(wide.score, starts, rng, STEPS, move)
        top = int(np.argmax(np.nan_to_num(found.score, nan=-np.inf)))
        tops.append(float(found.score[top]))
        if tops[-1] > value:
            value, best = tops[-1], take(found.instances, top)
        agreeing = sum(end >= value * (1 - SAME) for end in tops)
        if time.process_time() > search_until or agreeing > AGREEING:
            break
        fresh = Pool()
        draw(problem.bench, fresh, budget, seed + 1000 * (number + 1))
        drawn = list(fresh.instances)
    if best is None:
        return None
    there = _larger_neighbour(problem, wide, best, pool)
    point = at(problem, there, 0.0)
    if point.ratio > value * (1 + SAME):
        return Settled(point._replace(kind="neighbour"), False, "a neighbour is larger")
    point = at(problem, best, 0.0)._replace(kind="moves")
    doubt = "" if agreeing >= AGREEING else (
        f"{agreeing} of {len(tops)} rounds of moves came to this ratio, over more points than "
        "could be measured. Try more seconds, or fewer points"
    )  # fmt: skip
    return Settled(point, False, doubt)
