"""Judge statements one after the other, on any engine, and store the verdicts in a folder."""

import datetime
import functools
import itertools
import math
import secrets
import tempfile
import traceback as tracebacks
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jaxbounds.claims.records import RATIOS, read_records
from jaxbounds.claims.statements import Statement
from jaxbounds.experiments.provenance import versions
from jaxbounds.falsification import Verdict, unmeasured, verdicts_on
from jaxbounds.falsification.deadline import TIMEOUT, refuse_other_limits
from jaxbounds.falsification.examples import NONE
from jaxbounds.ground import recording, surroundings
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import try_to_write
from jaxbounds.ground.folders import say
from jaxbounds.ground.seeds import refuse_other_seeds
from jaxbounds.ground.states import UNKNOWN, changed, state
from jaxbounds.papers import Catalogue, Selection, load_papers, origin
from jaxbounds.runs import drift, values
from jaxbounds.runs.cache import examples, prepare_jax, programs_for
from jaxbounds.runs.digest import digest_of, folder_for_jax
from jaxbounds.runs.driver import drive, packed
from jaxbounds.runs.engines import HERE, On, in_this_process
from jaxbounds.runs.falsify import by_balls
from jaxbounds.runs.folder import (
    ById,
    Kept,
    folder_for,
    instances_of,
    judged_before,
    remember_judged,
)
from jaxbounds.runs.interruption import look
from jaxbounds.runs.workers import Died

THOROUGH = 10.0
"""The factor by which a thorough verification multiplies the numbers of samples and restarts. If
the factor is larger, a thorough verification takes longer and may find more violations."""
TOGETHER = 3
"""The number of successive statements that one process judges together. Successive statements often
share samplers, and the process compiles each sampler once. If this number is larger, the command
prints the first results later."""
INTERRUPTED, AT_FIRST = "interrupted", "stopped by -x"
"""The two reasons why a run may end before it has judged all statements."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of judging, with defaults for the command and for `jaxbounds.verify`.

    A form is one version of a claim: printed, corrected or sharpened.

    Attributes:
        seed: the seed of all random instances.
        thorough: whether to use ten times as many random instances and searches. The searches of a
            thorough run also start from the worst instances that earlier runs found.
        certify: whether to disprove failing forms in ball arithmetic, which encloses rounding
            errors. For each disproof the run writes a witness, a file with which another program
            can check the disproof. The option `certify` needs the packages of the extra `certify`.
        traceback: whether to print the traceback of a statement that cannot be measured.
        fresh: whether to ignore instances of earlier runs, and to store no instances for later
            runs.
        timeout: the time limit for each statement in seconds, which the run checks between two
            batches of instances. If the search refutes no claim in this time, the verdict is
            inconclusive.
    """

    seed: int = 0
    thorough: bool = False
    certify: bool = False
    traceback: bool = False
    fresh: bool = False
    timeout: float = TIMEOUT

    def check(self) -> None:
        """Refuse an invalid seed or timeout.

        Raises:
            Refused: if the seed is no integer from 0 to 2^32 - 1, or the timeout is not a positive
                number.
        """
        refuse_other_seeds(self.seed)
        refuse_other_limits(self.timeout)

    def refuse_to_record(self) -> None:
        """Refuse to record results of a run with a seed other than 0, or of a thorough search.

        Raises:
            Refused: if the seed is not 0, or the search is thorough.
        """
        if self.seed or self.thorough:
            raise Refused(
                f"seed={self.seed!r} and thorough={self.thorough}, expected seed=0 and "
                f"thorough=False for a run that writes records. Try without --seed and --thorough"
            )

    def settings(self, catalogue: Catalogue) -> dict[str, Any]:
        """Return the settings that all verdicts of a run depend on.

        A shipped statement reads no file and few environment variables. A user's statement may read
        any file and any environment variable. Therefore the settings of a run with users'
        statements include all environment variables and installed packages.
        """
        unique = (
            secrets.token_hex(16) if catalogue.own else ""
        )  # no file holds the code of these papers
        own = bool(catalogue.imports or catalogue.own)
        around = surroundings.for_users() if own else {
            "environment": surroundings.environment(whole=False)
        }  # fmt: skip
        return (
            versions()
            | around
            | {
                "source": digest_of(catalogue.imports) + unique,
                "jax_settings": surroundings.jax_settings(),
                "flags": surroundings.flags(),
                "device": "cpu",
                "precision": "float64",
                "seed": self.seed,
                "thorough": self.thorough,
                "certify": self.certify,
                "fresh": self.fresh,
                "imports": list(catalogue.imports),
            }
        )


