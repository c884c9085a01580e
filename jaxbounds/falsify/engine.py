"""The engine: draw, search, measure, decide, shrink, store."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from jaxbounds.falsify.bench import Bench, Pool, as_arrays
from jaxbounds.falsify.decide import Decision, Verdict, decide
from jaxbounds.falsify.explore import draw, search
from jaxbounds.falsify.measure import Measured, form_names, hypothesis_names, verification
from jaxbounds.falsify.programs import UNKEPT, Programs
from jaxbounds.falsify.shrink import shrink
from jaxbounds.falsify.storage import StoredInstance, save_instance
from jaxbounds.statements import Budget, Form, Instance, Statement

REJECTED = ("fails", "inconsistent")
"""The statuses a control must get."""


def _violation(statement: Statement, measured: Measured, index: int) -> np.ndarray:
    """By how much instances fail, in the last axis' form; -inf where they do not count."""
    edge = 1e3 * statement.tolerance if statement.relation == "=" else 1 + statement.tolerance
    low, counted = measured.low[..., index], measured.counted[..., index]
    return np.where(counted & np.isfinite(low), low - edge, -np.inf)


def _worst_row(statement: Statement, table: Measured, index: int, rows: np.ndarray) -> int:
    value = table.value[rows, index]
    score = np.where(table.counted[rows, index], np.where(np.isnan(value), np.inf, value), -np.inf)
    return int(rows[np.argmax(score)])


def _found_counterexample(statement, bench, pool, table, sizes, index) -> Instance | None:
    """The worst failing instance of the smallest size that has one, shrunk."""
    violation = _violation(statement, table, index)
    for size in np.unique(sizes):
        rows = np.flatnonzero((sizes == size) & (violation > 0))
        if len(rows):
            worst = pool.instance(_worst_row(statement, table, index, rows))

            def judge(instances: list[Instance]) -> np.ndarray:
                stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *instances)
                return _violation(statement, bench(stacked), index)

            return shrink(worst, judge)
    return None


def _with_stored(statement, form: Form, bench, index, decision: Decision):
    """Take the stored counterexample into account: it must fail, and then the form fails."""
    if form.counterexample is None:
        return decision, None
    measured = bench.one(as_arrays(dict(form.counterexample)))
    value = float(measured.value[index])
    if _violation(statement, measured, index) <= 0:
        reason = (
            f"the stored counterexample does not violate it (ratio {value:.6g}); without it: "
            f"{decision.status}, {decision.reason}"
        )
        return Decision("inconclusive", decision.ratio, reason), value
    if decision.status != "fails":
        return Decision("fails", value, "the stored counterexample violates it"), value
    return decision, value


def falsify(
    statement: Statement,
    /,
    *,
    seed: int = 0,
    budget: Budget | None = None,
    store: str | Path | None = None,
    programs: Programs = UNKEPT,
) -> tuple[Verdict, ...]:
    """Try to falsify a statement; one verdict for each of its forms.

    Runs in float64 on the CPU whatever the surrounding settings. The same seed, budget and
    software give the same verdicts.

    Args:
        statement: what to try.
        seed: of all draws; combined with the statement's id, so that it does not matter which
            other statements are tried.
        budget: replaces the statement's own.
        store: folder for `worst/<id>.<form>.npz` (the worst instance) and, where a form fails,
            `counterexamples/<id>.<form>.npz` (a shrunk one). Nothing is written without it.
        programs: compiles, and may keep what was traced; its folder must belong to this state of
            the statement's code.
    """
    started = time.perf_counter()
    budget = budget or statement.budget
    with verification():
        bench, pool = Bench(statement, budget.batch, programs), Pool()
        left_out = draw(bench, pool, budget, seed)
        searches = search(bench, pool, budget, seed)
        table, sources, sizes = pool.table()
        names = form_names(statement)
        control = decide(statement, None, table, len(names) - 1, sizes)
        verdicts = []
        for index, form in enumerate(statement.forms):
            decision = decide(statement, form, table, index, sizes)
            if decision.status == "vacuous" and left_out:
                missed = ", ".join(f"{count} missed {name!r}" for name, count in left_out.items())
                decision = decision._replace(reason=f"{decision.reason}: {missed}")
            decision, stored_ratio = _with_stored(statement, form, bench, index, decision)
            if decision.status in ("holds", "consistent") and control.status not in REJECTED:
                reason = f"the control was not rejected ({control.status}: {control.reason})"
                decision = Decision("inconclusive", decision.ratio, reason)
            counted = table.counted[:, index]
            verdict = Verdict(
                id=statement.id,
                paper=statement.paper,
                label=statement.label,
                kind=statement.kind,
                form=form.name,
                expected=form.expected,
                status=decision.status,
                reason=decision.reason,
                worst_ratio=decision.ratio,
                instances=int(np.sum(counted)),
                searches=searches,
                checked=hypothesis_names(statement, form, pool.instance(0)),
                excluded=left_out,
                sources=_by_source(table, sources, index),
                quantiles=_quantiles(table.value[counted & (sources != "search"), index]),
                control={"status": control.status, "worst_ratio": control.ratio},
                counterexample_ratio=stored_ratio,
                tolerance=statement.tolerance,
                seed=seed,
                source=statement.source,
            )
            verdict = _with_worst(statement, verdict, pool, bench, table, sizes, index, store)
            verdicts.append(verdict)
    seconds = time.perf_counter() - started
    return tuple(replace(verdict, seconds=seconds) for verdict in verdicts)


