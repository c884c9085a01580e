"""Search for constants over finite sets: measure all points, or move from point to point.

On a finite set the ratio lhs/rhs has no slopes. If time allows, the search measures every point. If
the set has too many points, many chains of moves start from random draws and raise the ratio
lhs/rhs. The largest ratio counts as attained only if several rounds end at it, and no neighbour of
the best point has a larger ratio.
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
"""The number of points (instances) at which one call of a compiled program measures lhs/rhs.

A program that measures more points in one call needs more memory, but less time for each point.
"""
MOST = 2**24
"""The search measures every point of a set with at most this many points.

Measuring all points of a larger set would take minutes.
"""
SHARE, SEARCHED = 0.6, 0.5
"""SHARE is the share of the search's time that a measurement of all points may take. SEARCHED is
the share of the search's time for chains (sequences of moves between points). Larger shares leave
less time to the other searches of the constant.
"""
CHAINS, STEPS = 256, 200
"""The number of chains (sequences of moves that raise lhs/rhs) in a round, and the number of moves
in a chain.

A round with more or longer chains finds rarer points and takes longer.
"""
AGREEING = 3
"""The number of rounds of chains (sequences of moves) that must end at the largest ratio lhs/rhs.

If more rounds must agree, the search misses fewer rare points.
"""
ROUNDS = 200
"""The largest number of rounds of the search; in each round, chains of random changes raise
lhs/rhs. A search with more rounds takes longer.
"""
NEIGHBOURS = 4096
"""The search measures this many neighbours of the best point for each array; more neighbours take
longer."""


class Settled(NamedTuple):
    """The largest ratio lhs/rhs that the search found over finite sets.

    Attributes:
        every: whether the search measured all points of the finite sets.
        doubt: the reason why another point may have a larger ratio lhs/rhs; empty if no reason is
            known.
    """

    point: Point
    every: bool
    doubt: str


def is_discrete(problem: Problem, /) -> bool:
    """Tell whether every entry of an instance lies in a finite set."""
    statement = problem.statement
    return not statement.host and all_points(statement, problem.size) is not None


class _Wide:
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
            started = time.process_time()  # exclude the first batch, which compiled the program
        done = (first // AT_ONCE) or 1
        each = (time.process_time() - started) / done if first else 0.0
        if each * (count / AT_ONCE - done) > SHARE * left - (time.process_time() - started):
            return None
    return best


def neighbour_is_larger(problem: Problem, pool: Pool, point: Point, /) -> bool:
    """Tell whether a neighbour of a point has a larger ratio lhs/rhs.

    A neighbour has another value of an integer, or another element of one of its finite sets; all
    other entries are equal.
    """
    if problem.statement.host or not finite_sets(problem.statement, problem.size):
        return False
    there = _larger_neighbour(problem, _Wide(problem, CHAINS), point.instance, pool)
    return float(problem.ratios([there])[0]) > point.ratio * (1 + SAME)


def _larger_neighbour(problem: Problem, wide: _Wide, point: Instance, pool: Pool) -> Instance:
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
    """Return the best point over finite sets; None if no point meets the hypotheses.

    The search stops when `time.process_time()` reaches `until`.
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
        return Settled(point._replace(kind="neighbour"), False, "a neighbour has a larger ratio")
    point = at(problem, best, 0.0)._replace(kind="moves")
    doubt = "" if agreeing >= AGREEING else (
        f"only {agreeing} of {len(tops)} rounds of moves led to this ratio, and the set has too "
        "many points to measure all. Try more seconds, or a smaller set"
    )  # fmt: skip
    return Settled(point, False, doubt)
