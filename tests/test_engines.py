"""Pieces of work on executors of every kind: the same results, whoever dies, leaves or differs."""

import concurrent.futures
import gc
import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from jaxbounds.cli import main
from jaxbounds.runs import engines, jobs
from jaxbounds.runs.driver import each
from jaxbounds.runs.engines import Engine, opened
from jaxbounds.runs.threads import RARELY
from jaxbounds.runs.workers import Died, end_with


def square(number):
    return number**2


def deadly(number):
    """Ends its process at every fourth number."""
    if number % 4 == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def failing(number):
    raise KeyError(number)


class InLots(concurrent.futures.ThreadPoolExecutor):
    """Gets its pieces in three lots."""

    jobs = 3


@pytest.mark.parametrize("kind", [concurrent.futures.ThreadPoolExecutor, InLots])
def test_any_executor_gives_each_result_once(kind):
    with kind(2) as executor:
        found = list(each(executor, square, range(10)))
        assert sorted(found) == [(n, n * n) for n in range(10)]
        assert list(each(executor, square, [])) == []
        with pytest.raises(KeyError):
            list(each(executor, failing, range(3)))


LOCAL = engines.KINDS.split(", dask://")[0].split(", ")
"""The engines whose workers are processes of this machine."""


@pytest.mark.parametrize("kind", LOCAL)
def test_a_process_that_dies_costs_its_own_piece(kind, tmp_path):
    with opened(Engine(engine=kind), count=2, folder=tmp_path) as executor:
        found = dict(each(executor, deadly, range(8)))
    assert {n for n, result in found.items() if isinstance(result, Died)} == {3, 7}
    assert all(result == n * n for n, result in found.items() if n % 4 != 3)


def settings(parent):
    """Return the settings of a worker: no Ctrl-C, one BLAS thread, its cores, a rare collector."""
    silent = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    threads = os.environ.get("OMP_NUM_THREADS"), os.environ.get("NPROC")
    ends = any(getattr(t, "_target", None) is end_with for t in threading.enumerate())
    return silent, threads, gc.get_threshold() == RARELY, ends and os.getpid() != parent


