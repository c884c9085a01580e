"""Keep compiled programs of sweeps, so that a second call with equal programs compiles nothing."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

MOST = 32
"""The largest number of entries (programs, shapes and group sizes) that `kept` stores. One sweep
stores four entries.

`kept` drops the entry that was unused for longest. A store with more entries takes more memory.
"""
_programs: OrderedDict[Hashable, Any] = OrderedDict()


def kept(mark: Hashable, name: str, compile_: Callable[[], Any], /) -> Any:
    """Return the stored program with a mark and name; compile the program if it is absent.

    The mark is a text that only equal programs on equal devices share. For the mark None, the
    function always compiles.
    """
    if mark is None:
        return compile_()
    place = mark, name
    if place not in _programs:
        _programs[place] = compile_()
        while len(_programs) > MOST:
            _programs.popitem(last=False)
    _programs.move_to_end(place)
    return _programs[place]


def forget() -> None:
    """Drop all compiled programs of sweeps from memory."""
    _programs.clear()
