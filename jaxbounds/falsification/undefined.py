"""A zero, or an edge of a set, at which the sides of a claim are no numbers; in words."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.sets import Simplex
from jaxbounds.claims.statements import Statement
from jaxbounds.falsification.bench import Column, Pool

CURE = (
    "Try jax.scipy.special.xlogy, entr or rel_entr for x log x, which is 0 at 0; or leave these "
    "points out by hypotheses={...}"
)


def _flat(leaf: np.ndarray) -> np.ndarray:
    return leaf.reshape(len(leaf), -1)


def _at_zero(pool: Pool) -> dict[str, np.ndarray]:
    """For each array of floats, by its name, at which instances of the pool an entry is zero."""
    parts: dict[str, list[np.ndarray]] = {}
    for batch in pool.instances:
        for path, leaf in jax.tree_util.tree_flatten_with_path(dict(batch))[0]:
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            if np.issubdtype(leaf.dtype, np.floating) and leaf[0].size:
                parts.setdefault(name, []).append(np.any(_flat(leaf) == 0, axis=1))
    total = sum(len(jax.tree.leaves(batch)[0]) for batch in pool.instances)
    joined = {name: np.concatenate(found) for name, found in parts.items()}
    return {name: found for name, found in joined.items() if len(found) == total}


def _places(statement: Statement, pool: Pool, lost: np.ndarray) -> Iterator[str]:
    """The arrays of which an entry is zero wherever the sides are no numbers."""
    for name, zero in _at_zero(pool).items():
        if np.all(zero[lost]):
            one: Any = (statement.over or {}).get(name)
            edge = f", at a vertex or an edge of {one!r}" if _ends_at_zero(one) else ""
            yield f"an entry of {name} is 0{edge}"


def _ends_at_zero(one: Any) -> bool:
    """Whether entries that are zero are at the edge of a set."""
    return isinstance(one, Simplex) or 0 in (getattr(one, "lo", None), getattr(one, "hi", None))


def where_undefined(statement: Statement, pool: Pool, column: Column, /) -> str:
    """At which instances that count a side is no number; empty where nothing is common to them."""
    m = column.measured
    lost = np.asarray(m.counted & np.isnan(m.value))
    if not np.any(lost):
        return ""
    places = list(_places(statement, pool, lost))
    if not places:
        return ""
    return (
        f"evaluate is not finite at {int(np.sum(lost))} of {int(np.sum(m.counted))} instances that "
        f"count: there {' and '.join(places)}. {CURE}"
    )
