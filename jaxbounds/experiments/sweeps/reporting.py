"""Report the progress of a long computation on standard error.

A terminal shows a bar; a file gets a line per minute. After the first chunk of steps, the report
includes the remaining time, estimated from the time of the finished steps.
"""

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from types import FrameType
from typing import Any, TypeVar

import jax
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from jaxbounds.ground.text import printable

Part = TypeVar("Part")
Report = Callable[[float, str], None]
"""A function report(done, words): `done` is the amount of work done so far, and the text `words`
describes the progress."""

BETWEEN_LINES = 60.0
"""The seconds between two printed lines if standard error is no terminal.

If this number of seconds is larger, a run prints fewer lines of progress.
"""
WORTH_TELLING = 20.0
"""A run reports its remaining time after the first chunk if this time is at least this many
seconds. If this number of seconds is larger, fewer runs report their remaining time."""

_later: ContextVar[tuple[float, int]] = ContextVar("later", default=(0.0, 0))
"""Two numbers about the present part of a run. The first number is the cost of all later parts,
divided by the cost of the present part. The second number is the id of the frame (Python's call in
progress) that works on the present part."""


def _later_parts() -> float:
    cost, worker = _later.get()
    frame: FrameType | None = sys._getframe()
    while frame is not None and id(frame) != worker:
        frame = frame.f_back
    return 0.0 if frame is None else cost


def each_part(
    parts: Iterable[Part], /, cost: Callable[[Part], float] = lambda part: 1.0
) -> Iterator[Part]:
    """Yield the parts of a run; a part's progress report shows the remaining time of the run.

    A part may have parts of its own. The function `cost` gives a positive cost in any unit.
    """
    every = list(parts)
    costs, outer, before = [cost(part) for part in every], _later_parts(), _later.get()
    try:
        for index, part in enumerate(every):
            after = sum(costs[index + 1 :]) + outer * sum(costs)
            _later.set((after / costs[index], id(sys._getframe(1))))
            yield part
    finally:
        _later.set(before)


class Pace:
    """The remaining time of a run, estimated from its pace after compilation.

    An earlier process has done the amount `begun` of the work `total`.
    """

    def __init__(self, total: float, begun: float = 0.0) -> None:
        self.total, self.later = total, _later_parts()
        self.done, self.since, self.compiled = begun, time.monotonic(), False

    def left(self, done: float, /) -> float | None:
        """Estimate the seconds until the run ends; None until a chunk of steps has been timed."""
        now = time.monotonic()
        if done <= self.done or not self.compiled:  # the first chunk includes the compilation
            self.done, self.since, self.compiled = done, now, True
            return None
        each = (now - self.since) / (done - self.done)
        return each * (max(self.total - done, 0.0) + self.later * self.total)


def duration(seconds: float, /) -> str:
    """Write a time in a suitable unit: "50 s", "12 min", "3.4 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _in_lines(console: Console, total: float, unit: str, about: str, pace: Pace) -> Report:
    said, told = time.monotonic(), False

    def report(done: float, words: str) -> None:
        nonlocal said, told
        left = pace.left(done)
        first = not told and left is not None
        told = told or first
        worth = first and left is not None and left >= WORTH_TELLING
        if worth or time.monotonic() - said >= BETWEEN_LINES:
            said = time.monotonic()
            line = f"{done:,}/{total:,} {unit}  {printable(words)}"
            line += f"; {about} {duration(left)} left" if left else ""
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    return report


@contextlib.contextmanager
def progress(
    total: float,
    unit: str,
    /,
    *,
    begun: float = 0.0,
    at_most: bool = False,
    show: bool = True,
) -> Iterator[Report]:
    """Yield a function that reports progress; only the first of several processes prints reports.

    The `unit` of the work is a plural ("steps"). An earlier process has done the amount `begun`. If
    `at_most` is true, the work may end before its `total` amount is done.
    """
    console = Console(stderr=True)
    if not show or jax.process_index() > 0:
        yield lambda done, words: None
        return
    pace, about = Pace(total, begun), "at most" if at_most else "about"
    # A notebook draws a bar with ipywidgets; without them rich warns in the notebook's output.
    drawn = console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
    if not (console.is_terminal or drawn):
        lines = Console(stderr=True, force_jupyter=False)
        yield _in_lines(lines, total, unit, about, pace)
        return
    columns = (
        BarColumn(bar_width=30),
        TextColumn("{task.completed:,}/{task.total:,} {task.fields[unit]}"),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total, unit=unit, rate="", left="")

        def report(done: float, words: str) -> None:
            speed, left = bar.tasks[task].speed, pace.left(done)
            more: dict[str, Any] = {"rate": f"{speed:.0f} {unit}/s"} if speed else {}
            more |= {} if left is None else {"left": f"{about} {duration(left)} left"}
            bar.update(task, completed=done, description=printable(words), **more)

        yield report
