"""Many independent runs (lanes) of one pure step, as few compiled programs as possible.

Each device works through its lanes in groups of a fixed number, one group after the other, each
group vmapped. What is computed for a lane therefore does not depend on how many lanes there are:
resumed, cut and extended sweeps gave the same bits wherever they were compared (on the same
backend). On another number of devices XLA compiles another program, whose last digits may differ.
"""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbounds.files import Place
from jaxbounds.memory import refuse_over
from jaxbounds.sweeps import shares
from jaxbounds.sweeps.checkpoint import Checkpoints, is_key, plain, with_leaves
from jaxbounds.sweeps.compaction import compaction
from jaxbounds.sweeps.grouping import available, fitting, needed
from jaxbounds.sweeps.reporting import progress

Lane = Any
State = Any
Metrics = Mapping[str, jax.Array]


class Swept(NamedTuple):
    """What a sweep leaves behind, on the host.

    Attributes:
        state: the final states, stacked over lanes.
        metrics: for each name an array (lanes, records, ...).
        steps: the number of steps done when each record was taken, (records,).
        diverged: for each lane the first recorded step with a metric that is not finite, or -1.
    """

    state: State
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


def _to_host(tree: Any, positions: np.ndarray) -> Any:
    """Whole arrays on every process, keys as their data, the lanes at `positions` in that order."""

    def one(leaf):
        leaf = plain(leaf)
        if jax.process_count() > 1:
            leaf = multihost_utils.process_allgather(leaf, tiled=True)
        return np.asarray(leaf)[positions]

    return jax.tree.map(one, tree)


def _moved(tree: Any, order: np.ndarray, mesh: Mesh) -> Any:
    """The lanes at the positions `order`, on the devices."""
    take = lambda tree: jax.tree.map(lambda leaf: leaf[order], tree)
    return jax.jit(take, out_shardings=NamedSharding(mesh, PartitionSpec("lane")))(tree)


