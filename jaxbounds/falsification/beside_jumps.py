"""Measure instances beside the violations of a claim whose program jumps.

A search often ends at a tie, such as two equal arguments of an argmax. Rounding decides the tie, so
a violation at the tie is no evidence. A violation that is no rounding stays beside the tie.
"""

import jax
import numpy as np

from jaxbounds.claims.statements import ON_AVERAGE, Size
from jaxbounds.falsification.bench import Bench, Pool, take
from jaxbounds.falsification.compared import sides_of
from jaxbounds.falsification.decide import violation
from jaxbounds.falsification.discrete import leaves_of
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import is_float
from jaxbounds.falsification.summands import has_jumps

DISTANCES = (1e-6, 1e-4, 1e-3, 1e-2)
"""The distances of the measured neighbours, relative to the largest entry of an array. More
distances find more violations beside a tie and take longer."""
WORST = 4
"""The search looks beside this many of the largest violations of each claim version. A larger
number finds more violations and takes longer."""


def look_beside_jumps(bench: Bench, pool: Pool, seed: int, /) -> None:
    """Add violations beside the worst violations to the pool, if the program of the sides jumps."""
    statement = bench.statement
    if statement.over is None or statement.host or statement.there_is is not None:
        return
    if statement.kind in ON_AVERAGE or statement.search == "none":
        return
    for index, size in enumerate(map(Size, statement.sizes)):
        if index not in pool.sizes:
            continue
        batch, m = pool.of_size(index)
        forms = range(len(statement.forms))
        amount = [violation(statement, m.column(form)) for form in forms]
        rows = [row for own in amount for row in np.argsort(-own)[:WORST] if own[row] > 0]
        leaves, structure = jax.tree.flatten(batch)
        floats = [i for i in leaves_of(statement.over, batch) if is_float(leaves[i])]
        if not rows or not floats:
            continue
        if not has_jumps(sides_of(bench, size, take(batch, [0] * bench.batch))[0]):
            continue
        rng = np.random.default_rng([seed, index, 11])
        many = max(1, bench.batch // (len(rows) * len(DISTANCES)))
        chosen = np.repeat(rows, many * len(DISTANCES))
        apart = np.tile(DISTANCES, len(rows) * many)
        near = [np.array(leaf[chosen]) for leaf in leaves]
        for i in floats:
            flat = near[i].reshape(len(chosen), -1)
            largest = np.max(np.abs(flat), axis=1, initial=0.0)
            step = (apart * np.where(largest > 0, largest, 1.0))[:, None]
            near[i] = near[i] + (step * rng.normal(size=flat.shape)).reshape(near[i].shape)
        there = projected(bench, size)(jax.tree.unflatten(structure, near))
        found = bench(there, size)
        worse = [violation(statement, found.column(form)) > 0 for form in forms]
        kept = np.flatnonzero(np.any(worse, axis=0))
        if len(kept):
            pool.add("search", index, take(there, kept), type(found)(*take(found, kept)))
