"""Machines without shared memory or room, interruptions, and files that are named twice."""

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time

import psutil
import pytest

from jaxbounds.cli import limits, main
from jaxbounds.papers import load_papers, selected
from jaxbounds.runs import driver, workers
from jaxbounds.runs.workers import Processes

PAPER = """
import jaxbounds as jb


def evaluate(i, size):
    return jb.Sides(lhs=i["x"], rhs={"printed": 1.0, "control": 0.1})


PAPER = jb.Paper(id="twice", title="t", statements=(jb.Statement(
    id="twice.s", label="1", formula="f", kind="inequality", evaluate=evaluate, judges=(),
    over={"x": jb.Box(0, 1)}, control="c", forms=(jb.Form(name="printed"),), sizes=({"d": 1},),
),))
"""


@pytest.fixture
def twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "twice.py").write_text(PAPER)
    (tmp_path / "other.py").symlink_to("twice.py")
    yield tmp_path
    sys.modules.pop("twice", None)


@pytest.mark.parametrize("names", [
    ("twice.py", "./twice.py"), ("twice.py", "{}/twice.py"), ("twice.py", "other.py"),
    ("twice.py", "twice.py", "./twice.py"), ("twice.py", "twice"),
])  # fmt: skip
def test_a_file_that_is_named_twice_is_one_paper(names, twice, capsys):
    names = [name.format(twice) for name in names]
    assert [p.id for p in load_papers(names, patterns=["twice"])] == ["twice"]
    files = [name for name in names if name.endswith(".py")]
    chosen = selected(files, imports=names)
    assert [s.id for s in chosen.statements] == ["twice.s"]
    flags = [word for name in names for word in ("--import", name)]
    assert main(["list", "twice", *flags]) == 0


def test_two_papers_of_one_name_are_still_refused(twice):
    (twice / "third.py").write_text(PAPER)
    with pytest.raises(ValueError, match="more than one paper is called twice"):
        load_papers(["twice.py", "third.py"], patterns=["twice"])
    sys.modules.pop("third", None)


def _double(x):
    return 2 * x


def test_without_shared_memory_all_is_computed_in_one_process(monkeypatch, tmp_path, capsys):
    def none(self, *given):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("multiprocessing.context.BaseContext.Lock", none)
    assert "Read-only file system" in workers.cannot_start()
    found = dict(driver.drive(_double, [1, 2, 3], jobs=2, folder=tmp_path))
    assert found == {1: 2, 2: 4, 3: 6}
    assert "starts no processes ([Errno 30] Read-only file system)" in capsys.readouterr().err


LEFT = """
import tempfile, time
from pathlib import Path

def left(folder):
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "file").write_text("x")
        Path(folder, "begun").touch()
        time.sleep(60)
"""
"""Leaves something where temporary files are, and is ended before it goes."""


@pytest.fixture
def scratch(tmp_path):
    """A folder for temporary files, beside the module that fills it."""
    (tmp_path / "leaving.py").write_text(LEFT)
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def test_a_worker_that_is_ended_leaves_no_temporary_files(scratch, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.syspath_prepend(str(tmp_path))
    pool = Processes(1)
    pool.submit(importlib.import_module("leaving").left, str(tmp_path))
    while not (tmp_path / "begun").exists():
        time.sleep(0.05)
    assert list(scratch.rglob("file"))
    pool.shutdown(wait=False)
    assert list(scratch.iterdir()) == []


ORPHANS = """
import sys, time
sys.path.insert(0, {folder!r})
from leaving import left
from jaxbounds.runs.workers import Processes

pool = Processes(1)
pool.submit(left, {folder!r})
time.sleep(60)
"""


def test_workers_of_a_process_that_was_killed_leave_none_either(scratch, tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-c", ORPHANS.format(folder=str(tmp_path))],
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    while not (tmp_path / "begun").exists():
        assert running.poll() is None
        time.sleep(0.05)
    below = psutil.Process(running.pid).children(recursive=True)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    psutil.wait_procs(below, timeout=20)
    assert list(scratch.iterdir()) == []


def test_too_few_threads_are_one_sentence(monkeypatch, capsys):
    def none(*given, **named):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("jaxbounds.cli._answered", none)
    assert main(["list"]) == 3
    said = capsys.readouterr().err
    assert "can't start new thread" in said and "Try ulimit" in said and "Traceback" not in said
    monkeypatch.setattr("jaxbounds.cli._answered", lambda words: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        main(["list"])


def test_an_import_that_swallows_ctrl_c_is_an_interruption(monkeypatch, capsys):
    def broken(*given):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("cannot import name 'x' from partially initialized module") from None

    monkeypatch.setattr("jaxbounds.cli.printed.recall", broken)
    assert main(["list"]) == 130 and "interrupted" in capsys.readouterr().err
    monkeypatch.setattr("jaxbounds.cli.printed.recall", lambda words: __import__("no_such_module"))
    with pytest.raises(ModuleNotFoundError):
        main(["list"])


@pytest.mark.parametrize("limit, short", [(2**30, True), (2**31, False), (-1, False)])
def test_too_few_addresses_are_one_sentence(limit, short, monkeypatch, capsys):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, -1))
    assert bool(limits.shortage()) == short
    if short:
        assert main(["verify", "multihead.nothing"]) == 3
        said = capsys.readouterr().err
        assert "may use 1024 MiB" in said and "Try ulimit -v" in said and "--out" not in said
