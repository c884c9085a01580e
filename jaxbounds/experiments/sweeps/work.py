"""Hold the states of a running sweep's lanes (runs) on the devices, and advance the lanes."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbounds.experiments.sweeps.checkpoint import leaves_of, with_leaves
from jaxbounds.experiments.sweeps.compaction import compaction
from jaxbounds.experiments.sweeps.compiled import kept
from jaxbounds.experiments.sweeps.grouping import needed
from jaxbounds.experiments.sweeps.groups import Groups, Rounds
from jaxbounds.experiments.sweeps.swept import joined
from jaxbounds.ground.memory import refuse_over

ONE = np.int32(1)


def places(own: range, group: int, /) -> tuple[np.ndarray, np.ndarray]:
    """Return the position of each lane (run) in `own`, and the index of the lane at each position.

    A lane keeps the slot (position within a group) that the lane has in the whole sweep. Positions
    without a lane of their own hold the last lane.
    """
    turn = np.arange(len(own))
    place = turn // group * group + (own.start + turn) % group
    lane = np.full(-(-len(own) // group) * group, len(own) - 1)
    lane[place] = turn
    return place, lane


def like(lanes: Any, group: int, /) -> Any:
    """Return the shapes and types of the arrays that describe `group` lanes (runs)."""
    one = lambda leaf: jax.ShapeDtypeStruct((group, *leaf.shape[1:]), leaf.dtype)
    return jax.tree.map(one, lanes)


class Work:
    """Lanes (runs) in groups on devices, with the state that each lane carries between steps.

    This process computes the lanes whose indices are in `own`. Only equal programs share the text
    `mark`, so that equal programs are compiled once.
    """

    def __init__(
        self,
        begin: Callable,
        advance: Callable,
        lanes: Any,
        own: range,
        group: int,
        devices: Sequence[Any],
        shared: tuple = (),
        mark: Hashable = None,
    ) -> None:
        self._begin, self._advance, self._own, self._mark = begin, advance, own, mark
        self._lanes = jax.tree.map(lambda leaf: leaf[own.start : own.stop], lanes)
        self._place, self._lane = places(own, group)
        self._groups = Groups(len(self._lane) // group, group, devices)
        self._shared, self._on_devices = shared, ()
        some, common = like(lanes, group), jax.tree.map(_shape, shared)

        def shapes() -> tuple[Any, Any]:
            first = jax.eval_shape(begin, some, common)
            return first, jax.eval_shape(advance, some, first, ONE, common)[1]

        # Tracing both programs takes as long as hundreds of steps of a small lane.
        self._like, self._shapes = kept(None if mark is None else (mark, group), "shapes", shapes)
        self._parts: Rounds = []
        self._carries: Rounds = []
        self._first: Any = None
        self._program: Any = None
        self._resting: set[int] = set()
        self._last: dict[str, np.ndarray] = {}
        self._asked: tuple[int, frozenset[int]] | None = None
        self._numbers: Rounds = []

    def compile(self, limit: float, /) -> int:
        """Compile the programs of the start and of `advance`, before any data are on a device.

        The result is the number of bytes of memory that a device needs for the sweep.

        Raises:
            Refused: if the programs and all other data of the sweep need more than `limit` bytes on
                a device.
        """
        groups = self._groups
        if not groups.local:
            return 0
        some = like(self._lanes, groups.group)
        mark = None if self._mark is None else (self._mark, groups.local, groups.group)

        def go_on(lanes: Any, carry: Any, records: Any, shared: Any) -> Any:
            return self._advance(lanes, carry, records[0], shared)

        one = jax.ShapeDtypeStruct((1,), np.int32)
        self._first = kept(
            mark, "begin", lambda: groups.compiled(self._begin, (some,), self._shared)
        )
        # The program donates the carries, so the next carries reuse their memory.
        self._program = kept(
            mark, "advance",
            lambda: groups.compiled(go_on, (some, self._like, one), self._shared, donate=(1,)),
        )  # fmt: skip
        size = self._program.memory_analysis().argument_size_in_bytes
        need = needed(self._program) + (len(groups.rounds) - 1) * size
        what = "one chunk of this sweep, on a device, needs"
        refuse_over(need, limit, what, "lower group or chunk, or ")
        return need

    def _place_lanes(self) -> None:
        if not self._parts:
            self._on_devices = self._groups.share(self._shared)
            self._parts = self._groups.put(self._lanes, self._lane)

    def _started(self) -> Rounds:
        if not self._carries and self._groups.rounds:
            self._place_lanes()
            self._carries = [self._first(part, self._on_devices) for part in self._parts]
        return self._carries

    def restore(self, leaves: Sequence[np.ndarray], records: dict[str, np.ndarray], /) -> None:
        """Restore the runs' states and their last measured metrics from a checkpoint."""
        self._place_lanes()
        self._carries = self._groups.put(with_leaves(self._like, leaves), self._lane)
        self._last = {name: values[:, -1] for name, values in joined([records]).items()}

    def carries(self) -> Any:
        """Return the states that the lanes (runs) carry, on the host, in the lanes' order."""
        every = self._groups.gather(self._started(), self._like)
        return jax.tree.map(lambda leaf: leaf[self._place], every)

    def typed(self, tree: Any, /) -> Any:
        """Return states from `carries`, whose random keys get their original types back."""
        return with_leaves(self._like[0], jax.tree.leaves(tree))

    def all_over(self) -> bool:
        """Tell whether all lanes (runs) are finished; if not, gather the unfinished lanes."""
        groups = self._groups
        over = groups.gather([carry[1] for carry in self._started()], self._like[1])
        if over.all():
            return True
        order = compaction(over, groups.group, len(groups.devices))
        if order is not None:
            every = groups.gather(self._carries, self._like)
            self._carries = groups.put(with_leaves(self._like, leaves_of(every)), order)
            self._place, self._lane = np.argsort(order)[self._place], self._lane[order]
            self._parts, over = groups.put(self._lanes, self._lane), over[order]
        # A finished group whose last state is measured needs no more calls.
        rest = over.reshape(-1, groups.group).all(axis=1)
        self._resting = set(np.flatnonzero(rest).tolist()) if self._last else set()
        return False

    def advance(self, records: int, /) -> dict[str, np.ndarray]:
        """Advance the lanes (runs) by `records` records, each the metrics at one recorded step.

        Return the metrics, with axes (lanes, records, ...).
        """
        groups, program = self._groups, self._program
        self._started()
        numbers = self._records_of(records)
        found: Rounds = []
        for turn, row in enumerate(groups.rounds):
            if all(i in self._resting or i >= groups.count for i in row):
                found.append(self._nothing(len(row)))
                continue
            given = (self._parts[turn], self._carries[turn], numbers[turn], self._on_devices)
            self._carries[turn], measured = program(*given)
            found.append(measured)
        cut = lambda leaf: np.asarray(leaf)[:, :records]
        shape = lambda s: jax.ShapeDtypeStruct((s.shape[0], records, *s.shape[2:]), s.dtype)
        every = groups.gather(
            [jax.tree.map(cut, one) for one in found], jax.tree.map(shape, self._shapes)
        )
        for index in self._resting:
            at = slice(index * groups.group, (index + 1) * groups.group)
            for name, values in self._last.items():
                every[name][at] = values[self._lane[at]][:, None]
        self._last = {name: values[self._place][:, -1] for name, values in every.items()}
        return {name: values[self._place] for name, values in every.items()}

    def _records_of(self, records: int) -> Rounds:
        asked = records, frozenset(self._resting)
        if asked != self._asked:
            self._numbers = self._groups.numbers(lambda i: 0 if i in self._resting else records)
            self._asked = asked
        return self._numbers

    def _nothing(self, devices: int) -> dict[str, np.ndarray]:
        room = lambda s: np.zeros((s.shape[0] * devices, *s.shape[1:]), s.dtype)
        return jax.tree.map(room, self._shapes)


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype)
