"""The engine judges a statement, shrinks counterexamples, stores instances and replays them."""

import functools
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.renamed import current_form
from jaxbounds.claims.statements import FITTED, ON_AVERAGE, Budget, Form, Instance, Size, Statement
from jaxbounds.falsification.bench import (
    Bench,
    Column,
    Pool,
    batch_of,
    calls_of,
    counterexample_of,
    refuse_other_shapes,
    spread,
    take,
)
from jaxbounds.falsification.cancellation import is_noise, largest_entry
from jaxbounds.falsification.deadline import OutOfTime
from jaxbounds.falsification.decide import edge, violation
from jaxbounds.falsification.evaluation import Reals, form_names
from jaxbounds.falsification.evidence import bounded_mean, by_size, distinct_counted, evidence
from jaxbounds.falsification.examples import NONE, SOURCE, Examples, remember
from jaxbounds.falsification.explore import agreeing
from jaxbounds.falsification.judging import OUT_OF_TIME, Findings, judge
from jaxbounds.falsification.measure import float64_on_cpu, hypothesis_names
from jaxbounds.falsification.noted_values import values_of
from jaxbounds.falsification.programs import UNKEPT, Programs
from jaxbounds.falsification.scales import measured_again
from jaxbounds.falsification.second_opinion import Asked, is_coarse, no_referee, stands
from jaxbounds.falsification.shrink import complexity, enlarged, is_round, share, shrink
from jaxbounds.falsification.small_sides import LEAST, without_small_sides
from jaxbounds.falsification.storage import StoredInstance, save_instance
from jaxbounds.falsification.verdict import Verdict
from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers import PAPERS

Places = tuple[str | Path | None, Examples, Asked]
"""A triple: the folder for worst instances and counterexamples, the instances of earlier runs, and
the ball arithmetic that confirms a shrunk instance."""


ASKED = 8
"""If ball arithmetic does not confirm the shrunk instance's violation, the engine tries this many
other instances. A larger number takes longer."""
ENTRIES = 4096
"""The engine shrinks a failing instance if it has at most this many entries. A larger limit shrinks
larger instances and takes longer."""
FEW = 64
"""The engine shrinks several failing instances if each has at most this many entries. A larger
limit makes larger counterexamples readable, and takes longer."""
STARTS = 4
"""The engine shrinks the worst instance, this many other failing instances, and this many failing
instances with scaled entries. A larger number takes longer and finds rounder counterexamples."""


def _found_counterexample(
    bench: Bench, pool: Pool, column: Column, index: int, referee: Asked
) -> tuple[Instance, Size] | None:
    """Shrink a failing instance; return another if rounding may explain its violation."""
    statement = bench.statement
    form, amounts = statement.forms[index], violation(statement, column.measured)

    def is_sound(instance: Instance, size: Size) -> bool:
        value = float(measured_again(bench, instance, size, index).value)
        found = instance, size, value
        return not is_coarse(bench, index, found) and not stands(bench, form, found, referee)

    if (found := _shrunk(bench, pool, column, index)) is None or is_sound(*found):
        return found
    rows = np.argsort(-amounts, kind="stable")[: int(np.sum(amounts > 0))]
    for row in spread(rows, ASKED):
        other = pool.instance(int(row)), Size(statement.sizes[column.sizes[row]])
        if is_sound(*other):
            return other
    return found