def _places(own: range, group: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The position of each own lane, and the lane at each position; the last one fills up.

    A lane has the slot within its group that it has in the whole sweep.
    """
    turn = np.arange(len(own))
    place = turn // group * group + (own.start + turn) % group
    lane = np.full(-(-len(own) // width) * width, len(own) - 1)
    lane[place] = turn
    return place, lane


def _to_devices(tree: Any, mesh: Mesh, lane: np.ndarray) -> Any:
    """Host arrays, the given lane at each position, split over the mesh."""
    sharding = NamedSharding(mesh, PartitionSpec("lane"))

    def one(leaf):
        impl = jax.random.key_impl(leaf) if is_key(leaf) else None
        data = np.asarray(plain(leaf))[lane]
        array = jax.make_array_from_callback(data.shape, sharding, lambda part: data[part])
        return array if impl is None else jax.random.wrap_key_data(array, impl=impl)

    return jax.tree.map(one, tree)


def _per_device(function: Callable, mesh: Mesh, group: int, donate: tuple[int, ...] = ()) -> Any:
    """`function` of one group of lanes, over all lanes: shards, and in each its groups in turn."""
    spec = PartitionSpec("lane")

    def on_device(*trees):
        split = lambda leaf: leaf.reshape(-1, group, *leaf.shape[1:])
        parts = jax.lax.map(lambda xs: function(*xs), jax.tree.map(split, trees))
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), parts)

    # Unchecked, so that a step may carry constants (zeros, a counter) through its own loops.
    sharded = jax.shard_map(on_device, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(sharded, donate_argnums=donate)


def sweep(
    start: Callable[[Lane], State],
    step: Callable[[Lane, State], State],
    measure: Callable[[Lane, State], Metrics],
    lanes: Lane,
    steps: int,
    *,
    every: int = 1,
    chunk: int = 200,
    group: int | None = None,
    finished: Callable[[State], jax.Array] | None = None,
    folder: str | Place | None = None,
    fingerprint: str = "",
    resume: bool = False,
    memory_limit: float | None = None,
    devices: Any = None,
    show: str | None = None,
) -> Swept:
    """Run every lane for `steps` steps; within `shares.only`, the lanes of that share.

    The lanes of other shares are zeros then.

    Args:
        start: the initial state of a lane.
        step: one step of a lane. Pure; learning rates and other numbers that vary belong into the
            lane, so that one program serves all.
        measure: a dict of scalars or small arrays, taken every `every` steps.
        lanes: a pytree with a leading axis of lanes (see `lanes_of`).
        steps: in all; a multiple of `every`.
        every: steps between records.
        chunk: steps between looks of the host: checkpoints, progress, stopping. Rounded up to a
            multiple of `every`.
        group: lanes vmapped together. On a CPU (8 unless given): four or more where a lane's
            matrices are tiny, as XLA's code for one lane at a time can be ten times slower; one
            where the matrices of a lane keep a core busy (`benchmarks/roberta_lanes.py` measures
            both). On an accelerator, unless given: as many as `memory_limit` allows, up to 256.
        finished: whether a state needs no more steps; it is then frozen, and the sweep ends when
            all are. Between chunks the unfinished lanes are moved together, and groups whose lanes
            are all finished are measured but not stepped.
        folder: where to keep checkpoints; none without it.
        fingerprint: of what the numbers depend on besides the shapes (configuration and key).
        resume: continue what the folder holds; without it the folder is cleared.
        memory_limit: bytes that the program may need on one device: 8 GiB on a CPU, four fifths of
            an accelerator's memory unless given.
        devices: to spread over; all unless given.
        show: the metric shown with the progress; no progress without it.

    Raises:
        ValueError: if steps is no multiple of every, the memory is over the limit (nothing has
            been run then), or a checkpoint is damaged or of another sweep.
    """
    if steps < 1 or every < 1 or steps % every:
        raise ValueError(f"steps must be a positive multiple of every, got {steps} and {every}")
    count = len(jax.tree.leaves(lanes)[0])
    mesh = Mesh(np.asarray(jax.devices() if devices is None else devices), ("lane",))
    own = shares.own(count)
    if not own:
        return _nothing(start, measure, lanes, steps, every)
    chunk = min(-(-chunk // every) * every, steps)
    record = _recorder(step, measure, finished, every)
    limit = available(mesh.devices.flat[0]) if memory_limit is None else memory_limit

    def many(records: int, lanes: Lane, states: State) -> tuple[State, Metrics]:
        states, metrics = jax.lax.scan(lambda s, _: record(lanes, s), states, length=records)
        return states, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), metrics)

    def need(group: int) -> int:
        some = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((group, *leaf.shape[1:]), leaf.dtype), lanes
        )
        states = jax.eval_shape(jax.vmap(start), some)
        return needed(
            jax.jit(functools.partial(many, chunk // every)).lower(some, states).compile()
        )

    if group is None:
        group = fitting(count, limit, mesh.devices.flat[0], need)
    place, lane = _places(own, group, group * mesh.size)
    lanes = _to_devices(lanes, mesh, own.start + lane)
    begin = _per_device(jax.vmap(start), mesh, group)

    @functools.cache
    def advance(records: int) -> Callable:
        # The states are donated: the next ones take their memory.
        program = _per_device(functools.partial(many, records), mesh, group, donate=(1,))
        return _compile(program, (lanes, state), limit)

    state, done = begin(lanes), 0
    kept: list[dict[str, np.ndarray]] = []
    checkpoints = None
    if folder is not None:
        part = (own.start, own.stop, count) if shares.dealt() else None
        mark = f"{fingerprint}/{count}/{every}/{_signature(start, lanes)}"
        checkpoints = Checkpoints(folder, mark, part)
        if not resume:
            checkpoints.clear()
        elif stored := checkpoints.load():
            done, leaves, kept = stored
            state = _to_devices(with_leaves(state, leaves), mesh, lane)

    is_over = None if finished is None else jax.jit(jax.vmap(finished))
    with progress(steps, "steps", show=show is not None) as report:
        while done < steps:
            if is_over is not None:
                over = _to_host(is_over(state), np.arange(len(lane)))
                if over.all():
                    break
                order = compaction(over, group, mesh.size)
                if order is not None:
                    lanes, state = _moved((lanes, state), order, mesh)
                    place = np.argsort(order)[place]
            first, done = done, min(done + chunk, steps)
            state, recorded = advance((done - first) // every)(lanes, state)
            recorded = _to_host(recorded, place) | {"until": np.asarray(done)}
            kept.append(recorded)
            if checkpoints is not None:
                leaves = jax.tree.leaves(_to_host(state, place))
                checkpoints.save(done, leaves, first, recorded)
            if show is not None:
                report(done, f"mean {show} {np.nanmean(recorded[show][:, -1]):.4g}")
    swept = _swept(_to_host(state, place), kept, every)
    return _among(swept, own, count) if shares.dealt() else swept


def _among(swept: Swept, own: range, count: int) -> Swept:
    """Lanes of a share among zeros."""

    def one(part: np.ndarray) -> np.ndarray:
        every = np.zeros((count, *part.shape[1:]), part.dtype)
        every[own.start : own.stop] = part
        return every

    state, metrics, diverged = jax.tree.map(one, (swept.state, swept.metrics, swept.diverged))
    return Swept(state, metrics, swept.steps, diverged)


def _nothing(start: Callable, measure: Callable, lanes: Lane, steps: int, every: int) -> Swept:
    """What a share without lanes has of a sweep."""

    def first(lane: Lane) -> tuple[State, Metrics]:
        state = start(lane)
        return jax.tree.map(plain, state), dict(measure(lane, state))

    state, metrics = jax.eval_shape(jax.vmap(first), lanes)
    until = np.arange(every, steps + 1, every)
    records = lambda leaf: np.zeros((leaf.shape[0], len(until), *leaf.shape[1:]), leaf.dtype)
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), state)
    diverged = np.full(len(jax.tree.leaves(lanes)[0]), -1)
    return Swept(state, jax.tree.map(records, metrics), until, diverged)


def _signature(start: Callable, lanes: Any) -> str:
    """The shapes and types of a lane and its state: another program refuses the checkpoint."""
    trees = lanes, jax.eval_shape(jax.vmap(start), lanes)
    return str(jax.tree.map(lambda x: f"{x.shape[1:]}{x.dtype}", jax.tree.leaves(trees)))


def _recorder(step: Callable, measure: Callable, finished: Callable | None, every: int) -> Callable:
    """(lanes of a group, states) -> (states after `every` steps, their metrics)."""

    def guarded(lane, state):
        new = step(lane, state)
        if finished is None:
            return new
        stop = finished(state)
        return jax.tree.map(lambda old, fresh: jnp.where(stop, old, fresh), state, new)

    def advance(lanes, states):
        one = lambda states, _: (jax.vmap(guarded)(lanes, states), None)
        return jax.lax.scan(one, states, length=every)[0]

    def record(lanes, states):
        if finished is None:
            states = advance(lanes, states)
        else:
            rest = lambda lanes, states: states
            over = jnp.all(jax.vmap(finished)(states))
            states = jax.lax.cond(over, rest, advance, lanes, states)
        return states, dict(jax.vmap(measure)(lanes, states))

    return record


def _compile(function: Any, arguments: tuple, limit: float) -> Callable:
    """Compile ahead and refuse a program that needs more memory than `limit`, before running it."""
    program = function.lower(*arguments).compile()
    what = "one chunk of this sweep, on a device, needs"
    refuse_over(needed(program), limit, what, "lower group or chunk, or ")
    return program


def _swept(state: State, records: list[dict], every: int) -> Swept:
    until = int(records[-1]["until"]) if records else 0
    names = [name for name in records[0] if name != "until"] if records else []
    metrics = {name: np.concatenate([r[name] for r in records], axis=1) for name in names}
    steps = np.arange(every, until + 1, every)
    lanes = len(jax.tree.leaves(state)[0])
    bad = np.zeros((lanes, len(steps)), bool)
    for values in metrics.values():
        if np.issubdtype(values.dtype, np.floating):
            bad |= ~np.isfinite(values.reshape(*values.shape[:2], -1)).all(axis=2)
    first = np.where(bad.any(axis=1), steps[np.argmax(bad, axis=1)] if len(steps) else 0, -1)
    return Swept(state, metrics, steps, first)
