"""Search by parallel sequences of random moves; add the results to the measured instances."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import Budget, Instance, Size
from jaxbounds.falsification.bench import Bench, Pool, batch_of, concatenate, length, take
from jaxbounds.falsification.cancellation import is_noise, largest_entry
from jaxbounds.falsification.discrete import finite_sets, leaves_of
from jaxbounds.falsification.evaluation import projection
from jaxbounds.falsification.measure import Measured, ranked
from jaxbounds.falsification.moves import (
    can_move,
    climb,
    grown,
    is_float,
    one_leaf,
    sparse,
    vertex,
    wide,
)

STEPS = {False: 3, True: 6}
"""One random move costs this many gradient steps of the budget, before (False) or after (True)
gradient ascent. A larger number makes fewer moves."""
WITHOUT_SLOPES = {False: 0.5, True: 2}
"""One random move costs this many gradient steps if the statement has no gradients. The values let
a search reach the middle of 2^20 integers. A larger number makes fewer moves."""
FAR = 1e3
"""The entries of a search may exceed, or fall below, the drawn entries by this factor. A larger
factor reaches numbers so large that their differences are only rounding errors."""
Place = tuple[int, int]
"""A pair of the run's seed and an index into the statement's sizes."""
InRange = Callable[[Instance], np.ndarray]
"""A function that returns a mask of the instances near the random draws."""


class FoundByMoves(NamedTuple):
    """The results of parallel sequences of random moves, one entry for each sequence.

    Attributes:
        kinds: the kind of each starting point.
        forms: the index of the claim version whose ratio each sequence maximises.
        score: lhs / rhs at the end; -inf if no instance counted as evidence.
        accepted: the number of steps that led to a worse instance.
        met: the number of steps to instances that met the hypotheses.
    """

    kinds: np.ndarray
    forms: np.ndarray
    score: np.ndarray
    accepted: np.ndarray
    met: np.ndarray


def _changed(change: Callable, batch: Instance, rng: np.random.Generator) -> Instance:
    with np.errstate(all="ignore"):  # an instance that overflows does not count
        return jax.tree.map(lambda x: change(x, rng) if is_float(x) and x[0].size else x, batch)


def projected(bench: Bench, size: Size, /) -> Callable[[Instance], Instance]:
    """Return a function that projects each instance of a batch onto the statement's hypotheses."""
    if bench.statement.project is None:
        return lambda batch: batch
    run = bench.mapped(projection(bench.statement, size), "project", size)
    return lambda batch: bench.in_parts(run, batch)


def measuring(
    bench: Bench, size: Size, targets: np.ndarray, /
) -> Callable[[Instance], tuple[Instance, Measured, np.ndarray]]:
    """Return a function that projects instances onto the hypotheses, and measures them.

    The array `targets` holds the index of the claim version for each instance. The function also
    returns a mask, which excludes violations that may be rounding.
    """
    back, chain = projected(bench, size), np.arange(len(targets))

    def measured(instances: Instance) -> tuple[Instance, Measured, np.ndarray]:
        moved = back(instances)
        found = jax.tree.map(lambda column: column[chain, targets], bench(moved, size))
        noise = is_noise(bench.statement, found, largest_entry(moved, np, axes=1))
        return moved, found, found.counted & ~np.isnan(found.value) & ~noise

    return measured


def spread_out(bench: Bench, pool: Pool, at: Place, /) -> Instance:
    """Return a batch of random instances whose entries have very different sizes."""
    seed, index = at
    rng, (batch, _) = np.random.default_rng([seed, index, 1]), pool.of_size(index)
    drawn = take(batch, rng.integers(length(batch), size=bench.batch))
    return projected(bench, Size(bench.statement.sizes[index]))(_changed(wide, drawn, rng))


