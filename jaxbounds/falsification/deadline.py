"""A time limit for a statement, which the engine checks between two batches of instances."""

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator
from typing import Any

from jaxbounds.ground.exceptions import Refused

TIMEOUT = 600.0
"""Seconds of the default limit for a statement; a larger value lets a slow statement delay the
others for longer."""
GRACE = 0.25
"""Time for the final decision after the limit has passed, as a share of the limit. If the share is
larger, the next statement may start later.
"""
LEAST_GRACE = 5.0
"""Seconds that the final decision may always take after the limit; a larger value delays other
statements.
"""

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
    """Check the time limit.

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
