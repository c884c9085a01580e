"""Folders that one run has for itself: a second run waits, or takes a folder beside it.

A lock of the operating system stands behind it, and ends with its process. Object stores, disks
without locks, and Windows have no such lock. Two runs are not kept apart there.
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
"""Seconds between two looks at an occupied folder; `take` waits that long, and a larger number
makes it answer later.
"""


class Held:
    """A folder that this process has for itself until `release`, or until the object is deleted.

    Args:
        path: the folder.
        lock: the descriptor of its locked file; -1 without a lock.
    """

    def __init__(self, path: Path, lock: int = -1) -> None:
        self.path, self._thread = path, threading.get_ident()
        self.release = weakref.finalize(self, _unlock, lock)
        if lock >= 0:
            _held[str(path.absolute())] = self

    def discard(self) -> None:
        """Release the folder, and remove it if it holds only the library's own marks."""
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
"""The folders that this process holds: a thread does not wait for its own folder."""


def _locked(path: Path, settings: str) -> Held | str:
    """Lock the folder, or return its holder's settings; "" where they are not written yet."""
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
    os.close(lock)  # the folder was removed in between
    return ""


def siblings(out: Path, /) -> Iterator[Path]:
    """Yield a folder, and the folders beside it that take its place."""
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
    """Take a folder for this run alone: `out`, or one beside it that is named on standard error.

    A run whose settings are equal is waited for. A folder that another run has, or in which files
    of the user's stand at the names of the run's, is left alone.

    Args:
        out: the folder that was asked for.
        settings: JSON-able settings that decide whether two runs are of one kind.
        names: the names that the run will write.
        look: called while waiting; an exception of it ends that.
        only: refuse instead of taking a folder beside it, as for a run that is continued.

    Raises:
        Refused: if `only` is true and the folder is not free.
        Refused: if a link stands at one of the names.
        OSError: if the folder cannot be made.
    """
    names = tuple(names)
    own = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()
    for place in siblings(out):
        if only and place != out:
            raise Refused(
                f"{out} is not free: something else is at work there, got out={str(out)!r}. "
                "Try another folder"
            )
        waited = False
        while True:
            if strangers := Marked(place).foreign(names):
                say(
                    f"{place} holds files of yours ({', '.join(strangers)}): another folder is used"
                )
                break
            got = _locked(place, own) if fcntl is not None else Held(place)
            if isinstance(got, Held):
                if place != out:
                    say(f"the results go to {place}")
                return got
            if got not in ("", own):
                say(f"{place} is in use by a run with other settings: another folder is used")
                break
            if not waited and got:
                say(f"{place} is in use by a run with equal settings: this one waits for it")
                waited = True
            look()
            time.sleep(LOOK)
    raise AssertionError("there is no last number")
