"""Make lanes (training runs) from seeds and grids, and hold the results of all lanes."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.experiments.sweeps.checkpoint import plain
from jaxbounds.experiments.sweeps.inputs import impl_of, is_key, is_one_old_key
from jaxbounds.experiments.sweeps.programs import OVER, named
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.extras import require

if TYPE_CHECKING:  # slow to import
    import xarray


class Swept(NamedTuple):
    """The results of a sweep over lanes (independent runs), on the host.

    Attributes:
        state: the final states, stacked over lanes; typed keys stay typed.
        metrics: a dict from each metric's name to its array, of shape (lanes, records, ...).
        steps: the number of steps done at each record, of shape (records,).
        diverged: for each lane the first recorded step with a metric that is not finite; -1 if all
            metrics are finite.
        stopped: for each lane the first recorded step at which the lane was frozen; -1 if the lane
            was never frozen. The field is None if the sweep has no rule that freezes lanes.
    """

    state: Any
    metrics: dict[str, np.ndarray]
    steps: np.ndarray
    diverged: np.ndarray
    stopped: np.ndarray | None = None

    def to_xarray(
        self, lanes: Any = None, lengths: Mapping[str, int] | None = None, /
    ) -> "xarray.Dataset":
        """Return the metrics, with `diverged` and `stopped`, as data labelled by lane and step.

        Args:
            lanes: the dict of lanes (runs) that `lanes_of` returns; its arrays of numbers become
                coordinates.
            lengths: the dict of the grid axes' lengths that `lanes_of` returns; the grid axes
                replace the axis "lane".

        Raises:
            Refused: if the product of the axis lengths is not the number of lanes (runs).
        """
        require("xarray", why="labelled results")
        import xarray

        count, axes = len(self.diverged), dict(lengths or {"lane": len(self.diverged)})
        if math.prod(axes.values()) != count:
            raise Refused(
                f"lengths={axes} make {math.prod(axes.values())} lanes (runs), expected {count}. "
                f"Try the lengths that lanes_of returned"
            )
        fold = lambda values: values.reshape(*axes.values(), *values.shape[1:])
        wide = lambda values: values.astype(np.float32) if _special(values.dtype) else values

        def one(name: str, values: np.ndarray) -> tuple:
            more = [f"{name}_{axis}" for axis in range(values.ndim - 2)]
            return (*axes, "step", *more), fold(wide(values))

        found: dict[str, Any] = {name: one(name, values) for name, values in self.metrics.items()}
        found["diverged"] = tuple(axes), fold(self.diverged)
        if self.stopped is not None:
            found["stopped"] = tuple(axes), fold(self.stopped)
        coords: dict[str, Any] = {"step": self.steps}
        for name, leaf in (lanes if isinstance(lanes, dict) else {}).items():
            if is_key(leaf) or leaf.ndim != 1:
                continue
            values = fold(wide(np.asarray(leaf)))
            if name in axes:  # these values vary along their own axis alone
                first = [slice(None) if axis == name else 0 for axis in axes]
                coords[name] = values[tuple(first)]
            elif name not in found:
                coords[name] = tuple(axes), values
        return xarray.Dataset(found, coords)


def _special(dtype: np.dtype) -> bool:
    """Tell whether a type is an extension of NumPy's types, such as bfloat16."""
    return dtype.isbuiltin == 2


