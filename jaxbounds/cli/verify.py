"""`jaxbounds verify`: the statements, one verdict for each form."""

import functools
import importlib
import itertools
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from jaxbounds import report
from jaxbounds.cli import recorded
from jaxbounds.cli.cache import digest_of, examples, prepare_jax, programs_for
from jaxbounds.cli.common import Imports, Patterns, console_for_output
from jaxbounds.cli.folder import Folder
from jaxbounds.cli.interruption import look
from jaxbounds.cli.screen import Screen
from jaxbounds.cli.workers import Died, Processes, at_most
from jaxbounds.falsify import Verdict, falsify, load_instance, unmeasured
from jaxbounds.files import try_to_write, write_text
from jaxbounds.papers import find_statement, load_papers, origin, paper_of, select
from jaxbounds.provenance import versions
from jaxbounds.statements import Statement

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


def _verify_some(task: Task) -> list[tuple[Verdict, ...]]:
    """In a process of its own, where statements are found again, by their ids."""
    found = [find_statement(name, imports=task.imports) for name in task.ids]
    return [_verify_one(statement, task) for statement in found]


def _groups(statements: Sequence[Statement], most: int = 3) -> list[tuple[Statement, ...]]:
    """Neighbours that share their samplers, together: a process compiles those once."""
    samplers = lambda s: [id(sampler) for sampler in s.samplers.values()]
    groups = []
    for _, group in itertools.groupby(statements, samplers):
        together = tuple(group)
        groups += [together[i : i + most] for i in range(0, len(together), most)]
    return groups


def _in_turn(
    statements: Sequence[Statement], jobs: int, task: Task
) -> Iterator[tuple[Verdict, ...]]:
    """Verdicts as they come, from this process or from several."""
    if jobs == 1:
        prepare_jax()
        for statement in statements:
            look()
            yield _verify_one(statement, task)
        return
    groups = _groups(statements)
    known = {s.id: s for s in statements}
    processes: Processes = Processes(_verify_some, jobs, prepare_jax, look)
    alone: list[Task] = []
    tasks = [task._replace(ids=tuple(s.id for s in group)) for group in groups]
    while tasks:
        for done, judged in processes(tasks):
            if not isinstance(judged, Died):
                yield from judged
            elif not done.again:  # which of them was it? and was it an accident?
                alone += [task._replace(ids=(name,), again=True) for name in done.ids]
            else:
                yield unmeasured(known[done.ids[0]], str(judged), seed=task.seed)
        tasks, alone = alone, []