def _shrunk(bench: Bench, pool: Pool, column: Column, index: int) -> tuple[Instance, Size] | None:
    """Shrink a failing instance of the smallest size with a violation.

    If the shrunk instance has small sides or many digits, the engine also shrinks failing instances
    with larger sides, and returns the most readable result.
    """
    statement = bench.statement
    amounts = np.asarray(violation(statement, column.measured))
    for at, size in enumerate(map(Size, statement.sizes)):
        rows = np.flatnonzero((column.sizes == at) & (amounts > 0))
        if len(rows):

            def measured(
                instances: list[Instance], size: Size = size
            ) -> tuple[np.ndarray, np.ndarray]:
                stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *instances)
                found = bench(stacked, size).column(index)
                noise = is_noise(statement, found, largest_entry(stacked, np, axes=1))
                sides = np.maximum(np.abs(found.lhs), np.abs(found.rhs))
                return np.where(noise, -np.inf, violation(statement, found)), np.asarray(sides)

            row = column.worst(rows)
            worst = pool.instance(row)
            entries = sum(np.size(leaf) for leaf in jax.tree.leaves(worst))
            if entries > ENTRIES:
                return worst, size
            judge = lambda instances: measured(instances)[0]
            small = lambda instance: not measured([instance])[1][0] >= LEAST
            found = [shrink(worst, judge)]
            if entries <= FEW and (small(found[0]) or not is_round(found[0])):
                m, floor = column.measured, share(float(amounts[row]))
                sides = np.maximum(np.abs(m.lhs), np.abs(m.rhs))
                chosen = _nearer(amounts[rows], sides[rows], floor, sides[row])
                starts = [pool.instance(int(i)) for i in rows[chosen]]
                # Code on the host may break on an instance far outside of the sampler's range.
                copies = [] if statement.host else list(enlarged(worst))
                if copies:
                    starts += [copies[i] for i in _nearer(*measured(copies), floor, sides[row])]
                found += [shrink(start, judge) for start in starts]
            return min(found, key=lambda one: (small(one), complexity(one))), size
    return None


def _nearer(amounts: np.ndarray, sides: np.ndarray, floor: float, side: float) -> np.ndarray:
    with np.errstate(all="ignore"):
        far = np.abs(np.log(sides))
        fits = np.flatnonzero((amounts >= floor) & (far < np.abs(np.log(side))))
    return fits[np.argsort(far[fits], kind="stable")][:STARTS]


@np.errstate(all="ignore")  # the verdict says which sides are infinite or NaN
def verdicts_on(
    statement: Statement,
    /,
    *,
    seed: int = 0,
    budget: Budget | None = None,
    store: str | Path | None = None,
    programs: Programs = UNKEPT,
    examples: Examples = NONE,
    referee: Asked = no_referee,
    timeout: float | None = None,
) -> tuple[Verdict, ...]:
    """Try to falsify a statement; return one verdict for each form (version of the claim).

    The engine runs in float64 on the CPU, independent of JAX's settings. Equal seeds, budgets and
    software give equal verdicts, unless an earlier run kept a violation among the examples.

    Args:
        statement: the statement that the engine tries to falsify.
        seed: the seed of all draws; the engine combines it with the statement's id.
        budget: a budget that replaces the statement's own.
        store: the folder for `worst/<id>.<form>.npz` (the worst instance) and, for a form that
            fails, `counterexamples/<id>.<form>.npz` (a shrunk instance). Without a folder the
            engine writes nothing.
        programs: the compiler, which may store compiled programs in a folder. The programs in this
            folder must come from the current code of the statement.
        examples: the store of the worst instances of earlier runs; this run adds its own worst
            instances.
        referee: the function that asks ball arithmetic about violations as small as rounding
            errors.
        timeout: the seconds after which draws and searches end, checked between two batches. A form
            that no instance has refuted within this time is inconclusive. None means no limit.
    """
    started = time.perf_counter()
    budget = budget or statement.budget
    try:
        found = judge(
            statement, budget=budget, seed=seed, programs=programs, examples=examples,
            referee=referee, timeout=timeout,
        )  # fmt: skip
        if any(found.steep) and not found.late:
            left = timeout and timeout - (time.perf_counter() - started)
            found = _without_small_sides(found, budget=budget, seed=seed, referee=referee,
                                         timeout=left)  # fmt: skip
    except OutOfTime:
        seconds = time.perf_counter() - started
        words = f"{OUT_OF_TIME} before the engine could decide anything"
        blanks = (_blank(statement, form, seed) for form in statement.forms)
        return tuple(replace(b, reason=words, out_of_time=True, seconds=seconds) for b in blanks)
    with float64_on_cpu():
        places = store, examples, referee
        verdicts = [
            _verdict(found, index, checked, seed, places)
            for index, checked in enumerate(_checked(found))
        ]
    seconds = time.perf_counter() - started
    return tuple(replace(verdict, seconds=seconds) for verdict in verdicts)


