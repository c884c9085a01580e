"""Shrink a failing instance: make it simpler for human readers, as long as it still fails."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxbounds.claims.statements import Instance
from jaxbounds.falsification.storage import flatten, unflatten

Judge = Callable[[list[Instance]], np.ndarray]
"""A function from instances of one shape to their violations (-inf for an instance that holds)."""


def _candidates(flat: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Yield simpler instances: whole leaves rounded, then single entries set to zero or rounded."""
    moving = [name for name, leaf in flat.items() if np.issubdtype(leaf.dtype, np.floating)]

    def replaced(name: str, leaf: np.ndarray) -> dict[str, np.ndarray]:
        return flat | {name: leaf}

    for decimals in (0, 1, 2):
        for name in moving:
            with np.errstate(over="ignore"):
                rounded = np.asarray(np.round(flat[name], decimals))
            if not np.all(np.isfinite(rounded)):
                continue
            if not np.array_equal(rounded, flat[name]):
                yield replaced(name, rounded)
    for name in moving:
        for index in np.ndindex(flat[name].shape):
            entry = flat[name][index]
            with np.errstate(over="ignore"):
                rounder = [np.round(entry, decimals) for decimals in range(3)]
            for simpler in (0.0, *rounder):
                if _complexity(simpler) < _complexity(entry):
                    leaf = np.array(flat[name])
                    leaf[index] = simpler
                    yield replaced(name, leaf)


def _complexity(entry: Any) -> int:
    """Return an entry's complexity: 0 for zero, 1 + n for a number of n <= 2 decimals, else 9."""
    if entry == 0:
        return 0
    with np.errstate(over="ignore"):
        for decimals in range(3):
            if entry == np.round(entry, decimals):
                return 1 + decimals
    return 9


def _total(flat: dict[str, np.ndarray]) -> int:
    return sum(
        _complexity(float(entry))
        for leaf in flat.values()
        if np.issubdtype(leaf.dtype, np.floating)
        for entry in leaf.ravel()
    )


def shrink(instance: Instance, judge: Judge, /, *, rounds: int = 60) -> Instance:
    """Return the simplest failing instance found.

    Its violation is at least 0.1, or at least half of the original violation. A simpler instance
    has rounder numbers and fewer nonzero entries. The shapes stay unchanged.
    """
    flat = flatten(instance)
    floor = min(0.1, 0.5 * float(judge([unflatten(flat)])[0]))
    if not floor > 0:
        return instance
    for _ in range(rounds):
        proposals = list(_candidates(flat))
        if not proposals:
            break
        kept = judge([unflatten(p) for p in proposals]) >= floor
        survivors = [p for p, ok in zip(proposals, kept) if ok]
        if not survivors:
            break
        simplest = min(survivors, key=_total)
        if _total(simplest) >= _total(flat):
            break
        flat = simplest
    return unflatten(flat)