def _folder(out: Path, partial: bool, chosen: Patterns, settings: dict[str, Any]) -> Folder:
    """Where the results go: some statements never replace those of another run."""
    folder = Folder(out, settings)
    if partial and folder.published() is None:
        words = "-".join(pattern.replace("*", "all").replace("?", "one") for pattern in chosen)
        folder = Folder(out.with_name(f"{out.name}-{words[:60]}"), settings)
        print(
            f"{out} holds another run (version, seed or settings differ): to {folder.path}",
            file=sys.stderr,
        )
    return folder


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
    imports: Imports = (),
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
        imports: modules or files that hold a PAPER of your own.
    """
    console = console_for_output()
    if certify:
        importlib.import_module("jaxbounds.certify")  # says what is missing, before anything runs
    if record and (seed or thorough):
        raise ValueError("--record keeps what seed 0 gives: leave --seed and --thorough out")
    papers = load_papers(imports, patterns=patterns)
    chosen = select((s for paper in papers for s in paper.statements), patterns)
    if jobs < 0 or not 0 <= seed < 2**32:
        raise ValueError(f"--jobs or --seed cannot be negative or above 2^32 - 1: {jobs}, {seed}")
    settings = versions() | {
        "source": digest_of(imports),
        "device": "cpu",
        "precision": "float64",
        "seed": seed,
        "thorough": thorough,
        "certify": certify,
        "imports": list(imports),
    }
    folder = _folder(out, bool(patterns), patterns, settings)
    try_to_write(folder.path)
    before = folder.begin()
    factor = THOROUGH if thorough else 1.0
    task = Task((), imports, seed, factor, str(folder.working), traceback, thorough, certify)
    judge = functools.partial(_in_turn, jobs=min(at_most(jobs), len(chosen)), task=task)
    done, interrupted = _judge_all(chosen, judge, folder, before, console)
    if record and not interrupted:
        recorded.record([v for s in chosen for v in done[s.id]], others=bool(patterns))
    return _conclude(folder, papers, chosen, done, interrupted, imports, bool(patterns))


def _judge_all(
    chosen: Sequence[Statement],
    judge: Callable[[Sequence[Statement]], Iterator[tuple[Verdict, ...]]],
    folder: Folder,
    before: dict[str, tuple[Verdict, ...]],
    console: Console,
) -> tuple[dict[str, tuple[Verdict, ...]], bool]:
    """Judge what was not judged before; whether it was interrupted."""
    done: dict[str, tuple[Verdict, ...]] = {}
    screen = Screen(console, [s.id for s in chosen])
    kept = {s.id for s in chosen} & set(before)
    if kept:
        print(f"continued: {len(kept)} statements were judged before", file=sys.stderr)
    try:
        with screen.bar:
            for name in kept:
                done[name] = before[name]
                screen.judged(before[name], before=True)
            for verdicts in judge([s for s in chosen if s.id not in kept]):
                done[verdicts[0].id] = verdicts  # first: an interruption may come in between
                folder.keep(verdicts)
                screen.judged(verdicts)
        return done, False
    except KeyboardInterrupt:
        screen.rest()
        return done, True
    except OSError:  # it cannot be kept: at least it was seen
        screen.rest()
        raise


def _conclude(folder, papers, chosen, done, interrupted, imports, partial) -> int:
    """Print what was found, then put it in place."""
    console = console_for_output()
    verdicts = tuple(v for s in chosen for v in done.get(s.id, ()))
    console.print(report.paper_table(papers, verdicts))
    console.print(report.summary(verdicts))
    judged = {s.id: s.judged for s in chosen}
    for (name, _), group in itertools.groupby(verdicts, lambda v: (v.id, v.reason)):
        for line in _remarks(list(group), folder, judged[name]):
            console.print(line, markup=False)
    usual = not folder.settings["seed"] and not folder.settings["thorough"]
    for line in recorded.moved(verdicts) if usual else ():
        console.print(line, markup=False)
    others = folder.published()
    if partial and others:  # the page shows what is kept, too
        papers = load_papers(imports, patterns=[v.paper for v in [*verdicts, *others]])
    if others is None and interrupted:
        console.print(f"interrupted: {folder.path} keeps its earlier results")
    else:
        same = [v for v in others or () if v.id not in done] if partial or interrupted else []
        order = {s.id: i for i, s in enumerate(s for paper in papers for s in paper.statements)}
        merged = sorted([*verdicts, *same], key=lambda v: order.get(v.id, len(order)))
        folder.publish(merged, {"statements": len({v.id for v in merged})})
        page = report.html_page(merged, papers, folder.settings, folder.path, imports)
        write_text(folder.path / "report.html", page)
        console.print(
            f"written to {folder.path}: verdicts.json, report.html, run.json, worst/, "
            "counterexamples/"
        )
    if interrupted:
        left = len(chosen) - len(done)
        console.print(f"interrupted: {left} statements were not tried; the same command continues")
        return 1
    folder.end()
    if any(v.status == "error" for v in verdicts):
        return 3
    return int(not all(v.as_expected for v in verdicts))


def _remarks(group: Sequence[Verdict], folder: Folder, judged: Sequence[str]) -> Iterator[str]:
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
            stored = load_instance(folder.place_of(verdict.shrunk_file))
            at = report.instance_text(stored.instance)
            yield f"  {verdict.form}: ratio {verdict.shrunk_ratio:.6g} at {at}"
            code = f" ({', '.join(judged)})" if judged else ""
            yield (
                f"  is the code{code} wrong, or the claim? for an erratum: expected='fails', "
                "note='...', counterexample=Counterexample(instance=..., "
                f"size={stored.meta['size']}, ratio={stored.meta['ratio']})"
            )