def _without_small_sides(
    found: Findings, *, budget: Budget, seed: int, referee: Asked, timeout: float | None
) -> Findings:
    """Judge a statement again without instances that have small sides.

    The second judgement may change inconclusive decisions only.
    """
    statement = without_small_sides(found.bench.statement)
    try:
        again = judge(statement, budget=budget, seed=seed, programs=UNKEPT, referee=referee,
                      timeout=timeout)  # fmt: skip
    except OutOfTime:
        return found
    pairs = zip(found.decisions, again.decisions, strict=True)
    decided = all(new.status == old.status or old.status == "inconclusive"
                  for (old, _), (new, _) in pairs)  # fmt: skip
    words = f"; floats violate the form only where both sides are below {LEAST:g}, by rounding"
    decisions = [
        (one._replace(reason=f"{one.reason}{words if steep else ''}"), ratio)
        for (one, ratio), steep in zip(again.decisions, found.steep, strict=True)
    ]
    return again._replace(decisions=decisions) if decided else found


def _checked(found: Findings) -> list[tuple[str, ...]]:
    statement, first = found.bench.statement, found.pool.instance(0)
    named = lambda form: hypothesis_names(statement, form, first)
    common = functools.cache(lambda: named(None))
    return [named(form) if form.hypotheses else common() for form in statement.forms]


def _verdict(
    found: Findings, index: int, checked: tuple[str, ...], seed: int, places: Places
) -> Verdict:
    statement, column = found.bench.statement, found.columns[index]
    form, (decision, stored_ratio) = statement.forms[index], found.decisions[index]
    control = found.controls[index]
    counted = column.measured.counted
    drawn = column.measured.value[counted & ~np.isin(column.sources, ("search", SOURCE))]
    accepted = int(found.searched.accepted[index])
    verdict = replace(
        _blank(statement, form, seed),
        status=decision.status,
        reason=decision.reason,
        worst_ratio=decision.ratio,
        instances=int(np.sum(counted)),
        searches=found.searched.runs,
        evidence=evidence(
            statement,
            index,
            decision,
            found.near[index],
            found.searched,
            column,
            along=found.along[index],
            sharp=found.sharp[index],
        ),
        starts=agreeing(found.searched, index),
        accepted=accepted,
        distinct=distinct_counted(column),
        by_size=by_size(statement, column),
        near=found.near[index],
        checked=checked,
        excluded=found.left_out,
        sources=_by_source(column),
        quantiles=_quantiles(drawn),
        drawn=bounded_mean(drawn),
        out_of_time=found.late and decision.status == "inconclusive",
        values=values_of(statement, found.pool.noted, index),
        control={"status": control.status, "worst_ratio": control.ratio},
        counterexample_ratio=stored_ratio,
    )
    verdict = _with_worst(verdict, form, found, index, places)
    if verdict.status == "holds" and statement.is_bound:
        verdict = replace(verdict, sensitivity=max(0.0, 1 - verdict.worst_ratio))
    return verdict


def _blank(statement: Statement, form: Form, seed: int) -> Verdict:
    return Verdict(
        id=statement.id,
        paper=statement.paper,
        label=statement.label,
        kind=statement.kind,
        relation=statement.relation,
        form=form.name,
        expected=form.expected,
        recorded=form.recorded or (statement.paper in PAPERS and not form.is_twin),
        status="inconclusive",
        reason="",
        worst_ratio=float("nan"),
        instances=0,
        searches=0,
        tolerance=statement.tolerance,
        seed=seed,
        horizon=max(map(int, _steps(statement))) if statement.horizon else None,
        enumerates=statement.enumerates,
        source=statement.source,
    )


