"""Put lanes (runs) into groups of a fixed size; a device runs one group's program at a time.

The program does not depend on the numbers of groups, processes, or shares (parts of the lanes).
These numbers decide only which process computes which lanes. One compilation serves all devices.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbounds.experiments.sweeps.checkpoint import plain
from jaxbounds.experiments.sweeps.inputs import impl_of, is_key
from jaxbounds.ground.jax_internals import process_allgather

Rounds = list[Any]
"""A list of arrays that this process holds, one for each round of a sweep.

In a round, every device runs one group of lanes (runs). The first axis of each array has one entry
for each group of the round."""
AXIS = "jaxbounds_lanes"
"""The name of the axis of the mesh of devices."""


class Groups:
    """Groups of runs on devices; group i is on device number i modulo the number of devices.

    Each process computes the groups on its own devices; every process lists all devices in the same
    order.
    """

    def __init__(self, count: int, group: int, devices: Sequence[Any]) -> None:
        self.count, self.group, self.devices = count, group, tuple(devices)
        total = len(self.devices)
        self._of = [
            [i for i in range(count) if self.device(i).process_index == process]
            for process in range(jax.process_count())
        ]
        self.mine = self._of[jax.process_index()]
        # Devices beyond the number of groups are left out: their program would be compiled again.
        here = [
            index
            for index, device in enumerate(self.devices[:count])
            if device.process_index == jax.process_index()
        ]
        self.local = tuple(self.devices[index] for index in here)
        rounds = max((-(-(count - index) // total) for index in here), default=0)
        self.rounds = [[index + turn * total for index in here] for turn in range(rounds)]
        """The index of the group that each device runs in each round.

        An index >= `count` means that the device runs no group.
        """

    def device(self, index: int, /) -> Any:
        """Return the device of a group."""
        return self.devices[index % len(self.devices)]

    @property
    def _sharding(self) -> NamedSharding:
        return NamedSharding(Mesh(np.array(self.local), (AXIS,)), PartitionSpec(AXIS))

    def compiled(
        self, function: Callable, shapes: tuple, shared: Any, donate: tuple[int, ...] = ()
    ) -> Any:
        """Compile one round's program: each device calls `function` for a group of lanes (runs).

        The arguments for one group have the shapes `shapes`. XLA may overwrite the arguments whose
        indices are in `donate`.
        """
        each, all_ = self._sharding, NamedSharding(self._sharding.mesh, PartitionSpec())
        own = [PartitionSpec(AXIS)] * len(shapes)
        alone = jax.shard_map(
            function, mesh=each.mesh, in_specs=(*own, PartitionSpec()),
            out_specs=PartitionSpec(AXIS), check_vma=False,
        )  # fmt: skip

        def wide(leaf: Any) -> jax.ShapeDtypeStruct:
            shape = (leaf.shape[0] * len(self.local), *leaf.shape[1:])
            return jax.ShapeDtypeStruct(shape, leaf.dtype, sharding=each)

        same = lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype, sharding=all_)
        arguments = [jax.tree.map(wide, shape) for shape in shapes]
        lowered = jax.jit(alone, donate_argnums=donate).lower(
            *arguments, jax.tree.map(same, shared)
        )
        return lowered.compile()

    def share(self, tree: Any, /) -> Any:
        """Copy to each device the host arrays that all training runs need."""
        sharding = NamedSharding(self._sharding.mesh, PartitionSpec()) if self.local else None
        return tree if sharding is None else jax.tree.map(lambda x: _put(x, sharding), tree)

    def numbers(self, of: Callable[[int], int], /) -> Rounds:
        """Put the integer `of(i)` on the device of group i, and 0 on a device without a group."""
        here = lambda i: of(i) if i < self.count else 0
        rows = [np.array([here(i) for i in row], np.int32) for row in self.rounds]
        return [jax.device_put(row, self._sharding) for row in rows]

    def put(self, tree: Any, lane: np.ndarray, /) -> Rounds:
        """Put host arrays on the devices; position i holds the values of the run `lane[i]`."""
        found = []
        for row in self.rounds:
            # A missing group gets any lane, and does no steps.
            at = lambda i: (
                lane[i * self.group : (i + 1) * self.group]
                if i < self.count
                else (np.resize(lane[:1], self.group))
            )
            rows = np.concatenate([at(i) for i in row])
            found.append(
                jax.tree.map(lambda leaf, rows=rows: _put(leaf, self._sharding, rows), tree)
            )
        return found

    def gather(self, rounds: Rounds, like: Any, /) -> Any:
        """Collect the values of all groups, in order, on every host; random keys become raw data.

        The argument `like` holds the shapes and types of one group's value.
        """
        plainly = lambda tree: jax.tree.map(plain, tree)
        parts: dict[int, Any] = {}
        for row, tree in zip(self.rounds, rounds):
            host = jax.tree.map(np.asarray, plainly(tree))
            for slot, index in enumerate(row):
                if index < self.count:
                    cut = slice(slot * self.group, (slot + 1) * self.group)
                    parts[index] = jax.tree.map(lambda leaf, cut=cut: leaf[cut], host)
        if jax.process_count() > 1:
            parts = self._across(parts, jax.eval_shape(plainly, like))
        ordered = [parts[i] for i in range(self.count)]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *ordered)

    def _across(self, parts: dict[int, Any], like: Any) -> dict[int, Any]:
        most = max(map(len, self._of))
        empty = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), like)
        own = [parts[i] for i in self.mine] + [empty] * (most - len(self.mine))
        table = jax.tree.map(lambda *leaves: np.stack(leaves), *own)
        every = jax.tree.map(np.asarray, process_allgather(table))
        return {
            i: jax.tree.map(lambda leaf, at=(process, turn): leaf[at], every)
            for process, own_ in enumerate(self._of)
            for turn, i in enumerate(own_)
        }


def _put(leaf: Any, sharding: NamedSharding, rows: np.ndarray | None = None) -> jax.Array:
    host = np.asarray(plain(leaf))
    array = jax.device_put(host if rows is None else host[rows], sharding)
    return jax.random.wrap_key_data(array, impl=impl_of(leaf)) if is_key(leaf) else array


def largest(*numbers: float) -> list[float]:
    """Return, for each of the numbers, the maximum over all processes."""
    if jax.process_count() == 1:
        return list(numbers)
    every = process_allgather(np.asarray(numbers, np.float32))
    return np.asarray(every).max(axis=0).tolist()
