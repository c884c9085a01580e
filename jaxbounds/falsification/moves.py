"""Search for violations by random moves to vertices of sets, equal entries, zeros and other scales.

The ratio of an inequality is often largest at such points. All runs of the search advance together,
so one compiled program measures all runs. In each step, all runs make the same kind of move in the
same array. A run accepts an instance if lhs / rhs is larger.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import Instance
from jaxbounds.falsification.discrete import moved_leaf

Rng = np.random.Generator
Leaf = np.ndarray
"""One array of the instances; the first axis numbers the parallel runs of a search."""
LEAST = 1e-12
"""The least relative increase of lhs / rhs that counts as progress. A larger value ends runs
earlier."""
Move = Callable[[Leaf, Rng], Leaf]

FACTORS = (1e-3, 0.1, 0.3, 0.5, 2.0, 3.0, 10.0, 1e3)
"""Factors by which a move multiplies an array, a row or an entry."""
WIDE = (1.0, 2.0, 3.0)
"""Standard deviations of the logarithms of random factors, which give a starting point entries of
very different sizes."""


def is_float(leaf: Any, /) -> bool:
    """Return whether an array holds floats."""
    return np.issubdtype(leaf.dtype, np.floating)


def _flat(leaf: Leaf) -> Leaf:
    return leaf.reshape(len(leaf), -1)


def _largest(leaf: Leaf) -> np.ndarray:
    """Return an array's largest absolute entry for each run; 1 for an array of zeros."""
    size = np.max(np.abs(_flat(leaf)), axis=1, keepdims=True)
    return np.where(size > 0, size, 1.0)


def _set_entry(leaf: Leaf, values: np.ndarray, rng: Rng) -> Leaf:
    moved = _flat(leaf).copy()
    moved[np.arange(len(moved)), rng.integers(moved.shape[1], size=len(moved))] = values
    return moved.reshape(leaf.shape)


