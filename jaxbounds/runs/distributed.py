"""One run on the devices of several processes, by `jax.distributed`.

Where a process of the run is lost, the others are ended within seconds by JAX, which aborts them.
Each therefore works in a process of its own below the one that was started, which says in a
sentence what happened.
"""

import contextlib
import multiprocessing
import os
import shlex
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.folders import say
from jaxbounds.runs.workers import end_with

HEARTBEAT = 5
"""Seconds without a sign of life after which a process is lost."""
ANSWER = 10
"""Seconds within which the first process must answer at its address."""
LEAVE = 2
"""Seconds for which the first process stays when all stop."""
GATHER = 300
"""Seconds that the first process waits for the others."""


@dataclass(frozen=True, kw_only=True)
class Distributed:
    """The processes of a run.

    Attributes:
        distributed: be one of several processes that share the work; under SLURM, Open MPI,
            Kubernetes or on Cloud TPU they find each other. All see the same `--out`, and the first
            alone writes there.
        coordinator: HOST:PORT of the first process, where they do not; it is started first.
        processes: how many.
        process: which one this is, from 0.
    """

    distributed: bool = False
    coordinator: str = ""
    processes: int = 0
    process: int = -1

    def check(self) -> None:
        """Refuse half an address.

        Raises:
            Refused: saying what is missing.
        """
        by_hand = bool(self.coordinator), self.processes != 0, self.process != -1
        if any(by_hand) and not self.distributed:
            raise Refused(
                f"--coordinator, --processes and --process need --distributed, got "
                f"distributed={self.distributed}. Try to add --distributed"
            )
        if any(by_hand) and not (all(by_hand) and 0 <= self.process < self.processes):
            raise Refused(
                "by hand each process needs --coordinator HOST:PORT --processes N --process I with "
                f"0 <= I < N; got {self.coordinator!r}, {self.processes}, {self.process}"
            )

    def join(self) -> None:
        """Make this process a member of the distributed run.

        Raises:
            Refused: if nobody answers, or no cluster is found.
        """
        options: dict = {"heartbeat_timeout_seconds": HEARTBEAT, "initialization_timeout": GATHER}
        if self.coordinator:
            if self.process:
                _wait_for(self.coordinator)
            options |= {"coordinator_address": self.coordinator, "num_processes": self.processes}
            options |= {"process_id": self.process}
        try:
            jax.distributed.initialize(**options)
            jax.devices()  # CPUs wait half a minute for each other: the sooner they meet the better
        except (ValueError, RuntimeError) as problem:
            hint = "no cluster that JAX knows? give --coordinator, --processes and --process"
            words = [str(problem)] + [hint] * (not self.coordinator)
            raise Refused(f"the processes did not meet: {'; '.join(words)}") from problem


ALONE = Distributed()
"""No others."""


def _wait_for(address: str) -> None:
    host, _, port = address.rpartition(":")
    until, reason = time.monotonic() + ANSWER, "it is no HOST:PORT"
    while host and port.isdecimal() and time.monotonic() < until:
        try:
            socket.create_connection((host, int(port)), timeout=ANSWER).close()
            return
        except (OSError, OverflowError) as problem:
            reason = str(problem)
            time.sleep(0.2)
    raise Refused(
        f"no process 0 answered at {address} within {ANSWER} s ({reason}). Try to start process=0 "
        "first"
    )


def _member(work: Callable[[], int], log: str) -> None:
    """Run the work in the member process; output from below Python goes to a file."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process above ends this one
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    sys.stdout, sys.stderr = (os.fdopen(os.dup(n), "w", buffering=1) for n in (1, 2))
    with open(log, "ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    try:
        status = work()
    except KeyboardInterrupt as stop:  # all processes stop together; the first is the meeting place
        say(f"stopped; {stop}")
        if jax.process_index() == 0:
            time.sleep(LEAVE)
        os._exit(130)
    except Exception as problem:
        if jax.distributed.is_initialized():
            time.sleep(2 * HEARTBEAT)  # if a process was lost JAX ends this one now
        if not isinstance(problem, (ValueError, OSError)):
            traceback.print_exc()
            os._exit(1)
        say(str(problem))
        os._exit(2 if isinstance(problem, ValueError) else 3)
    sys.exit(status)


def supervised(work: Callable[[], int], again: tuple[str, ...], /) -> int:
    """Run `work()` in a process of its own.

    Args:
        work: that can be pickled; it joins a run.
        again: the words of the command that continues it.

    Returns:
        Its exit status; 3 where another process of the run was lost.
    """
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "log"
        context = multiprocessing.get_context("spawn")
        member = context.Process(target=_member, args=(work, str(log)))
        member.start()
        try:
            member.join()
        finally:
            if member.is_alive():
                member.terminate()
                member.join()
        status = member.exitcode or 0
        if status >= 0:
            return status
        said = ""
        with contextlib.suppress(OSError):
            said = log.read_text(errors="replace")
    if status == -signal.SIGABRT and "distributed service" in said:
        say(
            "another process of this run was lost; what was done is kept: start all again, as many "
            f"as there are, with {shlex.join(again)}"
        )
    else:
        say(f"the process that worked was ended by signal {-status}\n{said}")
    return 3
