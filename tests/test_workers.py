"""Processes that end too late or not at all: each costs its own piece only."""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from jaxbounds.cli import main
from jaxbounds.ground import stopping
from jaxbounds.runs import interruption, workers

CLAIMS = """
import os, signal
import jax, numpy as np
from jaxbounds import Form, Paper, Sides, Statement

def half(x):
    return x / 2

def evaluate(instance, size):
    return Sides(lhs=half(instance["x"]), rhs={"printed": instance["x"], "control": 0.0})

def broken(instance, size):
    os.kill(os.getpid(), signal.SIGKILL)

def statement(name, evaluate):
    return Statement(id=f"mine.{name}", label=name, formula="x/2 <= x", kind="inequality",
                     evaluate=evaluate, forms=(Form(name="printed"),), control="nothing",
                     sizes=({"n": 1},), judges=(half,), host=True,
                     cases=lambda size: {"x": np.arange(1.0, 4.0)})

PAPER = Paper(id="mine", title="My notes",
              statements=(statement("good", evaluate), statement("broken", broken),
                          statement("better", evaluate)))
"""


def test_a_process_that_is_killed_costs_its_own_statement(tmp_path, capsys):
    """Whatever was given to the same process is judged again, alone."""
    file = tmp_path / "killed_claims.py"
    file.write_text(textwrap.dedent(CLAIMS))
    folder = tmp_path / "out"
    options = ["--import", str(file), "--jobs", "2", "--out", str(folder)]
    assert main(["verify", "mine", *options]) == 3
    found = {v["id"]: v for v in json.loads((folder / "verdicts.json").read_text())}
    statuses = {name: verdict["status"] for name, verdict in found.items()}
    assert statuses == {"mine.good": "holds", "mine.broken": "error", "mine.better": "holds"}
    assert "its process ended" in found["mine.broken"]["reason"]
    capsys.readouterr()


def test_each_process_has_its_share_of_the_cores(monkeypatch):
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.setattr(workers, "_cores", lambda: 8)
    with workers.Processes(3) as executor:
        assert executor.submit(os.getenv, "NPROC").result() == "2"


def test_memory_that_the_page_cache_holds_is_there(monkeypatch, tmp_path):
    """Free pages without the cache are what no machine has that has read files for an hour."""
    gib = 2**30
    memory = type("Memory", (), {"available": 5 * gib, "free": 100})
    monkeypatch.setattr(workers.psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(workers, "CGROUP", tmp_path)
    monkeypatch.setattr(workers, "_cores", lambda: 8)
    assert (workers.available(), workers.at_most(0), workers.at_most(3)) == (5 * gib, 5, 3)
    # A container of 4 GiB, of which 3 are taken, half a one of these by its page cache.
    (tmp_path / "memory.max").write_text(f"{4 * gib}\n")
    (tmp_path / "memory.current").write_text(f"{3 * gib}\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {gib // 2}\n")
    assert (workers.available(), workers.at_most(0)) == (3 * gib // 2, 1)
    (tmp_path / "memory.max").write_text("max\n")
    assert workers.available() == 5 * gib
    # The older layout.
    (tmp_path / "memory").mkdir()
    for name, amount in (("limit", 9), ("usage", 7)):
        (tmp_path / "memory" / f"memory.{name}_in_bytes").write_text(str(amount * gib))
    assert workers.at_most(0) == 2


def test_where_one_process_fits_it_is_a_process_of_its_own(monkeypatch, tmp_path, capsys):
    """A statement that ends its process ends no run, also on a machine of one core."""
    monkeypatch.setattr(workers, "_cores", lambda: 1)
    file, folder = tmp_path / "one_core_claims.py", tmp_path / "out"
    file.write_text(textwrap.dedent(CLAIMS))
    assert main(["verify", "mine", "--import", str(file), "--out", str(folder)]) == 3
    found = {v["id"]: v["status"] for v in json.loads((folder / "verdicts.json").read_text())}
    assert found == {"mine.good": "holds", "mine.broken": "error", "mine.better": "holds"}
    capsys.readouterr()


class _Ended(Exception):
    pass


@pytest.fixture
def watcher(monkeypatch):
    """The thread that watches a process, made fast, called here; ending raises instead."""

    def end(status):
        raise _Ended

    monkeypatch.setattr(workers, "WATCH", 0.02)
    monkeypatch.setattr(workers, "STALLED", 5)
    monkeypatch.setattr(workers.os, "_exit", end)
    yield lambda parent: workers.end_with(parent)
    workers._at_work.clear()


def test_a_piece_that_stands_still_is_given_up(watcher):
    workers._at_work.set()
    started = time.monotonic()
    with pytest.raises(_Ended):
        watcher(os.getppid())
    assert time.monotonic() - started >= 5 * 0.02


def test_no_process_outlives_its_parent(watcher):
    with pytest.raises(_Ended):
        watcher(os.getppid() + 1)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_whose_exception_is_dropped_is_seen_at_the_next_look(how):
    """As where Python collects garbage."""
    before = signal.getsignal(how)
    with interruption.interruptible():
        interruption.look()
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), how)
            time.sleep(0.1)
        with pytest.raises(KeyboardInterrupt, match=how.name):
            interruption.look()
    assert signal.getsignal(how) is before
    interruption.look()