def _starts(
    pool: Pool, at: Place, targets: np.ndarray, *, again: bool, bound: bool
) -> tuple[Instance, np.ndarray]:
    seed, index = at
    rng = np.random.default_rng([seed, index, 2])
    batch, measured = pool.of_size(index)
    rank = ranked(measured, bound)
    value = np.where(measured.counted & ~np.isnan(rank), rank, -np.inf)
    names = ("worst", "drawn", "vertex", "sparse") + (() if again else ("wide", "grown"))
    turn = np.arange(len(targets)) // (1 + max(targets))
    orders = np.argsort(-value, axis=0, kind="stable")
    worst = take(batch, orders[(turn // len(names)) % length(batch), targets])
    drawn = take(batch, rng.integers(length(batch), size=len(targets)))
    base = worst if again else drawn
    starts = [worst, drawn, _changed(vertex, base, rng), _changed(sparse, base, rng)]
    if not again:
        starts += [_changed(wide, drawn, rng), _grown(pool, index, drawn, rng)]
    which = turn % len(names)
    chosen = take(concatenate(starts), which * len(targets) + np.arange(len(targets)))
    return chosen, np.array(names)[which]


def _grown(pool: Pool, index: int, drawn: Instance, rng: np.random.Generator) -> Instance:
    """Return the worst instances at the previous shapes, enlarged to the current shapes.

    The function returns `drawn` if there are no previous shapes with as many axes.
    """
    if index - 1 not in pool.sizes:
        return drawn
    batch, measured = pool.of_size(index - 1)
    value = np.where(measured.counted[:, 0], measured.value[:, 0], -np.inf)
    small, like = take(batch, int(np.argmax(np.nan_to_num(value, nan=-np.inf)))), take(drawn, 0)
    axes = lambda tree: [(leaf.ndim, leaf.dtype) for leaf in jax.tree.leaves(tree)]
    same = str(jax.tree.structure(small)) == str(jax.tree.structure(like))
    if not same or axes(small) != axes(like):
        return drawn
    many = concatenate(list(map(batch_of, grown(small, like))))
    return take(many, rng.integers(length(many), size=length(drawn)))


def within_range_of(batch: Instance, /) -> InRange:
    """Return a test whether nonzero entries of instances are about as large as those of a batch.

    A difference of much larger numbers may be rounding, which refutes no claim.
    """

    def ends(leaf: np.ndarray) -> tuple[float, float]:
        size = np.abs(leaf[np.isfinite(leaf) & (leaf != 0)])
        return (np.min(size) / FAR, np.max(size) * FAR) if len(size) else (1 / FAR, FAR)

    bounds = [ends(leaf) for leaf in jax.tree.leaves(batch) if is_float(leaf)]

    def near(instances: Instance) -> np.ndarray:
        inside = np.ones(length(instances), bool)
        for leaf, (low, high) in zip(filter(is_float, jax.tree.leaves(instances)), bounds):
            size = np.abs(leaf.reshape(len(leaf), -1))
            inside &= np.all((size == 0) | ((size >= low) & (size <= high)), axis=1)
        return inside

    return near


def search_by_moves(
    bench: Bench, pool: Pool, budget: Budget, at: Place, /, *, again: bool
) -> FoundByMoves:
    """Run parallel sequences of random moves, equally many for each claim version.

    The pair `at` holds the run's seed and an index into the statement's sizes. The flag `again`
    says that gradient ascent ran before.
    """
    (seed, index), forms = at, len(bench.statement.forms)
    size = Size(bench.statement.sizes[index])
    targets = np.arange(max(bench.batch, forms)) % forms
    measured_at, near = measuring(bench, size, targets), within_range_of(pool.of_size(index)[0])

    def score(instances: Instance) -> tuple[Instance, np.ndarray, np.ndarray]:
        moved, measured, leads = measured_at(instances)
        value = ranked(measured, bench.statement.is_bound)
        # Without this rule, chains drift to instances whose error exceeds both sides.
        with np.errstate(invalid="ignore"):
            width = measured.high - measured.low
            clear = width <= bench.statement.tolerance * np.maximum(np.abs(value), 1.0)
        counts = leads & clear & near(moved)
        return moved, np.where(counts, value, -np.inf), np.asarray(measured.met)

    rng, steps = np.random.default_rng([seed, index, 3 + again]), budget.steps // STEPS[again]
    starts, kinds = _starts(pool, at, targets, again=again, bound=bench.statement.is_bound)
    discrete = leaves_of(finite_sets(bench.statement, size), starts)
    leaves = list(enumerate(jax.tree.leaves(starts)))
    movable = any(can_move(i, leaf, discrete) for i, leaf in leaves)
    if all(i in discrete for i, leaf in leaves if leaf[0].size):
        steps = int(budget.steps / WITHOUT_SLOPES[again])
    move = functools.partial(one_leaf, discrete=discrete)
    found = climb(score, starts, rng, max(1, steps) if movable else 0, move)
    ended = np.flatnonzero(np.isfinite(found.score))
    if len(ended):
        best = take(found.instances, ended)
        pool.add("search", index, best, bench(best, size))
    return FoundByMoves(kinds, targets, found.score, found.accepted, found.met)
