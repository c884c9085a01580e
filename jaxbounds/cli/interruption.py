"""Ctrl-C and SIGTERM, which end a command where they find it and are never lost."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_came: list[signal.Signals] = []


def _take(number: int, frame: FrameType | None) -> None:
    _came.append(signal.Signals(number))
    raise KeyboardInterrupt(_came[-1].name)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """For the length of a `with` block both signals raise KeyboardInterrupt.

    Python drops exceptions that arise while it collects garbage; so loops `look` whether there was
    a signal. Only the main thread can take signals; in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _came.clear()
    before = {one: signal.signal(one, _take) for one in _SIGNALS}
    try:
        yield
    finally:
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
