"""Measure violations, and bounds with a zero side, again if float rounding may explain them."""

from typing import Any, NamedTuple

import numpy as np

from jaxbounds.claims.statements import Form, Size
from jaxbounds.falsification.bench import Bench, Column, Pool, counterexample_of, spread
from jaxbounds.falsification.cancellation import largest_entry
from jaxbounds.falsification.decide import (
    NAME_EQUALITY,
    UNNAMED,
    Decision,
    decide,
    violation,
)
from jaxbounds.falsification.evaluation import Reals
from jaxbounds.falsification.fitness import rounds_coarsely
from jaxbounds.falsification.infinite_sides import is_short, without_overflow
from jaxbounds.falsification.measure import Measured
from jaxbounds.falsification.scales import look_at_large_violations
from jaxbounds.falsification.second_opinion import (
    Asked,
    by_a_jump,
    clears_at_the_set,
    is_coarse,
    is_rounding,
    stands,
)

LESS = 8
"""If the largest violation may be rounding, the engine measures at most this many smaller
violations again. A larger number takes longer."""
ASKED = 2
"""Ball arithmetic decides about at most this many instances of one claim version. Each decision
takes seconds, so a larger number takes longer."""
FAR, ALL = 16, 512
"""Ball arithmetic decides at most FAR instances with infinite sides, or ALL if the program is
short. Larger numbers take longer."""


def _at_row(bench: Bench, pool: Pool, column: Column, row: int) -> tuple[Any, Size, float]:
    size = Size(bench.statement.sizes[column.sizes[row]])
    return pool.instance(row), size, float(column.measured.value[row])


def beyond_floats(
    bench: Bench, pool: Pool, column: Column, form: Form, referee: Asked
) -> tuple[Column, str]:
    """Let ball arithmetic decide instances with an infinite side whose ratio is NaN or a violation.

    A violation with two infinite sides counts as evidence if ball arithmetic confirms it. If ball
    arithmetic finds no violation at the tested instances, no instance with an infinite side counts.
    Otherwise all instances with an infinite side count, and the claim cannot hold.

    Returns:
        The measurements, and a remark on instances that are no evidence; "" if all are evidence.
    """
    m, statement = column.measured, bench.statement
    far = np.isinf(m.lhs) | np.isinf(m.rhs)
    with np.errstate(all="ignore"):
        lost = m.counted & np.isnan(m.value) & np.isinf(m.lhs) & np.isinf(m.rhs)
        above = violation(statement, m) > 0
    if not np.any(lost) and not np.any(above & far):
        return column, ""
    rows = np.flatnonzero(lost | (above & far))
    rows = rows[np.argsort(_largest_entries(pool, rows), kind="stable")]
    known = bench, pool, column, rows
    clear = len(rows) <= FAR or without_overflow(*known)
    every = not clear and len(rows) <= ALL and is_short(*known)
    count = len(rows) if every else min(FAR, len(rows))
    asked = spread(rows, count)
    clear = clear or every
    for row in asked:
        instance, size, _ = _at_row(bench, pool, column, int(row))
        said = referee(statement, form, instance, size)
        if said.word.startswith("disproved") and not np.any(above):
            fields = {name: np.array(getattr(m, name)) for name in ("value", "low", "high")}
            for field in fields.values():
                field[row] = np.inf
            return column._replace(measured=m._replace(**fields)), ""
        clear = clear and (said.is_true if statement.strict else said.clears)
        if not clear and (said.word == "absent" or np.any(above)):
            return column, ""
    left = m.counted & ~lost & ~(above & far)
    if not clear or not left.any():
        return column, ""
    words = (
        f"{len(rows)} instances with an infinite side do not count; ball arithmetic found no "
        f"violation at {len(asked)} of them"
    )
    return column._replace(measured=m._replace(counted=left)), words


def _largest_entries(pool: Pool, rows: np.ndarray) -> np.ndarray:
    return np.array([largest_entry(pool.instance(int(row)), np) for row in rows])


def looked_again(
    bench: Bench, pool: Pool, column: Column, form: Form, decision: Decision, referee: Asked
) -> tuple[Decision, Column]:
    """Decide about a violation that rounding may explain; only ball arithmetic can confirm it.

    If ball arithmetic confirms only a smaller violation, the larger violations are no evidence. No
    violation is evidence if rounding explains all, and ball arithmetic finds no violation at many.
    """
    statement, violating = bench.statement, violation(bench.statement, column.measured)
    index = [f.name for f in statement.forms].index(form.name)
    if np.any(violating > 0):
        found = _at_row(bench, pool, column, int(np.argmax(violating)))
    else:
        instance, size = counterexample_of(statement, form)
        found = instance, size, float(bench.one(instance, size).value[index])
    coarse = is_coarse(bench, index, found)
    doubt = rounds_coarsely(bench.watch) if coarse else stands(bench, form, found, referee)
    if not doubt:
        return decision, column
    if np.any(violating > 0) and not coarse:  # rounding of the terms may explain all violations
        looked = look_at_large_violations(bench, pool, column, index)
        again = decide(statement, form, looked)
        asked = ask_about_rounding(bench, pool, looked, form, referee)
        left = again.status in ("holds", "vacuous") or again.reason == UNNAMED
        if left and not asked.doubt and asked.row is None:
            return again, looked
    for row in _smaller(violating):
        smaller = _at_row(bench, pool, column, row)
        if not is_coarse(bench, index, smaller) and not stands(bench, form, smaller, referee):
            measured = column.measured
            counted = measured.counted & ~(violating > violating[row])
            column = column._replace(measured=measured._replace(counted=counted))
            return decide(statement, form, column), column
    rows = np.flatnonzero(violating > 0)
    if not (coarse or statement.strict) and _are_only_rounding(
        bench, pool, column, form, rows, referee
    ):
        counted = column.measured.counted & ~(violating > 0)
        column = column._replace(measured=column.measured._replace(counted=counted))
        return decide(statement, form, column), column
    return Decision("inconclusive", decision.ratio, doubt), column


