"""Round the entries of instances at which the sides of a bound nearly agree.

A search misses equality by rounding, but the instance with rounded entries often has exactly equal
sides, for example at unit vectors.
"""

import functools

import jax
import numpy as np

from jaxbounds.claims.statements import ON_AVERAGE, Size
from jaxbounds.falsification.bench import Bench, Pool, concatenate, take
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import Leaf, is_float

ROWS = 8
"""For each choice of array shapes, the search rounds at most this many instances. A larger number
finds more equalities and takes longer."""
NEARLY = 0.9
"""The search rounds an instance's entries if lhs / rhs is at least this value. A smaller value
rounds more instances."""
EQUAL = 1e-12
"""The search keeps an instance if lhs / rhs differs from one by at most this value. A larger value
keeps instances farther from equality."""
GRIDS = (1.0, 2.0, 8.0)
"""The search rounds entries to multiples of 1 / grid, and of (largest entry) / grid. More grids
find more equalities."""
LARGE = 2**22
"""The search skips rounded instances that would take more than this many bytes. A larger number
rounds larger instances."""


def _rounded(leaf: Leaf, grid: float, *, relative: bool) -> Leaf:
    axes = tuple(range(1, leaf.ndim))
    largest = np.max(np.abs(leaf), axis=axes, keepdims=True, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0) if relative else 1.0
    return np.asarray(np.round(leaf / unit * grid) / grid * unit, leaf.dtype)


def _first_entry(leaf: Leaf) -> Leaf:
    found = np.zeros_like(leaf)
    flat, own = found.reshape(len(leaf), -1), leaf.reshape(len(leaf), -1)
    flat[:, :1] = np.max(np.abs(own), axis=1, keepdims=True, initial=0.0)
    return flat.reshape(leaf.shape)


def look_at_zeros(bench: Bench, pool: Pool, /) -> None:
    """Set arrays to zero, alone and together, and keep the instances that speak against the claim.

    Such an instance has a NaN side, violates the claim, or has equal sides in a strict claim.
    """
    statement = bench.statement
    if statement.over is None or statement.host or statement.there_is is not None:
        return
    if statement.kind in ON_AVERAGE:
        return
    for index, size in enumerate(map(Size, statement.sizes)):
        if index not in pool.sizes:
            continue
        first = take(pool.of_size(index)[0], np.zeros(1, int))
        leaves, structure = jax.tree.flatten(first)
        floats = [i for i, leaf in enumerate(leaves) if is_float(leaf) and leaf[0].size]
        groups = [[i] for i in floats] + ([floats] if len(floats) > 1 else [])
        if not groups or sum(leaf.nbytes for leaf in leaves) * len(groups) > LARGE:
            continue
        near = [
            jax.tree.unflatten(
                structure, [leaf * 0 if i in zero else leaf for i, leaf in enumerate(leaves)]
            )
            for zero in groups
        ]
        there = projected(bench, size)(concatenate(near))
        found = bench(there, size)
        with np.errstate(invalid="ignore"):
            against = np.isnan(found.value) | (found.low > edge(statement))
            if statement.strict:
                against = against | (found.lhs >= found.rhs)
        kept = np.flatnonzero(np.any((found.counted & against)[:, :-1], axis=1))
        if len(kept):
            pool.add("search", index, take(there, kept), type(found)(*take(found, kept)))


def look_at_readable_points(bench: Bench, pool: Pool, /) -> None:
    """Add instances with round entries and equal sides (up to rounding) to the measured instances.

    For a strict claim, the function also adds rounded instances at which both sides are zero.
    """
    statement = bench.statement
    exact = statement.is_bound and statement.kind not in ON_AVERAGE and not statement.estimates
    if not exact or statement.host or statement.there_is is not None:
        return
    for index, size in enumerate(map(Size, statement.sizes)):
        if index not in pool.sizes:
            continue
        batch, m = pool.of_size(index)
        value = np.where(m.counted & np.isfinite(m.value), m.value, -np.inf)[:, :-1]
        best = np.max(value, axis=1, initial=-np.inf)
        rows = np.argsort(-best, kind="stable")[:ROWS]
        rows = rows[best[rows] >= NEARLY]
        leaves, structure = jax.tree.flatten(take(batch, rows))
        if not len(rows) or sum(leaf.nbytes for leaf in leaves) > LARGE:
            continue
        changes = [_first_entry] + [
            functools.partial(_rounded, grid=grid, relative=relative)
            for grid in GRIDS
            for relative in (False, True)
        ]
        near = [
            jax.tree.unflatten(
                structure,
                [change(x) if is_float(x) and x[0].size else x for x in leaves],
            )
            for change in changes
        ]
        there = projected(bench, size)(concatenate(near))
        found = bench(there, size)
        with np.errstate(invalid="ignore"):
            equal = found.counted & (np.abs(found.value - 1) <= EQUAL)
            if statement.strict:  # sides that are both zero have the ratio zero
                equal = equal | (found.counted & (found.lhs >= found.rhs))
        kept = np.flatnonzero(np.any(equal[:, :-1], axis=1))
        if len(kept):
            pool.add("search", index, take(there, kept), type(found)(*take(found, kept)))
