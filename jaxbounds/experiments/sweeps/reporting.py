"""Progress of a long computation on standard error: a bar on a terminal, else a line a minute."""

import contextlib
import time
from collections.abc import Callable, Iterator

import jax
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from jaxbounds.ground.text import printable

Report = Callable[[float, str], None]
"""A function of (done, words): the amount done so far, and words about it."""

BETWEEN_LINES = 60.0
"""Seconds between two lines where there is no terminal; a larger number writes fewer lines."""


def _in_lines(console: Console, total: float, unit: str) -> Report:
    said = time.monotonic()

    def report(done: float, words: str) -> None:
        nonlocal said
        if time.monotonic() - said >= BETWEEN_LINES:
            said = time.monotonic()
            line = f"{done:,}/{total:,} {unit}  {printable(words)}"
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    return report


@contextlib.contextmanager
def progress(total: float, unit: str, /, *, show: bool = True) -> Iterator[Report]:
    """Give a function that reports progress; only the first of several processes prints.

    Args:
        total: the amount to do.
        unit: the unit of the amount, in the plural ("steps").
        show: whether to print at all.
    """
    console = Console(stderr=True)
    if not show or jax.process_index() > 0:
        yield lambda done, words: None
        return
    if not (console.is_terminal or console.is_jupyter):
        yield _in_lines(console, total, unit)
        return
    columns = (
        BarColumn(bar_width=30),
        TextColumn("{task.completed:,}/{task.total:,} {task.fields[unit]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total, unit=unit, rate="")

        def report(done: float, words: str) -> None:
            speed = bar.tasks[task].speed
            rate = f"{speed:.0f} {unit}/s" if speed else ""
            bar.update(task, completed=done, description=printable(words), rate=rate)

        yield report
