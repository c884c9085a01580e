"""Measure the range of lhs - rhs near the random draws, for a claim about a mean.

Rare large values may decide a mean, and n draws do not show values rarer than 1/n. Instances just
beyond the extremes of each drawn coordinate show some rare values.
"""

from collections.abc import Iterator

import jax
import numpy as np

from jaxbounds.claims.statements import Instance, Size
from jaxbounds.falsification.bench import Bench, Pool, batch_of, concatenate, length, take

ENTRIES = 16
"""The engine changes at most this many entries of an array one by one. A larger number finds more
rare values of lhs - rhs and takes longer."""
BASES = 2
"""Number of drawn instances that the engine moves; a larger number finds more rare values."""


def _beyond(values: np.ndarray) -> tuple[float, ...]:
    in_order = np.sort(values)
    last = min(len(values) - 1, 3)
    low, high = in_order[0], in_order[-1]
    below, above = in_order[last] - low, high - in_order[-1 - last]
    ends = (low, high, low - below, high + above, low - below / 3, high + above / 3)
    return (*ends, 0.0) if low < 0 < high or 0 <= low <= below or 0 <= -high <= above else ends


def _beside(batch: Instance) -> Iterator[Instance]:
    leaves, structure = jax.tree.flatten(batch)
    for place, leaf in enumerate(leaves):
        if not np.issubdtype(leaf.dtype, np.floating):
            continue
        flat = leaf.reshape(len(leaf), -1)
        for entry in range(min(flat.shape[1], ENTRIES)):
            for value in _beyond(flat[:, entry]):
                for row in range(BASES):
                    moved = np.array(leaf[row])
                    moved.reshape(-1)[entry] = value
                    at = [other[row] for other in leaves]
                    yield jax.tree.unflatten(structure, [*at[:place], moved, *at[place + 1 :]])


def reach(bench: Bench, pool: Pool, /) -> list[tuple[float, float]]:
    """Return each claim version's least and largest lhs - rhs at instances near the draws."""
    statement, seen = bench.statement, []
    for index, size in enumerate(map(Size, statement.sizes)):
        for batch, source, at in zip(pool.instances, pool.sources, pool.sizes):
            if at != index or source == "cases" or length(batch) < 2 or statement.host:
                continue
            beside = list(map(batch_of, _beside(batch)))
            if beside:
                many = concatenate([take(batch, slice(0, 1)), *beside])
                measured = bench(many, size)
                difference = np.where(measured.met, measured.lhs - measured.rhs, np.nan)
                seen.append(np.where(np.isfinite(difference), difference, np.nan))
    if not seen:
        return [(np.nan, np.nan)] * (len(statement.forms) + 1)
    # These functions skip NaN, and return NaN if all numbers are NaN.
    return [(float(np.fmin.reduce(c)), float(np.fmax.reduce(c))) for c in np.concatenate(seen).T]
