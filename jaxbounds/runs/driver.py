"""The one driver: independent pieces of work, in this process or on any executor.

Whoever computes a piece must have the versions and the source that were asked for, so that the
numbers are those of one machine. A worker that dies costs the pieces it had, and each of these is
tried once more.
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
"""Calls that an executor is given at once."""
LOOK = 0.5
"""Seconds between two looks for an interruption."""


@functools.cache
def _here() -> dict[str, str]:
    """Prepare this process, once, and say what it computes with."""
    prepare_jax()
    return versions() | {"source": digest_of(())}


_one_at_a_time = threading.Lock()
"""A worker may have several threads; settings of JAX and caches are those of its process."""


def _call(
    expected: Mapping[str, str], work: Callable[[Piece], Result], lot: Sequence[Piece]
) -> list[Result] | Exception:
    """Return the results of some pieces in the worker, or the error that `work` raised.

    The error is a value, so that it differs from the executor's own troubles.
    """
    try:
        with _one_at_a_time:
            for name, there in expected.items():
                if _here()[name] != there:
                    raise Refused(
                        f"a worker ({platform.node()}) has {name} {_here()[name][:40]} and this "
                        f"machine {there[:40]}: install the same on both, and edit nothing while "
                        "they work"
                    )
            return [work(piece) for piece in lot]
    except Exception as problem:
        return problem


def _outcome(future: concurrent.futures.Future) -> Any:
    """Return the results of a lot of pieces, or the reason why they are missing.

    Raises:
        Refused: if workers cannot run these pieces at all, or the engine is gone.
        Exception: what the work itself raised.
    """
    try:
        outcome = future.result()
    except concurrent.futures.CancelledError:
        raise Refused(
            "the engine went away (its scheduler ended?): what was done is kept; the same command "
            "continues where it keeps its progress"
        ) from None
    except Died as death:
        return death
    except Exception as problem:
        unloaded = isinstance(problem, (ImportError, AttributeError, pickle.PickleError))
        if unloaded or "deserializ" in str(problem):  # as Dask's scheduler says it
            words = " ".join(str(problem).split())[:120]
            raise Refused(
                f"a piece cannot be loaded where it should be computed ({words}): install the same "
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
        executor: of any kind. One with a number `jobs` gets the pieces in so many lots.
        work: a module's function; called one at a time in each process, with JAX prepared as the
            commands do.
        pieces: that can be pickled.

    Yields:
        A piece, and its result or `Died`.

    Raises:
        Refused: if a worker has other versions or another source, cannot load its piece, or the
            engine is gone.
        Exception: what the work itself raised.
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
        work: a module's function, or one with fixed arguments.
        pieces: plain values.
        on: an engine, or any executor.
        jobs: processes, where it is those; 0 means one for each core, and what memory allows.
        folder: that all see, for the jobs of a queue.
        units: how many things the pieces hold; as many as there are pieces unless given. A single
            one is worked on here.
        parts: what a piece whose worker died is cut into before it is tried once more.

    Yields:
        A piece, and its result; `Died` where its worker died twice.

    Raises:
        Refused: as `each`.
        Exception: what the work itself raised.
    """
    pieces = list(pieces)
    alone = in_this_process(on, jobs, len(pieces) if units is None else units)
    if not alone and on == HERE and (reason := cannot_start()):
        say(f"this machine starts no processes ({reason}): all is computed in this one")
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
    """Return all files below a folder by name, for a worker that shares no disk with us."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def unpack(files: Mapping[str, bytes], folder: Place, /) -> None:
    """Write what `packed` took, each file whole or not at all."""
    for name, content in files.items():
        with whole(folder / name) as file:
            file.write(content)
