"""Ctrl-C and SIGTERM, which end a command where they find it and are never lost."""

import _thread
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

AGAIN = 0.05
"""Seconds after which an interruption that was dropped comes again."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_came: list[signal.Signals] = []


def _take(number: int, frame: FrameType | None) -> None:
    _came.append(signal.Signals(number))
    raise KeyboardInterrupt(_came[-1].name)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """For the length of a `with` block both signals raise KeyboardInterrupt.

    Python drops exceptions that arise while it collects garbage: what was dropped comes again. Only
    the main thread can take signals; in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _came.clear()
    before = {one: signal.signal(one, _take) for one in _SIGNALS}
    usual, over = sys.unraisablehook, threading.Event()

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