def test_sigterm_waits_for_work_that_listens_until_its_deadline():
    with interruption.interruptible():
        interruption.grant(1.0)
        with stopping.listening():
            started = time.monotonic()
            os.kill(os.getpid(), signal.SIGTERM)
            assert stopping.asked()
            with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
                time.sleep(20)
            assert 0.7 < time.monotonic() - started < 15
    with interruption.interruptible():  # nobody listens, and nothing is left of before
        assert not stopping.asked()
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(20)


def test_no_thread_of_the_clock_outlives_its_command():
    """The end of Python would find the thread's file open, and say so."""
    for _ in range(50):
        before = set(threading.enumerate())
        with interruption.interruptible():
            pass
        assert set(threading.enumerate()) <= before


BUSY = """
import hashlib, os, signal, threading
from jaxbounds.runs import interruption

with interruption.interruptible():
    interruption.grant(1.0)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2**31 - 1)  # minutes outside of Python
"""


def test_at_the_deadline_a_process_ends_even_inside_of_a_call():
    """Where Python comes to no handler."""
    ended = subprocess.run(
        [sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 130
    assert ended.stderr.splitlines()[-1] == (
        "jaxbounds: no checkpoint within 1 s of SIGTERM; --resume continues from the one before"
    )


TIDY = """
import atexit, signal, sys
from jaxbounds import cli

def answered(arguments):
    try:
        signal.raise_signal(getattr(signal, arguments[0]))
    except KeyboardInterrupt:
        print("kept")
        return 130

atexit.register(print, "tidied")
cli._answered = answered
sys.exit(cli.main())
"""


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
def test_a_program_that_was_interrupted_spends_no_time_on_its_way_out(how):
    """Python would take all of JAX apart, after what is registered to come at its end."""
    words = [sys.executable, "-c", TIDY, how]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "kept\n", "")


def test_a_signal_that_comes_while_garbage_is_collected_comes_again():
    """No loop of ours looks while an experiment computes."""
    sent = []

    def interrupt(phase, info):
        if not sent:
            sent.append(phase)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)  # Python takes signals between two steps

    hook = sys.unraisablehook
    try:
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"), interruption.interruptible():
            gc.callbacks.append(interrupt)
            gc.collect()
            until = time.monotonic() + 20
            while time.monotonic() < until:
                time.sleep(0.001)
    finally:
        gc.callbacks.remove(interrupt)
    assert sys.unraisablehook is hook


@pytest.mark.parametrize("said, status", [
    ("Error reading persistent compilation cache entry for 'jit_f': error -5", 0),
    ("another warning", 1),
])  # fmt: skip
def test_a_worker_is_silent_about_a_program_that_another_worker_writes(said, status, tmp_path):
    code = "import os, warnings\nfrom jaxbounds.runs.workers import _start\n"
    code += f"warnings.simplefilter('error')\n_start(os.getppid(), 1, {str(tmp_path)!r})\n"
    code += f"warnings.warn({said!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == status and (said in done.stderr) == bool(status), done.stderr


def _writes_to_standard_output():
    print("of Python")
    os.write(1, b" ** On entry to DLASCL parameter number  4 had an illegal value\n")


def test_a_worker_prints_for_python_and_not_for_lapack(capfd):
    processes = workers.Processes(1)
    try:
        processes.submit(_writes_to_standard_output).result(timeout=120)
    finally:
        processes.shutdown()
    found = capfd.readouterr()
    assert found.out == "of Python\n" and "DLASCL" not in found.err