def _steps(statement: Statement) -> list[float]:
    return [size[statement.horizon] for size in statement.sizes]


def unmeasured(statement: Statement, reason: str, /, *, seed: int = 0) -> tuple[Verdict, ...]:
    """Return verdicts of status `error` for a statement that the engine could not measure."""
    blanks = (_blank(statement, form, seed) for form in statement.forms)
    return tuple(replace(blank, status="error", reason=reason) for blank in blanks)


def _by_source(column: Column) -> dict[str, dict[str, float]]:
    summary = {}
    for source in dict.fromkeys(column.sources.tolist()):
        value = column.measured.value[(column.sources == source) & column.measured.counted]
        worst = float(np.max(value)) if len(value) else float("nan")
        summary[source] = {"instances": len(value), "worst_ratio": worst}
    return summary


def _quantiles(values: Reals) -> tuple[float, ...]:
    finite = values[np.isfinite(values)]
    return tuple(np.quantile(finite, np.linspace(0, 1, 21)).tolist()) if len(finite) else ()


def _save(
    bench: Bench,
    form: Form,
    found: tuple[Any, Size, float | None],
    index: int,
    store: str | Path | None,
    folder: str,
) -> tuple[float, str]:
    """Store an instance; return the ratio that `jaxbounds.replay` will measure, and the path.

    The path is relative to `store`. The ratio in `found` may be None (not measured yet).
    """
    instance, size, ratio = found
    if bench.statement.there_is is not None:
        instance = take(bench.promises(size).filled(batch_of(instance), index), 0)
        given = bench.statement.as_given()
        bench, ratio = Bench(given, 1, UNKEPT, calls=calls_of(given, given.budget)), None
    more: dict[str, Any] = {}
    if ratio is None:
        again = measured_again(bench, instance, size, index)
        ratio, larger, smaller = (float(part) for part in (again.value, again.lhs, again.rhs))
        if math.isfinite(larger) and math.isfinite(smaller):
            sides = (smaller, larger) if bench.statement.relation == ">=" else (larger, smaller)
            more = {"lhs": sides[0], "rhs": sides[1]}
    if store is None:
        return ratio, ""
    path = Path(store) / folder / f"{bench.statement.id}.{form.file_name}.npz"
    about: dict[str, Any] = {
        "id": bench.statement.id,
        "form": form.name,
        "ratio": repr(ratio),
        "size": dict(size),
        **more,
    }
    return ratio, str(save_instance(path, instance, **about).relative_to(store))


def _with_worst(
    verdict: Verdict, form: Form, found: Findings, index: int, places: Places
) -> Verdict:
    store, examples, referee = places
    bench, pool, column = found.bench, found.pool, found.columns[index]
    statement = bench.statement
    if np.any(column.measured.counted):
        every = np.arange(len(column.sizes))
        numbers = np.flatnonzero(column.measured.counted & ~np.isnan(column.measured.value))
        row = column.worst(numbers if verdict.status == "fails" and len(numbers) else every)
        row = _closest(statement, column, row)
        sides = _sides(statement, column, row)
        size = Size(statement.sizes[column.sizes[row]])
        instance, ratio = pool.instance(row), float(column.measured.value[row])
        looked = column.scale is not None and not np.isnan(column.scale[row])
        looked = looked or (bool(sides) and not column.measured.rhs[row] > 0)
        found_there = (instance, size, None if looked else ratio)
        ratio, file = _save(bench, form, found_there, index, store, "worst")
        remember(bench, form, index, (instance, size, ratio), examples)
        if statement.kind not in ON_AVERAGE and not verdict.worst_ratio > ratio:
            verdict = replace(verdict, worst_ratio=ratio)
        verdict = replace(verdict, size=dict(size), sides=sides, worst_file=file)
    if verdict.status != "fails":
        return verdict
    failing: tuple[Instance, Size] | None
    if form.counterexample is not None:  # a person chose it, and the engine measured that it fails
        failing, known = counterexample_of(bench.statement, form), verdict.counterexample_ratio
    else:
        failing = _found_counterexample(bench, pool, column, index, referee)
        known = None if failing is None else _confirmed_ratio(bench, index, *failing)
    if failing is not None:
        ratio, file = _save(bench, form, (*failing, known), index, store, "counterexamples")
        if math.isnan(ratio):  # both sides overflow, and ball arithmetic confirmed the violation
            ratio = verdict.worst_ratio
        verdict = replace(verdict, shrunk_ratio=ratio, shrunk_file=file)
    return verdict


