"""Shrink a failing instance: make it simpler for human readers, as long as it still fails."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxbounds.claims.statements import Instance
from jaxbounds.falsification.storage import flatten, unflatten

Judge = Callable[[list[Instance]], np.ndarray]
"""A function from instances of one shape to their violations; -inf for an instance without a
violation."""

UNROUND = 9
"""The complexity of an entry with more than two decimals. A larger number removes decimals even at
the cost of more nonzero entries."""
SMALL = 0.1
"""An entry below this size is also rounded to one or two digits. A larger size rounds more entries.
"""
DECADES = range(1, 13)
"""Powers of ten by which `enlarged` scales an instance. A longer range enlarges smaller instances
and takes longer."""


def _candidates(flat: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
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
            for simpler in (0.0, *rounder, *_of_few_digits(float(entry))):
                if _complexity(simpler) < _complexity(entry):
                    leaf = np.array(flat[name])
                    leaf[index] = simpler
                    yield replaced(name, leaf)


def _complexity(entry: Any) -> int:
    """Return 0 for zero, 1 to 3 for 0 to 2 decimals, 4 or 5 for numbers like 0.0012, else 9."""
    if entry == 0:
        return 0
    with np.errstate(over="ignore"):
        for decimals in range(3):
            if entry == np.round(entry, decimals):
                return 1 + decimals
    digits = [entry == rounder for rounder in _of_few_digits(float(entry))]
    return 4 + digits.index(True) if True in digits else UNROUND


def _of_few_digits(entry: float) -> list[float]:
    """Return an entry below `SMALL`, rounded to one and to two digits; [] for another entry."""
    return [float(f"{entry:.{more}e}") for more in (0, 1)] if 0 < abs(entry) < SMALL else []


def _total(flat: dict[str, np.ndarray]) -> int:
    return sum(
        _complexity(float(entry))
        for leaf in flat.values()
        if np.issubdtype(leaf.dtype, np.floating)
        for entry in leaf.ravel()
    )


def complexity(instance: Instance, /) -> int:
    """Return the sum of the complexities of an instance's floats; few digits are less complex."""
    return _total(flatten(instance))


def is_round(instance: Instance, /) -> bool:
    """Return whether every float of an instance is short: at most two decimals, or few digits."""
    leaves = flatten(instance).values()
    moving = [leaf for leaf in leaves if np.issubdtype(leaf.dtype, np.floating)]
    return all(_complexity(float(entry)) < UNROUND for leaf in moving for entry in leaf.ravel())


def enlarged(instance: Instance, /) -> Iterator[Instance]:
    """Yield copies with all floats larger, or two arrays further apart, by powers of ten."""
    flat = flatten(instance)
    moving = [name for name, leaf in flat.items() if np.issubdtype(leaf.dtype, np.floating)]
    for decade in DECADES:
        with np.errstate(over="ignore"):
            yield unflatten(flat | {name: np.asarray(flat[name] * 10.0**decade) for name in moving})
    for one, other in itertools.combinations(moving, 2):
        a, b = flat[one], flat[other]
        if a.shape != b.shape:
            continue
        for decade in DECADES:
            with np.errstate(over="ignore"):
                middle, half = (a + b) / 2, (a - b) / 2 * 10.0**decade
                moved = {one: np.asarray(middle + half), other: np.asarray(middle - half)}
            yield unflatten(flat | moved)


def share(amount: float, /) -> float:
    """Return the least violation of a shrunk instance: 0.1, or half of the original violation."""
    return min(0.1, 0.5 * amount)


def shrink(instance: Instance, judge: Judge, /, *, rounds: int = 60) -> Instance:
    """Return the simplest failing instance that the shrinking finds, with unchanged shapes.

    A simpler instance has rounder numbers and fewer nonzero entries. The result's violation is at
    least `share(violation)` of the given instance.
    """
    flat = flatten(instance)
    floor = share(float(judge([unflatten(flat)])[0]))
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
