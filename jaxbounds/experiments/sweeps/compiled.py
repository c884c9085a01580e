"""Compiled programs of sweeps: in one process a second call with equal ones compiles nothing."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

MOST = 24
"""Compiled programs, and sizes of groups, that `kept` holds: three of a sweep. It lets go what was
not used for longest; a larger number takes more memory."""
_programs: OrderedDict[Hashable, Any] = OrderedDict()


def kept(mark: Hashable, name: str, compile_: Callable[[], Any], /) -> Any:
    """The program of a mark and name, compiled if it is not there.

    Args:
        mark: equal for equal programs on equal devices alone; None if that is not known.
        name: which of several programs of the mark.
        compile_: makes it.
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
    """Let all of them go."""
    _programs.clear()
