"""A request to stop, which long work answers once it has saved its results."""

import contextlib
from collections.abc import Iterator
from typing import NoReturn

_listening = 0
_asked = False


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Declare, for a `with` block, that the work often reads `asked` and then calls `answer`."""
    global _listening
    _listening += 1
    try:
        yield
    finally:
        _listening -= 1


def ask() -> bool:
    """Ask the work to stop, and tell whether any work listens; otherwise drop the request."""
    global _asked
    _asked = _asked or _listening > 0
    return _listening > 0


def asked() -> bool:
    """Tell whether the work was asked to stop."""
    return _asked


def forget() -> None:
    """Take back the request to stop."""
    global _asked
    _asked = False


class Stopped(KeyboardInterrupt):
    """Work was asked to stop, and stopped."""


def answer() -> NoReturn:
    """End the work; the work calls this when all its results are saved.

    Raises:
        Stopped: always.
    """
    forget()
    raise Stopped("all computed results are kept")
