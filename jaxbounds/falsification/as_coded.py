"""Find instances at which machine integers wrap (overflow).

A violation at such an instance refutes the program, not the claim. The engine runs the program
again with integers of any length, and ignores instances at which a side changes.
"""

from typing import NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import ON_AVERAGE, Instance, Size, Statement
from jaxbounds.falsification.bench import Bench, Column, Pool, take
from jaxbounds.falsification.decide import Decision, decide, violation
from jaxbounds.falsification.scales import flat_sides, parts_of, traced_reading
from jaxbounds.programs.interpreted import NotInterpreted
from jaxbounds.programs.interpreted.whole import as_floats, with_whole_numbers

MOST = 2048
"""The engine runs the program again on at most this many instances of each shape. A larger number
finds rarer overflows and takes longer."""
APART = 1e-9
"""Two computations of a side differ if their relative difference exceeds this amount. A smaller
amount may mistake rounding for an overflowed integer."""


class Wrapped(NamedTuple):
    """The overflowing integers in one version of a claim.

    Attributes:
        rows: for each instance, whether a side changes if integers cannot overflow.
        operations: the JAX primitives whose integers overflow.
    """

    rows: np.ndarray
    operations: tuple[str, ...]


def reason(operations: tuple[str, ...], /) -> str:
    """Return the verdict's reason if integers overflow at all violating instances."""
    named = ", ".join(operations)
    return (
        f"as coded: machine integers wrap in {named}. Try x.astype(float) before that "
        "operation, or instances with smaller integers"
    )


def at_instances(bench: Bench, batch: Instance, size: Size, /) -> list[Wrapped]:
    """Measure instances again, and find integers that overflow in the program of the claim.

    Raises:
        NotInterpreted: if NumPy cannot run the claim's program.
    """
    forms = range(len(bench.statement.forms))
    rows: list[list[np.ndarray]] = [[] for _ in forms]
    operations: list[dict[str, None]] = [{} for _ in forms]
    for part, count in parts_of(bench, batch):
        traced = traced_reading(bench, size, part)
        whole = with_whole_numbers(traced.jaxpr, jax.tree.leaves(part))
        structure = jax.tree.structure(traced.out_info)
        there = jax.tree.unflatten(structure, list(map(as_floats, whole.values)))
        machine = bench.reading(jax.tree.map(np.asarray, part), size) if whole.wraps else there
        for form in forms:
            pairs = zip(flat_sides(machine, form)[:2], flat_sides(there, form)[:2])
            apart = np.any([_differ(*pair) for pair in pairs], axis=0)[:count]
            rows[form].append(apart)
            operations[form] |= dict.fromkeys(whole.wraps if np.any(apart) else ())
    return [Wrapped(np.concatenate(r), tuple(o)) for r, o in zip(rows, operations)]


def _differ(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        largest = np.maximum(np.abs(own), np.abs(other))
        near = np.isfinite(largest) & (np.abs(own - other) <= APART * largest)
    alike = near | (own == other) | (np.isnan(own) & np.isnan(other))
    return ~np.all(alike, axis=1)


def _looked_at(column: Column, statement: Statement, here: np.ndarray) -> np.ndarray:
    if len(here) <= MOST:
        return here
    m = column.measured
    value = np.where(m.counted & ~np.isnan(m.value), m.value, -np.inf)[here]
    violating = here[violation(statement, m)[here] > 0]
    worst = here[np.argsort(-value, kind="stable")]
    spread = here[np.linspace(0, len(here) - 1, MOST // 4).astype(int)]
    return np.unique(np.concatenate([violating[: MOST // 2], worst[: MOST // 4], spread]))


def as_coded(bench: Bench, pool: Pool, columns: list[Column], /) -> list[Wrapped]:
    """Find the overflowing integers of each claim version on all measured instances."""
    statement, total = bench.statement, len(columns[0].sizes)
    none = [Wrapped(np.zeros(total, bool), ()) for _ in statement.forms]
    if not bench.watch.wrapping or statement.host or statement.there_is is not None:
        return none
    found = none
    for index, size in enumerate(map(Size, statement.sizes)):
        here = np.flatnonzero(columns[0].sizes == index)
        if not len(here):
            continue
        rows = _looked_at(columns[0], statement, here)
        batch, _ = pool.of_size(index)
        try:
            there = at_instances(bench, take(batch, np.searchsorted(here, rows)), size)
        except NotInterpreted:
            continue
        for form, wrapped in enumerate(there):
            found[form].rows[rows] = wrapped.rows
            both = dict.fromkeys((*found[form].operations, *wrapped.operations))
            found[form] = found[form]._replace(operations=tuple(both))
    return found


def without_wrapped(
    statement: Statement, index: int, column: Column, decision: Decision, wrapped: Wrapped, /
) -> tuple[Decision, Column]:
    """Decide a claim again without the instances at which integers overflow.

    The function returns the decision and the remaining measurements.
    """
    if not np.any(wrapped.rows & column.measured.counted):
        return decision, column
    words = reason(wrapped.operations)
    if statement.kind not in ON_AVERAGE:
        measured = column.measured
        rest = column._replace(measured=measured._replace(counted=measured.counted & ~wrapped.rows))
        without = decide(statement, statement.forms[index], rest)
        if without.status == "fails":
            return without, rest
    return Decision("inconclusive", decision.ratio, words), column
