"""A request to stop, which long work answers once it has kept its results."""

import contextlib
from collections.abc import Iterator
from typing import NoReturn

_listening = 0
_asked = False


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Declare, for a `with` block, that the work looks at `asked` soon, and answers."""
    global _listening
    _listening += 1
    try:
        yield
    finally:
        _listening -= 1


def ask() -> bool:
    """Ask to stop, and tell whether work listens; a request without a listener is dropped."""
    global _asked
    _asked = _asked or _listening > 0
    return _listening > 0


def asked() -> bool:
    """Tell whether the work was asked to stop."""
    return _asked


def forget() -> None:
    """Take back the request."""
    global _asked
    _asked = False


class Stopped(KeyboardInterrupt):
    """Work was asked to stop, and stopped."""


def answer() -> NoReturn:
    """End the work, called when all its results are kept.

    Raises:
        Stopped: always.
    """
    forget()
    raise Stopped("what was computed is kept")
