"""The driver: it computes independent pieces of work, in this process or on any executor.

A worker must have the versions and the source of this process, so that all numbers come from one
program. If a worker dies, the driver tries each of its pieces once more.
"""

import concurrent.futures
import functools
import pickle
import platform
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jaxbounds.experiments.provenance import versions
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, whole
from jaxbounds.ground.folders import say
from jaxbounds.runs.cache import prepare_jax
from jaxbounds.runs.digest import digest_of
from jaxbounds.runs.engines import HERE, On, in_this_process, opened
from jaxbounds.runs.interruption import look
from jaxbounds.runs.workers import Died, at_most, cannot_start

Piece = TypeVar("Piece")
Result = TypeVar("Result")

AHEAD = 1000
"""The largest number of calls that wait in an executor. A larger number takes more memory and keeps
more workers busy."""
LOOK = 0.5
"""Seconds between two checks for an interruption. A larger number answers Ctrl-C later."""


@functools.cache
def _here() -> dict[str, str]:
    """Prepare this process once, and return its versions and the digest of its source."""
    prepare_jax()
    return versions() | {"source": digest_of(())}


_one_at_a_time = threading.Lock()
"""A lock for the threads of a worker: settings of JAX and caches belong to the whole process."""


def _call(
    expected: Mapping[str, str], work: Callable[[Piece], Result], lot: Sequence[Piece]
) -> list[Result] | Exception:
    """Return the results of some pieces in the worker, or the error that `work` raised.

    The function returns the error as a value, so that it differs from an error of the executor.
    """
    try:
        with _one_at_a_time:
            for name, there in expected.items():
                if _here()[name] != there:
                    raise Refused(
                        f"a worker ({platform.node()}) has {name}={_here()[name][:40]} and this "
                        f"machine has {there[:40]}. Try to install one version on both, and edit "
                        "nothing while they work"
                    )
            return [work(piece) for piece in lot]
    except Exception as problem:
        return problem


def _outcome(future: concurrent.futures.Future) -> Any:
    """Return the results of a lot of pieces, or the `Died` of its worker.

    Raises:
        Refused: if workers cannot run these pieces at all, or the engine is gone.
        Exception: any exception that the work itself raised.
    """
    try:
        outcome = future.result()
    except concurrent.futures.CancelledError:
        raise Refused(
            "the engine went away (its scheduler ended?), and the results so far are kept. Try the "
            "same command again, which continues where it keeps its progress"
        ) from None
    except Died as death:
        return death
    except Exception as problem:
        unloaded = isinstance(problem, (ImportError, AttributeError, pickle.PickleError))
        if unloaded or "deserializ" in str(problem):  # in the words of Dask's scheduler
            words = " ".join(str(problem).split())[:120]
            raise Refused(
                f"a worker cannot load its piece ({words}). Try to install this version of "
                "jaxbounds there, for Dask also where its scheduler runs"
            ) from problem
        return Died(f"its worker ended: {type(problem).__name__} {problem}"[:300])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def each(
    executor: concurrent.futures.Executor,
    work: Callable[[Piece], Result],
    pieces: Iterable[Piece],
    /,
) -> Iterator[tuple[Piece, Result | Died]]:
    """Yield the result of `work(piece)` with each piece, as the results come.

    Args:
        executor: any executor. If it has an attribute `jobs`, the function deals the pieces into
            that many lots.
        work: a function of a module. Each process runs one call at a time, with JAX prepared as for
            the commands.
        pieces: the arguments of the calls, which must be picklable.

    Yields:
        A piece, and its result or `Died`.

    Raises:
        Refused: if a worker has other versions or another source, cannot load its piece, or the
            engine is gone.
        Exception: any exception that the work itself raised.
    """
    pieces = list(pieces)
    lots = min(getattr(executor, "jobs", len(pieces)), len(pieces))
    waiting = deque(pieces[i::lots] for i in range(lots))
    running: dict[concurrent.futures.Future, list[Piece]] = {}
    expected = _here()
    try:
        while waiting or running:
            while waiting and len(running) < AHEAD:
                lot = waiting.popleft()
                running[executor.submit(_call, expected, work, lot)] = lot
            done, _ = concurrent.futures.wait(
                running, LOOK, return_when=concurrent.futures.FIRST_COMPLETED
            )
            look()
            for future in done:
                lot, outcome = running.pop(future), _outcome(future)
                results = [outcome] * len(lot) if isinstance(outcome, Died) else outcome
                yield from zip(lot, results)
    finally:
        for future in running:
            future.cancel()


def drive(
    work: Callable[[Piece], Result],
    pieces: Iterable[Piece],
    /,
    *,
    on: On = HERE,
    jobs: int = 0,
    folder: Place | Path,
    units: int | None = None,
    parts: Callable[[Piece], list[Piece]] = lambda piece: [piece],
) -> Iterator[tuple[Piece, Result | Died]]:
    """Compute `work(piece)` for each piece, in this process or by another engine.

    Args:
        work: a function of a module, or one with fixed arguments.
        pieces: the arguments of the calls, plain values.
        on: an engine, or any executor.
        jobs: the number of processes; 0 means one for each core, as far as the memory allows.
        folder: a folder that all jobs of a queue can read and write.
        units: the number of items in all pieces, for example of statements; the number of pieces
            unless given. This process computes a single item itself.
        parts: cuts a piece whose worker died into smaller pieces, which are tried once more.

    Yields:
        A piece, and its result; `Died` if its worker died twice.

    Raises:
        Refused: in the cases that `each` lists.
        Exception: any exception that the work itself raised.
    """
    pieces = list(pieces)
    alone = in_this_process(on, jobs, len(pieces) if units is None else units)
    if not alone and on == HERE and (reason := cannot_start()):
        say(f"this machine starts no processes ({reason}), so this process computes all pieces")
        alone = True
    if alone:
        prepare_jax()
        for piece in pieces:
            look()
            yield piece, work(piece)
        return
    count = min(at_most(jobs), max(1, len(pieces)))
    with opened(on, count=count, folder=folder) as executor:
        again: list[Piece] = []
        for piece, result in each(executor, work, pieces):
            if isinstance(result, Died):
                again += parts(piece)
            else:
                yield piece, result
        yield from each(executor, work, again)


def packed(folder: Path, /) -> dict[str, bytes]:
    """Return all files below a folder by name, as bytes, for a worker that shares no disk."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def unpack(files: Mapping[str, bytes], folder: Place, /) -> None:
    """Write the files of `packed` into a folder, each file whole or not at all."""
    for name, content in files.items():
        with whole(folder / name) as file:
            file.write(content)
