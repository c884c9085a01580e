"""A time limit for a statement, which the engine checks between two batches of instances."""

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator
from typing import Any

from jaxbounds.ground.exceptions import Refused

TIMEOUT = 600.0
"""Default time limit for a statement, in seconds. A larger value gives a slow statement more time.
"""
GRACE = 0.25
"""Time for the final decision after the limit has passed, as a share of the limit. A larger share
delays the next statement."""
LEAST_GRACE = 5.0
"""Seconds that the final decision may always take after the limit. A larger value delays the next
statement."""

_ends: contextvars.ContextVar[float | None] = contextvars.ContextVar("ends", default=None)


class OutOfTime(Exception):
    """Signals that a statement exceeds its time limit."""


@contextlib.contextmanager
def limited(seconds: float | None, /) -> Iterator[None]:
    """Let `look()` raise `OutOfTime` after a time limit, in a `with` block; None is no limit."""
    token = _ends.set(None if seconds is None else time.perf_counter() + seconds)
    try:
        yield
    finally:
        _ends.reset(token)


def is_limited() -> bool:
    """Return whether a time limit is set."""
    return _ends.get() is not None


def look() -> None:
    """Raise if the statement's time is over.

    Raises:
        OutOfTime: if the time limit of the statement has passed.
    """
    ends = _ends.get()
    if ends is not None and time.perf_counter() > ends:
        raise OutOfTime


def looking(run: Callable[..., Any], /) -> Callable[..., Any]:
    """Wrap a function, so that it checks the time limit before each call."""

    def looked(*given: Any) -> Any:
        look()
        return run(*given)

    return looked


def refuse_other_limits(seconds: float, /) -> None:
    """Refuse a time limit that is not a positive number.

    Raises:
        Refused: if `seconds` is not a positive number; the message names the limit.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise Refused(
            f"timeout={seconds!r}: expected a positive number of seconds. Try {TIMEOUT:g}"
        )
