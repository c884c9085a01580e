"""Statements judged into a folder, one after the other, in this process or anywhere."""

import functools
import itertools
import math
import secrets
import sys
import tempfile
import traceback as tracebacks
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from jaxbounds.claims.records import RATIOS, read_records
from jaxbounds.claims.statements import Statement
from jaxbounds.experiments.provenance import versions
from jaxbounds.falsification import Verdict, unmeasured, verdicts_on
from jaxbounds.falsification.deadline import TIMEOUT, refuse_other_limits
from jaxbounds.falsification.examples import NONE
from jaxbounds.ground.files import try_to_write
from jaxbounds.papers import Catalogue, Selection, load_papers, origin
from jaxbounds.runs import drift, values
from jaxbounds.runs.cache import examples, prepare_jax, programs_for
from jaxbounds.runs.digest import digest_of
from jaxbounds.runs.driver import drive, packed
from jaxbounds.runs.engines import HERE, On, in_this_process
from jaxbounds.runs.falsify import by_balls
from jaxbounds.runs.folder import ById, failed_before, folder_for, instances_of, remember_failed
from jaxbounds.runs.interruption import look
from jaxbounds.runs.workers import Died

THOROUGH = 10.0
"""Factor on samples and restarts of a thorough verification."""
TOGETHER = 3
"""Neighbours that share their samplers and are judged by one process, which compiles those once."""
INTERRUPTED, AT_FIRST = "interrupted", "stopped by -x"
"""Why statements were not tried."""


class Options(NamedTuple):
    """With what statements are judged: plain values.

    Attributes:
        seed: of all draws.
        thorough: ten times the samples and searches, which also start from the worst instances that
            earlier runs found.
        certify: disprove what fails and prove what names domains, in ball arithmetic.
        traceback: where a statement cannot be measured, print where it broke.
        fresh: do without what earlier runs found, and keep nothing for later ones.
        timeout: seconds for a statement; what is not refuted by then is inconclusive.
    """

    seed: int = 0
    thorough: bool = False
    certify: bool = False
    traceback: bool = False
    fresh: bool = False
    timeout: float = TIMEOUT

    def settings(self, catalogue: Catalogue) -> dict[str, Any]:
        """All that the verdicts depend on."""
        unique = secrets.token_hex(16) if catalogue.own else ""  # whose code no file tells
        return versions() | {
            "source": digest_of(catalogue.imports) + unique,
            "device": "cpu",
            "precision": "float64",
            "seed": self.seed,
            "thorough": self.thorough,
            "certify": self.certify,
            "fresh": self.fresh,
            "imports": list(catalogue.imports),
        }


def judged(
    statement: Statement, options: Options, catalogue: Catalogue, store: Path, /
) -> tuple[Verdict, ...]:
    """The verdicts on one statement, which breaks alone where it breaks."""
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
        reason = f"it could not be measured: {origin(problem)}"
        return unmeasured(statement, reason, seed=options.seed)


def _judged_somewhere(
    options: Options, catalogue: Catalogue, ids: tuple[str, ...]
) -> tuple[list[tuple[Verdict, ...]], dict[str, bytes]]:
    """Statements are found again by their ids where another process judges them.

    Their instances are sent home.
    """
    found = [catalogue.statement(name) for name in ids]
    with tempfile.TemporaryDirectory() as place:
        verdicts = [judged(statement, options, catalogue, Path(place)) for statement in found]
        return verdicts, packed(Path(place))


def _groups(statements: Sequence[Statement]) -> list[tuple[str, ...]]:
    """Neighbours together; the first ones alone, so that something is seen soon."""
    samplers = lambda s: [id(sampler) for sampler in s.samplers.values()]
    groups = []
    for _, group in itertools.groupby(statements, samplers):
        ids = [s.id for s in group]
        groups += [tuple(ids[i : i + TOGETHER]) for i in range(0, len(ids), TOGETHER)]
    return [(name,) for ids in groups[:1] for name in ids] + groups[1:]


def _failed_before(selection: Selection, out: Path) -> Selection:
    """Those that were not as recorded when they were judged last; all where there are none."""
    failed = failed_before(out)
    chosen = tuple(s for s in selection.statements if s.id in failed)
    if not chosen:
        print(f"nothing failed in {out} before: all are judged", file=sys.stderr)
    parts = (*selection.parts, "last-failed")
    return selection._replace(statements=chosen or selection.statements, parts=parts)


