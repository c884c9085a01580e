"""Let Ctrl-C and SIGTERM end a command, and lose no signal.

SIGTERM comes with a deadline, because a preempted machine disappears soon. The signal handler sets
a request to stop; work that stores its progress checks for this request, and then stops. Shortly
before the deadline the process ends; the progress on disk stays. Python runs a signal handler only
between two of its own steps, and a long compilation is one step. A separate thread therefore
watches the deadline.
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
"""If Python swallowed the exception of an interruption, the library raises the exception again
after this many seconds. If this number is larger, the library reacts to an interruption later."""
DEADLINE = 10.0
"""The default seconds between SIGTERM and the deadline; `docker stop` waits equally long. If this
number is larger, there is more time for a checkpoint, but the checkpoint is lost if the machine
stops earlier."""
JOINED = 1.0
"""Seconds that the end of a command waits for the thread of `_Clock`. A thread that is not stuck
ends far sooner. If this number is larger, a stuck thread may delay the end of the command for
longer."""
EARLIER = 0.8, 0.95
"""Two fractions of the time between SIGTERM and the deadline. After the first fraction of this
time, the library interrupts the work. After the second fraction, the library ends the process.
Larger fractions let the work continue for longer, and leave less time to end the process."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_came: list[signal.Signals] = []


class _Clock:
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
        # The process must not end while the thread prints its message.
        self._thread.join(JOINED)

    def _run(self, bell: int) -> None:
        try:
            while number := os.read(bell, 1):
                # The thread asks too, since work may check for requests before Python calls the
                # handler.
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
        if not self.over.wait(last - first):  # the main thread is inside of compiled code
            words = f"no checkpoint within {self.seconds:g} s of SIGTERM; --resume continues from"
            print(f"jaxbounds: {words} the one before", file=sys.stderr, flush=True)
            os._exit(130)


_clock = _Clock()


def grant(seconds: float, /) -> None:
    """Set the time from SIGTERM to the deadline, for the present `interruptible` block."""
    _clock.seconds, _clock.granted = seconds, True


def _take(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGTERM and not _clock.late and stopping.ask():
        return
    _came.append(signal.Signals(number))
    raise KeyboardInterrupt(_came[-1].name)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt during a `with` block.

    If work checks for requests to stop (`jaxbounds.ground.stopping`), SIGTERM raises the exception
    later, within the deadline. If Python drops a KeyboardInterrupt during garbage collection, the
    library raises the exception again. Only the main thread receives signals; in another thread the
    block changes nothing.
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
    """Return whether Ctrl-C or SIGTERM arrived during this `interruptible` block."""
    return bool(_came) or _clock.began


def leave(status: int, /) -> NoReturn:
    """End this process at once, after its output is printed.

    At a normal exit Python waits for threads and destroys JAX's objects one by one, which takes
    seconds and may exceed the deadline.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def look() -> None:
    """Raise KeyboardInterrupt again if Python dropped the exception.

    Raises:
        KeyboardInterrupt: if Ctrl-C or SIGTERM arrived.
    """
    if _came:
        raise KeyboardInterrupt(_came[-1].name)
