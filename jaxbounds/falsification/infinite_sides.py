"""Tell whether a claim's sides are infinite by definition (log 0), or only by overflow.

Two sides that are infinite by definition, such as KL(p, q) at an entry q = 0, satisfy `<=`. An
overflow hides the sides, which may violate the claim.
"""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import Size
from jaxbounds.falsification.bench import Bench, Column, Pool, take
from jaxbounds.falsification.scales import parts_of, traced_reading
from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.interpreted import NotInterpreted, Runner, as_value, refuse, typed
from jaxbounds.programs.traces import executed

SHORT = 256
"""A program is short if it executes at most this many equations (ten milliseconds in ball
arithmetic). A larger number counts more programs as short and takes longer."""


def _within_range(eqn: JaxprEqn, values: list[Any]) -> list[Any]:
    with np.errstate(over="raise", under="raise"):
        return typed(eqn, values)


_WITHIN_RANGE = Runner(_within_range)


def _programs(
    bench: Bench, pool: Pool, column: Column, rows: np.ndarray
) -> Iterator[tuple[Any, Any]]:
    if bench.statement.host or bench.statement.there_is is not None:
        raise NotInterpreted(
            "NumPy interprets neither programs on the host nor claims with there_is entries"
        )
    for index, size in enumerate(map(Size, bench.statement.sizes)):
        here = np.flatnonzero(column.sizes == index)
        chosen = np.searchsorted(here, rows[column.sizes[rows] == index])
        if len(chosen):
            for part, _ in parts_of(bench, take(pool.of_size(index)[0], chosen)):
                yield traced_reading(bench, size, part).jaxpr, part


def is_short(bench: Bench, pool: Pool, column: Column, rows: np.ndarray, /) -> bool:
    """Return whether the program executes at most `SHORT` equations on the given instances."""
    try:
        programs = _programs(bench, pool, column, rows)
        return all(executed(program.jaxpr) <= SHORT for program, _ in programs)
    except NotInterpreted:
        return False


def without_overflow(bench: Bench, pool: Pool, column: Column, rows: np.ndarray, /) -> bool:
    """Return whether the claim's program neither overflows nor underflows on some instances.

    Without an overflow or underflow, an infinite side is infinite by definition. The answer is
    False if NumPy cannot run the program.
    """
    try:
        for program, part in _programs(bench, pool, column, rows):
            refuse(program)
            with np.errstate(divide="ignore", invalid="ignore"):
                _WITHIN_RANGE.closed(program, [as_value(x) for x in jax.tree.leaves(part)])
    except NotInterpreted:
        return False
    return True
