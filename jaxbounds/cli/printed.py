"""What `list`, `show` and `errata` print, kept until the library changes.

They read declarations only, and yet loading those takes a second or two of JAX.
"""

import contextlib
import hashlib
import io
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jaxbounds.ground.private import private
from jaxbounds.runs.digest import cache_folder, digest_of

COMMANDS = ("list", "show", "errata")
"""Whose output depends on the source, the arguments and the terminal alone."""
_TERMINAL = ("COLUMNS", "LINES", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE")


def _file(arguments: Sequence[str]) -> Path | None:
    place = cache_folder()
    if place is None:
        return None
    size = shutil.get_terminal_size() if sys.stdout.isatty() else None
    terminal = [os.environ.get(name) for name in _TERMINAL]
    about = [list(arguments), size, terminal, sys.stdout.encoding, sys.version]
    name = hashlib.sha256(repr(about).encode()).hexdigest()
    folder = private(place / "jaxbounds-texts" / digest_of(()))
    return folder and folder / f"{name[:32]}.txt"


def _is_kept(arguments: Sequence[str]) -> bool:
    imports = any(word.startswith("--import") for word in arguments)
    return arguments[0] in COMMANDS and not imports


def recall(arguments: Sequence[str], /) -> str | None:
    """What these arguments printed before; None where that is not known, or depends on more."""
    if not _is_kept(arguments) or (file := _file(arguments)) is None:
        return None
    try:
        return file.read_text(encoding="utf8")
    except (OSError, ValueError):
        return None


class _Both:
    """Standard output, and a copy of what goes there."""

    def __init__(self) -> None:
        self.out, self.copy = sys.stdout, io.StringIO()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.out, name)

    def write(self, text: str, /) -> int:
        """To both."""
        self.copy.write(text)
        return self.out.write(text)


@contextlib.contextmanager
def remember(arguments: Sequence[str], /) -> Iterator[None]:
    """Keep what is printed within, unless it ends by an exception; texts of other sources go."""
    if not _is_kept(arguments):
        yield
        return
    both: Any = _Both()
    with contextlib.redirect_stdout(both):
        yield
    file = _file(arguments)
    if file is None:
        return
    with contextlib.suppress(OSError):  # without a place to keep it, it is made each time
        for other in file.parent.parent.glob("*"):
            if other != file.parent:
                shutil.rmtree(other, ignore_errors=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(both.copy.getvalue(), encoding="utf8")
        part.replace(file)
