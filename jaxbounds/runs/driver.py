"""Compute pieces of work (arguments of a function's calls) in this process or on any executor.

A worker must have the same versions and source as this process, so that all numbers come from one
program. If a worker process dies, the driver tries each piece of work of this worker once more.
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
"""The largest number of submitted calls that wait in an executor. A larger number of calls takes
more memory, and keeps more workers busy."""
LOOK = 0.5
"""Seconds between two checks for an interruption. The driver reacts to Ctrl-C later if this number
is larger.
"""


@functools.cache
def _here() -> dict[str, str]:
    prepare_jax()
    return versions() | {"source": digest_of(())}


_one_at_a_time = threading.Lock()
"""A lock that lets one thread of a worker compute at a time, because all threads of the process
share JAX's settings and caches."""


def _call(
    expected: Mapping[str, str], work: Callable[[Piece], Result], lot: Sequence[Piece]
) -> list[Result] | Exception:
    """Return the results, or any exception as a value; an executor raises its own errors."""
    try:
        with _one_at_a_time:
            for name, there in expected.items():
                if _here()[name] != there:
                    raise Refused(
                        f"the worker on {platform.node()} has {name}={_here()[name][:40]}, but the "
                        f"main process has {name}={there[:40]}. Try to install one version on both "
                        "machines, and edit no source while the workers run"
                    )
            return [work(piece) for piece in lot]
    except Exception as problem:
        return problem


def _outcome(future: concurrent.futures.Future) -> Any:
    try:
        outcome = future.result()
    except concurrent.futures.CancelledError:
        raise Refused(
            f"the executor cancelled a piece of the run (cancelled={future.cancelled()}), perhaps "
            f"because its scheduler ended. The results so far are kept. Try the same command "
            f"again, which continues a resumable run"
        ) from None
    except Died as death:
        return death
    except Exception as problem:
        unloaded = isinstance(problem, (ImportError, AttributeError, pickle.PickleError))
        if unloaded or "deserializ" in str(problem):  # Dask's scheduler says this
            words = " ".join(str(problem).split())[:120]
            raise Refused(
                f"a worker cannot load the function that it should call, problem={words!r}. Try to "
                "install this version of jaxbounds on each worker, and on Dask's scheduler"
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
    """Yield each piece with the result of `work(piece)`, in the order in which the results arrive.

    The result is `Died` if the worker of the piece died. If the executor has an attribute `jobs`,
    the function divides the pieces into `jobs` groups, and each call computes a group. A Python
    module must define the function `work`, and each piece must be picklable.

    Raises:
        Refused: if a worker has other package versions or another source, or cannot load its piece,
            or if the engine stopped.
        Exception: any exception that the function `work` itself raised.
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
    """Compute `work(piece)` for each piece, in this process or on another engine.

    If the worker of a piece died, the driver tries the smaller pieces `parts(piece)` once. The
    result is `Died` if the worker died again. The engine has `jobs` processes; 0 means one for each
    core, as far as the memory allows. All jobs of a queue must be able to read and write `folder`.
    If `units`, the number of items in all pieces together, is 1, this process does the work itself.

    Raises:
        Refused: in the cases that the function `each` lists under Raises.
        Exception: any exception that the work itself raised.
    """
    pieces = list(pieces)
    alone = in_this_process(on, jobs, len(pieces) if units is None else units)
    if not alone and on == HERE and (reason := cannot_start()):
        say(f"this machine starts no processes ({reason}), so this process does all the work")
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
    """Return a dictionary from the name of each file below a folder to its bytes."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def unpack(files: Mapping[str, bytes], folder: Place, /) -> None:
    """Write files (a dictionary from names to bytes) into a folder, each whole or not at all."""
    for name, content in files.items():
        with whole(folder / name) as file:
            file.write(content)
