"""Find instances at which machine integers wrap (overflow).

A violation at an instance with wrapped integers refutes the program, not the claim. The engine runs
the claim's program once more, with integers of any length. If a side changes, an integer wrapped in
the computation of the side, and the verdict ignores the instance.
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
"""The engine measures at most this many instances of each size again.

A larger number finds rarer overflows of integers and takes seconds longer.
"""
APART = 1e-9
"""The computed values of a side count as different if they differ by more than this relative
amount. If this amount is smaller, rounding may look like a wrapped (overflowed) integer.
"""


class Wrapped(NamedTuple):
    """The wrapped integers of one form (a version of the claim).

    Attributes:
        rows: for each instance, whether a side changes if integers cannot overflow.
        operations: the JAX primitives whose integers wrap in the computation of these sides.
    """

    rows: np.ndarray
    operations: tuple[str, ...]


def reason(operations: tuple[str, ...], /) -> str:
    """Return the reason that the verdict gives if integers overflow at all violating instances."""
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
    """Return a mask of the instances (rows) at which two computations of a side differ."""
    with np.errstate(all="ignore"):
        largest = np.maximum(np.abs(own), np.abs(other))
        near = np.isfinite(largest) & (np.abs(own - other) <= APART * largest)
    alike = near | (own == other) | (np.isnan(own) & np.isnan(other))
    return ~np.all(alike, axis=1)


def _looked_at(column: Column, statement: Statement, here: np.ndarray) -> np.ndarray:
    """Choose instances to measure again: violations, largest lhs/rhs, evenly spaced instances."""
    if len(here) <= MOST:
        return here
    m = column.measured
    value = np.where(m.counted & ~np.isnan(m.value), m.value, -np.inf)[here]
    violating = here[violation(statement, m)[here] > 0]
    worst = here[np.argsort(-value, kind="stable")]
    spread = here[np.linspace(0, len(here) - 1, MOST // 4).astype(int)]
    return np.unique(np.concatenate([violating[: MOST // 2], worst[: MOST // 4], spread]))


def as_coded(bench: Bench, pool: Pool, columns: list[Column], /) -> list[Wrapped]:
    """Find each form's wrapped (overflowing) integers on all measured instances (the pool).

    A form is one version of the claim.

    The result is empty if NumPy cannot run the claim's program.
    """
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
    """Decide a version of the claim again, without the instances at which integers overflow.

    The function returns the new decision about the claim, and the measurements at instances without
    overflowing integers.

    The claim still fails if an instance without overflowing integers violates it.
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
