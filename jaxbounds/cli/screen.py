"""What `jaxbounds verify` shows, while statements are judged and afterwards."""

import itertools
import sys
import time
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from jaxbounds import report
from jaxbounds.falsification import Verdict
from jaxbounds.report.remarks import remarks
from jaxbounds.runs.drift import drifted
from jaxbounds.runs.verification import AT_FIRST, INTERRUPTED, Verification


class Screen:
    """Rows in the order of the statements as soon as they can be printed; progress beside them."""

    def __init__(self, console: Console, names: Sequence[str]) -> None:
        self._console, self._names = console, list(names)
        self._done: dict[str, tuple[Verdict, ...]] = {}
        self._printed, self._started = 0, time.monotonic()
        self._rows = report.VerdictRows(console.width)
        self._live = sys.stderr.isatty()
        columns = (
            TextColumn("{task.description:<28.28}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self.bar = Progress(
            *columns, console=Console(stderr=True), transient=True, disable=not self._live
        )
        self._task = self.bar.add_task("starting", total=len(names))

    def judged(self, verdicts: tuple[Verdict, ...], *, before: bool = False) -> None:
        """Take a statement's verdicts; say at once what is not as recorded."""
        name = verdicts[0].id
        self._done[name] = verdicts
        self.bar.update(self._task, advance=1, description=name)
        if not before:
            self._say(name, verdicts)
        while self._printed < len(self._names) and self._names[self._printed] in self._done:
            for part in self._rows.of(self._done[self._names[self._printed]]):
                self._console.print(part)
            self._printed += 1

    def _say(self, name: str, verdicts: tuple[Verdict, ...]) -> None:
        wrong = [v for v in verdicts if not v.as_expected]
        if self._live and not wrong:
            return
        done, total = len(self._done), len(self._names)
        rest = (time.monotonic() - self._started) / done * (total - done)
        words = "; ".join(f"{v.form}: {v.status}" for v in wrong) or "as recorded"
        line = f"{done}/{total} {name}: {words} ({rest:.0f} s left)"
        Console(stderr=True).print(line, markup=False, highlight=False, soft_wrap=True)

    def rest(self) -> None:
        """After an interruption: the rows that waited for others."""
        for name in self._names[self._printed :]:
            for part in self._rows.of(self._done.get(name, ())):
                self._console.print(part)


def show(
    run: Verification, console: Console, /, *, record: bool = False, durations: int = 0
) -> None:
    """Judge the statements, print what was found as it comes, and then publish it.

    Args:
        run: what is judged.
        console: for the table.
        record: keep the ratios in the papers' records.
        durations: name the statements that took longest, so many.
    """
    _judge(run, console)
    _summarize(run, console)
    _say_where(run, run.publish(record=record), console)
    for line in _slowest(run, durations):
        console.print(line)


def _judge(run: Verification, console: Console) -> None:
    """Judge the statements, and print their verdicts as they come; an interruption ends it."""
    screen = Screen(console, [s.id for s in run.selection.statements])
    if run.kept:
        print(f"continued: {len(run.kept)} statements were judged before", file=sys.stderr)
    try:
        with screen.bar:
            for verdicts in run:
                screen.judged(verdicts, before=verdicts[0].id in run.kept)
    except KeyboardInterrupt:
        run.stopped = INTERRUPTED
    except OSError:  # it cannot be kept: at least it was seen
        screen.rest()
        raise
    screen.rest()


def _summarize(run: Verification, console: Console) -> None:
    """What was found by paper, how many of what, and what else a reader of the rows must know."""
    verdicts, selection = run.verdicts, run.selection
    console.print(report.paper_table(selection.papers, verdicts))
    console.print(report.summary(verdicts))
    judged = {s.id: s.judged for s in selection.statements}
    for (name, _), group in itertools.groupby(verdicts, lambda v: (v.id, v.reason)):
        for line in remarks(list(group), run.folder.place_of, judged[name]):
            console.print(line, markup=False)
    usual = not run.options.seed and not run.options.thorough
    for line in drifted(verdicts, selection.papers) if usual else ():
        console.print(line, markup=False)


def _say_where(run: Verification, published: bool, console: Console) -> None:
    """Where the results are, and how to go on."""
    files = "verdicts.json, report.html, run.json, worst/, counterexamples/"
    if published:
        console.print(f"written to {run.folder.path}: {files}")
    else:
        console.print(f"{run.stopped}: {run.folder.path} keeps its earlier results")
    if run.stopped:
        left = len(run.selection.statements) - len(run.done)
        but = "without -x " if run.stopped == AT_FIRST else ""
        console.print(
            f"{run.stopped}: {left} statements were not tried; {but}the same command continues"
        )


def _slowest(run: Verification, count: int) -> Iterator[str]:
    """The statements that took longest, each with its seconds."""
    seconds = {name: verdicts[0].seconds for name, verdicts in run.done.items()}
    for name in sorted(seconds, key=lambda name: -seconds[name])[: max(0, count)]:
        yield f"{seconds[name]:8.2f} s  {name}"