def _are_only_rounding(
    bench: Bench, pool: Pool, column: Column, form: Form, rows: np.ndarray, referee: Asked
) -> bool:
    """Return whether rounding explains all violations, and ball arithmetic confirms it for many."""
    index = [f.name for f in bench.statement.forms].index(form.name)
    asked = spread(rows, FAR)
    for row in asked:
        instance, size, _ = _at_row(bench, pool, column, int(row))
        given = bench.statement, form, instance, size, referee
        if not (referee(*given[:-1]).clears or clears_at_the_set(*given)):
            return False
    left = np.setdiff1d(rows, asked)
    small = lambda row: is_rounding(bench, index, *_at_row(bench, pool, column, int(row)))
    return 0 < len(rows) <= ALL and all(map(small, left))


def _smaller(violating: Reals) -> list[int]:
    rows = np.argsort(-np.asarray(violating), kind="stable")[: int(np.sum(violating > 0))]
    return [int(row) for row in spread(rows, LESS + 1)[1:]]


class _Asked(NamedTuple):
    """The answers of ball arithmetic about violations that rounding may explain.

    Attributes:
        row: the row of a confirmed violation, or None.
        doubt: the reason why some violation may be real; empty if ball arithmetic excludes all.
    """

    row: int | None
    doubt: str


def ask_about_rounding(
    bench: Bench, pool: Pool, column: Column, form: Form, referee: Asked, rows: Any = None
) -> _Asked:
    """Ask ball arithmetic about the largest violations that may be rounding."""
    amount, doubt = column.rounding, ""
    if bench.statement.there_is is not None:
        return _Asked(None, "")
    if rows is None:
        if amount is None or not np.any(amount > 0):
            return _Asked(None, "")
        rows = np.argsort(-amount, kind="stable")[: int(np.sum(amount > 0))]
    for row in rows[:ASKED]:
        instance, size, _ = found = _at_row(bench, pool, column, int(row))
        said = referee(bench.statement, form, instance, size)
        if said.word.startswith("disproved"):
            if not stands(bench, form, found, referee):
                return _Asked(int(row), "")
            doubt = doubt or by_a_jump(bench, form, found)
        if not said.clears and not clears_at_the_set(
            bench.statement, form, instance, size, referee
        ):
            doubt = doubt or (
                "floats violate the form at an instance, perhaps only by rounding of its terms, "
                f"and ball arithmetic does not decide: {said.reason}"
            )
    return _Asked(None, doubt)


def confirmed(pool: Pool, column: Column, index: int, row: int) -> Column:
    """Restore the first measurement of a violation that ball arithmetic confirms."""
    own = Measured(*(field[row] for field in pool.columns()[index].measured))
    fields = [np.array(field) for field in column.measured]
    for measured, value in zip(fields, own):
        measured[row] = value
    return column._replace(measured=Measured(*fields))


def beside_zero(
    bench: Bench, pool: Pool, column: Column, form: Form, decision: Decision, referee: Asked
) -> Decision:
    """Accept a bound with one side zero if rounding explains the other side's distance from zero.

    The function accepts the bound unless ball arithmetic refutes the worst instances. A claim that
    says that entries exist (`there_is`) keeps its decision.
    """
    m, statement = column.measured, bench.statement
    zero = (m.rhs == 0) | (m.lhs == 0)
    if decision.reason != UNNAMED or not np.all(zero[m.counted]) or statement.there_is is not None:
        return decision
    words = "one side is zero, and the other differs from it by no more than its terms round"
    value = np.where(m.counted, m.value, -np.inf)
    order = np.argsort(-value, kind="stable")
    for row in order[:ASKED]:
        instance, size, _ = _at_row(bench, pool, column, int(row))
        if referee(statement, form, instance, size).word.startswith("disproved"):
            return decision
    with np.errstate(invalid="ignore"):
        above = [row for row in order if m.counted[row] and m.lhs[row] > m.rhs[row]]
    if doubt := ask_about_rounding(bench, pool, column, form, referee, above).doubt:
        return Decision("inconclusive", decision.ratio, f"{doubt}{NAME_EQUALITY}")
    return Decision("holds", decision.ratio, words)
