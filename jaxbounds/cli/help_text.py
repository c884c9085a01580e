"""Wrap the help text of a command at the terminal's width."""

import contextlib
import io
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import TextIO

FLAGS = frozenset(("-h", "--help"))
"""The options that print a help text."""
WIDEST = 100
"""The largest width of a help text in characters. A larger width makes lines that are harder to
read."""


class _Held(io.StringIO):
    """A text in memory that passes for the stream: the parser keeps its colours and frames."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream.isatty()


def _is_framed(part: str) -> bool:
    """Return whether a part of a help text has its own line breaks, as a frame with options."""
    return any(line.startswith((" ", "\x1b", "│", "╭", "╰")) for line in part.splitlines())


@contextlib.contextmanager
def wrapped(arguments: list[str], /) -> Iterator[None]:
    """Wrap the long lines that a block prints, if the arguments ask for a help text.

    The parser of options writes each paragraph of a help text into one line.
    """
    if not FLAGS & set(arguments):
        yield
        return
    held = _Held(sys.stdout)
    try:
        with contextlib.redirect_stdout(held):
            yield
    finally:
        width = min(shutil.get_terminal_size().columns, WIDEST)
        parts = held.getvalue().strip("\n").split("\n\n")
        print("\n\n".join(p if _is_framed(p) else textwrap.fill(p, width) for p in parts))