def lanes_of(keys: jax.Array, /, **grid: np.ndarray) -> tuple[dict[str, Any], dict[str, int]]:
    """Return one lane (run) for each combination of a seed and the values of a grid.

    Args:
        keys: typed keys, one for each seed, of shape (seeds,).
        **grid: the values of each named axis of the grid, an array of shape (count,).

    Returns:
        Two dicts. The first dict holds the lanes {"key", **names}: arrays of equal length in which
        the seed varies fastest. The second returned dict, `lengths`, holds the lengths of the
        grid's axes, slowest first. `array.reshape(*lengths.values(), ...)` turns results for all
        lanes into a grid.

    Raises:
        Refused: if `keys` is a single key, an axis of the grid is called "key" or "seed", or the
            values of an axis are not one-dimensional.
    """
    if getattr(keys, "ndim", 0) == 0 or is_one_old_key(keys):
        raise Refused(
            f"keys.shape={getattr(keys, 'shape', ())} is a single key, expected one for each seed. "
            "Try jax.random.split(key, seeds)"
        )
    for name, values in grid.items():
        if name in ("key", "seed"):
            raise Refused(
                f"the grid has an axis of name={name!r}, but lanes_of reserves this name. Try "
                f"{name}_"
            )
        if np.ndim(values) != 1 or not len(values):
            raise Refused(
                f"{name}.shape={np.shape(values)}, expected one axis. Try {name}=[{name}]"
            )
    lengths = {name: len(values) for name, values in grid.items()} | {"seed": len(keys)}
    index = np.unravel_index(np.arange(math.prod(lengths.values())), tuple(lengths.values()))
    lanes = {name: jnp.asarray(grid[name])[i] for name, i in zip(grid, index)}
    return lanes | {"key": keys[index[-1]]}, lengths


def joined(records: list[dict[str, np.ndarray]], /) -> dict[str, np.ndarray]:
    """Concatenate arrays of metrics along the axis of records (recorded steps)."""
    names = records[0] if records else ()
    return {name: np.concatenate([r[name] for r in records], axis=1) for name in names}


def _not_finite(values: np.ndarray) -> np.ndarray:
    if not jnp.issubdtype(values.dtype, jnp.inexact):
        return np.zeros(values.shape[:2], bool)
    wide = values.astype(np.float32) if _special(values.dtype) else values
    return ~np.isfinite(wide.reshape(*wide.shape[:2], -1)).all(axis=2)


def _first(flags: np.ndarray, steps: np.ndarray) -> np.ndarray:
    return np.where(flags.any(axis=1), steps[np.argmax(flags, axis=1)] if len(steps) else 0, -1)


def swept_of(state: Any, records: list[dict[str, np.ndarray]], every: int, until: int, /) -> Swept:
    """Return the result of a sweep from its last states and its records up to step `until`."""
    metrics, steps = joined(records), np.arange(every, until + 1, every)
    lanes = len(jax.tree.leaves(state)[0])
    over = metrics.pop(OVER, None)
    bad = np.zeros((lanes, len(steps)), bool)
    for values in metrics.values():
        bad |= _not_finite(values)
    stopped = None if over is None else _first(over, steps)
    return Swept(state, metrics, steps, _first(bad, steps), stopped)


def among(swept: Swept, own: range, count: int, /) -> Swept:
    """Extend the result of the lanes (runs) `own` to all lanes, with zeros for the other lanes."""

    def one(part: Any) -> Any:
        data = np.asarray(plain(part))
        every = np.zeros((count, *data.shape[1:]), data.dtype)
        every[own.start : own.stop] = data
        if is_key(part):
            return jax.random.wrap_key_data(jnp.asarray(every), impl=impl_of(part))
        return every

    parts = swept.state, swept.metrics, swept.diverged, swept.stopped
    state, metrics, diverged, stopped = jax.tree.map(one, parts)
    return Swept(state, metrics, swept.steps, diverged, stopped)


def nothing(
    start: Callable,
    measure: Callable,
    lanes: Any,
    steps: int,
    every: int,
    /,
    freezes: bool = False,
) -> Swept:
    """Return zeros as the results of a share that holds no lanes (runs)."""

    def first(lane: Any) -> tuple[Any, dict]:
        state = start(lane)
        return state, named(measure(lane, state))

    state, metrics = jax.eval_shape(jax.vmap(first), lanes)
    until = np.arange(every, steps + 1, every)
    records = lambda leaf: np.zeros((leaf.shape[0], len(until), *leaf.shape[1:]), leaf.dtype)
    metrics, count = jax.tree.map(records, metrics), len(jax.tree.leaves(lanes)[0])

    def zeros(leaf: Any) -> Any:
        data = jax.eval_shape(plain, leaf)
        empty = np.zeros(data.shape, data.dtype)
        if is_key(leaf):
            return jax.random.wrap_key_data(jnp.asarray(empty), impl=impl_of(leaf))
        return empty

    none = np.full(count, -1)
    return Swept(jax.tree.map(zeros, state), metrics, until, none, none if freezes else None)