def judged(
    statement: Statement, options: Options, catalogue: Catalogue, store: Path, /
) -> tuple[Verdict, ...]:
    """Return the verdicts on one statement; an error becomes a verdict, so the run continues."""
    if statement.refused:
        return unmeasured(statement, statement.refused, seed=options.seed)
    try:
        verdicts = verdicts_on(
            statement,
            seed=options.seed,
            budget=statement.budget.scaled(THOROUGH if options.thorough else 1.0),
            store=store,
            programs=programs_for(statement),
            examples=NONE if options.fresh else examples(options.thorough),
            referee=by_balls,
            timeout=options.timeout,
        )
        if not options.certify:
            return verdicts
        from jaxbounds.certification import certified  # needs the extra

        title = catalogue.paper(statement.paper).title
        return certified(statement, verdicts, store, citation=title)
    except Exception as problem:
        if options.traceback:
            tracebacks.print_exc()
        reason = f"the statement could not be measured: {origin(problem)}"
        return unmeasured(statement, reason, seed=options.seed)


def _declared(statement: Statement, of_paper: Sequence[str | Path]) -> dict[str, str]:
    words = (*of_paper, *statement.depends)
    names = [str(Path(word).absolute()) if Path(word).exists() else str(word) for word in words]
    return {key: state(key) for key in (f"declared: {name}" for name in names)}


def _watched(
    statement: Statement, of_paper: Sequence[str | Path], options: Options, catalogue: Catalogue,
    store: Path,
) -> Kept:  # fmt: skip
    """Return the verdicts on one statement, with the files that a user's own statement reads."""
    if not catalogue.imports:
        return Kept(judged(statement, options, catalogue, store), _now(), {})
    if (cache := folder_for_jax()) is not None:
        recording.ignore(cache)
    declared = _declared(statement, of_paper)
    with recording.watching(_watched.__code__):
        verdicts = judged(statement, options, catalogue, store)
    return Kept(verdicts, _now(), recording.record() | declared)


def _judged_somewhere(
    options: Options, catalogue: Catalogue, ids: tuple[str, ...]
) -> tuple[list[Kept], dict[str, bytes]]:
    found = [catalogue.statement(name) for name in ids]
    own = {s.paper for s in found} if catalogue.imports else ()
    papers = {name: catalogue.paper(name).depends for name in own}
    with tempfile.TemporaryDirectory() as place:
        kept = [
            _watched(s, papers.get(s.paper, ()), options, catalogue, Path(place)) for s in found
        ]
        return kept, packed(Path(place))


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _groups(statements: Sequence[Statement]) -> list[tuple[str, ...]]:
    """Group neighbouring statements with equal samplers; start with single statements.

    Single statements at the start let the command print its first results early.
    """
    samplers = lambda s: [id(sampler) for sampler in s.samplers.values()]
    groups = []
    for _, group in itertools.groupby(statements, samplers):
        ids = [s.id for s in group]
        groups += [tuple(ids[i : i + TOGETHER]) for i in range(0, len(ids), TOGETHER)]
    return [(name,) for ids in groups[:1] for name in ids] + groups[1:]


def _failed_or_new(selection: Selection, out: Path) -> Selection:
    """Return the statements whose verdict is missing or unlike the record; if none, return all."""
    known, every = judged_before(out), selection.statements
    failed = [s.id for s in every if known.get(s.id) is False]
    new = [s.id for s in every if s.id not in known]
    chosen = tuple(s for s in every if s.id in {*failed, *new})
    if not chosen:
        say(f"no statement failed in {out} before, so all statements are judged")
    elif known:
        rest = len(every) - len(chosen)
        say(
            f"--last-failed judges the statements that failed in {out} before ({len(failed)}), or "
            f"that have no verdict there ({len(new)}); it skips all other statements ({rest})"
        )
    parts = (*selection.parts, "last-failed")
    return selection._replace(statements=chosen or every, parts=parts)


