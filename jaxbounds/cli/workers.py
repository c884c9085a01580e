"""Pieces of work in processes: one that dies costs its own piece, and none outlives its parent."""

import concurrent.futures
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")

WATCH = 0.5
"""Seconds between a worker's looks at whether its parent still lives."""
STALLED = 120
"""Looks in a row at a piece in work that used no processor time: a program that waits for itself
(seen of two batches of eigenvalue problems in one, jaxlib 0.10.2)."""
MEMORY = 2**30
"""Bytes that a process may need: more processes than fit are not started."""


def at_most(wanted: int, /) -> int:
    """How many processes to start: one for each core unless fewer are wanted, and what fits."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    bound = cores or 1
    if "SC_AVPHYS_PAGES" in getattr(os, "sysconf_names", {}):
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        bound = min(bound, max(1, free // MEMORY))
    return min(wanted or bound, bound)


_at_work = threading.Event()


def _end_with(parent: int) -> None:
    still, before = 0, 0.0
    while os.getppid() == parent and still < STALLED:
        time.sleep(WATCH)
        used = time.process_time()
        idle = used - before < 0.01 * WATCH
        still, before = still + 1 if _at_work.is_set() and idle else 0, used
    os._exit(1)


def _watched(work: Callable[[Piece], Result], piece: Piece) -> Result:
    _at_work.set()
    try:
        return work(piece)
    finally:
        _at_work.clear()


def _start(parent: int, initialise: Callable[[], None]) -> None:
    """Ctrl-C reaches every process of a terminal, and the main one ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    initialise()


class Died(Exception):
    """The process that worked on a piece was ended from outside, or waited for nothing."""


class Processes(Generic[Piece, Result]):
    """`work(piece)` for many pieces, each in one of a few processes.

    Args:
        work: a module's function.
        count: how many processes.
        initialise: run once in each.
        look: called now and then while waiting; it may raise.
    """

    def __init__(
        self,
        work: Callable[[Piece], Result],
        count: int,
        initialise: Callable[[], None],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._work, self._count, self._initialise, self._look = work, count, initialise, look

    def _lane(self) -> concurrent.futures.ProcessPoolExecutor:
        return concurrent.futures.ProcessPoolExecutor(
            1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(os.getpid(), self._initialise),
        )

    def __call__(self, pieces: Sequence[Piece]) -> Iterator[tuple[Piece, Result | Died]]:
        """The results as they come, each with its piece."""
        waiting = deque(pieces)
        running: dict[concurrent.futures.Future, tuple[Any, Piece]] = {}

        def give(lane: concurrent.futures.ProcessPoolExecutor) -> None:
            if waiting:
                piece = waiting.popleft()
                running[lane.submit(_watched, self._work, piece)] = lane, piece
            else:
                lane.shutdown()

        try:
            for _ in range(min(self._count, len(waiting))):
                give(self._lane())
            while running:
                done, _ = concurrent.futures.wait(
                    running, WATCH, return_when=concurrent.futures.FIRST_COMPLETED
                )
                self._look()
                for future in done:
                    lane, piece = running.pop(future)
                    result: Result | Died
                    try:
                        result = future.result()
                    except concurrent.futures.process.BrokenProcessPool:
                        result = Died("its process ended (no memory?) or stood still")
                        lane.shutdown(wait=False)
                        lane = self._lane()
                    give(lane)
                    yield piece, result
        finally:
            for lane, _ in running.values():
                lane.shutdown(wait=False, cancel_futures=True)
            if running:  # what is being computed would run on
                for process in multiprocessing.active_children():
                    process.terminate()
