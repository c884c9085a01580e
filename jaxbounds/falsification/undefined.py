"""Explain a NaN side: name the zero, or the edge of a set, at which the side is undefined."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.sets import Simplex
from jaxbounds.claims.statements import Statement
from jaxbounds.claims.statements.kinds import FITTED
from jaxbounds.falsification.bench import Column, Pool
from jaxbounds.falsification.found_equality import in_words

AT_ZERO = "Try jax.scipy.special.xlogy, entr or rel_entr for x log x, which is 0 at 0; or leave"
FINITE = "Try hypotheses that keep the sides finite, or compare logarithms"


def _flat(leaf: np.ndarray) -> np.ndarray:
    return leaf.reshape(len(leaf), -1)


def _where(pool: Pool, test: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
    """Return, for each float array's name, a mask of instances: `test` accepts an entry."""
    parts: dict[str, list[np.ndarray]] = {}
    for batch in pool.instances:
        for path, leaf in jax.tree_util.tree_flatten_with_path(dict(batch))[0]:
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            if np.issubdtype(leaf.dtype, np.floating) and leaf[0].size:
                parts.setdefault(name, []).append(np.any(test(_flat(leaf)), axis=1))
    total = sum(len(jax.tree.leaves(batch)[0]) for batch in pool.instances)
    joined = {name: np.concatenate(found) for name, found in parts.items()}
    return {name: found for name, found in joined.items() if len(found) == total}


def _places(statement: Statement, zeros: Iterable[str]) -> Iterator[str]:
    """Yield a clause for each array with a zero entry; the clause names a set with an edge at 0."""
    for name in zeros:
        one: Any = (statement.over or {}).get(name)
        edge = f", at a vertex or an edge of {one!r}" if _ends_at_zero(one) else ""
        yield f"an entry of {name} is 0{edge}"


def left_out(signs: Mapping[str, str], /) -> str:
    """Return Python code for the argument `hypotheses`, which excludes the zeros of some arrays.

    A screen may break the text at any space, so no string in the text has a space.

    Args:
        signs: a dict from each array's name to "> 0" or "!= 0"; a dot separates the names of nested
            dicts.
    """

    def condition(name: str, sign: str) -> str:
        entry = "i" + "".join(f'["{part}"]' for part in name.split("."))
        return f'"{name}{sign.replace(" ", "")}": jnp.all({entry} {sign})'

    return f"hypotheses=lambda i, size: {{{', '.join(map(condition, signs, signs.values()))}}}"


def _covering(zeros: Mapping[str, np.ndarray], lost: np.ndarray) -> list[str]:
    """Return a few arrays such that every NaN instance has a zero in one of them; else []."""
    chosen, left = list[str](), lost
    while np.any(left):
        name = max(zeros, key=lambda name: int(np.sum(zeros[name] & left)), default="")
        if not name or not np.any(zeros[name] & left):
            return []
        chosen.append(name)
        left = left & ~zeros[name]
    return [name for name in zeros if name in chosen]


def _ends_at_zero(one: Any) -> bool:
    """Return whether a zero entry lies at an edge of a set."""
    return isinstance(one, Simplex) or 0 in (getattr(one, "lo", None), getattr(one, "hi", None))


def where_undefined(statement: Statement, pool: Pool, column: Column, /) -> str:
    """Return the verdict's reason: the instances with NaN sides, and a way to exclude them.

    Args:
        statement: a claim that a single instance decides.
        pool: all instances measured so far.
        column: the measurements of one form (version of the claim) on the pool.

    Returns:
        A reason; empty if no side is NaN, if the verdict fits a trend over sizes, or if no float
        array explains the NaN.
    """
    m = column.measured
    lost = np.asarray(m.counted & np.isnan(m.value))
    if statement.kind in FITTED or not np.any(lost):
        return ""
    some = f"{int(np.sum(lost))} of {int(np.sum(m.counted))} instances that count"
    floats = _where(pool, lambda entries: entries == 0)
    infinite = bool(np.all((np.isinf(m.lhs) & (m.lhs == m.rhs))[lost]))
    said = f"both sides are infinite on {some}" if infinite else f"evaluate gives NaN on {some}"
    if zeros := _covering(floats, lost):
        sets: Any = statement.over or {}
        signs = {name: "> 0" if _ends_at_zero(sets.get(name)) else "!= 0" for name in zeros}
        there = " or ".join(_places(statement, zeros))
        cure = "Try to leave" if infinite else AT_ZERO
        return f"{said}, where {there}. {cure} these points out by {left_out(signs)}"
    if infinite:
        return f"{said}. {FINITE}"
    if np.all(lost[m.counted]):
        return (
            f"{some} gave NaN, which is every one: compute a side by hand at one of them. Try a "
            "side that floats can compute there"
        )
    if statement.host or not floats:
        return ""
    for name, below in _where(pool, lambda entries: entries <= 0).items():
        if np.all(below[lost]) and not np.all(below[m.counted]):
            return f"{said}. Try a hypothesis that excludes them: {left_out({name: '> 0'})}"
    instance = in_words(pool.instance(int(np.argmax(lost))))
    return f"{said}. Try a hypothesis that excludes these instances, such as {instance}"
