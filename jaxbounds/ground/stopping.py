"""Ask long work to stop: the work reads the request, saves its results, and then ends."""

import contextlib
from collections.abc import Iterator
from typing import NoReturn

_listening = 0
_asked = False


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Declare that the code in a `with` block often calls `asked`, and calls `answer` if asked."""
    global _listening
    _listening += 1
    try:
        yield
    finally:
        _listening -= 1


def ask() -> bool:
    """Ask the running work to stop; return False, and drop the request, if no work listens."""
    global _asked
    _asked = _asked or _listening > 0
    return _listening > 0


def asked() -> bool:
    """Tell whether someone asked the running work to stop."""
    return _asked


def forget() -> None:
    """Cancel the request to stop."""
    global _asked
    _asked = False


class Stopped(KeyboardInterrupt):
    """The running work stopped because someone asked it to stop."""


def answer() -> NoReturn:
    """End the running work by an exception; the work calls this after it has saved all results.

    Raises:
        Stopped: always.
    """
    forget()
    raise Stopped("all computed results are kept")
