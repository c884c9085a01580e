"""Ctrl-C and SIGTERM, which end a command where they find it and are never lost.

SIGTERM has a deadline, as a machine that is taken away gives one: work that keeps its progress is
asked to stop, and does at its next look; what has not stopped shortly before the deadline is ended
where it is, with what it kept before. Python answers a signal between two of its steps only, and a
compilation is one: the time is counted by a thread that the system itself wakes.
"""

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

from jaxbounds.ground import stopping

AGAIN = 0.05
"""Seconds after which an interruption that was dropped comes again."""
DEADLINE = 10.0
"""Seconds that SIGTERM leaves unless told otherwise: as long as `docker stop` waits."""
JOINED = 1.0
"""Seconds that the end of a command waits for its clock; `_Clock` needs far less on a free core. A
larger number lets a stuck clock hold the command up for longer."""
EARLIER = 0.8, 0.95
"""At these parts of it work is interrupted, and the process ended."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_came: list[signal.Signals] = []


class _Clock:
    """From SIGTERM to its deadline, for one command; used in a `with` block."""

    def __init__(self) -> None:
        self.seconds, self.late, self.granted, self.began = DEADLINE, False, False, False
        self.over = threading.Event()

    def __enter__(self) -> "_Clock":
        bell, self._rope = os.pipe()
        os.set_blocking(self._rope, False)
        self._before = signal.set_wakeup_fd(self._rope, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._run, args=(bell,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.over.set()
        signal.set_wakeup_fd(self._before)
        os.close(self._rope)
        # The end of the process must not find the thread between its last look and its last word.
        self._thread.join(JOINED)

    def _run(self, bell: int) -> None:
        try:
            while number := os.read(bell, 1):
                # Asked from here, too: work may look before Python comes to the handler.
                if number[0] == signal.SIGTERM and (stopping.ask() or self.granted):
                    self._count()
        finally:
            os.close(bell)

    def _count(self) -> None:
        self.began = True
        first, last = (part * self.seconds for part in EARLIER)
        if self.over.wait(first):
            return
        self.late = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        if not self.over.wait(last - first):  # it is inside of a call that is not Python's
            words = f"no checkpoint within {self.seconds:g} s of SIGTERM; --resume goes on from"
            print(f"jaxbounds: {words} what was kept before", file=sys.stderr, flush=True)
            os._exit(130)


_clock = _Clock()


def grant(seconds: float, /) -> None:
    """Say how long SIGTERM leaves whatever is done, until the `interruptible` block ends."""
    _clock.seconds, _clock.granted = seconds, True


def _take(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGTERM and not _clock.late and stopping.ask():
        return
    _came.append(signal.Signals(number))
    raise KeyboardInterrupt(_came[-1].name)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let both signals raise KeyboardInterrupt during a `with` block.

    SIGTERM does so later, within its deadline, where work listens (`jaxbounds.ground.stopping`).
    Python drops exceptions that arise while it collects garbage: what was dropped comes again. Only
    the main thread can take signals; in another one nothing changes.
    """
    global _clock
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _came.clear()
    stopping.forget()
    before = {one: signal.signal(one, _take) for one in _SIGNALS}
    usual = sys.unraisablehook

    def come_again(dropped: Any) -> None:
        if not (_came and isinstance(dropped.exc_value, KeyboardInterrupt)):
            usual(dropped)
            return
        threading.Thread(target=later, args=(_came[-1],), daemon=True).start()

    def later(number: signal.Signals) -> None:
        if not _clock.over.wait(AGAIN):
            _thread.interrupt_main(number)

    sys.unraisablehook = come_again
    try:
        with _Clock() as _clock:
            yield
    finally:
        sys.unraisablehook = usual
        for one, handler in before.items():
            signal.signal(one, handler)
        _came.clear()


def came() -> bool:
    """Whether there was a signal in this `interruptible` block."""
    return bool(_came) or _clock.began


def leave(status: int, /) -> NoReturn:
    """End this process now, with what was printed.

    Python would first wait for threads and take JAX's objects apart one by one: seconds, of which
    a deadline knows nothing.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def look() -> None:
    """Raise what may have been dropped.

    Raises:
        KeyboardInterrupt: if there was a signal.
    """
    if _came:
        raise KeyboardInterrupt(_came[-1].name)
