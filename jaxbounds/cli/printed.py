"""A cache of the output of `list`, `show` and `errata`; it is valid until the library changes.

Without the cache, each of these commands would load JAX, which takes a second or two.
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

from jaxbounds.ground.files import whole
from jaxbounds.ground.private import key_of, private, read_signed, signature
from jaxbounds.runs.digest import cache_folder, digest_of

COMMANDS = ("list", "show", "errata")
"""The commands with output that depends only on the source, the arguments and the terminal."""
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
    if arguments[0] not in COMMANDS:
        return False
    return not any(
        word.startswith("--import") or word.endswith(".py") or os.path.exists(word)
        for word in arguments[1:]
    )


def recall(arguments: Sequence[str], /) -> str | None:
    """Return the text that a command with these arguments printed before, or None."""
    if not _is_kept(arguments) or (file := _file(arguments)) is None:
        return None
    content = read_signed(file)  # None for an incomplete or changed file
    return None if content is None else content.decode()


class _Both:
    def __init__(self) -> None:
        self.out, self.copy = sys.stdout, io.StringIO()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.out, name)

    def write(self, text: str, /) -> int:
        self.copy.write(text)
        return self.out.write(text)


@contextlib.contextmanager
def remember(arguments: Sequence[str], /) -> Iterator[None]:
    """Store the text that a `with` block prints, unless it raises; remove outdated texts."""
    if not _is_kept(arguments):
        yield
        return
    both: Any = _Both()
    with contextlib.redirect_stdout(both):
        yield
    file = _file(arguments)
    if file is None:
        return
    # Without a cache, or if UTF-8 cannot encode the text, the command runs each time.
    with contextlib.suppress(OSError, UnicodeEncodeError):
        for other in file.parent.parent.glob("*"):
            if other != file.parent:
                shutil.rmtree(other, ignore_errors=True)
        content = both.copy.getvalue().encode()
        if (key := key_of(file.parent)) is not None:
            with whole(file, lasting=False) as out:
                out.write(signature(key, file, content) + content)
