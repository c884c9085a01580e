"""Define an executor that runs calls as jobs of a cluster's queue, with the package submitit."""

import concurrent.futures
import getpass
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

POLL = 0.5
"""Seconds between two checks of the jobs. All calls that arrive between two checks become one array
of jobs. A larger number of seconds makes larger arrays of jobs, and the executor notices results
later."""

QUEUE = 10.0
"""Seconds between two queries of SLURM's queue. A larger number of seconds burdens the queue less,
and the executor notices lost jobs later."""


class Jobs(concurrent.futures.Executor):
    """An executor that submits each call as a job of a cluster's queue.

    All jobs must be able to read and write `folder`. The cluster is "slurm", or "local" for
    processes of this machine. A job ends after `minutes`. An empty `partition` means SLURM's
    default.
    """

    def __init__(
        self, folder: Path, jobs: int, *, cluster: str, minutes: int, partition: str
    ) -> None:
        import submitit

        self._submitit = submitit.AutoExecutor(folder=folder, cluster=cluster)
        self._submitit.update_parameters(
            name="jaxbounds",
            timeout_min=minutes,
            slurm_array_parallelism=jobs,
            slurm_partition=partition or None,
        )
        self.jobs, self._folder, self._queued = jobs, Path(folder), cluster == "slurm"
        self._missed: set[str] = set()
        self._asked = time.monotonic()
        self._new: list[tuple[concurrent.futures.Future, tuple]] = []
        self._lock, self._over, self._cancelled = threading.Lock(), threading.Event(), False
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def submit(self, work: Callable, /, *args: Any, **kwargs: Any) -> concurrent.futures.Future:
        """Submit a call, and return its future."""
        future: concurrent.futures.Future = concurrent.futures.Future()
        with self._lock:
            self._new.append((future, (work, args, kwargs)))
        return future

    def _watch(self) -> None:
        running: list[tuple[concurrent.futures.Future, Any]] = []
        while running or not self._over.is_set():
            self._over.wait(POLL)
            if self._cancelled:
                for future, job in running:
                    job.cancel(check=False)
                    future.set_exception(concurrent.futures.CancelledError())
                return
            running += self._sent()
            ended = self._ended([job for _, job in running])
            done = [pair for pair in running if pair[1].job_id in ended]
            running = [pair for pair in running if pair not in done]
            for future, job in done:
                try:
                    if self._queued and not job.paths.result_pickle.exists():
                        raise RuntimeError(
                            f"job={job.job_id} ended without a result. Try to read its errors in "
                            f"{job.paths.stderr}"
                        )
                    future.set_result(job.result())
                except Exception as problem:  # the job ended without a result
                    future.set_exception(problem)

    def _ended(self, jobs: list[Any]) -> set[str]:
        """Return the ids of all jobs that ended, with or without a result.

        Submitit would ask `sacct`, which lists no job on a cluster without an accounting database.
        A run would then wait forever for a killed job.
        """
        if not self._queued:
            return {job.job_id for job in jobs if job.done()}
        try:
            # Reading the folder also refreshes the cache of a network disk.
            left = {path.name for path in self._folder.iterdir()} if jobs else set()
            finished = {job.job_id for job in jobs if job.paths.result_pickle.name in left}
            return finished | self._gone([job for job in jobs if job.job_id not in finished])
        except (OSError, subprocess.SubprocessError):  # disk or queue do not answer: check again
            return set()

    def _gone(self, jobs: list[Any]) -> set[str]:
        """Return the jobs that are missing in two successive answers of the queue."""
        if not jobs or time.monotonic() - self._asked < QUEUE:
            return set()
        self._asked = time.monotonic()
        command = ["squeue", "--noheader", "--array", "--format=%i", "--user", getpass.getuser()]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        missing = {job.job_id for job in jobs} - set(answer.stdout.split())
        gone, self._missed = missing & self._missed, missing
        return gone

    def _sent(self) -> list[tuple[concurrent.futures.Future, Any]]:
        with self._lock:
            new, self._new = self._new, []
        new = [(future, call) for future, call in new if future.set_running_or_notify_cancel()]
        try:
            return list(zip([future for future, _ in new], self._array([call for _, call in new])))
        except Exception as problem:  # the queue refused the jobs
            for future, _ in new:
                future.set_exception(problem)
            return []

    def _array(self, calls: list[tuple]) -> list[Any]:
        if not calls:
            return []
        with self._submitit.batch():
            return [self._submitit.submit(work, *args, **kwargs) for work, args, kwargs in calls]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the executor: wait for the jobs, or cancel the jobs if `wait` is False.

        If `wait` is False or `cancel_futures` is True, it also cancels calls without jobs.
        """
        if cancel_futures or not wait:
            with self._lock:
                for future, _ in self._new:
                    future.cancel()
        self._cancelled = not wait
        self._over.set()
        self._watcher.join()