def _confirmed_ratio(bench: Bench, index: int, instance: Instance, size: Size) -> float | None:
    """Return a confirmed violation's ratio if the rounding test hides the violation, else None."""
    if bench.statement.there_is is not None:
        return None
    plain = float(bench.one(instance, size).value[index])
    limit = edge(bench.statement)
    again = float(measured_again(bench, instance, size, index).value)
    return plain if again <= limit < plain and math.isfinite(plain) else None


def _closest(statement: Statement, column: Column, row: int) -> int:
    """Return the row of the largest lhs - rhs among the instances with the same ratio as `row`.

    All ratios to a zero side are equal, so only the differences tell which instance is the worst.
    """
    m = column.measured
    if not statement.is_bound or m.rhs[row] > 0:
        return row
    gap = np.where(m.counted & (m.value == m.value[row]), m.lhs - m.rhs, np.nan)
    return row if np.all(np.isnan(gap)) or np.isnan(gap[row]) else int(np.nanargmax(gap))


def _sides(statement: Statement, column: Column, row: int) -> tuple[float, ...]:
    """Return the left and the right side on an instance; empty for a claim that is no bound."""
    if not statement.is_bound or statement.kind in (*ON_AVERAGE, *FITTED):
        return ()
    smaller, larger = float(column.measured.lhs[row]), float(column.measured.rhs[row])
    if not (math.isfinite(smaller) and math.isfinite(larger)):
        return ()
    return (larger, smaller) if statement.relation == ">=" else (smaller, larger)


def replay(
    find: Callable[[str], Statement], stored: StoredInstance, /
) -> tuple[Statement, dict[str, float], float]:
    """Measure a stored instance again, to reproduce its ratio.

    Args:
        find: a function that returns the statement with a given id.
        stored: a stored instance, from `load_instance`.

    Returns:
        The statement, the ratio of each form (version of the claim) and of the false control, and
            the stored ratio of the form `stored.meta["form"]`.

    Raises:
        Refused: if the file lacks the id, form, size or ratio, or its arrays do not fit the
            statement.
    """
    try:
        statement, stored_ratio = find(stored.meta["id"]), float(stored.meta["ratio"])
        form = statement.form(current_form(statement.id, stored.meta["form"]))
        size = Size(stored.meta["size"])
    except (KeyError, TypeError) as problem:
        raise Refused(
            f"the stored instance does not fit the present version of the statement, "
            f"meta={sorted(stored.meta)}: {problem}. Try `jaxbounds verify ID` to store a new "
            f"instance"
        ) from problem
    with float64_on_cpu():
        given = statement.as_given()  # replay as `verify` measured, so that the ratios are equal
        bench = Bench(given, given.budget.batch, UNKEPT, calls=calls_of(given, given.budget))
        try:
            refuse_other_shapes(statement, form, stored.instance, size)
            measured = bench.one(stored.instance, size)
        except (TypeError, KeyError, IndexError, AssertionError, ValueError) as problem:
            raise Refused(
                f"the stored arrays do not fit statement={statement.id}: {problem}. Try "
                f"`jaxbounds verify {statement.id}` to store new ones"
            ) from problem
        ratios = dict(zip(form_names(statement), map(float, measured.value)))
        for index, form in enumerate(statement.forms):
            again = measured_again(bench, stored.instance, size, index)
            ratios[form.name] = float(again.value)
    return statement, ratios, stored_ratio
