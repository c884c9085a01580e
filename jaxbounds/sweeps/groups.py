"""Lanes in groups of a fixed size: one program for a group, called for each group on its device.

The program knows nothing of other groups, devices, shares or processes; all that they change is
who calls it for which lanes.
"""

import concurrent.futures
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbounds.ground.jax_internals import process_allgather
from jaxbounds.sweeps.checkpoint import is_key, plain

Parts = dict[int, Any]
"""Something of each group of this process, by the group's number."""


class Groups:
    """Groups dealt out over devices one after the other: group i is on device i modulo their count.

    Of several processes each has the groups of its own devices.

    Args:
        count: how many groups there are.
        group: lanes in each.
        devices: of all processes, in the same order in each.
    """

    def __init__(self, count: int, group: int, devices: Sequence[Any]) -> None:
        self.count, self.group, self.devices = count, group, tuple(devices)
        self._of = [
            [i for i in range(count) if self.device(i).process_index == process]
            for process in range(jax.process_count())
        ]
        self.mine = self._of[jax.process_index()]

    def device(self, index: int, /) -> Any:
        """Where the group is."""
        return self.devices[index % len(self.devices)]

    def compiled(
        self, function: Callable, arguments: dict[int, tuple], donate: tuple[int, ...] = ()
    ) -> dict[Any, Any]:
        """The program of one group, by the device that it is loaded on.

        JAX compiles anew for each device, the same module with the same options.

        Args:
            function: of the lanes of one group.
            arguments: for each group; those of the first one of each device are looked at.
            donate: the arguments that it may overwrite.
        """
        jitted = jax.jit(function, donate_argnums=donate)
        # Settings of JAX belong to a thread: other threads only compile what is lowered here.
        lowered = {
            self.device(i): jitted.lower(*arguments[i]) for i in self.mine[: len(self.devices)]
        }
        if len(lowered) < 2:
            return {device: one.compile() for device, one in lowered.items()}
        with concurrent.futures.ThreadPoolExecutor(len(lowered)) as pool:
            return dict(zip(lowered, pool.map(lambda one: one.compile(), lowered.values())))

    def each(self, call: Callable[[int], Any], indices: Iterable[int], /) -> Parts:
        """`call(i)` for the given groups of this process: on each device in turn, on all at once.

        A program on a CPU is run by the thread that asks for it: each device has one here.
        """
        by_device: dict[Any, list[int]] = {}
        for i in indices:
            by_device.setdefault(self.device(i), []).append(i)
        in_turn = lambda own: {i: call(i) for i in own}
        if len(by_device) < 2:
            return {i: part for own in by_device.values() for i, part in in_turn(own).items()}
        with concurrent.futures.ThreadPoolExecutor(len(by_device)) as pool:
            return {i: x for part in pool.map(in_turn, by_device.values()) for i, x in part.items()}

    def put(self, tree: Any, lane: np.ndarray, /) -> Parts:
        """The given lane of host arrays at each position, on the devices."""
        leaves, structure = jax.tree.flatten(tree)
        types = [jax.random.key_impl(leaf) if is_key(leaf) else None for leaf in leaves]
        hosts = [np.asarray(plain(leaf)) for leaf in leaves]

        def one(i: int) -> Any:
            rows, parts = lane[i * self.group : (i + 1) * self.group], []
            for impl, host in zip(types, hosts):
                array = jax.device_put(host[rows], self.device(i))
                parts.append(array if impl is None else jax.random.wrap_key_data(array, impl=impl))
            return jax.tree.unflatten(structure, parts)

        return {i: one(i) for i in self.mine}

    def gather(self, parts: Parts, like: Any, /) -> Any:
        """Of all groups, one after the other, on every process; on the host, keys as their data.

        Args:
            parts: of the groups of this process.
            like: a group's, as `jax.eval_shape` gives it.
        """
        plainly = lambda tree: jax.tree.map(plain, tree)
        parts = {i: jax.tree.map(np.asarray, plainly(parts[i])) for i in self.mine}
        if jax.process_count() > 1:
            parts = self._across(parts, jax.eval_shape(plainly, like))
        ordered = [parts[i] for i in range(self.count)]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *ordered)

    def _across(self, parts: Parts, like: Any) -> Parts:
        """What other processes have, too."""
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


def largest(*numbers: float) -> list[float]:
    """Each number's largest over all processes."""
    if jax.process_count() == 1:
        return list(numbers)
    every = process_allgather(np.asarray(numbers, np.float32))
    return np.asarray(every).max(axis=0).tolist()
