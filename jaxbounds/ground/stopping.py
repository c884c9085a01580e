"""Ask a long computation to stop; the computation then saves its results and ends."""

import contextlib
from collections.abc import Iterator
from typing import NoReturn

_listening = 0
_asked = False


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Declare that the code in a `with` block listens for requests to stop.

    The code often calls `asked`. After a request, the code saves its results and calls `answer`.
    """
    global _listening
    _listening += 1
    try:
        yield
    finally:
        _listening -= 1


def ask() -> bool:
    """Ask the running computation to stop; return False if no computation listens for requests."""
    global _asked
    _asked = _asked or _listening > 0
    return _listening > 0


def asked() -> bool:
    """Tell whether a caller asked the running computation to stop."""
    return _asked


def forget() -> None:
    """Cancel the request to stop."""
    global _asked
    _asked = False


class Stopped(KeyboardInterrupt):
    """Raised when the running computation stops because a caller asked for the stop."""


def answer() -> NoReturn:
    """Raise `Stopped`, to end a computation that has saved all its results.

    Raises:
        Stopped: always.
    """
    forget()
    raise Stopped("all results computed before the stop are saved")
