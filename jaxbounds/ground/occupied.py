"""Reserve a folder for one run: a second run waits, or takes another folder beside the first.

The run holds a file lock of the operating system. The lock ends with the run's process. Object
stores, some disks, and Windows have no file lock of this kind. Without a lock, two runs may write
into one folder.
"""

import contextlib
import hashlib
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.folders import MARK, Marked, refuse_links, say

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

LOCK = ".jaxbounds-lock"
LOOK = 0.1
"""The seconds that `take` waits between two looks at an occupied folder.

A larger number makes `take` notice a free folder later.
"""


class Held:
    """A folder that this process holds until a call of `release` or the object's deletion."""

    def __init__(self, path: Path, lock: int = -1) -> None:
        self.path, self._thread = path, threading.get_ident()
        self.release = weakref.finalize(self, _unlock, lock)
        if lock >= 0:
            _held[str(path.absolute())] = self

    def discard(self) -> None:
        """Release the folder, and remove it if it holds only the library's own marker files."""
        self.release()
        with contextlib.suppress(OSError):
            if {part.name for part in self.path.iterdir()} <= {LOCK, MARK}:
                for name in (LOCK, MARK):
                    (self.path / name).unlink(missing_ok=True)
                self.path.rmdir()


def _unlock(lock: int) -> None:
    if lock >= 0:
        with contextlib.suppress(OSError):
            os.ftruncate(lock, 0)
        os.close(lock)


_held: weakref.WeakValueDictionary[str, Held] = weakref.WeakValueDictionary()
"""The folders that this process holds. A thread does not wait for a folder that it holds itself."""


def _locked(path: Path, settings: str) -> Held | str:
    """Lock a folder; if another run holds it, return that run's settings, or "" if unknown."""
    mine = _held.get(str(path.absolute()))
    if mine is not None and mine._thread == threading.get_ident():
        mine.release()
    path.mkdir(parents=True, exist_ok=True)
    refuse_links(path, LOCK)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    lock = os.open(path / LOCK, flags, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        said = os.read(lock, 200).decode("utf8", "replace")
        os.close(lock)
        return said
    except OSError:  # a disk without locks
        os.close(lock)
        return Held(path)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(lock), os.stat(path / LOCK)):
            os.ftruncate(lock, 0)
            os.write(lock, settings.encode())
            return Held(path, lock)
    os.close(lock)  # another process removed the folder meanwhile
    return ""


def siblings(out: Path, /) -> Iterator[Path]:
    """Yield a folder, then folders beside it, for a run that finds the earlier folders occupied."""
    yield out
    for number in range(2, 10**6):
        yield out.with_name(f"{out.name}-{number}")


def take(
    out: Path,
    settings: Any,
    names: Iterable[str] = (),
    /,
    *,
    look: Callable[[], None] = lambda: None,
    only: bool = False,
) -> Held:
    """Reserve a folder for this run alone: `out`, or a folder beside `out`.

    A message on standard error names the folder if it is not `out`. If a run with equal settings
    holds a folder, this run waits until the folder is free. The function skips a folder that a run
    with other settings holds, or in which a user's file has one of the `names` that the run will
    write.

    A waiting run calls `look` repeatedly; an exception of `look` ends the wait. If `only` is true,
    as a continued run needs, the function reserves no folder except `out`.

    Raises:
        Refused: if `only` is true and the folder is not free, or if a symbolic link has a name in
            `names`.
        OSError: if the run's folder cannot be made.
    """
    names = tuple(names)
    own = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()
    for place in siblings(out):
        if only and place != out:
            raise Refused(
                f"out={str(out)!r} is not free: another run uses the folder, or files of yours "
                "have the names of a run's files. Try another folder"
            )
        waited = False
        while True:
            if strangers := Marked(place).foreign(names):
                say(
                    f"{place} holds files of yours ({', '.join(strangers)}), so the run uses "
                    "another folder"
                )
                break
            got = _locked(place, own) if fcntl is not None else Held(place)
            if isinstance(got, Held):
                if place != out:
                    say(f"the results go to {place}")
                return got
            if got not in ("", own):
                say(f"a run with other settings uses {place}, so this run uses another folder")
                break
            if not waited and got:
                say(f"a run with equal settings uses {place}, so this run waits until it ends")
                waited = True
            look()
            time.sleep(LOOK)
    raise AssertionError(
        f"out={out} and a million folders beside it are not free. Try another folder"
    )
