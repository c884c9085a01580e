"""Wrap help texts, and pages of the guide, at the terminal's width."""

import contextlib
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import TextIO

FLAGS = frozenset(("-h", "--help"))
"""The options that print a help text."""
WIDEST = 100
"""The largest width of a help text in characters. If this width is larger, the lines are harder to
read."""
_ITEM = re.compile(r" *(?:[-*]|\d+\.) ")
"""The beginning of a list's item in Markdown."""


class _Held(io.StringIO):
    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()


def _is_framed(part: str) -> bool:
    return any(line.startswith((" ", "\x1b", "│", "╭", "╰")) for line in part.splitlines())


@contextlib.contextmanager
def wrapped(arguments: list[str], /) -> Iterator[None]:
    """Wrap the long lines that a `with` block prints, if the arguments ask for a help text.

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


def page(text: str, /) -> str:
    """Wrap the paragraphs and the lists of a Markdown page; leave its code and tables unchanged."""
    width = shutil.get_terminal_size((WIDEST, 0)).columns
    if width >= WIDEST:
        return text
    done, part, in_code = list[str](), list[str](), False
    for line in [*text.splitlines(), ""]:
        kept = in_code or not line or line.startswith(("```", "|", "#", "    "))
        if part and (kept or _ITEM.match(line)):
            done.append(_filled(part, width))
            part = []
        in_code ^= line.startswith("```")
        if kept:
            done.append(line)
        else:
            part.append(line)
    return "\n".join(done)


def _filled(part: list[str], width: int) -> str:
    item = _ITEM.match(part[0])
    indent = " " * len(item[0]) if item else ""
    return textwrap.fill(
        " ".join(line.strip() for line in part), width, subsequent_indent=indent,
        initial_indent=" " * (len(part[0]) - len(part[0].lstrip())), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
