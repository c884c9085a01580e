"""Write text without control characters to standard streams that may be closed or full.

If writing to a stream fails, the command still completes its work. If a stream accepts no more text
(for example on a full disk), the command drops the rest of its output, and its exit status reports
the loss.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from jaxbounds.ground.text import printable

LOST = 3
"""The exit status of a command that did all its work but could not print all of it.

Users' scripts may test for this number, so a larger number would break these scripts.
"""


def say(text: object, /, *, errors: bool = True) -> None:
    """Print a line without control characters, on standard error or standard output."""
    print(printable(str(text)), file=sys.stderr if errors else sys.stdout, flush=errors)


class Stream:
    """A stream of text that silently drops all text as soon as its file accepts no more text.

    If the reader of standard output is gone, a `BrokenPipeError` still ends the command.
    """

    def __init__(self, stream: Any, *, ends: bool = True) -> None:
        """Wrap a stream; if `ends` is false, a broken pipe (no reader) does not end the command."""
        self._stream, self._ends = stream, ends
        self.problem: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str, /) -> int:
        """Write a text, or drop it if the file accepts no more text."""
        if self.problem is None:
            try:
                return int(self._stream.write(text))
            except OSError as problem:
                self._drop(problem)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, unless the stream's file accepts no more text."""
        if self.problem is None:
            try:
                self._stream.flush()
            except OSError as problem:
                self._drop(problem)

    def _drop(self, problem: OSError) -> None:
        if self._ends and isinstance(problem, BrokenPipeError):
            raise problem
        self.problem = problem
        self.to_nowhere()

    def to_nowhere(self) -> None:
        """Drop the rest of the output, including the text that Python writes at its exit."""
        with contextlib.suppress(OSError, ValueError):  # the stream may have no file
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


class Streams:
    """Standard output and standard error while a command runs."""

    def __init__(self) -> None:
        self.closed = sys.stdout is None
        _open_what_is_closed()
        self.out, self.errors = Stream(sys.stdout), Stream(sys.stderr, ends=False)

    def status(self, status: int, /) -> int:
        """Return the exit status of a command, or `LOST` if a part of its output was lost."""
        try:
            self.out.flush()
            self.errors.flush()
        except BrokenPipeError:
            self.out.to_nowhere()
            return status or 1
        if self.out.problem is None:
            return status
        reason = self.out.problem.strerror or str(self.out.problem)
        say(f"jaxbounds: standard output took only a part of the text: {reason}")
        return LOST if status in (0, 1) else status


def _open_what_is_closed() -> None:
    """Open the null device in place of closed streams.

    If a stream stayed closed, the next opened file would get its file number, and child processes
    would write their output into the file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            stream = open(os.devnull, "w" if number else "r", encoding="utf8")  # noqa: SIM115 - it stays
            setattr(sys, name, stream)


@contextlib.contextmanager
def usable_streams() -> Iterator[Streams]:
    """Make standard output and standard error writable during a `with` block."""
    streams = Streams()
    with contextlib.redirect_stdout(streams.out), contextlib.redirect_stderr(streams.errors):  # type: ignore[type-var]
        if streams.closed:
            say("jaxbounds: standard output is closed, so the command prints nothing there")
        yield streams
