"""Engines compute pieces of work in other processes, perhaps on other machines."""

import concurrent.futures
import contextlib
import importlib.util
import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place
from jaxbounds.ground.folders import say
from jaxbounds.runs.jobs import Jobs
from jaxbounds.runs.workers import Processes

ANSWER = 10
"""Seconds within which a Dask scheduler must answer. A larger number of seconds allows for a slower
scheduler."""
KINDS = "processes, dask://HOST:PORT or slurm"


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The engine that computes pieces of work.

    Attributes:
        engine: the place of the computation: "processes" of this machine; "dask://HOST:PORT", a
            Dask scheduler; "slurm", an array of SLURM jobs; or "slurm:local". For a test,
            "slurm:local" runs the jobs as processes of this machine.
        partition: the partition of SLURM in which the jobs run.
        time: the time limit of a SLURM job, in minutes.
        array: the number of SLURM jobs, among which the pieces of work are divided.
    """

    engine: str = "processes"
    partition: str = ""
    time: int = 60
    array: int = 16

    def check(self) -> None:
        """Refuse an unknown engine, or a number that is not positive.

        Raises:
            Refused: if the engine is unknown, or `time` or `array` is not positive.
        """
        if self.engine not in ("processes", "slurm", "slurm:local") and not (
            self.engine.startswith("dask://") and self.engine.count(":") > 1
        ):
            raise Refused(
                f"engine={self.engine!r}, expected {KINDS} (from Python also an Executor). Try "
                "--engine processes"
            )
        if min(self.time, self.array) < 1:
            raise Refused(
                f"time={self.time}, array={self.array}, expected positive numbers of minutes and "
                f"jobs. Try --time 60 --array 4"
            )


HERE = Engine()
"""The default engine: processes of this machine."""
On = Annotated[
    Engine | concurrent.futures.Executor,
    tyro.conf.arg(constructor=Engine),
    tyro.conf.OmitArgPrefixes,
]
"""The engine of a run. The options of a command describe an `Engine`; Python code may also pass any
executor."""


Where = str | Engine | concurrent.futures.Executor
"""The type of the argument `on`: the name of an engine, an `Engine`, or an executor."""


def engine_of(on: Where | None, /) -> On:
    """Return the engine that `on=` names, or the executor itself; None means local processes.

    Raises:
        Refused: if the engine is unknown, or the executor forks this process, because a fork lacks
            the threads of JAX.
    """
    if on is None:
        return HERE
    if isinstance(on, str):
        on = Engine(engine=on)
    if isinstance(on, Engine):
        on.check()
    elif not isinstance(on, concurrent.futures.Executor):
        raise Refused(
            f"on={on!r}, expected {KINDS}, or any concurrent.futures.Executor. Try on='processes'"
        )
    context = getattr(on, "_mp_context", None)
    if context is not None and context.get_start_method() == "fork":
        raise Refused(
            f"on={on!r:.60} forks this process, and a fork hangs with JAX. Try "
            "ProcessPoolExecutor(n, mp_context=multiprocessing.get_context('spawn'))"
        )
    return on


def in_this_process(on: On, jobs: int, pieces: int, /) -> bool:
    """Return whether this process does all work: the work has one piece, or the user gave jobs=1.

    If the memory suffices for one process only, a child process still does the work, so that the
    child's death does not end the run.
    """
    return on == HERE and (jobs == 1 or pieces == 1)


def _needs(package: str, extra: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise Refused(
            f"the engine needs {package=}, which is not installed. Try pip install "
            f"'jaxbounds[{extra}]'"
        )


def _dask(address: str, closing: contextlib.ExitStack) -> Any:
    _needs("distributed", "dask")
    from distributed import Client

    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # our error replaces its log
    host = address.removeprefix("dask://")
    try:
        client = closing.enter_context(
            Client(f"tcp://{host}", timeout=ANSWER, set_as_default=False)
        )
    except (OSError, ValueError) as problem:
        raise Refused(
            f"no Dask scheduler answered at {address} within {ANSWER} s, got engine={address!r}. "
            "Try to start a scheduler with `dask scheduler`, and workers with `dask worker "
            "HOST:PORT --nthreads 1`"
        ) from problem
    if not client.scheduler_info()["workers"]:
        say(f"the scheduler {address} has no workers yet; the run waits for a worker")
    return client.get_executor(pure=False)


def _queue(on: Engine, folder: Place) -> Jobs:
    _needs("submitit", "slurm")
    cluster = "local" if on.engine == "slurm:local" else "slurm"
    if "://" in str(folder):
        raise Refused(
            f"out={str(folder)!r} is a URL, but --engine slurm needs a folder that all jobs "
            "can read. Try --out with a folder on a shared disk"
        )
    if cluster == "slurm" and not (shutil.which("srun") and shutil.which("sbatch")):
        raise Refused(
            f"engine={on.engine!r} needs SLURM's programs srun and sbatch, and this machine lacks "
            "them. Try the command on the machine from which you submit jobs"
        )
    return Jobs(folder / "jobs", on.array, cluster=cluster, minutes=on.time, partition=on.partition)


@contextlib.contextmanager
def opened(on: On, /, *, count: int, folder: Place) -> Iterator[concurrent.futures.Executor]:
    """Open the engine's executor for a `with` block; an exception in the block stops all work.

    An executor of the caller stays open after the block. All jobs of a queue must be able to read
    and write `folder`.

    Raises:
        Refused: if the engine is unknown, a package is missing or no scheduler answers.
    """
    if isinstance(on, concurrent.futures.Executor):
        yield on
        return
    on.check()
    with contextlib.ExitStack() as closing:
        executor: concurrent.futures.Executor
        if on.engine.startswith("dask"):
            executor = _dask(on.engine, closing)
        elif on.engine.startswith("slurm"):
            executor = _queue(on, folder)
        else:
            executor = Processes(count)
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False)  # which cancels the calls of the executor
            raise
        executor.shutdown()
