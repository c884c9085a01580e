"""The engine: draw, search, measure, decide, shrink, store."""

import functools
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.falsify.bench import Bench, Pool, as_arrays, excluded, take
from jaxbounds.falsify.decide import Decision, Verdict, decide
from jaxbounds.falsify.measure import Measured, form_names, hypothesis_names, verification
from jaxbounds.falsify.programs import Programs
from jaxbounds.falsify.search import gradient_search, random_search
from jaxbounds.falsify.shrink import shrink
from jaxbounds.falsify.storage import StoredInstance, save_instance
from jaxbounds.statements import CONTROL, Budget, Form, Instance, Sampler, Statement

REJECTED = ("fails", "inconsistent")
"""The statuses a control must get."""


def _key(seed: int, *names: str | int) -> jax.Array:
    key = jax.random.key(seed)
    for name in names:
        data = name if isinstance(name, int) else zlib.crc32(name.encode())
        key = jax.random.fold_in(key, data)
    return key


UNKEPT = Programs()
"""One for all who keep nothing: statements share their samplers' programs through it."""


@dataclass(frozen=True)
class _Sampling:
    """A sampler at a size; statements that share a sampler share what is compiled for the first."""

    programs: Programs
    sampler: Sampler
    size: tuple[tuple[str, int], ...]
    first: tuple[str, ...] = field(compare=False)


@functools.lru_cache(maxsize=256)
def _sampler(of: _Sampling) -> Callable:
    draw = lambda key: of.sampler(key, dict(of.size))
    return of.programs(draw, *of.first, "sample", of.size)


def _draw(
    statement: Statement, pool: Pool, bench: Bench, budget: Budget, seed: int, programs: Programs
) -> dict:
    """Fill the pool from the samplers and the cases; count what missed a hypothesis."""
    left_out: dict[str, int] = {}
    for index, size in enumerate(statement.sizes):
        batches: list[tuple[str, Instance]] = []
        for name, sampler in statement.sample.items():
            keys = jax.random.split(_key(seed, statement.id, name, index), budget.samples)
            sampling = _Sampling(programs, sampler, tuple(size.items()), (statement.id, name))
            batches.append((name, _sampler(sampling)(keys)))
        if statement.cases is not None:
            batches.append(("cases", as_arrays(dict(statement.cases(size)))))
        for name, batch in batches:
            batch = jax.tree.map(np.asarray, batch)
            measured = bench(batch)
            pool.add(name, index, batch, measured)
            if not np.all(measured.counted):
                for reason, count in excluded(statement, batch, measured, programs).items():
                    left_out[reason] = left_out.get(reason, 0) + count
    return left_out


def _starts(measured: Measured, form: int, restarts: int, rng: np.random.Generator) -> np.ndarray:
    """Half of the starting points are the worst instances so far, half are random ones."""
    counted = np.flatnonzero(measured.counted[:, form] & np.isfinite(measured.value[:, form]))
    if not len(counted) or not restarts:
        return np.zeros(0, int)
    order = counted[np.argsort(-measured.value[counted, form], kind="stable")]
    best = order[: (restarts + 1) // 2]
    return np.concatenate([best, rng.choice(counted, restarts - len(best))])


def _searched(
    statement: Statement, pool: Pool, bench: Bench, budget: Budget, seed: int, programs: Programs
) -> int:
    """Search from the pool for each form (and, less, for the control); count per form."""
    if statement.search == "none" or not budget.restarts or not budget.steps:
        return 0
    forms = form_names(statement)
    searches = 0
    for index, size in enumerate(statement.sizes):
        batch, measured = pool.of_size(index)
        rng = np.random.default_rng([seed, index])
        rows, targets = [], []
        for column, name in enumerate(forms):
            restarts = budget.restarts if name != CONTROL else max(1, budget.restarts // 4)
            chosen = _starts(measured, column, restarts, rng)
            rows.append(chosen), targets.append(np.full(len(chosen), column))
        rows, targets = np.concatenate(rows), np.concatenate(targets)
        if not len(rows):
            continue
        if statement.search == "gradient":
            search = gradient_search(statement, budget.steps)
        else:
            sampler = next(iter(statement.sample.values()))
            search = random_search(statement, budget.steps, sampler, size)
        keys = jax.random.split(_key(seed, statement.id, "search", index), len(rows))
        run = programs(search, statement.id, statement.search, budget.steps, tuple(size.items()))
        found = run(keys, take(batch, rows), jnp.asarray(targets))
        found = jax.tree.map(np.asarray, found)
        pool.add("search", index, found, bench(found))
        searches += budget.restarts
    return searches


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
        left_out = _draw(statement, pool, bench, budget, seed, programs)
        searches = _searched(statement, pool, bench, budget, seed, programs)
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
    path = Path(store) / folder / f"{statement.id}.{form.replace(' ', '-')}.npz"
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
