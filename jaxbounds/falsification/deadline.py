"""A limit of time for a statement, looked at between two batches of instances."""

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator
from typing import Any

from jaxbounds.ground.exceptions import Refused

TIMEOUT = 600.0
"""Seconds that a statement may take unless a caller says otherwise; a larger value lets slow
statements hold up the others for longer."""
GRACE = 0.25
"""Share of the limit that the decision may take after the limit, at least `LEAST_GRACE` seconds. A
larger value delays the next statement.
"""
LEAST_GRACE = 5.0
"""Seconds that a decision may take after the limit, at least; a larger value delays others."""

_ends: contextvars.ContextVar[float | None] = contextvars.ContextVar("ends", default=None)


class OutOfTime(Exception):
    """A statement took longer than it may."""


@contextlib.contextmanager
def limited(seconds: float | None, /) -> Iterator[None]:
    """Let `look` raise in a `with` block once the seconds are over; None sets no limit."""
    token = _ends.set(None if seconds is None else time.perf_counter() + seconds)
    try:
        yield
    finally:
        _ends.reset(token)


def is_limited() -> bool:
    """Tell whether a limit of time is set."""
    return _ends.get() is not None


def look() -> None:
    """Raise once the time is over.

    Raises:
        OutOfTime: if the time is over.
    """
    ends = _ends.get()
    if ends is not None and time.perf_counter() > ends:
        raise OutOfTime


def looking(run: Callable[..., Any], /) -> Callable[..., Any]:
    """Return a function that checks the time before each call."""

    def looked(*given: Any) -> Any:
        look()
        return run(*given)

    return looked


def refuse_other_limits(seconds: float, /) -> None:
    """Refuse a limit that is no positive number.

    Raises:
        Refused: naming the limit.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise Refused(
            f"timeout={seconds!r}: expected a positive number of seconds. Try {TIMEOUT:g}"
        )
