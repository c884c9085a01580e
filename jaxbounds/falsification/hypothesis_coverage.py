"""Move random instances to test whether a statement's hypotheses exclude any instance.

A hypothesis that every instance meets is true by construction, or tests the wrong quantity.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Instance, Size, Statement
from jaxbounds.falsification.bench import batch_of, concatenate, length, take
from jaxbounds.falsification.evaluation import asked, joined
from jaxbounds.falsification.measure import as_arrays, float64_on_cpu

Moved = np.ndarray
NUDGES = (1e-6, 1e-3, 0.1)
FACTORS = (-1.0, 0.0, 0.5, 0.9, 0.999, 1.001, 1.1, 2.0, 10.0, 1e3)
SHIFTS = (-1.0, 1.0, 3.0)
INTEGERS = (-3, -1, 1, 2, 1000)
DRAWN = 3
"""The test moves this many instances of each sampler, and of the hand-written instances. A larger
number finds more missed hypotheses and takes longer."""


def _of_floats(leaf: Moved) -> Iterator[Moved]:
    noise = np.random.default_rng(0).normal(size=leaf.shape)
    scale = float(np.sqrt(np.mean(leaf**2))) or 1.0
    yield from (leaf + amount * scale * noise for amount in NUDGES)
    yield from (leaf * factor for factor in FACTORS)
    yield from (leaf + shift for shift in SHIFTS)
    for shift in (-10 * scale, 10 * scale, 0.01 * scale):
        one = leaf.copy()
        one.reshape(-1)[0] += shift
        yield one
    yield np.full_like(leaf, leaf.reshape(-1)[0])
    yield np.flip(leaf).copy()
    yield noise


def _of_integers(leaf: Moved) -> Iterator[Moved]:
    for step in map(np.array(INTEGERS).astype(leaf.dtype).__getitem__, range(len(INTEGERS))):
        one = leaf.copy()
        one.reshape(-1)[-1] += step
        yield from (one, leaf + step)
    yield np.full_like(leaf, leaf.reshape(-1)[0])
    yield np.flip(leaf).copy()


def _moves(leaf: Moved) -> Iterator[Moved]:
    if leaf.size and leaf.dtype == bool:
        yield from (~leaf, np.zeros_like(leaf), np.ones_like(leaf))
    elif leaf.size and np.issubdtype(leaf.dtype, np.floating):
        yield from _of_floats(leaf)
    elif leaf.size:
        yield from _of_integers(leaf)


def _beside(instance: Instance) -> Iterator[Instance]:
    leaves, structure = jax.tree.flatten(instance)
    yield from (instance, jax.tree.map(np.zeros_like, instance))
    for place, leaf in enumerate(leaves):
        for moved in _moves(np.asarray(leaf)):
            yield jax.tree.unflatten(structure, [*leaves[:place], moved, *leaves[place + 1 :]])


def _given(statement: Statement, size: Size) -> Iterator[Instance]:
    for sampler in statement.samplers.values():
        keys = jax.random.split(jax.random.key(0), DRAWN)
        batch = jax.tree.map(np.asarray, jax.vmap(lambda key, s=sampler: s(key, size))(keys))
        yield from (take(batch, row) for row in range(DRAWN))
    if statement.cases is not None:
        batch = as_arrays(dict(statement.cases(size)))
        rows = min(DRAWN, len(jax.tree.leaves(batch)[0]))
        yield from (take(batch, row) for row in range(rows))


def never_missed(statement: Statement, /) -> tuple[str, ...]:
    """Return the hypotheses that every moved instance meets.

    The engine scales, shifts or moves entries of random instances. An untested instance might
    violate a hypothesis, so the result is a question to the author, not a proven fault.
    """
    wanted = [h for h in (statement.hypotheses, *(f.hypotheses for f in statement.forms)) if h]
    left: dict[str, bool] = {}
    with float64_on_cpu():
        for size in map(Size, statement.sizes):
            batches = [
                batch_of(moved) for given in _given(statement, size) for moved in _beside(given)
            ]
            for name, flags in _flags(statement, wanted, size)(concatenate(batches)).items():
                left[name] = left.get(name, True) and bool(np.all(flags))
            if not any(left.values()):
                break
    return tuple(name for name, always in left.items() if always)


def _flags(statement: Statement, wanted: list[Any], size: Size) -> Callable:
    xp = np if statement.host else jnp

    def named(instance: Instance) -> dict[str, Any]:
        return joined(*(asked(hypotheses, instance, size, xp) for hypotheses in wanted))

    def where_defined(batch: Instance) -> dict[str, np.ndarray]:
        rows = []
        for index in range(length(batch)):
            with contextlib.suppress(ValueError, IndexError, KeyError):
                rows.append(named(take(batch, index)))
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    return where_defined if statement.host else jax.jit(jax.vmap(named))
