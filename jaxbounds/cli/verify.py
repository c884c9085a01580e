"""`jaxbounds verify`: the statements, one verdict for each form."""

import functools
import importlib
import itertools
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro
from rich.console import Console

from jaxbounds.cli import recorded
from jaxbounds.cli.cache import examples, prepare_jax, programs_for
from jaxbounds.cli.common import (
    Imports,
    Kinds,
    Patterns,
    console_for_output,
    of_kinds,
    print_json,
)
from jaxbounds.cli.conclude import conclude, judge_all, slowest
from jaxbounds.cli.engines import HERE, On, in_this_process, opened
from jaxbounds.cli.folder import Folder, Judged, failed_before, folder_for, remember_failed
from jaxbounds.cli.interruption import look
from jaxbounds.cli.pieces import Died, absolute, each, packed, unpack
from jaxbounds.cli.source import digest_of
from jaxbounds.cli.workers import at_most
from jaxbounds.falsify import Verdict, falsify, unmeasured
from jaxbounds.files import try_to_write
from jaxbounds.papers import find_statement, load_papers, origin, paper_of, select
from jaxbounds.provenance import versions
from jaxbounds.statements import Paper, Statement

THOROUGH = 10.0
"""Factor on samples and restarts of `--thorough`."""


class Task(NamedTuple):
    """Statements that one process judges, and with what; plain values, found again by id."""

    ids: tuple[str, ...]
    imports: tuple[str, ...]
    seed: int
    factor: float
    store: str
    verbose: bool
    every_example: bool = False
    certify: bool = False
    again: bool = False


def _verify_one(statement: Statement, task: Task) -> tuple[Verdict, ...]:
    try:
        budget, programs = statement.budget.scaled(task.factor), programs_for(statement)
        verdicts = falsify(
            statement,
            seed=task.seed,
            budget=budget,
            store=task.store,
            programs=programs,
            examples=examples(task.every_example),
        )
        return _certified(statement, verdicts, task) if task.certify else verdicts
    except Exception as problem:  # one broken statement must not cost the others
        if task.verbose:
            traceback.print_exc()
        return unmeasured(statement, f"it could not be measured: {origin(problem)}", seed=task.seed)


def _certified(statement: Statement, verdicts: tuple[Verdict, ...], task: Task):
    from jaxbounds.certify import certified

    title = paper_of(statement, imports=task.imports).title
    return certified(statement, verdicts, task.store, citation=title)


def _verify_some(task: Task) -> tuple[list[tuple[Verdict, ...]], dict[str, bytes]]:
    """Anywhere: statements are found again by their ids, and their instances sent home."""
    found = [find_statement(name, imports=task.imports) for name in task.ids]
    with tempfile.TemporaryDirectory() as place:
        task = task._replace(store=place)
        return [_verify_one(statement, task) for statement in found], packed(Path(place))


def _groups(statements: Sequence[Statement], most: int = 3) -> list[tuple[Statement, ...]]:
    """Neighbours that share their samplers, together: a process compiles those once."""
    samplers = lambda s: [id(sampler) for sampler in s.samplers.values()]
    groups = []
    for _, group in itertools.groupby(statements, samplers):
        together = tuple(group)
        groups += [together[i : i + most] for i in range(0, len(together), most)]
    return groups


def _in_turn(
    statements: Sequence[Statement], jobs: int, task: Task, on: On
) -> Iterator[tuple[Verdict, ...]]:
    """Verdicts as they come, from this process or from wherever."""
    if in_this_process(on, jobs, len(statements)):
        prepare_jax()
        for statement in statements:
            look()
            yield _verify_one(statement, task)
        return
    groups, count = _groups(statements), min(at_most(jobs), len(statements))
    known = {s.id: s for s in statements}
    alone: list[Task] = []
    task = task._replace(imports=absolute(task.imports))
    tasks = [task._replace(ids=tuple(s.id for s in group)) for group in groups]
    with opened(on, count=count, folder=Path(task.store)) as executor:
        while tasks:
            for done, judged in each(executor, _verify_some, tasks):
                if not isinstance(judged, Died):
                    unpack(judged[1], Path(task.store))
                    yield from judged[0]
                elif not done.again:  # which of them was it? and was it an accident?
                    alone += [task._replace(ids=(name,), again=True) for name in done.ids]
                else:
                    yield unmeasured(known[done.ids[0]], str(judged), seed=task.seed)
            tasks, alone = alone, []


def settings_of(task: Task, /) -> dict[str, Any]:
    """What the verdicts of a task depend on."""
    return versions() | {
        "source": digest_of(task.imports),
        "device": "cpu",
        "precision": "float64",
        "seed": task.seed,
        "thorough": task.factor == THOROUGH,
        "certify": task.certify,
        "imports": list(task.imports),
    }


