"""Spread one run over the devices (such as GPUs) of several processes with `jax.distributed`.

If a process of the run is lost, JAX aborts the other processes within seconds. Therefore each
command starts a child process that does the work. When JAX aborts the child process, the command
explains the abort in a sentence.
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
"""Seconds without a heartbeat after which JAX counts a process as lost. A larger number of seconds
tolerates longer pauses of a process, and JAX notices a lost process later."""
ANSWER = 10
"""Seconds within which the first process must answer at its address. A larger number of seconds
allows the first process to start later than the other processes."""
LEAVE = 2
"""When a run ends, the first process stays for this many seconds, because the other processes still
need its address. A larger number of seconds delays the end of the run."""
GATHER = 300
"""Seconds that the first process waits at the start until all other processes have joined. A larger
number of seconds allows the other processes to join later.
"""


@dataclass(frozen=True, kw_only=True)
class Distributed:
    """The options of a run on several processes.

    Attributes:
        distributed: whether this process is one of several processes that share the work. Under
            SLURM, Open MPI, Kubernetes or on Cloud TPU the processes find each other. Give all
            processes the same `--out`; only the first process writes there.
        coordinator: HOST:PORT of the first process; needed if the processes do not find each other.
            The first process (index 0) must start before the other processes.
        processes: the number of processes that share the run.
        process: the index of this process among the processes of the run, from 0.
    """

    distributed: bool = False
    coordinator: str = ""
    processes: int = 0
    process: int = -1

    def check(self) -> None:
        """Refuse an incomplete set of options.

        Raises:
            Refused: if `distributed`, `coordinator`, `processes` or `process` is missing although
                another of them is given.
        """
        by_hand = bool(self.coordinator), self.processes != 0, self.process != -1
        if any(by_hand) and not self.distributed:
            raise Refused(
                f"--coordinator, --processes and --process need --distributed, got "
                f"distributed={self.distributed}. Try to add --distributed to the command"
            )
        if any(by_hand) and not (all(by_hand) and 0 <= self.process < self.processes):
            raise Refused(
                f"got coordinator={self.coordinator!r}, processes={self.processes}, "
                f"process={self.process}, expected values for all three options. Try --coordinator "
                "HOST:PORT --processes N --process I with 0 <= I < N"
            )

    def join(self) -> None:
        """Make this process a member of the distributed run.

        Raises:
            Refused: if the first process does not answer, or JAX finds no cluster.
        """
        options: dict = {"heartbeat_timeout_seconds": HEARTBEAT, "initialization_timeout": GATHER}
        if self.coordinator:
            if self.process:
                _wait_for(self.coordinator)
            options |= {"coordinator_address": self.coordinator, "num_processes": self.processes}
            options |= {"process_id": self.process}
        try:
            jax.distributed.initialize(**options)
            jax.devices()  # processes on CPUs wait half a minute for each other, so they meet now
        except (ValueError, RuntimeError) as problem:
            hint = "to start all processes again, each with its own --process"
            if not self.coordinator:
                hint = (
                    "--coordinator, --processes and --process, since JAX may not know the cluster"
                )
            raise Refused(
                f"the processes of this run did not find each other, got coordinator="
                f"{self.coordinator!r}: {problem}. Try {hint}"
            ) from problem


ALONE = Distributed()
"""The options of a run on one process."""


def _wait_for(address: str) -> None:
    host, _, port = address.rpartition(":")
    until, reason = time.monotonic() + ANSWER, "the address has not the form HOST:PORT"
    while host and port.isdecimal() and time.monotonic() < until:
        try:
            socket.create_connection((host, int(port)), timeout=ANSWER).close()
            return
        except (OSError, OverflowError) as problem:
            reason = str(problem)
            time.sleep(0.2)
    raise Refused(
        f"no process 0 answered at {address} within {ANSWER} s ({reason}). Try to start the "
        "process with --process=0 first"
    )


def _member(work: Callable[[], int], log: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process above ends this one
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    sys.stdout, sys.stderr = (os.fdopen(os.dup(n), "w", buffering=1) for n in (1, 2))
    with open(log, "ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    try:
        status = work()
    except KeyboardInterrupt as stop:  # all processes stop together; the first one must stay last
        say(f"the run stopped; {stop}")
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
    """Run `work()`, which must be picklable, in a child process; return the child's exit status.

    The status is 3 if another process of the run was lost. A message then gives the words `again`
    of the command that continues the run.
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
            "another process of this run was lost, and the results so far are kept. Try to start "
            f"all processes again with {shlex.join(again)}"
        )
    else:
        say(
            f"signal {-status} ended the process that computes the run. Try the command again, "
            f"after a look at this output:\n{said}"
        )
    return 3
