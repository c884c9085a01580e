"""A request to stop, which long work answers once it has kept what it computed."""

import contextlib
from collections.abc import Iterator
from typing import NoReturn

_listening = 0
_asked = False


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """For the length of a `with` block the work looks at `asked` before long, and answers."""
    global _listening
    _listening += 1
    try:
        yield
    finally:
        _listening -= 1


def ask() -> bool:
    """Ask to stop; whether somebody will look. What nobody looks at is not remembered."""
    global _asked
    _asked = _asked or _listening > 0
    return _listening > 0


def asked() -> bool:
    """Whether the work was asked to stop."""
    return _asked


def forget() -> None:
    """Take back what was asked."""
    global _asked
    _asked = False


class Stopped(KeyboardInterrupt):
    """Work was asked to stop, and did."""


def answer() -> NoReturn:
    """Called by the work when all is kept.

    Raises:
        Stopped: always.
    """
    forget()
    raise Stopped("what was computed is kept")
