"""Plant a mistake in a function that a statement judges, and test whether the verdict changes.

A verdict is about a function only if a slightly wrong version of the function changes the verdict.
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
"""The budget of the tests for planted mistakes, without a search for worse instances."""


def _side_by_side(
    statement: Statement, size: Size, batch: Instance, functions: Sequence[Judged], factor: float
) -> list[Measured]:
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
    """Measure a batch with correct functions, then with a mistake in one function after another.

    The result is None for a mistake that makes `evaluate` raise.
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
    if statement.host:
        return _one_at_a_time(statement, size, batch, functions, factor)
    found: list[Measured | None] = []
    STATIC.clear()
    try:
        found += _side_by_side(statement, size, batch, functions, factor)
    except Exception:  # the trace needs the value of a factor
        return _one_at_a_time(statement, size, batch, functions, factor)
    still = [function for function in functions if full_name(function) in STATIC]
    if still:
        apart = iter(_one_at_a_time(statement, size, batch, still, factor)[1:])
        for i, function in enumerate(functions):
            if function in still:
                found[i + 1] = next(apart)
    return found


def few_draws(statement: Statement, budget: Budget) -> Bench:
    """Return a bench (an object that measures instances) that keeps no compiled program."""
    return Bench(statement, budget.batch, UNKEPT, calls=calls_of(statement, budget))


def _whole(bench: Bench, pool: Pool, index: int) -> Instance:
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
    """Return, for each function, whether a mistake in the function changes a verdict or a ratio.

    A ratio counts as changed if it changes by more than the statement's tolerance. The ratio is the
    worst ratio, the recorded mean over the random draws (`Verdict.drawn`), or the ratio of a
    counterexample. An exception that a mistake causes also counts as a change.

    Args:
        statement: a statement of a claim of any kind.
        functions: functions that the statement judges (the claim is about their values).
        factor: the factor by which a wrong function multiplies its real results.
        budget: the numbers of random draws and of search steps.
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


def _judgement(
    statement: Statement, parts: list, stored: list, sizes: np.ndarray
) -> tuple[tuple[str, float], ...] | None:
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
    """Return whether a slightly wrong function changes a verdict or a ratio of the statement.

    The first mistake multiplies the function's results by `factor`. If no verdict changes, the test
    tries each of `OTHER_MISTAKES`.

    Args:
        statement: a statement of a paper, or its id.
        function: a function that the statement judges (the claim is about its values).
        factor: the factor by which the wrong function multiplies its real results.
        budget: the numbers of draws and search steps; the default is 48 draws and no search.
    """
    budget = FEW if budget is None else budget
    statement = the_statement(statement)
    if bindings(statement, [function], factor=factor, budget=budget)[0]:
        return True
    return any(_notices(statement, function, wrong, budget) for wrong in OTHER_MISTAKES.values())


def _notices(
    statement: Statement, function: Judged, wrong: Callable[[Any], Any], budget: Budget
) -> bool:

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
    except Exception:  # an evaluation that raises shows the mistake
        return True
    return any(_differ(a, b, statement) for a, b in zip(before, after))


def _differ(before: tuple[str, float], after: tuple[str, float], statement: Statement) -> bool:
    (status, a), (other, b) = before, after
    allowed = statement.tolerance * (1.0 if statement.relation == "=" else abs(a))
    same = a == b or (a != a and b != b) or abs(a - b) <= allowed
    return status != other or not same