@pytest.mark.parametrize("kind", LOCAL)
def test_a_process_of_an_engine_is_set_up_as_a_worker(kind, tmp_path, monkeypatch):
    for name in ("OMP_NUM_THREADS", "NPROC"):  # a user's own numbers stay
        monkeypatch.delenv(name, raising=False)
    with opened(Engine(engine=kind), count=2, folder=tmp_path) as executor:
        (found,) = dict(each(executor, settings, [os.getpid()])).values()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert found == (True, ("1", str(max(1, cores // 2))), True, True)


def hold(folder, number):
    """Say that the call began, and wait for the file `go`."""
    (folder / f"began-{number}").touch()
    until = time.monotonic() + 120
    while time.monotonic() < until and not (folder / "go").exists():
        time.sleep(0.02)


COUNTED_ELSEWHERE = {
    "slurm": "SLURM starts as many jobs at once as `--array` says, some time later"
}
"""Engines that `count` of `opened` is not about, with the reason. Dask's workers here are two."""


@pytest.mark.parametrize("kind", re.findall(r"\w+", engines.KINDS.replace("HOST:PORT or", "")))
def test_count_calls_run_at_once_and_none_when_the_block_ends_by_an_exception(
    kind, tmp_path, request
):
    names = {"processes": kind, "slurm": "slurm:local"}
    if kind == "slurm" and importlib.util.find_spec("submitit") is None:
        pytest.skip("the extra `slurm` is not installed")
    if kind == "dask":
        names["dask"] = _address(request.getfixturevalue("scheduler"))
    name = names.get(kind, kind)
    began = lambda: len(list(tmp_path.glob("began-*")))
    with (
        pytest.raises(ZeroDivisionError),
        opened(Engine(engine=name), count=2, folder=tmp_path) as executor,
    ):
        futures = [executor.submit(hold, tmp_path, number) for number in range(6)]
        until = time.monotonic() + 60
        while kind not in COUNTED_ELSEWHERE and began() < 2 and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1.5 * (kind in LOCAL))  # in which a third process would start
        most = began()
        raise ZeroDivisionError
    assert kind in COUNTED_ELSEWHERE or most >= 2, "too few calls run at once"
    assert most <= 2, "at most `count` calls run at once"
    until = time.monotonic() + 60
    while time.monotonic() < until and not all(future.done() for future in futures):
        time.sleep(0.05)
    assert all(future.done() for future in futures), "a call runs on, or is lost"
    (tmp_path / "go").touch()
    time.sleep(0.2)
    assert began() == most, "a queued call began after the block"
    if kind == "processes":
        ended = [future.exception() for future in futures if not future.cancelled()]
        assert ended and all(isinstance(problem, Died) for problem in ended)


class Elsewhere(concurrent.futures.ThreadPoolExecutor):
    """Its workers have another numpy than they are asked for."""

    def submit(self, work, expected, *arguments):
        return super().submit(work, expected | {"numpy": "1.0"}, *arguments)


class Lost(concurrent.futures.ThreadPoolExecutor):
    """Ends every call as an engine does that is gone or cannot load its work."""

    problem: BaseException

    def submit(self, work, *arguments):
        future = concurrent.futures.Future()
        if isinstance(self.problem, concurrent.futures.CancelledError):
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_exception(self.problem)
        return future


def test_workers_with_other_versions_are_refused():
    with (
        Elsewhere(1) as executor,
        pytest.raises(ValueError, match=r"has numpy=1\.0. Try to install one version"),
    ):
        list(each(executor, square, range(3)))


@pytest.mark.parametrize(
    "problem, words",
    [
        (concurrent.futures.CancelledError(), "the executor cancelled"),
        (
            ModuleNotFoundError("No module named 'jaxbounds'"),
            "Try to install this version of jaxbounds",
        ),
        (RuntimeError("Error during deserialization of the task"), "on Dask's scheduler"),
    ],
)
def test_an_engine_that_cannot_work_says_so_in_a_sentence(problem, words):
    with Lost(1) as executor, pytest.raises(ValueError, match=words):
        executor.problem = problem
        list(each(executor, square, range(3)))


def test_a_worker_that_is_lost_costs_its_pieces():
    with Lost(1) as executor:
        executor.problem = ConnectionError("gone")
        assert all(isinstance(result, Died) for _, result in each(executor, square, range(3)))


@pytest.mark.parametrize("text", ["threads", "dusk://a:1", "dask://a", ""])
def test_what_is_no_engine_is_refused(text, capsys):
    assert main(["verify", "qstr.prop3", "--engine", text]) == 2
    assert "expected processes, dask://HOST:PORT or slurm" in capsys.readouterr().err


def test_a_queue_that_is_not_here_is_refused(capsys, monkeypatch):
    # Its import closes the handlers of all loggers, and with absl's what pytest captures by.
    if importlib.util.find_spec("submitit") is None:
        pytest.skip("the extra `slurm` is not installed")
    monkeypatch.setattr(engines.shutil, "which", lambda name: None)
    assert main(["verify", "qstr.prop3", "--engine", "slurm"]) == 2
    assert "SLURM's programs" in capsys.readouterr().err


def test_packages_that_are_missing_are_named(capsys, monkeypatch):
    monkeypatch.setattr(engines.importlib.util, "find_spec", lambda name: None)
    for engine, extra in (("slurm", "slurm"), ("dask://127.0.0.1:1", "dask")):
        assert main(["verify", "qstr.prop3", "--engine", engine]) == 2
        assert f"pip install 'jaxbounds[{extra}]'" in capsys.readouterr().err


QUEUED = """
import operator, sys
from jaxbounds.runs.jobs import Jobs
from jaxbounds.runs.driver import each

with Jobs(sys.argv[1], 2, cluster="debug", minutes=1, partition="") as executor:
    print("found", sorted(each(executor, operator.neg, range(5))))
"""


def test_a_queue_whose_jobs_run_where_it_is(tmp_path):
    """As submitit's debug executor runs it, through its pickles; in a process of its own."""
    if importlib.util.find_spec("submitit") is None:
        pytest.skip("the extra `slurm` is not installed")
    command = [sys.executable, "-c", QUEUED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert f"found {[(n, -n) for n in range(5)]}" in done.stdout, done.stderr


class _Job:
    """A job as submitit shows it."""

    def __init__(self, folder, job_id):
        self.job_id = job_id
        result, log = folder / f"{job_id}_0_result.pkl", folder / f"{job_id}_0_log.err"
        self.paths = SimpleNamespace(result_pickle=result, stderr=log)


def test_a_job_that_left_the_queue_without_a_result_is_over(tmp_path, monkeypatch):
    """As on a cluster that keeps no accounts; `squeue` answers from a list here."""
    monkeypatch.setattr(jobs, "QUEUE", 0.0)
    answers = iter(["7_0\n7_1\n7_2\n", None, "7_0\n", "7_0\n7_1\n", "7_0\n", "7_0\n"])

    def squeue(command, **options):
        assert command[0] == "squeue"
        if (text := next(answers)) is None:
            raise subprocess.CalledProcessError(1, command)
        return SimpleNamespace(stdout=text)

    monkeypatch.setattr(jobs.subprocess, "run", squeue)
    queue = jobs.Jobs.__new__(jobs.Jobs)
    queue._folder, queue._queued, queue._missed, queue._asked = tmp_path, True, set(), 0.0
    three = [_Job(tmp_path, f"7_{i}") for i in range(3)]
    assert queue._ended(three) == set()
    assert queue._ended(three) == set()  # the queue did not answer
    three[2].paths.result_pickle.touch()
    assert queue._ended(three) == {"7_2"}  # 7_1 is missing for the first time
    assert queue._ended(three) == {"7_2"}  # and is there again: it was moved
    assert queue._ended(three) == {"7_2"}
    assert queue._ended(three) == {"7_1", "7_2"}
    assert queue._ended([]) == set()
    queue._folder = tmp_path / "unreachable"
    assert queue._ended(three) == set()


@pytest.fixture
def scheduler():
    """A Dask scheduler with one worker, in this process but spoken to over TCP."""
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        yield cluster


def _address(scheduler):
    return scheduler.scheduler_address.replace("tcp://", "dask://")


def test_dask_gives_each_result_once(scheduler, tmp_path):
    on = Engine(engine=_address(scheduler))
    with opened(on, count=1, folder=tmp_path) as executor:
        found = list(each(executor, square, range(10)))
    assert sorted(found) == [(n, n * n) for n in range(10)]


def test_an_address_nobody_answers_at_is_refused(monkeypatch, capsys, tmp_path):
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engines, "ANSWER", 0.5)
    assert main(["verify", "qstr.prop3", "--engine", "dask://127.0.0.1:9"]) == 2
    said = capsys.readouterr().err
    assert "no Dask scheduler answered at dask://127.0.0.1:9" in said and said.count("\n") == 1
