"""Define an executor of processes. If a process dies, only the call that it was computing is lost.

No process of the executor outlives the main process.
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from jaxbounds.runs.threads import collect_rarely, one_thread


class Died(Exception):
    """The process that computed a piece of work was killed, exited, or hung."""


WATCH = 0.5
"""Seconds between a worker's checks that its parent is still alive. If this number is larger, a
worker without a parent ends later."""
STALLED = 120
"""A worker ends after this many checks in a row in which it used no processor time. A worker that
uses no processor time in all these checks is deadlocked (seen with jaxlib 0.10.2). If this number
is larger, a run waits longer for a deadlocked worker.
"""
MEMORY = 2**30
"""Bytes of memory that a process may need. A run starts only as many processes as fit into the
memory. A larger number of bytes makes a run start fewer processes on a small machine."""


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


CGROUP = Path("/sys/fs/cgroup")
"""The folder in which Linux states the memory and processor limits of a container."""


def _number(file: Path, key: str = "") -> int | None:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        text = file.read_text()
        words = (line.split() for line in text.splitlines())
        return int(next(w[1] for w in words if w[0] == key) if key else text)
    return None


def _left_in_container() -> int | None:
    """Return the bytes that a container may still use, counting its page cache as free."""
    for limit, used, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ):
        most, now = _number(CGROUP / limit), _number(CGROUP / used)
        if most is not None and now is not None:
            return most - now + (_number((CGROUP / limit).parent / "memory.stat", cache) or 0)
    return None


def available() -> int:
    """Return the bytes that processes may use under the limits of the machine and the container."""
    left = _left_in_container()
    free = int(psutil.virtual_memory().available)
    return free if left is None else min(free, left)


def at_most(wanted: int, /) -> int:
    """Return the number of processes that cores and memory allow.

    If `wanted` is positive, the number is at most `wanted`.
    """
    bound = min(_cores(), max(1, available() // MEMORY))
    return min(wanted or bound, bound)


_at_work = threading.Event()
_begun = 0
"""The number of pieces of work that this process has started to compute."""


def end_with(parent: int, /, scratch: str = "") -> None:
    """End this process when the process `parent` is gone, or when its work hangs.

    The folder `scratch` of temporary files is removed when the parent is gone.
    """
    still, before, piece = 0, 0.0, _begun
    while os.getppid() == parent and still < STALLED:
        time.sleep(WATCH)
        used = time.process_time()
        idle = used - before < 0.01 * WATCH
        same = _at_work.is_set() and piece == _begun
        still, before, piece = still + 1 if same and idle else 0, used, _begun
    if scratch and os.getppid() != parent:
        shutil.rmtree(scratch, ignore_errors=True)
    os._exit(1)


def _watched(work: Callable, args: tuple, kwargs: dict) -> Any:
    global _begun
    _begun += 1
    _at_work.set()
    try:
        return work(*args, **kwargs)
    finally:
        _at_work.clear()


HALF_WRITTEN = "Error reading persistent compilation cache entry"
"""The first words of JAX's warning about a compiled program that another worker is still writing.
After this warning JAX compiles the program itself, so a worker does not print the warning.
"""


def _silence_libraries() -> None:
    """Keep what Python prints, and drop what compiled libraries write to standard output.

    LAPACK writes a line about each matrix that is not finite, and this line would be printed
    between the verdicts.
    """
    with contextlib.suppress(OSError, ValueError):  # standard output may be closed
        sys.stdout.flush()
        sys.stdout = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf8", errors="replace")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def _start(parent: int, threads: int, scratch: str) -> None:
    """Set up a worker; it ignores Ctrl-C, since the main process ends its workers.

    The environment variable NPROC limits the threads of XLA. A killed process cannot remove its
    temporary files, so the main process removes the folder `scratch`.
    """
    _silence_libraries()
    tempfile.tempdir = os.environ["TMPDIR"] = scratch
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.filterwarnings("ignore", HALF_WRITTEN)
    os.environ.setdefault("NPROC", str(threads))
    one_thread()
    collect_rarely()
    threading.Thread(target=end_with, args=(parent, scratch), daemon=True).start()


def cannot_start() -> str:
    """Return the reason why this machine cannot start processes that share locks.

    The text is empty if the machine can start such processes.
    """
    try:
        multiprocessing.get_context("spawn").Lock()
    except (OSError, ImportError) as problem:  # /dev/shm is full or read-only, or there is none
        return str(problem)
    return ""


_starting = threading.Lock()


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide the running script from new processes, which would needlessly execute it again."""
    with _starting:
        main = vars(sys.modules["__main__"])
        hidden: dict[str, Any] = {
            name: main[name] for name in ("__file__", "__spec__") if name in main
        }
        main.pop("__file__", None)
        main["__spec__"] = None
        try:
            yield
        finally:
            main.update(hidden)


class _Lane(threading.local):
    """The worker process to which a thread of the executor sends its calls."""

    pool: concurrent.futures.ProcessPoolExecutor | None = None


class Processes(concurrent.futures.Executor):
    """An executor that calls functions of modules in a few processes.

    If a process is killed or hangs, its call raises `Died`, and the next call starts a new process.
    """

    def __init__(self, count: int) -> None:
        self._threads = concurrent.futures.ThreadPoolExecutor(count)
        self._lane, self._alive = _Lane(), dict[concurrent.futures.ProcessPoolExecutor, int]()
        self._over, self._share = False, max(1, _cores() // count)
        self._scratch = tempfile.mkdtemp(prefix="jaxbounds-")

    def _started(self) -> concurrent.futures.ProcessPoolExecutor:
        if self._lane.pool is None:
            pool = self._lane.pool = concurrent.futures.ProcessPoolExecutor(
                1,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_start,
                initargs=(os.getpid(), self._share, self._scratch),
            )
            with _without_main():
                self._alive[pool] = pool.submit(os.getpid).result()
            if self._over:
                os.kill(self._alive[pool], signal.SIGTERM)
        return self._lane.pool

    def _in_a_process(self, work: Callable, args: tuple, kwargs: dict) -> Any:
        try:
            if self._over:
                raise concurrent.futures.BrokenExecutor
            return self._started().submit(_watched, work, args, kwargs).result()
        except concurrent.futures.BrokenExecutor:
            if self._lane.pool is not None:
                self._alive.pop(self._lane.pool, None)
                self._lane.pool.shutdown(wait=False)
                self._lane.pool = None
            raise Died(
                "its process ended (perhaps for lack of memory) or did not respond"
            ) from None

    def submit(self, work: Callable, /, *args: Any, **kwargs: Any) -> concurrent.futures.Future:
        """Submit a call, and return its future."""
        return self._threads.submit(self._in_a_process, work, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the executor: wait for running calls, or kill their processes if `wait` is False."""
        self._over = not wait
        if not wait:
            for process in list(self._alive.values()):
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGTERM)
        self._threads.shutdown(wait, cancel_futures=cancel_futures or not wait)
        for pool in list(self._alive):
            pool.shutdown(wait)
        for _ in range(20):  # a process that was just killed may still write
            shutil.rmtree(self._scratch, ignore_errors=True)
            if not os.path.exists(self._scratch):
                break
            time.sleep(0.05)
