"""Compute a statement's recorded values (of sides and functions) without a search or a verdict."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import jax

from jaxbounds.claims.statements import Instance, Size, Statement
from jaxbounds.falsification.bench import STORED, Bench, length, take
from jaxbounds.falsification.explore import drawn
from jaxbounds.falsification.measure import float64_on_cpu
from jaxbounds.falsification.noted_values import (
    DRAWN,
    NotedAt,
    Numbers,
    Row,
    noted,
    rows_of,
    values_of,
)
from jaxbounds.falsification.programs import UNKEPT, Programs


class Few(NamedTuple):
    """The few instances of one batch on which the engine records values."""

    at: NotedAt
    size: Size
    batch: Instance
    rows: tuple[int, ...]


def noted_rows(bench: Bench, seed: int = 0, /) -> Iterator[Few]:
    """Yield the instances on which a run records values.

    The function draws shorter batches than the run; an instance does not depend on the length of
    its batch.
    """
    statement = bench.statement
    if statement.there_is is not None:
        return
    budget = replace(statement.budget, samples=min(DRAWN, statement.budget.samples))
    for index, size in enumerate(map(Size, statement.sizes)):
        for source, batch in drawn(bench, index, budget, seed):
            rows = rows_of(source, length(batch))
            yield Few(NotedAt(index, source), size, take(batch, list(rows)), rows)


def noted_alone(
    statement: Statement, /, *, seed: int = 0, programs: Programs = UNKEPT
) -> tuple[dict[str, dict[str, Numbers]], ...]:
    """Return, for each version of the claim, the `Verdict.values` of a full run."""
    found: list[Row] = []
    with float64_on_cpu():
        bench = Bench(statement, DRAWN, programs, calls=STORED)
        for few in noted_rows(bench, seed):
            bench.watch.notes = True
            if statement.host:
                run = bench.watch.calls(bench.reader(few.size))
                read = [run(take(few.batch, i)) for i in range(len(few.rows))]
            else:
                reading = bench.reading(few.batch, few.size)
                read = [
                    jax.tree.map(lambda leaf, i=i: leaf[i], reading) for i in range(len(few.rows))
                ]
            found += noted(statement, read, few.at, few.rows)
    return tuple(values_of(statement, found, i) for i in range(len(statement.forms)))
