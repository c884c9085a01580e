"""Find claims that hold even if a function in the claim has a large mistake."""

import dataclasses
from collections.abc import Callable
from typing import Any

from jaxbounds.claims.statements import FITTED, Budget, Judged, Statement, full_name
from jaxbounds.claims.statements.form import REJECTED
from jaxbounds.falsification.bench import Pool
from jaxbounds.falsification.binding import FEW, few_draws
from jaxbounds.falsification.decide import decide
from jaxbounds.falsification.explore import draw
from jaxbounds.falsification.measure import float64_on_cpu
from jaxbounds.falsification.mistakes import LARGE_MISTAKES
from jaxbounds.falsification.planting import planted
from jaxbounds.papers import Named, the_statement


def can_fail(statement: Named, /, *, budget: Budget = FEW) -> str:
    """Find a mistake in a judged function under which a form that should hold fails.

    A statement judges the functions that its claim is about. A form is one version of the claim. A
    claim about a rate also fails if its fitted exponent leaves the claimed range. A statement that
    holds under every mistake in `LARGE_MISTAKES` may compare sides that always agree.

    Args:
        statement: a statement of a paper, or its id.
        budget: the numbers of random draws and of search steps.

    Returns:
        The names of the function, the mistake and the form; empty if the statement cannot fail.
    """
    statement = the_statement(statement)
    several = len(statement.sizes) > 1 and statement.kind not in FITTED
    first = [dataclasses.replace(statement, sizes=statement.sizes[:1])] if several else []
    for part in (*first, statement):
        for wrong_by, wrong in LARGE_MISTAKES.items():
            for function in part.judges:
                if failing := _failing(part, function, wrong, budget):
                    return f"{full_name(function)} {wrong_by}: {failing[0]}"
    return ""


def forms_that_cannot_fail(statement: Named, /, *, budget: Budget = FEW) -> tuple[str, ...]:
    """Return the forms that still hold after each of `LARGE_MISTAKES` in each judged function.

    A form is one version of the claim. The judged functions are those that the claim is about. The
    result omits forms that are expected to fail.

    Args:
        statement: a statement, or its id.
        budget: the numbers of draws and search steps.
    """
    statement = the_statement(statement)
    left = [form.name for form in statement.forms if form.expected not in REJECTED]
    for wrong in LARGE_MISTAKES.values():
        for function in statement.judges:
            if left:
                failing = _failing(statement, function, wrong, budget)
                left = [name for name in left if name not in failing]
    return tuple(left)


def _failing(
    statement: Statement, function: Judged, wrong: Callable[[Any], Any], budget: Budget
) -> list[str]:
    try:
        with planted(function, wrong), float64_on_cpu():
            bench, pool = few_draws(statement, budget), Pool()
            draw(bench, pool, budget, 0)
            columns = pool.columns()
            found = [decide(statement, f, c).status for f, c in zip(statement.forms, columns)]
    except Exception:  # an evaluation that raises gives no verdict
        return []
    outside = lambda form, status: statement.kind == "rate" and status != form.expected
    return [
        form.name
        for form, status in zip(statement.forms, found)
        if form.expected not in REJECTED and (status in REJECTED or outside(form, status))
    ]
