"""Look for instances so far away that bounded sets of `there_is` entries cannot follow them.

"For every real a there is an x in [0, 1000] with x >= a" is false, but draws of a are small.
"""

from typing import Any

import jax
import numpy as np

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Size
from jaxbounds.falsification.bench import Bench, Pool, take
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import is_float

SCALES = (1e3, 1e6, 1e9, 1e12)
"""`look_far_away` multiplies the entries of unbounded sets by these factors. Larger factors find
violations farther away, and leave more claims with rounding errors undecided."""
ROWS = 8
"""`look_far_away` multiplies the entries of this many instances. A larger number takes longer."""


def _is_bounded(chosen: Any, size: Size) -> bool:
    if not isinstance(chosen, Box | Integers):
        return False
    return bool(np.all(np.isfinite(chosen.ends(size))))


def look_far_away(bench: Bench, pool: Pool, /) -> None:
    """Add instances with huge entries at which no bounded `there_is` entry satisfies the claim."""
    statement = bench.statement
    if statement.there_is is None or statement.over is None or statement.host:
        return
    promised = statement.there_is.values()
    for index, size in enumerate(map(Size, statement.sizes)):
        far = [
            name for name, chosen in statement.over.items()
            if isinstance(chosen, Box) and not _is_bounded(chosen, size)
        ]  # fmt: skip
        if (
            index not in pool.sizes
            or not far
            or not all(_is_bounded(one, size) for one in promised)
        ):
            continue
        batch = take(pool.of_size(index)[0], slice(0, ROWS))
        for factor in SCALES:
            scaled = lambda leaf, by=factor: leaf * by if is_float(leaf) else leaf
            moved = {
                name: jax.tree.map(scaled, value) if name in far else value
                for name, value in batch.items()
            }
            there = projected(bench, size)(moved)
            found = bench(there, size)
            with np.errstate(invalid="ignore"):
                against = found.counted & (found.value > edge(statement))
            kept = np.flatnonzero(np.any(against[:, :-1], axis=1))
            if len(kept):
                pool.add("search", index, take(there, kept), type(found)(*take(found, kept)))
                break