def _last_failed(statements: Sequence[Statement], out: Path) -> tuple[Statement, ...]:
    """Those that were not as recorded when they were judged last; all where there are none."""
    failed = failed_before(out)
    chosen = tuple(s for s in statements if s.id in failed)
    if not chosen:
        print(f"nothing failed in {out} before: all are judged", file=sys.stderr)
    return chosen or tuple(statements)


def verify(
    patterns: Patterns = (),
    /,
    *,
    out: Path = Path("results/verify"),
    seed: int = 0,
    jobs: int = 0,
    thorough: bool = False,
    traceback: bool = False,
    record: bool = False,
    certify: bool = False,
    kind: Kinds = (),
    exitfirst: Annotated[bool, tyro.conf.arg(aliases=["-x"])] = False,
    last_failed: bool = False,
    durations: int = 0,
    json: bool = False,
    watch: bool = False,
    imports: Imports = (),
    on: On = HERE,
) -> int:
    """Check the statements, all or those whose id matches, and print a verdict for each form.

    Exit status 0 when every verdict is as recorded, errata included; 1 when one is not, or the run
    was interrupted; 2 on bad usage; 3 when something could not be measured or written.

    Args:
        patterns: ids, the beginning of ids ("multihead"), or shell patterns ("*.cor1.*").
        out: folder for verdicts.json, report.html, worst instances and counterexamples.
        seed: of all draws.
        jobs: processes; 0 means one for each core.
        thorough: ten times the samples and searches, which also start from the worst instances
            that earlier runs found.
        traceback: where a statement cannot be measured, print where it broke.
        record: keep the worst ratios of the shipped statements as those to compare with.
        certify: disprove what fails in ball arithmetic, and write witnesses beside the
            counterexamples; needs the extra `certify`.
        kind: only statements of this kind; may be repeated.
        exitfirst: stop at the first verdict that is not as recorded.
        last_failed: only what was not as recorded when it was judged last; all if there is none.
        durations: name the statements that took longest, so many.
        json: print the verdicts as JSON (see `jaxbounds schema verdicts`), the rest on standard
            error.
        watch: judge again whatever a change of your files changed, until Ctrl-C.
        imports: modules or files that hold a PAPER of your own.
        on: where the statements are judged.
    """
    console = console_for_output(errors=json)
    if certify:
        importlib.import_module("jaxbounds.certify")  # says what is missing, before anything runs
    if record and (seed or thorough):
        raise ValueError("--record keeps what seed 0 gives: leave --seed and --thorough out")
    if jobs < 0 or not 0 <= seed < 2**32:
        raise ValueError(f"--jobs or --seed cannot be negative or above 2^32 - 1: {jobs}, {seed}")
    factor = THOROUGH if thorough else 1.0
    task = Task((), imports, seed, factor, "", traceback, thorough, certify)
    if watch:
        if record or last_failed or json:
            raise ValueError("--watch judges what changed: leave --record, --last-failed, --json")
        from jaxbounds.cli.watch import Watched, keep_watching

        return keep_watching(Watched(patterns, kind, out, jobs, exitfirst, durations, task))
    papers = load_papers(imports, patterns=patterns)
    chosen = of_kinds(select((s for paper in papers for s in paper.statements), patterns), kind)
    part = patterns + kind or ("last-failed",) * last_failed
    if last_failed:
        chosen = _last_failed(chosen, out)
    folder = folder_for(out, part, settings_of(task))
    status, done = judge_into(
        folder,
        papers,
        chosen,
        task,
        jobs=jobs,
        on=on,
        partial=bool(part),
        exitfirst=exitfirst,
        console=console,
    )
    if record and len(done) == len(chosen):
        recorded.record([v for s in chosen for v in done[s.id]], others=bool(part))
    remember_failed(out, done)
    for line in slowest(done, durations):
        console.print(line)
    if json:
        print_json([v.to_json() for s in chosen for v in done.get(s.id, ())])
    return status


def judge_into(
    folder: Folder,
    papers: Sequence[Paper],
    chosen: Sequence[Statement],
    task: Task,
    /,
    *,
    jobs: int = 0,
    on: On = HERE,
    partial: bool = False,
    exitfirst: bool = False,
    console: Console | None = None,
) -> tuple[int, Judged]:
    """Judge statements, print what was found, put it into a folder: exit status and verdicts.

    Args:
        folder: where; what a run that was cut left there is continued.
        papers: at least those of the statements.
        chosen: the statements.
        task: with what; its ids and its place are filled in.
        jobs: processes; 0 means one for each core.
        on: where the statements are judged.
        partial: what the folder holds of other statements stays.
        exitfirst: stop at the first verdict that is not as recorded.
        console: for the table; standard output unless given.
    """
    try_to_write(folder.path)
    before, task = folder.begin(), task._replace(store=str(folder.working))
    judge = functools.partial(_in_turn, jobs=jobs, task=task, on=on)
    console = console or console_for_output()
    done, stopped = judge_all(chosen, judge, folder, before, exitfirst, console)
    status = conclude(folder, papers, chosen, done, stopped, partial, console)
    return status, done
