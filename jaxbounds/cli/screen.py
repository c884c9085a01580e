"""Print the output of `jaxbounds verify`, during the run and at its end."""

import itertools
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from jaxbounds import report
from jaxbounds.cli.common import Plain
from jaxbounds.cli.streams import say
from jaxbounds.falsification import Verdict
from jaxbounds.report.codes import pointer
from jaxbounds.report.headline import NO_ERRATA, about, headline, plural
from jaxbounds.report.items import coverage, in_short
from jaxbounds.report.remarks import left_out, remarks
from jaxbounds.runs.drift import drifted
from jaxbounds.runs.folder import Kept
from jaxbounds.runs.statement_run import AT_FIRST, INTERRUPTED, Verification

SHOWN = 20
"""The output names at most this many forms (versions of claims) with changed values. A larger
number of lines may push the summary off the screen."""
FEW = 20
"""A run prints all rows if it judges at most this many forms (versions of claims). A larger run
prints only rows with verdicts that differ from the record. If this number is larger, more runs
print all rows."""


LINES = 8
"""If standard error is no terminal, a run prints this many lines of progress. A larger number
reports the progress more often."""


class Screen:
    """The output of a run on the screen: rows in the order of the statements, and the progress."""

    def __init__(self, console: Console, names: Sequence[str], *, every: bool = True) -> None:
        self._console, self._names, self._every = console, list(names), every
        self._done: dict[str, tuple[Verdict, ...]] = {}
        self._printed, self._started, self._kept = 0, time.monotonic(), 0
        self._rows = report.VerdictRows(console.width)
        self._live = sys.stderr.isatty()
        columns = (
            TextColumn("{task.description:<28.28}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            _Left(self),
        )
        self.bar = Progress(
            *columns, console=Plain(stderr=True), transient=True, disable=not self._live
        )
        self._task = self.bar.add_task("starting", total=len(names))

    def judged(self, verdicts: tuple[Verdict, ...], *, before: bool = False) -> None:
        """Store a statement's verdicts; print at once each verdict that differs from the record."""
        name = verdicts[0].id
        self._done[name] = verdicts
        self._kept += before
        self.bar.update(self._task, advance=1, description=name)
        if not before:
            self._say(name, verdicts)
        while self._printed < len(self._names) and self._names[self._printed] in self._done:
            self._show(self._done[self._names[self._printed]])
            self._printed += 1

    def _show(self, verdicts: tuple[Verdict, ...]) -> None:
        if self._every or not all(v.as_expected for v in verdicts):
            for part in self._rows.of(verdicts):
                self._console.print(part)

    def _say(self, name: str, verdicts: tuple[Verdict, ...]) -> None:
        wrong = [v for v in verdicts if not v.as_expected]
        done, total = len(self._done), len(self._names)
        due = done * LINES // total > (done - 1) * LINES // total
        if not wrong and (self._live or not due):
            return
        words = "; ".join(f"{v.form}: {v.status}" for v in wrong)
        line = f"{done}/{total} {name}" + (f": {words}" if wrong else "")
        Plain(stderr=True).print(f"{line} ({self.left()})", soft_wrap=True)

    def left(self) -> str:
        """Return words for the time left, estimated from the mean time of the judged statements."""
        total, kept = len(self._names), self._kept
        judged = len(self._done) - kept
        rest = total - len(self._done)
        spent = time.monotonic() - self._started
        if not rest:
            return f"{spent:.0f} s in all"
        if not judged:
            return f"{spent:.0f} s so far"
        return f"about {spent / judged * rest:.0f} s left"

    def rest(self) -> None:
        """Print, after an interruption, the rows of judged statements that are not yet printed."""
        for name in self._names[self._printed :]:
            self._show(self._done.get(name, ()))


class _Left(ProgressColumn):
    max_refresh = 0.5

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def render(self, task: Task) -> Text:  # noqa: ARG002 (the screen knows its task)
        return Text(self._screen.left())


def show(
    run: Verification,
    console: Console,
    /,
    *,
    every: bool = False,
    verbose: bool = False,
    record: bool = False,
    durations: int = 0,
) -> None:
    """Judge the statements, print the verdicts as they come, and then publish them."""
    few = sum(len(s.forms) for s in run.selection.statements) <= FEW
    every, verbose = every or few, verbose or few
    _judge(run, console, every)
    aside = list(_notes(run))  # before `record` replaces the ratios on record
    # A change that this run records has a line of its own below.
    changed = () if record and not run.stopped else run.changed
    _summarize(run, console, changed, aside if verbose else [])
    _say_where(run, run.publish(record=record), console)
    if line := pointer(_with_codes(run, every), run.selection.papers):
        console.print(line)
    for line in run.recorded:
        console.print(f"recorded: {line}", markup=False, soft_wrap=True)
    more = [] if every else ["--all prints every row"]
    hidden = 0 if verbose else len(aside)
    more += [f"-v prints {plural(hidden, 'note')} on draws and ratios"] if hidden else []
    if more:
        console.print(f"more: {'; '.join(more)}")
    for line in _slowest(run, durations):
        console.print(line)


def _with_codes(run: Verification, every: bool) -> Iterator[tuple[str, str]]:
    yield from ((v.id, v.form) for v in run.verdicts if every or not v.as_expected)
    chosen = {s.id for s in run.selection.statements}
    for paper in run.selection.papers:
        named = (erratum.id for erratum in about(paper, chosen) if erratum.changes_main)
        yield from ((f"{paper.id}.", name) for name in named)


def _judge(run: Verification, console: Console, every: bool) -> None:
    screen = Screen(console, [s.id for s in run.selection.statements], every=every)
    if run.kept:
        were = "statement was" if len(run.kept) == 1 else "statements were"
        say(f"continued: {len(run.kept)} {were} judged in the unfinished run, {_times(run.kept)}")
    try:
        with screen.bar:
            for verdicts in run:
                screen.judged(verdicts, before=verdicts[0].id in run.kept)
    except KeyboardInterrupt:
        run.stopped = INTERRUPTED
    except OSError:  # the verdicts cannot be stored, so they are at least printed
        screen.rest()
        raise
    screen.rest()


def _times(kept: Mapping[str, Kept]) -> str:
    times = sorted(one.when for one in kept.values())
    span = times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"
    more = f" and {len(kept) - FEW} more" if len(kept) > FEW else ""
    return f"{span} UTC, and nothing changed since: {', '.join([*kept][:FEW])}{more}"


def _summarize(
    run: Verification, console: Console, changed: Sequence[str], aside: Iterable[str]
) -> None:
    verdicts, papers = run.verdicts, run.selection.papers
    chosen = {s.id for s in run.selection.statements}
    whole = [paper for paper in papers if chosen.issuperset(s.id for s in paper.statements)]
    if whole and len(verdicts) > FEW:
        console.print(report.paper_table(whole, verdicts, width=console.width))
    console.print(report.summary(verdicts, changed=len(changed)))
    stays = lambda file: run.folder.path / file
    judged = {s.id: s.judged for s in run.selection.statements}
    for (name, _), group in itertools.groupby(verdicts, lambda v: (v.id, v.reason)):
        members = list(group)
        if not all(v.as_expected for v in members):
            for line in remarks(members, run.folder.place_of, judged[name], stays):
                console.print(line, markup=False)
    for line in changed[:SHOWN]:
        console.print(f"NOT as recorded: {line}", markup=False, soft_wrap=True)
    if len(changed) > SHOWN:
        more = plural(len(changed) - SHOWN, "more form")
        console.print(f"NOT as recorded: the values of {more}", markup=False)
    for line in aside:
        console.print(line, markup=False)
    for paper in papers:
        if paper.contents and (found := coverage(paper, verdicts)):
            console.print(f"{paper.id}: {in_short(found)}", markup=False)
    seen = {v.paper for v in verdicts}
    errata = headline([p for p in papers if p.id in seen], chosen)
    if errata != NO_ERRATA:
        console.print(errata, markup=False)


def _notes(run: Verification) -> Iterator[str]:
    yield from left_out(v for v in run.verdicts if v.as_expected)
    if not run.options.seed and not run.options.thorough:
        yield from drifted(run.verdicts, run.selection.papers)


def _say_where(run: Verification, published: bool, console: Console) -> None:
    files = "verdicts.json, report.html, run.json, worst/, counterexamples/"
    if published:
        console.print(f"written to {run.folder.path}: {files}")
        if run.beside:
            many = plural(len(run.beside), "statement")
            line = f"the files also hold {many} of an earlier run, {_times(run.beside)}"
            console.print(line, soft_wrap=True)
    else:
        console.print(f"{run.stopped}: the earlier results in {run.folder.path} remain")
    if edited := run.edited():
        names = ", ".join(edited[:FEW])
        console.print(
            f"the code or data of these statements changed during this run; judge them again: "
            f"{names}"
        )
    if run.stopped:
        left = len(run.selection.statements) - len(run.done)
        but = "without -x " if run.stopped == AT_FIRST else ""
        were = "statement was" if left == 1 else "statements were"
        console.print(
            f"{run.stopped}: {left} {were} not tried; {but}the same command continues the run"
        )


def _slowest(run: Verification, count: int) -> Iterator[str]:
    seconds = {name: verdicts[0].seconds for name, verdicts in run.done.items()}
    for name in sorted(seconds, key=lambda name: -seconds[name])[: max(0, count)]:
        yield f"{seconds[name]:8.2f} s  {name}"
