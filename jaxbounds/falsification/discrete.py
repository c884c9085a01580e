"""Finite sets in a search: moves of integers and signs, and enumeration of all points."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.sets import Over
from jaxbounds.claims.statements import Instance, Size, Statement
from jaxbounds.claims.statements.over import Drawn
from jaxbounds.ground.jax_internals import Jaxpr
from jaxbounds.programs.traces import equations, executed

Rng = np.random.Generator
Leaf = np.ndarray
"""One array of the instances; the first axis numbers the parallel runs of a search."""


def finite_sets(statement: Statement, size: Size, /) -> dict[str, Any]:
    """Return a dictionary from the names of a statement's entries to their finite sets."""
    if statement.over is None or not statement.over:
        return {}
    if not any(isinstance(sampler, Drawn) for sampler in statement.samplers.values()):
        return {}
    of_sets = Over(statement.over)
    return {name: one for name, one in of_sets.items() if one.cardinality(size) is not None}


def all_points(statement: Statement, size: Size, /) -> Over | None:
    """Return the statement's sets if they are finite and every entry has a set, else None."""
    samplers = statement.samplers.values()
    drawn = [s for s in samplers if isinstance(s, Drawn) and s.own is None]
    sets = finite_sets(statement, size)
    whole = drawn and statement.there_is is None and len(sets) == len(statement.over or {})
    return Over(sets) if whole else None


LARGE = 2**16
"""The engine enumerates a finite set if it has at most this many points. A larger number finds
rarer violations and takes longer."""
WORK = 2**22
"""The engine enumerates a set only if the program executes at most this many operations (about a
microsecond each). A larger number enumerates larger sets and takes longer."""
LOOPS = 64
"""Number of steps that the engine assumes for a loop of unknown length. A larger number makes the
engine enumerate fewer sets."""


def is_little_work(program: Jaxpr, times: float, /) -> bool:
    """Return whether a program has few enough operations to run `times` times."""
    work = executed(program)
    if math.isinf(work):
        work = LOOPS * sum(1 for _ in equations(program))
    return work * times <= WORK


def leaves_of(names: Any, instance: Instance, /) -> frozenset[int]:
    """Return the indices of the arrays in the instance's entries with the given names."""
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(dict(instance))[0]]
    return frozenset(i for i, path in enumerate(paths) if path and path[0].key in names)


def _flat(leaf: Leaf) -> Leaf:
    return leaf.reshape(len(leaf), -1).copy()


def _places(leaf: Leaf, rng: Rng, count: int = 1) -> tuple[np.ndarray, ...]:
    entries = max(math.prod(leaf.shape[1:]), 1)
    return tuple(rng.integers(entries, size=(count, len(leaf))))


def _power(leaf: Leaf, rng: Rng) -> np.ndarray:
    spread = float(np.max(leaf)) - float(np.min(leaf))
    powers = rng.integers(0, 1 + max(1, math.ceil(math.log2(max(spread, 2.0)))), size=len(leaf))
    steps = 2 ** np.minimum(powers, 61) * rng.choice((-1, 1), size=len(leaf))
    return np.asarray(steps)


def stepped(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Add 1 to one entry, or subtract 1."""
    moved, (at,) = _flat(leaf), _places(leaf, rng)
    moved[np.arange(len(moved)), at] += rng.choice((-1, 1), size=len(leaf)).astype(leaf.dtype)
    return moved.reshape(leaf.shape)


def galloped(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Add a power of two to one entry, or subtract it."""
    moved, (at,) = _flat(leaf), _places(leaf, rng)
    with np.errstate(all="ignore"):
        moved[np.arange(len(moved)), at] += _power(leaf, rng).astype(leaf.dtype)
    return moved.reshape(leaf.shape)


def in_step(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Add a power of two to one entry, and subtract it from another entry."""
    moved, (at, other), by = _flat(leaf), _places(leaf, rng, 2), _power(leaf, rng)
    chains = np.arange(len(moved))
    with np.errstate(all="ignore"):
        moved[chains, at] += by.astype(leaf.dtype)
        moved[chains, other] -= by.astype(leaf.dtype)
    return moved.reshape(leaf.shape)


def to_end(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Set one entry to the least or largest number that the array has in any run of the search."""
    moved, (at,) = _flat(leaf), _places(leaf, rng)
    ends = np.array([np.min(leaf), np.max(leaf)])
    moved[np.arange(len(moved)), at] = rng.choice(ends, size=len(leaf))
    return moved.reshape(leaf.shape)


def flipped(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Flip a few entries, such as signs or bits, to the other end of the array's range."""
    moved, total = _flat(leaf), np.min(leaf) + np.max(leaf)
    for at in _places(leaf, rng, int(rng.integers(1, 4))):
        chains = np.arange(len(moved))
        moved[chains, at] = total - moved[chains, at]
    return moved.reshape(leaf.shape)


def exchanged(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Exchange two random entries of each run's array."""
    moved, (at, other) = _flat(leaf), _places(leaf, rng, 2)
    chains = np.arange(len(moved))
    moved[chains, at], moved[chains, other] = moved[chains, other], moved[chains, at].copy()
    return moved.reshape(leaf.shape)


def copied(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Set a random entry of each run's array to the value of another entry."""
    moved, (at, other) = _flat(leaf), _places(leaf, rng, 2)
    chains = np.arange(len(moved))
    moved[chains, at] = moved[chains, other]
    return moved.reshape(leaf.shape)


def anew(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Copy one entry of the array from another run of the search."""
    moved, (at,) = _flat(leaf), _places(leaf, rng)
    chains = np.arange(len(moved))
    moved[chains, at] = moved[rng.permutation(len(moved)), at]
    return moved.reshape(leaf.shape)


MOVES: tuple[Callable[[Leaf, Rng], Leaf], ...] = (
    stepped, stepped, galloped, galloped, to_end, flipped, flipped, exchanged, in_step, copied,
    anew,
)  # fmt: skip


def moved_leaf(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Apply a random move to a nonempty array."""
    known = MOVES if math.prod(leaf.shape[1:]) > 1 else (stepped, galloped, galloped, to_end, anew)
    return known[rng.integers(len(known))](leaf, rng).astype(leaf.dtype)


def neighbours(leaf: np.ndarray, ends: tuple[Any, Any], most: int, /) -> Iterator[np.ndarray]:
    """Yield arrays with an entry moved by a power of two or to an end, or two exchanged.

    The pair `ends` holds the least and the largest value of an entry.
    """
    flat, made = leaf.reshape(-1), 0
    powers = 2 ** np.arange(min(61, max(1, math.ceil(math.log2(max(ends[1] - ends[0], 2))))))
    for i in range(len(flat)):
        for value in (*ends, *(flat[i] + sign * by for by in powers.tolist() for sign in (1, -1))):
            if value != flat[i] and made < most and ends[0] <= value <= ends[1]:
                made += 1
                yield _with(leaf, (i,), (value,))
    for i in range(len(flat)):
        for j in range(i):
            if flat[i] != flat[j] and made < most:
                made += 1
                yield _with(leaf, (i, j), (flat[j], flat[i]))


def _with(leaf: np.ndarray, at: Sequence[int], values: Sequence[Any]) -> np.ndarray:
    moved = leaf.reshape(-1).copy()
    moved[list(at)] = values
    return moved.reshape(leaf.shape)
