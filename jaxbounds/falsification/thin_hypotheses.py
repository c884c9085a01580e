"""Notice hypotheses that almost no random draw meets, such as an equation between the entries."""

import jax
import numpy as np

from jaxbounds.claims.statements import Statement
from jaxbounds.claims.statements.over import Projected, Within
from jaxbounds.falsification.bench import Column, Pool, length
from jaxbounds.falsification.found_equality import GRID
from jaxbounds.falsification.moves import is_float

SHARE = 0.25
"""An array is continuous if this share of its draws has many digits and no equal entries. A larger
share counts fewer arrays as continuous."""
DRAWS = 32
"""The engine judges hypotheses from this many draws with many digits and no equal entries. A larger
number judges fewer claims."""
FEWEST = 3
"""The engine refuses hypotheses that fewer than this many random draws meet. A larger number
refuses more claims."""


def thin_hypotheses(statement: Statement, pool: Pool, column: Column, /) -> str:
    """Return a reason if almost no draw in general position meets the claim's own hypotheses.

    The entries of a draw in general position differ and have many digits.
    """
    hypotheses, project = statement.hypotheses, statement.project
    own = isinstance(hypotheses, Within) and hypotheses.own is not None
    if not own or (isinstance(project, Projected) and project.own is not None):
        return ""
    if statement.over is None or statement.there_is is not None or statement.host:
        return ""
    general, start = np.zeros(len(column.sources), bool), 0
    for batch, source in zip(pool.instances, pool.sources):
        rows = slice(start, start + length(batch))
        start += length(batch)
        if source == "over":
            general[rows] = _in_general_position(jax.tree.leaves(dict(batch)), length(batch))
    met = int(np.sum(general & column.measured.met))
    if np.sum(general) < DRAWS or met >= FEWEST:
        return ""
    return (
        f"only {met} of {np.sum(general)} draws in general position meet the hypotheses, so most "
        "instances stay untested. Try sets in over= whose points meet the hypotheses, such as "
        "jb.Simplex or jb.Sphere, or project= in jb.Statement"
    )


def _in_general_position(leaves: list[np.ndarray], rows: int) -> np.ndarray:
    """Return a mask of the instances whose continuous entries differ and have many digits."""
    found, continuous = np.ones(rows, bool), False
    for leaf in leaves:
        entries = np.asarray(leaf).reshape(rows, -1)
        if not is_float(leaf) or not entries.shape[1]:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            plain = np.any(entries * GRID == np.round(entries * GRID), axis=1)
        ordered = np.sort(np.abs(entries), axis=1)
        alone = ~plain & np.all(np.diff(ordered, axis=1) > 0, axis=1)
        if np.mean(alone) >= SHARE:
            found, continuous = found & alone, True
    return found & continuous