def entry_to_end(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Set one entry to zero, or to plus or minus the largest entry."""
    ends = _largest(leaf)[:, 0] * rng.integers(-1, 2, size=len(leaf))
    return _set_entry(leaf, ends, rng)


def entry_flipped(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Change the sign of one entry."""
    moved, chains = _flat(leaf).copy(), np.arange(len(leaf))
    moved[chains, rng.integers(moved.shape[1], size=len(leaf))] *= -1
    return moved.reshape(leaf.shape)


def entry_copied(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Copy one entry onto another, or exchange both, with a random sign."""
    moved, chains = _flat(leaf).copy(), np.arange(len(leaf))
    onto, of = rng.integers(moved.shape[1], size=(2, len(leaf)))
    sign = rng.choice([1.0, 1.0, -1.0])
    given, held = moved[chains, of].copy(), moved[chains, onto].copy()
    moved[chains, onto] = sign * given
    if rng.random() < 0.3:
        moved[chains, of] = held
    return moved.reshape(leaf.shape)


def entry_scaled(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Multiply one entry by a small or a large factor."""
    moved, chains = _flat(leaf).copy(), np.arange(len(leaf))
    at = rng.integers(moved.shape[1], size=len(leaf))
    moved[chains, at] *= rng.choice(FACTORS, size=len(leaf))
    return moved.reshape(leaf.shape)


def row_copied(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Copy one slice along an axis (a token, a head, a row) onto another, with a random sign."""
    if leaf.ndim < 3:
        return entry_copied(leaf, rng)
    axis = rng.integers(1, leaf.ndim)
    moved, chains = np.moveaxis(leaf, axis, 1).copy(), np.arange(len(leaf))
    onto, of = rng.integers(moved.shape[1], size=(2, len(leaf)))
    sign = rng.choice([1.0, 1.0, -1.0])
    moved[chains, onto] = sign * moved[chains, of]
    return np.moveaxis(moved, 1, axis)


def row_scaled(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Multiply one slice along an axis by -1, by zero or by a random factor."""
    if leaf.ndim < 3:
        return entry_scaled(leaf, rng)
    axis = rng.integers(1, leaf.ndim)
    moved, chains = np.moveaxis(leaf, axis, 1).copy(), np.arange(len(leaf))
    at = rng.integers(moved.shape[1], size=len(leaf))
    factor = rng.choice([-1.0, 0.0, *FACTORS], size=len(leaf))
    moved[chains, at] *= factor.reshape(-1, *[1] * (moved.ndim - 2))
    return np.moveaxis(moved, 1, axis)


def scaled(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Multiply the whole array by a factor."""
    factor = rng.choice([-1.0, *FACTORS], size=len(leaf))
    return leaf * factor.reshape(-1, *[1] * (leaf.ndim - 1))


def vertex(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Set each entry to its sign times the largest absolute entry, or to 0 if the entry is tiny."""
    largest, entries = _largest(leaf), _flat(leaf)
    ends = np.where(np.abs(entries) > 0.1 * largest, np.sign(entries), 0.0)
    return (largest * ends).reshape(leaf.shape)


def sparse(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Keep the k largest entries of an array, for a random k; set all other entries to zero."""
    entries = _flat(leaf)
    kept = rng.integers(1, entries.shape[1] + 1, size=(len(leaf), 1))
    rank = np.argsort(np.argsort(-np.abs(entries), axis=1), axis=1)
    return np.where(rank < kept, entries, 0.0).reshape(leaf.shape)


def even(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Set all nonzero entries of an array to their root mean square, and keep their signs."""
    entries = _flat(leaf)
    count = np.maximum(np.sum(entries != 0, axis=1, keepdims=True), 1)
    size = np.sqrt(np.sum(entries**2, axis=1, keepdims=True) / count)
    return (np.sign(entries) * size).reshape(leaf.shape)


def nudged(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Add random numbers to a few entries, of a size relative to the largest entry."""
    entries = _flat(leaf)
    amount = 10.0 ** rng.uniform(-3, 0.5, size=(len(leaf), 1)) * _largest(leaf)
    some = rng.random(entries.shape) < max(0.2, 1 / entries.shape[1])
    moved = entries + np.where(some, amount * rng.normal(size=entries.shape), 0.0)
    return moved.reshape(leaf.shape)


MOVES: tuple[Move, ...] = (
    entry_to_end, entry_to_end, entry_to_end, entry_flipped, entry_copied, entry_scaled,
    row_copied, row_scaled, scaled, vertex, sparse, even, nudged, nudged,
)  # fmt: skip


def wide(leaf: Leaf, rng: Rng, /) -> Leaf:
    """Multiply every entry by its own log-normal factor."""
    sigma = rng.choice(WIDE, size=(len(leaf), *[1] * (leaf.ndim - 1)))
    return leaf * np.exp(sigma * rng.normal(size=leaf.shape))


def grown(instance: Instance, like: Instance, /) -> Iterator[Instance]:
    """Yield instances with the shapes of `like`, built from a smaller instance.

    The function repeats the instance, or pads it by its edge, by zeros or by entries of `like`.
    """
    for how in ("tiled", "edge", "zero", "other"):
        yield jax.tree.map(functools.partial(_grown, how=how), instance, like)


def _grown(small: Any, large: Any, how: str) -> Leaf:
    small, large = np.asarray(small), np.asarray(large)
    if not small.size or not np.ndim(small):
        return large if not small.size else small
    small = small[tuple(slice(0, n) for n in large.shape)]
    if how == "other":
        whole = large.copy()
        whole[tuple(slice(0, n) for n in small.shape)] = small
        return whole.astype(large.dtype)
    more = [(0, n - m) for n, m in zip(large.shape, small.shape)]
    mode: Any = {"tiled": "wrap", "edge": "edge", "zero": "constant"}[how]
    return np.pad(small, more, mode=mode).astype(large.dtype)


class Chains(NamedTuple):
    """The results of parallel runs of random moves.

    Attributes:
        instances: the last instance of each run.
        score: each run's last lhs / rhs; -inf if no instance counted as evidence.
        accepted: the number of steps of each run that led to a worse instance.
        met: for each run, the number of steps to a new instance that meets the hypotheses.
    """

    instances: Instance
    score: np.ndarray
    accepted: np.ndarray
    met: np.ndarray


Score = Callable[[Instance], tuple[Instance, np.ndarray, np.ndarray]]
"""A function that projects and measures the instances of all runs. The function returns the
projected instances, their ratios (-inf if an instance is no evidence), and a mask of those that
meet the hypotheses."""
Step = Callable[[Sequence[Leaf], Rng], list[Leaf]]
"""A function that proposes the next arrays of all runs from the current arrays."""


def climb(score: Score, starts: Instance, rng: Rng, steps: int, move: Step, /) -> Chains:
    """Run parallel searches from stacked starting instances, one random move at a time."""
    held, value, _ = score(starts)
    leaves, structure = jax.tree.flatten(held)
    accepted, met = np.zeros(len(value), int), np.zeros(len(value), int)
    for _ in range(steps):
        moved = move(leaves, rng)
        tried, new, meets = score(jax.tree.unflatten(structure, moved))
        better = new > value + LEAST * np.abs(np.where(np.isfinite(value), value, 0.0))
        went = _differ(leaves, jax.tree.leaves(tried))
        keep = lambda own, other, b=better: np.where(
            b.reshape(-1, *[1] * (own.ndim - 1)), other, own
        )
        leaves = [keep(own, other) for own, other in zip(leaves, jax.tree.leaves(tried))]
        value = np.where(better, new, value)
        accepted, met = accepted + better, met + (meets & went)
    return Chains(jax.tree.unflatten(structure, leaves), value, accepted, met)


def _differ(one: Sequence[Leaf], other: Sequence[Leaf]) -> np.ndarray:
    apart = [np.any(_flat(a) != _flat(b), axis=1) for a, b in zip(one, other) if a[0].size]
    return np.any(apart, axis=0)


def one_leaf(
    leaves: Sequence[Leaf], rng: Rng, /, discrete: frozenset[int] = frozenset()
) -> list[Leaf]:
    """Move one array, or replace it by another array of equal shape.

    An array whose index is in `discrete` moves to a neighbouring point of its finite set. Other
    arrays move only if they hold floats.
    """
    movable = [i for i, leaf in enumerate(leaves) if can_move(i, leaf, discrete)]
    if not movable:
        return list(leaves)
    at = movable[int(rng.integers(len(movable)))]
    leaf = leaves[at]
    alike = [i for i in movable if i != at and leaves[i].shape == leaf.shape]
    if alike and leaf[0].size > 1 and rng.random() < 0.1:
        other = leaves[alike[rng.integers(len(alike))]]
        new = (rng.choice([1.0, -1.0]) * other).astype(leaf.dtype)
    elif at in discrete:
        new = moved_leaf(leaf, rng)
    else:
        with np.errstate(all="ignore"):  # an instance that overflows does not count
            new = MOVES[rng.integers(len(MOVES))](leaf, rng).astype(leaf.dtype)
    return [new if i == at else own for i, own in enumerate(leaves)]


def can_move(at: int, leaf: Leaf, discrete: frozenset[int], /) -> bool:
    """Return whether a nonempty array holds floats, or lies in a finite set."""
    return bool(leaf[0].size) and (is_float(leaf) or at in discrete)