class Verification:
    """Statements on their way into a folder; iterate to judge them.

    What a run that was cut left there is continued. Nothing is printed.

    Args:
        selection: which statements.
        options: with what they are judged.
        out: folder of the verdicts; another beside it, where it holds other statements of another
            run.
        on: where they are judged.
        jobs: processes; 0 means one for each core.
        exitfirst: stop at the first verdict that is not as recorded.
        last_failed: only what was not as recorded when it was judged last; all if there is none.

    Raises:
        ValueError: if a number makes no sense, or what exists in this process alone is to be judged
            elsewhere.

    Attributes:
        done: the verdicts so far, by id.
        stopped: why statements were not tried; empty while none were left out.
        kept: ids that were judged before.
        recorded: what changed on record, once it is published with `record`.
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
        if jobs < 0 or not 0 <= options.seed < 2**32:
            raise ValueError(
                f"--jobs or --seed cannot be negative or above 2^32 - 1: {jobs}, {options.seed}"
            )
        refuse_other_limits(options.timeout)
        if selection.catalogue.own and (on != HERE or jobs > 1):
            names = ", ".join(paper.id for paper in selection.catalogue.own)
            raise ValueError(
                f"{names} exists in this process alone, and is judged here: leave `on` and `jobs` "
                "out, or write it to a file"
            )
        if last_failed:
            selection = _failed_before(selection, out)
        self.selection, self.options = selection, options
        settings = options.settings(selection.catalogue)
        instances = instances_of(selection.statements)
        self.folder = folder_for(out, selection.parts, settings, instances, look=look)
        self._on, self._jobs, self._exitfirst = on, jobs, exitfirst
        self.done: ById = {}
        self.stopped = ""
        self.recorded: tuple[str, ...] = ()
        usual = not options.seed and not options.thorough  # of what the values on record are
        self._expected = values.Expected(selection.papers if usual else ())
        self._changed: dict[str, tuple[str, ...]] = {}
        try_to_write(self.folder.path)
        before = {
            name: found
            for name, found in self.folder.begin().items()
            if not any(v.out_of_time for v in found)  # there may be more time now
        }
        self.kept = {s.id: before[s.id] for s in selection.statements if s.id in before}
        self._on_record = {name for p in selection.papers for name in read_records(p, RATIOS)}

    def __iter__(self) -> Iterator[tuple[Verdict, ...]]:
        """The verdicts on one statement after the other, as they come; kept ones first."""
        for verdicts in self.kept.values():
            self._take(verdicts)
            yield verdicts
        if self._is_over():
            return
        left = [s for s in self.selection.statements if s.id not in self.kept]
        for found in map(self._with_record, self._verdicts(left)):
            verdicts = self._take(found)  # first: an interruption may come in between
            self.folder.keep(verdicts)
            yield verdicts
            if self._is_over():
                return

    def _with_record(self, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        """Say of which ratios are on record."""
        if not verdicts or verdicts[0].id not in self._on_record:
            return verdicts
        return tuple(replace(v, recorded=v.recorded or not v.is_twin) for v in verdicts)

    def _take(self, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        self.done[verdicts[0].id] = verdicts
        self._changed[verdicts[0].id] = self._expected.changed(verdicts)
        return verdicts

    def _is_over(self) -> bool:
        over = self._exitfirst and not self.as_recorded
        self.stopped = AT_FIRST if over and len(self.done) < len(self.selection.statements) else ""
        return over

    def _verdicts(self, statements: Sequence[Statement]) -> Iterator[tuple[Verdict, ...]]:
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
            parts=lambda ids: [(name,) for name in ids],  # which of them was it? an accident?
        )  # fmt: skip
        for ids, result in found:
            if isinstance(result, Died):
                yield unmeasured(known[ids[0]], str(result), seed=self.options.seed)
                continue
            verdicts, files = result
            self.folder.keep_files(files)
            yield from verdicts

    def _judged_here(self, statements: Sequence[Statement]) -> Iterator[tuple[Verdict, ...]]:
        """Judge statements in this process; their instances are renamed, not copied."""
        prepare_jax()
        store, marked = self.folder.scratch(), self.folder.marked
        for statement in statements:
            look()
            verdicts = judged(statement, self.options, self.selection.catalogue, store)
            for file in [file for file in store.rglob("*") if file.is_file()]:
                name = file.relative_to(store).as_posix()
                marked.move(file.relative_to(self.folder.path).as_posix(), f"unfinished/{name}")
            yield verdicts

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those so far, in the order of the papers."""
        return tuple(v for s in self.selection.statements for v in self.done.get(s.id, ()))

    @property
    def as_recorded(self) -> bool:
        """Whether all verdicts so far are, and all values."""
        verdicts = all(v.as_expected for found in self.done.values() for v in found)
        return verdicts and not self.changed

    @property
    def changed(self) -> tuple[str, ...]:
        """A line for each form so far whose values are not those on record."""
        lines = (self._changed.get(s.id, ()) for s in self.selection.statements)
        return tuple(dict.fromkeys(itertools.chain.from_iterable(lines)))

    @property
    def status(self) -> int:
        """The exit status: 3 if something could not be measured, 1 if not all is as recorded."""
        lost = any(v.status == "error" or (v.out_of_time and v.recorded) for v in self.verdicts)
        if lost and self.stopped != INTERRUPTED:
            return 3
        return int(self.stopped == INTERRUPTED or not self.as_recorded)

    def publish(self, *, record: bool = False) -> bool:
        """Put what was judged in place, with its page; what the folder has of others stays.

        Whether it was: where not all was tried, the results of another run are kept instead.

        Args:
            record: keep ratios and values in the papers' records, if all was judged.

        Raises:
            ValueError: if they are to be recorded, and a paper is in no file.
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
            remember_failed(self.folder, self.done, changed=wrong)
        finally:
            self.folder.release()
        return published

    def _put_in_place(self) -> bool:
        folder, papers = self.folder, self.selection.papers
        partial, others = bool(self.selection.parts), self.folder.published()
        if others is None and self.stopped:
            return False
        stays = (partial or self.stopped) and others
        same = [v for v in others or () if v.id not in self.done] if stays else []
        imports = self.selection.catalogue.imports
        if same:  # the page shows what is kept, too
            named = [v.paper for v in [*self.verdicts, *same]]
            papers = (*load_papers(imports, patterns=named), *self.selection.catalogue.own)
        order = {s.id: i for i, s in enumerate(s for paper in papers for s in paper.statements)}
        merged = sorted([*self.verdicts, *same], key=lambda v: order.get(v.id, math.inf))
        folder.publish(merged, {"statements": len({v.id for v in merged})})
        from jaxbounds.report import html_page  # slow to import

        page = html_page(merged, papers, folder.settings, folder.path, imports)
        folder.write("report.html", page)
        if not self.stopped:
            folder.end()
        return True
