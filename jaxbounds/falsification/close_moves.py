"""Random changes of instances: bring points together, scale entries by decades, change one number.

The changes help if lhs / rhs is largest where two points nearly meet, at a scale that no random
draw has, or between two draws of a number.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import ON_AVERAGE, Budget, Instance, Size
from jaxbounds.falsification.bench import Bench, Pool, length, take
from jaxbounds.falsification.decide import violation
from jaxbounds.falsification.measure import ranked
from jaxbounds.falsification.move_search import (
    FoundByMoves,
    Place,
    measuring,
    projected,
    within_range_of,
)
from jaxbounds.falsification.moves import MOVES, Leaf, Rng, climb, is_float

TOGETHER, DECADES = 3, 16
"""One random move replaces this many gradient steps: TOGETHER if two arrays have equal shape, else
DECADES. A smaller number tries more moves and takes longer."""
CLOSEST = 8.0
"""Two points come closer by at most this many powers of ten in one step. A larger number reaches
distances as small as rounding errors."""
WIDEST = 20.0
"""A step scales an array or an entry by at most this many powers of ten. A larger number reaches
rarer scales and overflows more often."""
BETWEEN = 16
"""Between two neighbouring random draws of a single number, the search tries this many points. A
larger number finds narrower spikes."""
HELD = 2
"""Far from all random draws, ball arithmetic decides at most this many violations. Each decision
takes seconds, so a larger number takes longer."""


def _along(factors: np.ndarray, leaf: Leaf) -> np.ndarray:
    return factors.reshape(-1, *[1] * (leaf.ndim - 1))


def closer(own: Leaf, other: Leaf, rng: Rng, /) -> Leaf:
    """Move the second of two points so that their distance shrinks by a factor from .9 to 1e-8."""
    factor = 10.0 ** -rng.uniform(0.05, rng.choice([0.5, CLOSEST]), size=len(own))
    return own + _along(factor, own) * (other - own)


def beside(own: Leaf, other: Leaf, rng: Rng, /) -> Leaf:
    """Return a random point at distance |other - own| from `own` or from `other`."""
    flat = (other - own).reshape(len(own), -1)
    far = np.sqrt(np.sum(flat**2, axis=1, keepdims=True))
    chosen = rng.random(flat.shape) < rng.choice([1.0, 0.5, 1 / flat.shape[1]])
    way = np.where(chosen, rng.normal(size=flat.shape), 0.0)
    size = np.sqrt(np.sum(way**2, axis=1, keepdims=True))
    way = way / np.where(size > 0, size, 1.0)
    mixed = way * far + rng.choice([0.0, 1.0]) * flat
    return own + mixed.reshape(own.shape)


def decades(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Scale an array, or one entry, by a random number of powers of ten."""
    factor = 10.0 ** rng.uniform(-WIDEST, WIDEST / 4, size=len(leaf))
    if rng.random() < 0.5:
        return leaf * _along(factor, leaf)
    moved, chains = leaf.reshape(len(leaf), -1).copy(), np.arange(len(leaf))
    moved[chains, rng.integers(moved.shape[1], size=len(leaf))] *= factor
    return moved.reshape(leaf.shape)


def pairs_of(leaves: Sequence[Leaf], /) -> list[tuple[int, int]]:
    """Return the ordered pairs of float arrays that have the same shape."""
    moving = [i for i, leaf in enumerate(leaves) if is_float(leaf) and leaf[0].size]
    return [(i, j) for i in moving for j in moving if i != j and leaves[i].shape == leaves[j].shape]


def one_step(leaves: Sequence[Leaf], rng: Rng, /) -> list[Leaf]:
    """Bring two arrays closer, turn one around the other, or scale one by many decades."""
    pairs = pairs_of(leaves)
    moving = [i for i, leaf in enumerate(leaves) if is_float(leaf) and leaf[0].size]
    new = list(leaves)
    with np.errstate(all="ignore"):  # an instance that overflows does not count
        if not pairs or rng.random() < 0.1:
            at = moving[int(rng.integers(len(moving)))]
            new[at] = decades(leaves[at], rng)
        else:
            i, j = pairs[int(rng.integers(len(pairs)))]
            how = rng.random()
            if how < 0.35:
                new[j] = closer(leaves[i], leaves[j], rng)
            elif how < 0.55:
                new[j] = beside(leaves[i], leaves[j], rng)
            else:
                new[i] = MOVES[rng.integers(len(MOVES))](leaves[i], rng)
                new[j] = leaves[j] + (new[i] - leaves[i])
    return [moved.astype(own.dtype) for moved, own in zip(new, leaves)]


