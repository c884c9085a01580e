"""The lanes of a sweep on the devices, in the middle of it."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbounds.memory import refuse_over
from jaxbounds.sweeps.checkpoint import leaves_of, with_leaves
from jaxbounds.sweeps.compaction import compaction
from jaxbounds.sweeps.grouping import needed
from jaxbounds.sweeps.groups import Groups, Parts
from jaxbounds.sweeps.swept import joined

ONE = np.int32(1)


def places(own: range, group: int, /) -> tuple[np.ndarray, np.ndarray]:
    """The position of each own lane, and the lane at each position; the last one fills up.

    A lane has the slot within its group that it has in the whole sweep.
    """
    turn = np.arange(len(own))
    place = turn // group * group + (own.start + turn) % group
    lane = np.full(-(-len(own) // group) * group, len(own) - 1)
    lane[place] = turn
    return place, lane


def like(lanes: Any, group: int, /) -> Any:
    """The shapes of so many lanes."""
    one = lambda leaf: jax.ShapeDtypeStruct((group, *leaf.shape[1:]), leaf.dtype)
    return jax.tree.map(one, lanes)


class Work:
    """Lanes in groups on devices, and what they carry from step to step.

    Args:
        begin: from `starting`.
        advance: from `advancing`.
        lanes: of the whole sweep.
        own: those of them that are computed here.
        group: lanes in a group.
        devices: of all processes.
    """

    def __init__(
        self,
        begin: Callable,
        advance: Callable,
        lanes: Any,
        own: range,
        group: int,
        devices: Sequence[Any],
    ) -> None:
        self._advance, self._own = advance, own
        self._lanes = jax.tree.map(lambda leaf: leaf[own.start : own.stop], lanes)
        self._place, self._lane = places(own, group)
        self._groups = groups = Groups(len(self._lane) // group, group, devices)
        self._parts = groups.put(self._lanes, self._lane)
        self._like = jax.eval_shape(begin, like(lanes, group))
        self._shapes = jax.eval_shape(advance, like(lanes, group), self._like, ONE)[1]
        first = groups.compiled(begin, {i: (self._parts[i],) for i in groups.mine})
        self._carries: Parts = groups.each(
            lambda i: first[groups.device(i)](self._parts[i]), groups.mine
        )
        self._programs: dict[Any, Any] = {}
        self._resting: set[int] = set()
        self._last: dict[str, np.ndarray] = {}

    def compile(self, limit: float, /) -> None:
        """Compile what `advance` calls.

        Raises:
            ValueError: if it, with all that stays on a device beside it, takes more bytes than
                `limit`; nothing has been run then.
        """
        groups = self._groups
        arguments = {i: (self._parts[i], self._carries[i], ONE) for i in groups.mine}
        # The carries are donated: the next ones take their memory.
        self._programs = groups.compiled(self._advance, arguments, donate=(1,))
        for device, program in self._programs.items():
            others = sum(groups.device(i) == device for i in groups.mine) - 1
            size = program.memory_analysis().argument_size_in_bytes
            what = "one chunk of this sweep, on a device, needs"
            need = needed(program) + others * size
            refuse_over(need, limit, what, "lower group or chunk, or ")

    def _wrapped(self, leaves: Sequence[np.ndarray]) -> Any:
        """Carries from the leaves that are stored; some process may have no group."""
        return with_leaves(next(iter(self._carries.values()), self._like), leaves)

    def restore(self, leaves: Sequence[np.ndarray], records: dict[str, np.ndarray], /) -> None:
        """Go on from what `carries` gave, after these records."""
        self._carries = self._groups.put(self._wrapped(leaves), self._lane)
        self._last = {name: values[:, -1] for name, values in joined([records]).items()}

    def carries(self) -> Any:
        """What the lanes carry, on the host, in their order."""
        every = self._groups.gather(self._carries, self._like)
        return jax.tree.map(lambda leaf: leaf[self._place], every)

    def all_over(self) -> bool:
        """Whether no lane has anything left to do; those that have are moved together."""
        groups = self._groups
        flags = {i: self._carries[i][1] for i in groups.mine}
        over = groups.gather(flags, self._like[1])
        if over.all():
            return True
        order = compaction(over, groups.group, len(groups.devices))
        if order is not None:
            every = groups.gather(self._carries, self._like)
            self._carries = groups.put(self._wrapped(leaves_of(every)), order)
            self._place, self._lane = np.argsort(order)[self._place], self._lane[order]
            self._parts, over = groups.put(self._lanes, self._lane), over[order]
        # A group that was measured in its last state need not be called any more.
        rest = over.reshape(-1, groups.group).all(axis=1)
        self._resting = set(np.flatnonzero(rest).tolist()) if self._last else set()
        return False

    def advance(self, records: int, /) -> dict[str, np.ndarray]:
        """So many records further: their metrics (lanes, records, ...), on every process."""
        groups, number = self._groups, np.int32(records)
        call = lambda i: self._programs[groups.device(i)](self._parts[i], self._carries[i], number)
        done = groups.each(call, [i for i in groups.mine if i not in self._resting])
        self._carries |= {i: carry for i, (carry, _) in done.items()}
        found = {
            i: {name: np.asarray(values)[:, :records] for name, values in metrics.items()}
            for i, (_, metrics) in done.items()
        } | {i: self._repeated(i, records) for i in self._resting.intersection(groups.mine)}
        shape = lambda s: jax.ShapeDtypeStruct((s.shape[0], records, *s.shape[2:]), s.dtype)
        every = groups.gather(found, jax.tree.map(shape, self._shapes))
        self._last = {name: values[self._place][:, -1] for name, values in every.items()}
        return {name: values[self._place] for name, values in every.items()}

    def _repeated(self, index: int, records: int) -> dict[str, np.ndarray]:
        """The last metrics of a group that rests, so many times."""
        lane = self._lane[index * self._groups.group :][: self._groups.group]
        return {
            name: np.repeat(values[lane][:, None], records, axis=1)
            for name, values in self._last.items()
        }
