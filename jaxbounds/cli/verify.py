"""`jaxbounds verify`: the statements, one verdict for each form."""

import concurrent.futures
import itertools
import json
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jaxbounds import report
from jaxbounds.cli.cache import programs_for, use_compilation_cache
from jaxbounds.cli.common import (
    Imports,
    Patterns,
    console_for_output,
    find_statement,
)
from jaxbounds.falsify import Verdict, falsify, load_instance, unmeasured
from jaxbounds.results import versions
from jaxbounds.statements import Statement, load_papers, origin, select

THOROUGH = 10.0
"""Factor on samples and restarts of `--thorough`."""


def _verify_one(name: str, imports: tuple[str, ...], seed: int, factor: float, out: str):
    statement = find_statement(imports, name)
    try:
        budget, programs = statement.budget.scaled(factor), programs_for(statement)
        return falsify(statement, seed=seed, budget=budget, store=out, programs=programs)
    except Exception as problem:  # one broken statement must not cost the others
        return unmeasured(statement, f"it could not be measured: {origin(problem)}", seed=seed)


def _verify_some(names: tuple[str, ...], *arguments) -> list[tuple[str, tuple[Verdict, ...]]]:
    return [(name, _verify_one(name, *arguments)) for name in names]


def _tasks(statements: Sequence[Statement], at_most: int = 3) -> list[tuple[str, ...]]:
    """Neighbours that share their samplers, together: a process compiles those once."""
    samplers = lambda s: [id(sampler) for sampler in s.sample.values()]
    tasks = []
    for _, group in itertools.groupby(statements, samplers):
        names = [s.id for s in group]
        tasks += [tuple(names[i : i + at_most]) for i in range(0, len(names), at_most)]
    return tasks


def _start_worker() -> None:
    """Ctrl-C reaches every process of a terminal; the main one ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_compilation_cache()


def _in_turn(statements, jobs, *arguments) -> Iterator[tuple[str, tuple[Verdict, ...]]]:
    """Verdicts as they come, from this process or from several."""
    if jobs == 1:
        use_compilation_cache()
        for statement in statements:
            yield statement.id, _verify_one(statement.id, *arguments)
        return
    pool = concurrent.futures.ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker
    )
    try:
        waiting = [pool.submit(_verify_some, task, *arguments) for task in _tasks(statements)]
        for done in concurrent.futures.as_completed(waiting):
            yield from done.result()
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        # What is being computed would run on, and overwrite stored instances.
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise


def verify(
    patterns: Patterns = (),
    /,
    *,
    out: Path = Path("results/verify"),
    seed: int = 0,
    jobs: int = 0,
    thorough: bool = False,
    imports: Imports = (),
) -> int:
    """Check the statements, all or those whose id matches, and print a verdict for each form.

    Exit status 0 when every verdict is as expected, errata included; 1 when one is not; 2 on bad
    usage.

    Args:
        patterns: ids, the beginning of ids ("multihead"), or shell patterns ("*.cor1.*").
        out: folder for verdicts.json, report.html, worst instances and counterexamples.
        seed: of all draws.
        jobs: processes; 0 means one for each core.
        thorough: ten times the samples and searches.
        imports: modules or files that hold a PAPER of your own.
    """
    console = console_for_output()
    papers = load_papers(imports)
    chosen = select((s for paper in papers for s in paper.statements), patterns)
    if jobs < 0 or not 0 <= seed < 2**32:
        raise ValueError(f"--jobs or --seed cannot be negative or above 2^32 - 1: {jobs}, {seed}")
    jobs = min(jobs or os.cpu_count() or 1, len(chosen))
    names = [s.id for s in chosen]
    done: dict[str, tuple[Verdict, ...]] = {}
    interrupted = False
    columns = (
        TextColumn("{task.description:<28.28}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    factor = THOROUGH if thorough else 1.0
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=len(names))
        try:
            for name, verdicts in _in_turn(chosen, jobs, imports, seed, factor, str(out)):
                done[name] = verdicts
                progress.update(task, advance=1, description=name)
        except KeyboardInterrupt:
            interrupted = True
    verdicts = tuple(v for name in names for v in done.get(name, ()))
    run = versions() | {"device": "cpu", "precision": "float64", "seed": seed, "thorough": thorough}
    _write(out, "verdicts.json", json.dumps([v.to_json() for v in verdicts], indent=1))
    _write(out, "run.json", json.dumps(run, indent=1))
    _write(out, "report.html", report.html_page(verdicts, papers, run, out, imports))
    console.print(report.verdict_table(verdicts))
    console.print(report.summary(verdicts))
    for _, group in itertools.groupby(verdicts, lambda v: (v.id, v.reason)):
        for line in _remarks(list(group), out):
            console.print(line, markup=False)
    folders = [f"{name}/" for name in ("worst", "counterexamples") if (out / name).is_dir()]
    console.print(
        f"written to {out}: {', '.join(['verdicts.json', 'report.html', 'run.json', *folders])}"
    )
    if interrupted:
        console.print(f"interrupted: {len(names) - len(done)} statements were not tried")
        return 1
    return int(not all(v.as_expected for v in verdicts))


def _remarks(group: Sequence[Verdict], out: Path) -> Iterator[str]:
    """What a reader of the table must know besides, of forms that share a reason."""
    for verdict in group:
        drawn = sum(v["instances"] for k, v in verdict.sources.items() if k != "search")
        missed = {name: count for name, count in verdict.excluded.items() if count > drawn}
        for name, count in missed.items():
            yield f"{verdict.id} ({verdict.form}): {count} draws do not count: {name!r}; {drawn} do"
    wrong = [verdict for verdict in group if not verdict.as_expected]
    if wrong:
        yield f"{wrong[0].id} ({'; '.join(v.form for v in wrong)}): {wrong[0].reason}"
    for verdict in wrong:
        if verdict.shrunk_file:
            stored = load_instance(out / verdict.shrunk_file)
            at = report.instance_text(stored.instance)
            yield f"  {verdict.form}: ratio {verdict.shrunk_ratio:.6g} at {at}"
            yield "  an erratum? then expected='fails', note='...', counterexample={...}"


def _write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{name}.partial"
    partial.write_text(text + "\n", encoding="utf8")
    os.replace(partial, folder / name)
