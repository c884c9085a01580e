"""Measuring many instances with few compiled programs, and keeping what was measured."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxbounds.falsify.measure import Measured, measure, met
from jaxbounds.falsify.programs import Programs
from jaxbounds.statements import Instance, Statement


def length(batch: Any, /) -> int:
    """The number of instances stacked in a batch."""
    return len(jax.tree.leaves(batch)[0])


def take(batch: Any, index: Any, /) -> Any:
    """Rows of a batch."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], batch)


def concatenate(batches: list[Any], /) -> Any:
    """Batches (or measurements) one after the other."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *batches)


def as_arrays(instance: Any, /) -> Any:
    """Stored literals (lists, floats) as arrays of the types that samplers produce."""
    if isinstance(instance, Mapping):
        return {name: as_arrays(value) for name, value in instance.items()}
    return np.asarray(instance)


class Bench:
    """Measures instances of one statement, always `budget.batch` at a time.

    One batch size means one compiled program for each shape, shared by sampling, search, shrinking
    and replay, so that an instance gives the same bits wherever it is measured.
    """

    def __init__(self, statement: Statement, batch: int, programs: Programs) -> None:
        self.statement, self.programs = statement, programs
        self._run = programs(measure(statement), statement.id, "measure")
        self._batch = batch

    def __call__(self, batch: Instance) -> Measured:
        """Measure instances stacked along a leading axis."""
        total, size, parts = length(batch), self._batch, []
        for start in range(0, total, size):
            index = np.minimum(np.arange(start, start + size), total - 1)
            part = self._run(take(batch, index))
            parts.append(take(part, slice(total - start)))
        return Measured(*concatenate(parts))

    def one(self, instance: Instance) -> Measured:
        """Measure a single instance."""
        first = jax.tree.map(lambda leaf: np.asarray(leaf)[None], instance)
        return jax.tree.map(lambda column: column[0], self(first))

    def excluded(self, batch: Instance, measured: Measured) -> dict[str, int]:
        """Why instances of a batch do not count, and how many for each reason."""
        hypotheses, name = self.statement.hypotheses, (self.statement.id, "hypotheses")
        table = self.programs(lambda x: met(hypotheses, x), *name)(batch)
        table = {name: np.asarray(ok) for name, ok in table.items()}
        reasons = {name: int(np.sum(~ok)) for name, ok in table.items()}
        meets_all = np.all(np.stack(list(table.values())), axis=0)
        reasons["below the numerical error"] = int(np.sum(meets_all & ~measured.counted[:, -1]))
        return {name: count for name, count in reasons.items() if count}


class Pool:
    """All instances drawn so far with their measurements, by size."""

    def __init__(self) -> None:
        self.instances: list[list[Instance]] = []
        self.measured: list[Measured] = []
        self.sources: list[str] = []
        self.sizes: list[int] = []

    def add(self, source: str, size: int, batch: Instance, measured: Measured) -> None:
        """Append a batch from one source."""
        self.instances.append(batch)
        self.measured.append(measured)
        self.sources.append(source)
        self.sizes.append(size)

    def of_size(self, size: int) -> tuple[Instance, Measured]:
        """Everything of one size."""
        chosen = [i for i, s in enumerate(self.sizes) if s == size]
        return (
            concatenate([self.instances[i] for i in chosen]),
            concatenate([self.measured[i] for i in chosen]),
        )

    def table(self) -> tuple[Measured, np.ndarray, np.ndarray]:
        """Measurements, source and size index of every instance."""
        lengths = [len(m.counted) for m in self.measured]
        return (
            concatenate(self.measured),
            np.repeat(self.sources, lengths),
            np.repeat(self.sizes, lengths),
        )

    def instance(self, index: int) -> Instance:
        """The instance at a row of `table`.

        Raises:
            IndexError: if there is no such row.
        """
        for batch in self.instances:
            if index < length(batch):
                return take(batch, index)
            index -= length(batch)
        raise IndexError(index)
