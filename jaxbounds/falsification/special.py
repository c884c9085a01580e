"""Measure identities at special points: integers, halves, ties, zeros, equal rows.

A draw from a continuous distribution is a special point with probability zero, so the engine
changes random draws.
"""

from collections.abc import Callable

import jax
import numpy as np

from jaxbounds.claims.statements import Size, Statement
from jaxbounds.falsification.bench import Bench, Pool, length, take
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import Leaf, Rng, entry_copied, is_float, row_copied, vertex

BATCHES = 2
"""Number of batches of special points for each choice of array shapes. More batches find rarer
combinations and take longer."""
LARGE = 2**22
"""A batch of special points takes at most this many bytes. A larger number makes special points of
larger instances."""
SAME = 0.5
"""Share of the special points in which all arrays get the same kind of change. A larger share mixes
fewer kinds."""
KEPT = 0.25
"""Share of unchanged arrays in special points that mix kinds of change. A larger share changes
fewer arrays."""


def _entry_to_zero(leaf: Leaf, rng: Rng) -> Leaf:
    moved = leaf.reshape(len(leaf), -1).copy()
    moved[np.arange(len(moved)), rng.integers(moved.shape[1], size=len(moved))] = 0.0
    return moved.reshape(leaf.shape)


def _rows_equal(leaf: Leaf, rng: Rng) -> Leaf:
    if leaf.ndim < 2:
        return leaf
    axis = int(rng.integers(1, leaf.ndim))
    return np.broadcast_to(np.take(leaf, [0], axis=axis), leaf.shape).copy()


CHANGES: tuple[Callable[[Leaf, Rng], Leaf], ...] = (
    lambda leaf, rng: np.zeros_like(leaf),
    lambda leaf, rng: np.round(leaf),
    lambda leaf, rng: np.round(2 * leaf) / 2,
    lambda leaf, rng: np.floor(leaf) + 0.5,
    lambda leaf, rng: np.sign(leaf),
    lambda leaf, rng: np.ones_like(leaf),
    _entry_to_zero,
    entry_copied,
    row_copied,
    _rows_equal,
    vertex,
)
"""Functions that turn a float array of many drawn instances into special values."""


def look_at_special_points(bench: Bench, pool: Pool, seed: int, /) -> None:
    """Add to `pool` the special points at which an identity's sides differ."""
    statement = bench.statement
    if not _is_tried(statement):
        return
    for index, size in enumerate(map(Size, statement.sizes)):
        if index not in pool.sizes:
            continue
        rng = np.random.default_rng([seed, index, 6])
        drawn, _ = pool.of_size(index)
        batch = take(drawn, rng.integers(length(drawn), size=BATCHES * bench.batch))
        leaves, structure = jax.tree.flatten(batch)
        if sum(leaf.nbytes for leaf in leaves) > LARGE:
            continue
        rows = np.arange(length(batch))
        alike = rng.random(len(rows)) < SAME
        common = rows % len(CHANGES)
        moved = []
        for leaf in leaves:
            if not is_float(leaf) or not leaf[0].size:
                moved.append(leaf)
                continue
            own = rng.integers(len(CHANGES), size=len(rows))
            own = np.where(rng.random(len(rows)) < KEPT, len(CHANGES), own)
            which = np.where(alike, common, own)
            with np.errstate(all="ignore"):
                changed = np.stack([*(change(leaf, rng) for change in CHANGES), leaf])
            moved.append(changed[which, rows].astype(leaf.dtype))
        there = projected(bench, size)(jax.tree.unflatten(structure, moved))
        found = bench(there, size)
        apart = found.counted & np.isfinite(found.value) & (found.value > statement.tolerance)
        kept = np.flatnonzero(np.any(apart[:, :-1], axis=1))
        if len(kept):
            pool.add("search", index, take(there, kept), type(found)(*take(found, kept)))


def _is_tried(statement: Statement) -> bool:
    identity = statement.kind == "identity" and statement.relation == "="
    return identity and bool(statement.sample) and not statement.host
