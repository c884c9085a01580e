"""What `jaxbounds verify` shows while it runs."""

import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from jaxbounds import report
from jaxbounds.falsify import Verdict


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
