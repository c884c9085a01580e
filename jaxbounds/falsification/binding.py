"""The binding of a statement to the functions that it judges: plant a mistake in one and look.

A verdict is about the function that people call only if a slightly wrong function changes it.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Budget, Instance, Judged, Size, Statement, full_name
from jaxbounds.falsification.bench import (
    Bench,
    Column,
    Pool,
    as_arrays,
    calls_of,
    concatenate,
    one_by_one,
    take,
)
from jaxbounds.falsification.decide import decide
from jaxbounds.falsification.evidence import bounded_mean
from jaxbounds.falsification.explore import draw
from jaxbounds.falsification.measure import Measured, float64_on_cpu, measure
from jaxbounds.falsification.mistakes import OTHER_MISTAKES
from jaxbounds.falsification.planting import FACTORS, STATIC, planted, replaced
from jaxbounds.falsification.programs import UNKEPT, compiled
from jaxbounds.falsification.trace_watch import forget
from jaxbounds.papers import Named, the_statement

FEW = Budget(samples=48, restarts=0, steps=0, batch=48)
"""The budget of a search for a binding: draws and cases, no search for worse instances."""


def _side_by_side(
    statement: Statement, size: Size, batch: Instance, functions: Sequence[Judged], factor: float
) -> list[Measured]:
    """Measure unchanged, then with each function off, in one program with the factors as data."""
    names = [full_name(function) for function in functions]
    factors = 1 + (factor - 1) * np.vstack([np.zeros(len(names)), np.eye(len(names))])

    def one(instance: Instance, row: jax.Array) -> Measured:
        FACTORS.update({name: row[i] for i, name in enumerate(names) if name not in STATIC})
        try:
            return measure(statement, size)(instance)
        finally:
            FACTORS.clear()

    with contextlib.ExitStack() as stack:
        for function in functions:
            stack.enter_context(replaced(function))
        forget(functions[0].__module__)
        try:
            program = compiled(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))
            found = jax.tree.map(np.asarray, program(batch, jnp.asarray(factors)))
        finally:
            forget(functions[0].__module__)
    return [jax.tree.map(lambda leaf, i=i: leaf[:, i], found) for i in range(len(names) + 1)]


def _one_at_a_time(
    statement: Statement, size: Size, batch: Instance, functions: Sequence[Judged], factor: float
) -> list[Measured | None]:
    """Measure unchanged, then with one function planted after the other.

    None where `evaluate` breaks.
    """
    run = one_by_one if statement.host else lambda f: compiled(jax.vmap(f))
    found: list[Measured | None] = [run(measure(statement, size))(batch)]
    for function in functions:
        with planted(function, factor):
            try:
                found.append(run(measure(statement, size))(batch))
            except Exception:
                found.append(None)
    return found


def _variants(
    statement: Statement, size: Size, batch: Instance, functions: Sequence[Judged], factor: float
) -> list[Measured | None]:
    """Measure unchanged, then with each function off."""
    if statement.host:
        return _one_at_a_time(statement, size, batch, functions, factor)
    found: list[Measured | None] = []
    STATIC.clear()
    try:
        found += _side_by_side(statement, size, batch, functions, factor)
    except Exception:  # some value is needed by the trace itself
        return _one_at_a_time(statement, size, batch, functions, factor)
    still = [function for function in functions if full_name(function) in STATIC]
    if still:
        apart = iter(_one_at_a_time(statement, size, batch, still, factor)[1:])
        for i, function in enumerate(functions):
            if function in still:
                found[i + 1] = next(apart)
    return found


def few_draws(statement: Statement, budget: Budget) -> Bench:
    """Return a bench that measures draws and cases, and keeps no program."""
    return Bench(statement, budget.batch, UNKEPT, calls=calls_of(statement, budget))


def _whole(bench: Bench, pool: Pool, index: int) -> Instance:
    """The instances of one size, with the entries that `there_is` promises the first form."""
    batch = take(pool.of_size(index)[0], slice(None))
    if bench.statement.there_is is None:
        return batch
    return bench.promises(Size(bench.statement.sizes[index])).filled(batch, 0)


def bindings(
    statement: Statement,
    functions: Sequence[Judged],
    /,
    *,
    factor: float = 1.25,
    budget: Budget = FEW,
) -> list[bool]:
    """Tell for each function whether a verdict or a ratio of the statement changes when it is off.

    A ratio changes if it moves by more than the statement's tolerance: the worst, the mean over the
    draws that is recorded (`Verdict.drawn`), or a counterexample's. An evaluation that breaks
    changes the verdict. Instances are those of the unchanged functions.

    Args:
        statement: any statement.
        functions: functions that it judges.
        factor: by which real values are off.
        budget: how many instances are drawn.
    """
    with float64_on_cpu():
        bench, pool = few_draws(statement, budget), Pool()
        draw(bench, pool, budget, 0)
        at = {i: Size(size) for i, size in enumerate(statement.sizes)}
        parts = [_variants(statement, at[i], _whole(bench, pool, i), functions, factor) for i in at]
        sizes = np.repeat(list(at), [len(p[0].counted) for p in parts if p[0] is not None])
        stored = [
            _variants(
                statement, Size(c.size),
                jax.tree.map(lambda leaf: leaf[None], as_arrays(dict(c.instance))),
                functions, factor,
            ) if c else None
            for c in (form.counterexample for form in statement.forms)
        ]  # fmt: skip
    answers = []
    for variant in range(1, len(functions) + 1):
        before, after = (
            _judgement(statement, [p[v] for p in parts], [s and s[v] for s in stored], sizes)
            for v in (0, variant)
        )
        answers.append(
            after is None or any(_differ(a, b, statement) for a, b in zip(before or (), after))
        )
    return answers


def _judgement(statement: Statement, parts: list, stored: list, sizes: np.ndarray):
    """Return the status and ratio of each form and stored counterexample; None if broken."""
    if any(part is None for part in parts):
        return None
    table = Measured(*concatenate(parts))
    judged: list[tuple[str, float]] = []
    for index, form in enumerate(statement.forms):
        every = np.arange(len(sizes))
        column = Column(table.column(index), sizes, np.repeat("", len(sizes)), every)
        decision = decide(statement, form, column)
        judged.append((decision.status, decision.ratio))
        counted = column.measured.value[column.measured.counted]
        judged.append(("", bounded_mean(counted) or 0.0))
        if form.counterexample:
            if stored[index] is None:
                return None
            judged.append(("", float(stored[index].value[0, index])))
    return tuple(judged)


def is_bound_to(
    statement: Named, function: Judged, *, factor: float = 1.25, budget: Budget | None = None
) -> bool:
    """Tell whether a verdict or a ratio of the statement changes when a function is slightly wrong.

    The mistake is a factor. If no verdict notices it, each of `OTHER_MISTAKES` is tried.

    Args:
        statement: a statement, or its id.
        function: a function that the statement judges.
        factor: the factor by which the function is off.
        budget: of draws and searches; 48 draws and no search unless given.
    """
    budget = FEW if budget is None else budget
    statement = the_statement(statement)
    if bindings(statement, [function], factor=factor, budget=budget)[0]:
        return True
    return any(_notices(statement, function, wrong, budget) for wrong in OTHER_MISTAKES.values())


def _notices(
    statement: Statement, function: Judged, wrong: Callable[[Any], Any], budget: Budget
) -> bool:
    """Tell whether one mistake changes a decision, or a ratio, on a few draws."""

    def found() -> tuple:
        with float64_on_cpu():
            bench, pool = few_draws(statement, budget), Pool()
            draw(bench, pool, budget, 0)
        pairs = [(decide(statement, f, c), c) for f, c in zip(statement.forms, pool.columns())]
        means = (bounded_mean(c.measured.value[c.measured.counted]) or 0.0 for _, c in pairs)
        return tuple(p for (d, _), m in zip(pairs, means) for p in ((d.status, d.ratio), ("", m)))

    before = found()
    try:
        with planted(function, wrong):
            after = found()
    except Exception:  # it breaks: seen
        return True
    return any(_differ(a, b, statement) for a, b in zip(before, after))


def _differ(before: tuple[str, float], after: tuple[str, float], statement: Statement) -> bool:
    """Tell whether a status or a ratio moved; a discrepancy below the tolerance is rounding."""
    (status, a), (other, b) = before, after
    allowed = statement.tolerance * (1.0 if statement.relation == "=" else abs(a))
    same = a == b or (a != a and b != b) or abs(a - b) <= allowed
    return status != other or not same
