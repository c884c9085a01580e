"""Lanes from seeds and grids, and what a sweep of them leaves behind."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.sweeps.checkpoint import plain


class Swept(NamedTuple):
    """What a sweep leaves behind, on the host.

    Attributes:
        state: the final states, stacked over lanes.
        metrics: for each name an array (lanes, records, ...).
        steps: the number of steps done when each record was taken, (records,).
        diverged: for each lane the first recorded step with a metric that is not finite, or -1.
    """

    state: Any
    metrics: dict[str, np.ndarray]
    steps: np.ndarray
    diverged: np.ndarray


def lanes_of(keys: jax.Array, /, **grid: np.ndarray) -> tuple[dict[str, Any], dict[str, int]]:
    """The product of seeds and a grid, flattened: one lane for each combination.

    Args:
        keys: (seeds,) typed keys.
        **grid: values by name, each (count,).

    Returns:
        Lanes {"key", **names}, all of one length with the seed varying fastest, and the lengths of
        the axes, slowest first: `array.reshape(*lengths.values(), ...)` undoes the flattening.
    """
    lengths = {name: len(values) for name, values in grid.items()} | {"seed": len(keys)}
    index = np.unravel_index(np.arange(math.prod(lengths.values())), tuple(lengths.values()))
    lanes = {name: jnp.asarray(grid[name])[i] for name, i in zip(grid, index)}
    return lanes | {"key": keys[index[-1]]}, lengths


def joined(records: list[dict[str, np.ndarray]], /) -> dict[str, np.ndarray]:
    """One after the other; "until", the step that they reach, is the last one's."""
    names = [name for name in records[0] if name != "until"] if records else []
    return {name: np.concatenate([r[name] for r in records], axis=1) for name in names}


def swept_of(state: Any, records: list[dict[str, np.ndarray]], every: int, /) -> Swept:
    """The result of a sweep from its last states and its records."""
    until, metrics = int(records[-1]["until"]) if records else 0, joined(records)
    steps = np.arange(every, until + 1, every)
    lanes = len(jax.tree.leaves(state)[0])
    bad = np.zeros((lanes, len(steps)), bool)
    for values in metrics.values():
        if np.issubdtype(values.dtype, np.floating):
            bad |= ~np.isfinite(values.reshape(*values.shape[:2], -1)).all(axis=2)
    first = np.where(bad.any(axis=1), steps[np.argmax(bad, axis=1)] if len(steps) else 0, -1)
    return Swept(state, metrics, steps, first)


def among(swept: Swept, own: range, count: int, /) -> Swept:
    """Lanes of a share among zeros."""

    def one(part: np.ndarray) -> np.ndarray:
        every = np.zeros((count, *part.shape[1:]), part.dtype)
        every[own.start : own.stop] = part
        return every

    state, metrics, diverged = jax.tree.map(one, (swept.state, swept.metrics, swept.diverged))
    return Swept(state, metrics, swept.steps, diverged)


def nothing(start: Callable, measure: Callable, lanes: Any, steps: int, every: int, /) -> Swept:
    """What a share without lanes has of a sweep."""

    def first(lane: Any) -> tuple[Any, dict]:
        state = start(lane)
        return jax.tree.map(plain, state), dict(measure(lane, state))

    state, metrics = jax.eval_shape(jax.vmap(first), lanes)
    until = np.arange(every, steps + 1, every)
    records = lambda leaf: np.zeros((leaf.shape[0], len(until), *leaf.shape[1:]), leaf.dtype)
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), state)
    diverged = np.full(len(jax.tree.leaves(lanes)[0]), -1)
    return Swept(state, jax.tree.map(records, metrics), until, diverged)
