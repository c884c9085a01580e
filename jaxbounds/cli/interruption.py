"""Ctrl-C and SIGTERM, which end a command where they find it and are never lost."""

import signal
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """For the length of a `with` block both signals raise KeyboardInterrupt.

    An exception that arises while Python collects garbage is dropped; so loops `look` whether there
    was a signal.
    """

    def __init__(self) -> None:
        self._came: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def _take(self, number: int, frame: FrameType | None) -> None:
        self._came = signal.Signals(number)
        raise KeyboardInterrupt(self._came.name)

    def look(self) -> None:
        """Raise what may have been dropped.

        Raises:
            KeyboardInterrupt: if there was a signal.
        """
        if self._came is not None:
            raise KeyboardInterrupt(self._came.name)

    def __enter__(self) -> "Interruption":
        """Take both signals."""
        for one in (signal.SIGINT, signal.SIGTERM):
            self._before[one] = signal.signal(one, self._take)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give them back."""
        for one, handler in self._before.items():
            signal.signal(one, handler)
