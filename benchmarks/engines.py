"""What an engine costs: 200 pieces of one second on two workers, against processes.

    python benchmarks/engines.py processes
    python benchmarks/engines.py slurm:local
    python benchmarks/engines.py dask            # starts a scheduler and two workers of its own

A piece waits for a second, so that what is measured is the engine: how long it takes to start, to
hand out pieces and to bring results home.
"""

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import tyro

from jaxbounds.runs.driver import each
from jaxbounds.runs.engines import Engine, opened


def wait(piece: tuple[int, float]) -> int:
    time.sleep(piece[1])
    return piece[0]


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[str]:
    """The address of a Dask scheduler with so many workers of one thread."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    host, port = address.split(":")
    commands = [[*dask, "--host", host, "--port", port, "--no-dashboard"]]
    commands += [[*worker, "--nthreads", "1", "--no-dashboard"]] * workers
    running = [subprocess.Popen(command, **quiet) for command in commands]
    try:
        yield f"dask://{address}"
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


def main(engine: str, /, *, pieces: int = 200, seconds: float = 1.0, workers: int = 2) -> None:
    """Print how long it took and how much more than the pieces themselves."""
    with contextlib.ExitStack() as closing:
        out = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        if engine == "dask":
            engine = closing.enter_context(cluster(workers))
            time.sleep(10)  # a cluster of somebody's is up
        started, first = time.perf_counter(), 0.0
        on = Engine(engine=engine, array=workers)
        executor = closing.enter_context(opened(on, count=workers, folder=out))
        found = []
        for _, number in each(executor, wait, [(i, seconds) for i in range(pieces)]):
            first = first or time.perf_counter() - started
            found.append(number)
        took, least = time.perf_counter() - started, pieces * seconds / workers
    assert sorted(found) == list(range(pieces))
    print(
        f"{engine.split(':')[0]}: {pieces} pieces of {seconds:g} s on {workers} workers: "
        f"{took:.1f} s, {100 * (took / least - 1):.1f}% above {least:g} s; "
        f"the first after {first:.1f} s"
    )


if __name__ == "__main__":
    tyro.cli(main)
