"""Explain a NaN side: name the zero, or the edge of a set, at which the side is undefined."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbounds.claims.sets import Box, Simplex
from jaxbounds.claims.statements import Statement
from jaxbounds.claims.statements.kinds import FITTED
from jaxbounds.falsification.bench import Column, Pool
from jaxbounds.falsification.wording import in_words

AT_ZERO = "Try jax.scipy.special.xlogy, entr or rel_entr for x log x, or in other cases leave"
FINITE = "Try hypotheses that keep the sides finite, or compare logarithms"


class _Place(NamedTuple):
    """A condition on one array that may explain NaN sides.

    Attributes:
        words: a clause that states the condition.
        outside: Python code of a hypothesis that excludes the instances with this condition.
        zero: whether the condition is that an entry is zero.
        holds: for each instance, whether the condition holds.
    """

    words: str
    outside: str
    zero: bool
    holds: np.ndarray


def _flat(leaf: np.ndarray) -> np.ndarray:
    return leaf.reshape(len(leaf), -1)


def _where(pool: Pool, test: Callable[[str, np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
    parts: dict[str, list[np.ndarray]] = {}
    for batch in pool.instances:
        for path, leaf in jax.tree_util.tree_flatten_with_path(dict(batch))[0]:
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            if np.issubdtype(leaf.dtype, np.floating) and leaf[0].size:
                parts.setdefault(name, []).append(np.any(test(name, _flat(leaf)), axis=1))
    total = sum(len(jax.tree.leaves(batch)[0]) for batch in pool.instances)
    joined = {name: np.concatenate(found) for name, found in parts.items()}
    return {name: found for name, found in joined.items() if len(found) == total}


def _entry(name: str) -> str:
    return "i" + "".join(f'["{part}"]' for part in name.split("."))


def _is_finite(x: Any) -> bool:
    return isinstance(x, int | float) and math.isfinite(x)


def _ends(one: Any) -> tuple[float, float] | None:
    ends: list[Any] = [one.lo, one.hi] if isinstance(one, Box) else []
    return (float(ends[0]), float(ends[1])) if ends and all(map(_is_finite, ends)) else None


def _places(statement: Statement, pool: Pool) -> list[_Place]:
    sets: Any = statement.over or {}
    found = []
    for name, holds in _where(pool, lambda _, entries: entries == 0).items():
        one = sets.get(name)
        edge = isinstance(one, Simplex) or 0 in (getattr(one, "lo", None), getattr(one, "hi", None))
        sign = ">" if edge else "!="
        words = f"an entry of {name} is 0" + (
            f", at a vertex or an edge of {one!r}" if edge else ""
        )
        code = f'"{name}{sign}0": jnp.all({_entry(name)} {sign} 0)'
        found.append(_Place(words, code, True, holds))
    ends = {name: pair for name, one in sets.items() if (pair := _ends(one)) is not None}
    at_end = lambda name, entries: np.isin(entries, ends.get(name, ()))
    for name, holds in _where(pool, at_end).items():
        if name in ends:
            low, high = ends[name]
            words = f"an entry of {name} is an end of {sets[name]!r}"
            inside = f"({low:g} < {_entry(name)}) & ({_entry(name)} < {high:g})"
            found.append(_Place(words, f'"{name}_inside": jnp.all({inside})', False, holds))
    return found


def _covering(places: Sequence[_Place], lost: np.ndarray, counted: np.ndarray) -> list[_Place]:
    """Return a few conditions of which each NaN instance meets at least one, or []."""
    chosen, left = list[int](), lost
    while np.any(left):
        explained = lambda i, left=left: int(np.sum(places[i].holds & left))
        others = lambda i: int(np.sum(places[i].holds & counted & ~lost))
        best = max(range(len(places)), key=lambda i: (explained(i), -others(i)), default=None)
        if best is None or not explained(best):
            return []
        chosen.append(best)
        left = left & ~places[best].holds
    return [places[i] for i in sorted(chosen)]


def left_out(conditions: Iterable[str], /) -> str:
    """Return the code of a statement's argument `hypotheses`, from the code of each condition.

    A terminal may break the code at any space, so no string in the code contains a space.
    """
    return f"hypotheses=lambda i, size: {{{', '.join(conditions)}}}"


def where_undefined(statement: Statement, pool: Pool, column: Column, /) -> str:
    """Return the verdict's reason: the instances with NaN sides, and a way to exclude them.

    The reason is empty if no side is NaN, if the statement is about a rate or limit, or if no float
    array explains the NaN.
    """
    m = column.measured
    lost = np.asarray(m.counted & np.isnan(m.value))
    if statement.kind in FITTED or not np.any(lost):
        return ""
    some = f"{int(np.sum(lost))} of {int(np.sum(m.counted))} instances that count"
    infinite = bool(np.all((np.isinf(m.lhs) & (m.lhs == m.rhs))[lost]))
    said = f"both sides are infinite on {some}" if infinite else f"evaluate gives NaN on {some}"
    if found := _covering(_places(statement, pool), lost, np.asarray(m.counted)):
        there = " or ".join(place.words for place in found)
        cure = AT_ZERO if all(place.zero for place in found) and not infinite else "Try to leave"
        out = left_out(place.outside for place in found)
        return f"{said}, where {there}. {cure} these points out by {out}"
    if infinite:
        return f"{said}. {FINITE}"
    if np.all(lost[m.counted]):
        return (
            f"{some} gave NaN, which is every one: compute a side by hand at one of them. Try a "
            "side that floats can compute there"
        )
    negative = _where(pool, lambda _, entries: entries <= 0)
    if statement.host or not negative:
        return ""
    for name, below in negative.items():
        if np.all(below[lost]) and not np.all(below[m.counted]):
            out = left_out([f'"{name}>0": jnp.all({_entry(name)} > 0)'])
            return f"{said}. Try a hypothesis that excludes them: {out}"
    instance = in_words(pool.instance(int(np.argmax(lost))))
    return f"{said}. Try a hypothesis that excludes these instances, such as {instance}"
