"""Record a few numbers that change if a formula changes, even if no verdict and no ratio does."""

import dataclasses
import functools
import operator
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import Size, Statement
from jaxbounds.falsification.evaluation import Reading, Xp, form_names, of_form

FEW = 3
"""The engine records a value with at most this many entries one by one, else as two weighted sums.
A larger limit makes the record longer."""
DRAWN = 2
"""The engine records values on this many draws of each sampler and size. More draws make the record
longer."""
DEEP = 4
"""The engine records values in objects nested to at most this many levels. A larger number records
values at deeper levels of an object."""
SMALL = 4096
"""For an array of at most this many entries, the weights of the recorded sums are constants. A
larger number puts larger constants into the compiled programs."""
_MULTIPLIERS, _MODULUS = (613, 787), 1009
Numbers = tuple[float, ...]
Noted = Mapping[str, Any]
"""The recorded values of an instance, or of a batch: a dictionary that holds a vector of numbers
for each key. A key is "lhs", "rhs", or the name of a function that the statement judges."""


class NotedAt(NamedTuple):
    """The origin of recorded instances: the index of their size, and the source that made them.

    The source is a sampler's name, "every" for an enumerated set, or "cases". `start` is the index
    of the first recorded instance among all instances of the source.
    """

    size: int
    source: str
    start: int = 0


class Row(NamedTuple):
    """The values that the engine records on one instance.

    Attributes:
        row: the index of the instance in the batch.
        of_forms: the recorded numbers of the sides, for each version of the claim.
        judged: the recorded numbers of the first result of each function that the claim is about.
    """

    at: NotedAt
    row: int
    of_forms: tuple[dict[str, Numbers], ...]
    judged: dict[str, Numbers]


def rows_of(source: str, count: int, /) -> tuple[int, ...]:
    """Return indices of instances to record: two random instances, or four hand-written ones."""
    if source != "cases":
        return tuple(range(min(DRAWN, count)))
    return tuple(dict.fromkeys(i * (count - 1) // 3 for i in range(4))) if count > 1 else (0,)


def _plain(value: Any, deep: int = DEEP) -> Iterator[Any]:
    for leaf in jax.tree.leaves(value):
        if isinstance(leaf, str | bytes):
            yield np.asarray(zlib.crc32(leaf.encode() if isinstance(leaf, str) else leaf))
        elif isinstance(leaf, bool | int | float | complex):
            yield np.asarray(leaf)
        elif isinstance(leaf, jax.Array | np.ndarray | np.generic):
            yield leaf
        elif dataclasses.is_dataclass(leaf) and not isinstance(leaf, type) and deep:
            for field in dataclasses.fields(leaf):
                yield from _plain(getattr(leaf, field.name, None), deep - 1)


def _reals(leaf: Any, xp: Xp) -> Iterator[Any]:
    kind = leaf.dtype
    if jax.dtypes.issubdtype(kind, jax.dtypes.extended) or kind.kind == "O":
        return
    if kind.kind in "US":
        leaf = np.array([zlib.crc32(str(word).encode()) for word in np.ravel(leaf)])
    flat = xp.asarray(leaf).reshape(-1)
    parts = (flat.real, flat.imag) if kind.kind == "c" else (flat,)
    yield from (part.astype(float) for part in parts)


def _weights(start: int, count: int, xp: Xp) -> Any:
    """Return weights of shape (count, 2) between 1/2 and 3/2 that are equal on every platform."""
    xp = np if count <= SMALL else xp  # a large constant would make the program large
    places = (start + xp.arange(count))[:, None] * np.array([_MULTIPLIERS])
    return (places % _MODULUS + _MODULUS // 2) / _MODULUS


def numbers(value: Any, xp: Xp, /) -> Any:
    """Return a few numbers that depend on every entry of a value; None without numbers in it."""
    parts = [part for leaf in _plain(value) for part in _reals(leaf, xp)]
    count = sum(map(len, parts))
    if not count:
        return None
    if count <= FEW:
        return xp.concatenate(parts)
    sums, start = [], 0
    for part in parts:
        finite = xp.where(xp.isfinite(part), part, 0.0)
        sums.append(finite @ _weights(start, len(part), xp))
        start += len(part)
    return functools.reduce(operator.add, sums)


def of_judged(returned: Mapping[str, Any], xp: Xp, /) -> dict[str, Any]:
    """Return the recorded numbers for each function that the claim is about, by name.

    While JAX traces, the function skips results that do not depend on the instance, because a cache
    may return these results without a call.
    """
    traced = lambda value: any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(value))
    kept = {name: v for name, v in returned.items() if xp is np or traced(v)}
    found = {name: numbers(value, xp) for name, value in sorted(kept.items())}
    return {name: vector for name, vector in found.items() if vector is not None}


def sides_of(statement: Statement, reading: Reading, /) -> tuple[dict[str, Any], ...]:
    """Return the recorded numbers of each claim version's sides on one instance.

    Sides that all versions share appear under the first version only.
    """
    found = []
    for i in range(len(form_names(statement)) - 1):
        own = lambda part, i=i: i == 0 or len(part) > 1
        parts = {"lhs": reading.lhs, "rhs": reading.rhs}
        vectors = {n: numbers(of_form(part, i), np) for n, part in parts.items() if own(part)}
        found.append({name: v for name, v in vectors.items() if v is not None})
    return tuple(found)


def values_of(
    statement: Statement, rows: Iterable[Row], form: int, /
) -> dict[str, dict[str, Numbers]]:
    """Return one claim version's recorded values, keyed by instance and then by name.

    Only the first version's values include the sides that all versions share.
    """
    found = {}
    for row in rows:
        place = f"{Size(statement.sizes[row.at.size])!r}, {row.at.source} {row.row}"
        judged = {name.removeprefix("jaxbounds."): v for name, v in row.judged.items()}
        found[place] = row.of_forms[form] | ({} if form else judged)
    return {place: values for place, values in found.items() if values}


def noted(
    statement: Statement, readings: Sequence[Reading], at: NotedAt, rows: Sequence[int], /
) -> list[Row]:
    """Record the values of the sides and of the claim's functions on some instances."""
    plain = lambda vectors: {name: tuple(map(float, v)) for name, v in vectors.items()}
    return [
        Row(at, at.start + row, tuple(map(plain, sides_of(statement, one))), plain(one.judged))
        for row, one in zip(rows, readings, strict=True)
    ]