def _starts(pool: Pool, at: Place, targets: np.ndarray) -> tuple[Instance, np.ndarray]:
    (batch, measured), rng = pool.of_size(at[1]), np.random.default_rng([*at, 7])
    value = np.where(measured.counted & ~np.isnan(measured.value), measured.value, -np.inf)
    order = np.argsort(-value, axis=0, kind="stable")
    turn = np.arange(len(targets)) // (1 + max(targets))
    worst = order[(turn // 2) % length(batch), targets]
    drawn = rng.integers(length(batch), size=len(targets))
    return take(batch, np.where(turn % 2 == 0, worst, drawn)), np.where(
        turn % 2 == 0, "worst", "drawn"
    )


class _Held:
    def __init__(self, forms: int) -> None:
        self.rows: list[list[tuple[float, Any]]] = [[] for _ in range(forms)]

    def take(self, instances: Instance, targets: np.ndarray, excess: np.ndarray) -> None:
        for row in np.flatnonzero(excess > 0):
            own = self.rows[targets[row]]
            if len(own) < HELD or excess[row] > own[-1][0]:
                own.append((float(excess[row]), take(instances, int(row))))
                own.sort(key=lambda pair: -pair[0])
                del own[HELD:]


def search_close(
    bench: Bench, pool: Pool, budget: Budget, at: Place, /
) -> tuple[FoundByMoves, list[Instance]]:
    """Run parallel sequences of random moves from the worst and from random instances.

    Returns:
        The results of the sequences, and the violations that lie far from all random draws.
    """
    (seed, index), statement = at, bench.statement
    size, forms = Size(statement.sizes[index]), len(statement.forms)
    targets = np.arange(max(bench.batch, forms)) % forms
    measured_at, near = measuring(bench, size, targets), within_range_of(pool.of_size(index)[0])
    held = _Held(forms)

    def score(instances: Instance) -> tuple[Instance, np.ndarray, np.ndarray]:
        moved, measured, leads = measured_at(instances)
        value = ranked(measured, bench.statement.is_bound)
        with np.errstate(invalid="ignore"):
            width = measured.high - measured.low
            clear = width <= statement.tolerance * np.maximum(np.abs(value), 1.0)
            excess = np.where(leads, violation(statement, measured), -np.inf)
        far = ~near(moved)
        held.take(moved, targets, np.where(far & np.isfinite(value), excess, -np.inf))
        counts = leads & clear & ~(far & (excess > 0))
        return moved, np.where(counts, value, -np.inf), np.asarray(measured.met)

    starts, kinds = _starts(pool, at, targets)
    leaves = jax.tree.leaves(starts)
    moving = any(is_float(leaf) and leaf[0].size for leaf in leaves)
    steps = budget.steps // (TOGETHER if pairs_of(leaves) else DECADES) if moving else 0
    rng = np.random.default_rng([seed, index, 8])
    found = climb(score, starts, rng, steps, one_step)
    ended = np.flatnonzero(np.isfinite(found.score) & (found.accepted > 0))
    if len(ended):
        best = take(found.instances, ended)
        pool.add("search", index, best, bench(best, size))
    distant = [instance for own in held.rows for _, instance in own]
    return FoundByMoves(kinds, targets, found.score, found.accepted, found.met), distant


def look_between(bench: Bench, pool: Pool, index: int, /) -> None:
    """If instances are single floats, measure floats between draws; add the worst to `pool`."""
    statement, size = bench.statement, Size(bench.statement.sizes[index])
    batch, measured = pool.of_size(index)
    leaves, structure = jax.tree.flatten(batch)
    if statement.kind in ON_AVERAGE or len(leaves) != 1 or not is_float(leaves[0]):
        return
    if leaves[0][0].size != 1:
        return
    known = np.unique(leaves[0][np.isfinite(leaves[0])])
    if len(known) < 2:
        return
    with np.errstate(all="ignore"):
        share = np.arange(1, BETWEEN) / BETWEEN
        points = known[:-1, None] * (1 - share) + known[1:, None] * share
    shape = (points.size, *leaves[0].shape[1:])
    many = jax.tree.unflatten(structure, [points.reshape(shape).astype(leaves[0].dtype)])
    many = projected(bench, size)(many)
    found = bench(many, size)
    value = np.where(found.counted & ~np.isnan(found.value), found.value, -np.inf)
    before = np.where(measured.counted & ~np.isnan(measured.value), measured.value, -np.inf)
    order = np.argsort(-value, axis=0, kind="stable")[:4]
    worse = value[order, np.arange(value.shape[1])] > np.max(before, axis=0)
    rows = np.unique(order[worse])
    if len(rows):
        pool.add("search", index, take(many, rows), type(found)(*take(found, rows)))
