"""Ctrl-C and SIGTERM, which end a command where they find it and are never lost.

SIGTERM has a deadline, as a machine that is taken away gives one: work that keeps its progress is
asked to stop, and does at its next look; what has not stopped shortly before the deadline is ended
where it is, with what it kept before.
"""

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from jaxbounds import stopping

AGAIN = 0.05
"""Seconds after which an interruption that was dropped comes again."""
DEADLINE = 10.0
"""Seconds that SIGTERM leaves unless told otherwise: as long as `docker stop` waits."""
EARLIER = 0.8, 0.95
"""At these parts of it work is interrupted, and the process ended."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_came: list[signal.Signals] = []


class _Clock:
    """From SIGTERM to its deadline, for one command."""

    def __init__(self) -> None:
        self.seconds, self.late, self.granted = DEADLINE, False, False
        self.over, self._thread = threading.Event(), threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Unless it runs."""
        if self._thread.ident is None:
            self._thread.start()

    def _run(self) -> None:
        first, last = (part * self.seconds for part in EARLIER)
        if self.over.wait(first):
            return
        self.late = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        if not self.over.wait(last - first):  # it is inside of a call that is not Python's
            words = f"no checkpoint within {self.seconds:g} s of SIGTERM; the one before is there"
            print(f"jaxbounds: {words}: add --resume", file=sys.stderr, flush=True)
            os._exit(130)


_clock = _Clock()


def grant(seconds: float, /) -> None:
    """Say how long SIGTERM leaves whatever is done, until the `interruptible` block ends."""
    _clock.seconds, _clock.granted = seconds, True


def _take(number: int, frame: FrameType | None) -> None:
    waits = number == signal.SIGTERM and not _clock.late and stopping.ask()
    if waits or (number == signal.SIGTERM and _clock.granted):
        _clock.start()
    if waits:
        return
    _came.append(signal.Signals(number))
    raise KeyboardInterrupt(_came[-1].name)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """For the length of a `with` block both signals raise KeyboardInterrupt.

    SIGTERM does so later, within its deadline, where work listens (`jaxbounds.stopping`).
    Python drops exceptions that arise while it collects garbage: what was dropped comes again. Only
    the main thread can take signals; in another one nothing changes.
    """
    global _clock
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _came.clear()
    stopping.forget()
    _clock = _Clock()
    before = {one: signal.signal(one, _take) for one in _SIGNALS}
    usual, over = sys.unraisablehook, _clock.over

    def come_again(dropped: Any) -> None:
        if not (_came and isinstance(dropped.exc_value, KeyboardInterrupt)):
            usual(dropped)
            return
        threading.Thread(target=later, args=(_came[-1],), daemon=True).start()

    def later(number: signal.Signals) -> None:
        if not over.wait(AGAIN):
            _thread.interrupt_main(number)

    sys.unraisablehook = come_again
    try:
        yield
    finally:
        over.set()
        sys.unraisablehook = usual
        for one, handler in before.items():
            signal.signal(one, handler)
        _came.clear()


def look() -> None:
    """Raise what may have been dropped.

    Raises:
        KeyboardInterrupt: if there was a signal.
    """
    if _came:
        raise KeyboardInterrupt(_came[-1].name)