class Verification:
    """The verification of some statements; iterating over this object judges the statements.

    The verification continues an interrupted run in the folder `out`. If the folder holds verdicts
    of another run on other statements, the run writes into another folder beside this folder. If
    `last_failed` is true, the run judges only statements without a verdict, and statements whose
    last verdict differed from the record; if there are none, the run judges all statements.

    Raises:
        Refused: if an option is out of its range, or if another process would have to judge a paper
            that exists in this process alone.

    Attributes:
        stopped: the reason why some statements were not judged; empty if all were judged.
        kept: the verdicts of the interrupted run that this run continues, keyed by id.
        beside: verdicts of earlier runs that are published with the new verdicts, keyed by id.
        recorded: the changes of the papers' records, after `publish(record=True)`.
    """

    def __init__(
        self,
        selection: Selection,
        options: Options,
        out: Path,
        /,
        *,
        on: On = HERE,
        jobs: int = 0,
        exitfirst: bool = False,
        last_failed: bool = False,
    ) -> None:
        if jobs < 0:
            raise Refused(
                f"jobs={jobs} is negative. Try jobs=0, which starts a process for each core"
            )
        options.check()
        if selection.catalogue.own and (on != HERE or jobs > 1):
            names = ", ".join(paper.id for paper in selection.catalogue.own)
            raise Refused(
                f"paper={names} exists in this process alone, so no other process can judge it. "
                "Try without `on` and `jobs`, or write the paper to a file"
            )
        if last_failed:
            selection = _failed_or_new(selection, out)
        self.selection, self.options = selection, options
        settings = options.settings(selection.catalogue)
        instances = instances_of(selection.statements)
        self.folder = folder_for(out, selection.parts, settings, instances, look=look)
        self._on, self._jobs, self._exitfirst = on, jobs, exitfirst
        self.done: ById = {}
        self.judged: dict[str, Kept] = {}
        self.beside: dict[str, Kept] = {}
        self.stopped = ""
        self.recorded: tuple[str, ...] = ()
        usual = not options.seed and not options.thorough  # the records hold such runs
        self._expected = values.Expected(selection.papers if usual else ())
        self._changed: dict[str, tuple[str, ...]] = {}
        try_to_write(self.folder.path)
        before = self.folder.begin()
        self.kept = {
            s.id: before[s.id]
            for s in selection.statements
            if s.id in before
            and self._declares(s, before[s.id])
            # A verdict that ran out of time is judged again, since there may be more time now.
            and not any(v.out_of_time for v in before[s.id].verdicts)
        }
        self._on_record = {name for p in selection.papers for name in read_records(p, RATIOS)}

    def _declares(self, statement: Statement, kept: Kept) -> bool:
        if not self.selection.catalogue.imports:
            return True
        said = {k: v for k, v in kept.depends.items() if k.startswith("declared: ")}
        of_paper = {paper.id: paper.depends for paper in self.selection.papers}
        return said == _declared(statement, of_paper[statement.paper])

    def __iter__(self) -> Iterator[tuple[Verdict, ...]]:
        """Yield the verdicts on each statement; the verdicts of the interrupted run come first."""
        self.take_kept()
        for kept in self.kept.values():
            yield kept.verdicts
        if self._is_over():
            return
        left = [s for s in self.selection.statements if s.id not in self.kept]
        for kept in map(self._with_record, self._verdicts(left)):
            self._take(kept)  # first, since an interruption may come in between
            self.folder.keep(kept)
            yield kept.verdicts
            if self._is_over():
                return

    def _with_record(self, kept: Kept) -> Kept:
        found = kept.verdicts
        if not found or found[0].id not in self._on_record:
            return kept
        said = tuple(replace(v, recorded=v.recorded or not v.is_twin) for v in found)
        return kept._replace(verdicts=said)

    def take_kept(self) -> None:
        """Take over the verdicts of the interrupted run, so that its statements count as judged."""
        for kept in self.kept.values():
            self._take(kept)

    def _take(self, kept: Kept) -> None:
        name = kept.verdicts[0].id
        self.judged[name], self.done[name] = kept, kept.verdicts
        self._changed[name] = self._expected.changed(kept.verdicts)

    def _is_over(self) -> bool:
        over = self._exitfirst and not self.as_recorded
        self.stopped = AT_FIRST if over and len(self.done) < len(self.selection.statements) else ""
        return over

    def _verdicts(self, statements: Sequence[Statement]) -> Iterator[Kept]:
        catalogue, alone = self.selection.catalogue, self._jobs == 1 or len(statements) == 1
        if catalogue.own:
            work, jobs = functools.partial(_judged_somewhere, self.options, catalogue), 1
        else:
            work = functools.partial(_judged_somewhere, self.options, catalogue.absolute())
            jobs = self._jobs
        if in_this_process(self._on, self._jobs, len(statements)):
            yield from self._judged_here(statements)
            return
        pieces = [(s.id,) for s in statements] if alone else _groups(statements)
        known = {s.id: s for s in statements}
        found = drive(
            work, pieces, on=self._on, jobs=jobs, folder=self.folder.scratch(),
            units=len(statements),
            parts=lambda ids: [(name,) for name in ids],  # to find the one that broke
        )  # fmt: skip
        for ids, result in found:
            if isinstance(result, Died):
                blank = unmeasured(known[ids[0]], str(result), seed=self.options.seed)
                lost = {f"{UNKNOWN}: its worker": UNKNOWN} if catalogue.imports else {}
                yield Kept(blank, _now(), lost)
                continue
            kept, files = result
            self.folder.keep_files(files)
            yield from kept

    def edited(self) -> list[str]:
        """Return the ids of statements whose files or modules changed during this run."""
        seen = lambda kept: {k: v for k, v in kept.depends.items() if v != UNKNOWN}
        return [name for name, kept in self.judged.items() if changed(seen(kept))]

    def _judged_here(self, statements: Sequence[Statement]) -> Iterator[Kept]:
        prepare_jax()
        store, marked = self.folder.scratch(), self.folder.marked
        papers = {paper.id: paper.depends for paper in self.selection.papers}
        for statement in statements:
            look()
            of_paper, catalogue = papers[statement.paper], self.selection.catalogue
            kept = _watched(statement, of_paper, self.options, catalogue, store)
            for file in [file for file in store.rglob("*") if file.is_file()]:
                name = file.relative_to(store).as_posix()
                marked.move(file.relative_to(self.folder.path).as_posix(), f"unfinished/{name}")
            yield kept

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the verdicts so far, in the order of the papers."""
        return tuple(v for s in self.selection.statements for v in self.done.get(s.id, ()))

    @property
    def as_recorded(self) -> bool:
        """Return whether all verdicts and values of the run so far agree with the records."""
        verdicts = all(v.as_expected for found in self.done.values() for v in found)
        return verdicts and not self.changed

    @property
    def changed(self) -> tuple[str, ...]:
        """Return a line for each form (version of a claim) whose values differ from the records."""
        lines = (self._changed.get(s.id, ()) for s in self.selection.statements)
        return tuple(dict.fromkeys(itertools.chain.from_iterable(lines)))

    @property
    def status(self) -> int:
        """Return the exit status: 3 if a measurement or file failed, 1 if a verdict is unexpected.

        A verdict is unexpected if it differs from the recorded verdict. Otherwise the status is 0.
        """
        lost = any(v.status == "error" or (v.out_of_time and v.recorded) for v in self.verdicts)
        if lost and self.stopped != INTERRUPTED:
            return 3
        return int(self.stopped == INTERRUPTED or not self.as_recorded)

    def publish(self, *, record: bool = False) -> bool:
        """Publish the verdicts and the HTML page; keep the folder's verdicts on other statements.

        If all statements were judged, `record` also writes ratios and values into the papers'
        records. The method publishes nothing if some statements were not judged and the folder
        holds another run's results.

        Raises:
            Refused: if `record` is True, and a paper is defined in no file.
        """
        try:
            published = self._put_in_place()
            if record and len(self.done) == len(self.selection.statements):
                others = bool(self.selection.parts)
                drift.record(self.verdicts, self.selection.papers, others=others)
                self.recorded = values.record_values(
                    self.verdicts, self.selection.papers, others=others
                )
                self._changed.clear()
            wrong = {name for name, lines in self._changed.items() if lines}
            remember_judged(self.folder, self.done, changed=wrong)
        finally:
            self.folder.release()
        return published

    def _put_in_place(self) -> bool:
        folder, papers = self.folder, self.selection.papers
        partial, others = bool(self.selection.parts), self.folder.published()
        if others is None and self.stopped:
            return False
        stays = (partial or self.stopped) and others
        self.beside = {k: v for k, v in (others or {}).items() if k not in self.done and stays}
        imports = self.selection.catalogue.imports
        if self.beside:  # the page shows the verdicts of earlier runs, too
            named = [k.verdicts[0].paper for k in (*self.judged.values(), *self.beside.values())]
            papers = (*load_papers(imports, patterns=named), *self.selection.catalogue.own)
        order = {s.id: i for i, s in enumerate(s for paper in papers for s in paper.statements)}
        chosen = {s.id: self.judged[s.id] for s in self.selection.statements if s.id in self.judged}
        together = sorted(
            (chosen | self.beside).items(), key=lambda one: order.get(one[0], math.inf)
        )
        folder.publish([kept for _, kept in together], {"statements": len(together)})
        merged = [v for _, kept in together for v in kept.verdicts]
        from jaxbounds.report import html_page  # slow to import

        page = html_page(merged, papers, folder.settings, folder.path, imports)
        folder.write("report.html", page)
        if not self.stopped:
            folder.end()
        return True