def unmeasured(statement: Statement, reason: str, /, *, seed: int = 0) -> tuple[Verdict, ...]:
    """Inconclusive verdicts for a statement that could not be measured at all."""
    return tuple(
        Verdict(
            id=statement.id,
            paper=statement.paper,
            label=statement.label,
            kind=statement.kind,
            form=form.name,
            expected=form.expected,
            status="inconclusive",
            reason=reason,
            worst_ratio=float("nan"),
            instances=0,
            searches=0,
            tolerance=statement.tolerance,
            seed=seed,
            source=statement.source,
        )
        for form in statement.forms
    )


def _by_source(table: Measured, sources: np.ndarray, index: int) -> dict[str, dict[str, float]]:
    summary = {}
    for source in dict.fromkeys(sources.tolist()):
        value = table.value[(sources == source) & table.counted[:, index], index]
        worst = float(np.max(value)) if len(value) else float("nan")
        summary[source] = {"instances": len(value), "worst_ratio": worst}
    return summary


def _quantiles(values: np.ndarray) -> tuple[float, ...]:
    finite = values[np.isfinite(values)]
    return tuple(np.quantile(finite, np.linspace(0, 1, 21)).tolist()) if len(finite) else ()


def _save(statement, form: str, instance, ratio: float, store, folder: str) -> str:
    path = Path(store) / folder / f"{statement.id}.{statement.form(form).file_name}.npz"
    save_instance(path, instance, id=statement.id, form=form, ratio=repr(ratio))
    return str(path.relative_to(store))


def _with_worst(statement, verdict: Verdict, pool, bench, table, sizes, index, store) -> Verdict:
    """Add the worst instance (its ratio as it will be replayed) and a shrunk failing one."""
    ratio_of = lambda instance: float(bench.one(instance).value[index])
    form = statement.form(verdict.form)
    if form.counterexample is not None:  # one that a person chose, and that was measured to fail
        failing = as_arrays(dict(form.counterexample))
    else:
        failing = _found_counterexample(statement, bench, pool, table, sizes, index)
    if np.any(table.counted[:, index]):
        row = _worst_row(statement, table, index, np.arange(len(sizes)))
        worst, size = pool.instance(row), dict(statement.sizes[sizes[row]])
        one_instance_decides = statement.kind not in ("probability", "expectation", "rate")
        ratio = ratio_of(worst)
        if one_instance_decides and not verdict.worst_ratio > ratio:
            verdict = replace(verdict, worst_ratio=ratio)
        verdict = replace(verdict, size=size)
        if store is not None:
            file = _save(statement, form.name, worst, ratio, store, "worst")
            verdict = replace(verdict, worst_file=file)
    if verdict.status == "fails" and failing is not None:
        ratio = ratio_of(failing)
        verdict = replace(verdict, shrunk_ratio=ratio)
        if store is not None:
            file = _save(statement, form.name, failing, ratio, store, "counterexamples")
            verdict = replace(verdict, shrunk_file=file)
    return verdict


def replay(
    find: Callable[[str], Statement], stored: StoredInstance, /
) -> tuple[Statement, dict[str, float], float]:
    """Measure a stored instance again.

    Args:
        find: gives the statement of an id.
        stored: from `load_instance`.

    Returns:
        The statement, the ratio of each form (and the control), and the ratio that was stored
        for `stored.meta["form"]`.

    Raises:
        ValueError: if the file misses its id, form or ratio, or its arrays do not fit the
            statement.
    """
    try:
        statement, stored_ratio = find(stored.meta["id"]), float(stored.meta["ratio"])
        statement.form(stored.meta["form"])
    except KeyError as problem:
        raise ValueError(f"the stored instance does not fit this version: {problem}") from problem
    with verification():
        bench = Bench(statement, statement.budget.batch, UNKEPT)
        try:
            measured = bench.one(stored.instance)
        except (TypeError, KeyError, IndexError, AssertionError, ValueError) as problem:
            raise ValueError(
                f"the stored arrays do not fit statement {statement.id}: {problem}"
            ) from problem
    return statement, dict(zip(form_names(statement), map(float, measured.value))), stored_ratio
