"""A run that several processes share: the same bits, one that dies, another number goes on."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from jaxbounds.cli import main
from jaxbounds.experiments.results import load
from jaxbounds.runs import distributed

FIG2 = ["multihead.fig2", "--heads", "1", "4", "--trials", "3", "--n", "20", "--test", "20"]
LONG = ["--opening", "5", "--steps", "4000", "--every", "20"]


def test_half_an_address_is_refused(capsys, tmp_path):
    run = lambda *more: main(["run", *FIG2, "--out", str(tmp_path), *more])
    for more in (["--processes", "2"], ["--coordinator", "localhost:1"]):
        assert run(*more) == 2
        assert "need --distributed" in capsys.readouterr().err
    for more in (
        ["--process", "0"],
        ["--coordinator", "a:1", "--processes", "2", "--process", "2"],
    ):
        assert run("--distributed", *more) == 2
        assert "with 0 <= I < N" in capsys.readouterr().err
    assert main(["run", "smapprox.machine", "--distributed", "--out", str(tmp_path)]) == 2
    assert "Try the run without it" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nowhere", "127.0.0.1:99999"])
def test_an_address_nobody_answers_at_is_refused(monkeypatch, address):
    monkeypatch.setattr(distributed, "ANSWER", 0.3)
    one = distributed.Distributed(distributed=True, coordinator=address, processes=2, process=1)
    with pytest.raises(ValueError, match=f"no process 0 answered at {address}"):
        one.join()


def _port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _start(out, process, processes, port, *more):
    program = "from jaxbounds.cli import main; raise SystemExit(main())"
    gang = ["--distributed", "--coordinator", f"127.0.0.1:{port}"]
    gang += ["--processes", str(processes), "--process", str(process), *more]
    words = [sys.executable, "-c", program, "run", *FIG2, *LONG, "--out", str(out), *gang]
    return subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _same(one, other):
    one, other = load(one / "result.nc"), load(other / "result.nc")
    for name in one.variables:
        assert one[name].values.tobytes() == other[name].values.tobytes(), name
    assert np.all(np.isfinite(one.log10_train_loss.values))


TWO = """
import runpy, sys
import jax
from jaxbounds.papers import experiments
from jaxbounds.experiments.results import save
from jaxbounds.runs.distributed import Distributed

file, name, out, address, process = sys.argv[1:]
if process != "-1":
    Distributed(distributed=True, coordinator=address, processes=2, process=int(process)).join()
config = runpy.run_path(file)["toys"]()[name]
dataset = experiments()[name].run(config, jax.random.key(0))
if jax.process_index() == 0:
    save(dataset.drop_attrs(), out)
"""
LOWERING = Path(__file__).parents[1] / "benchmarks" / "lowering.py"
"""Has every experiment at toy size."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multihead.fig4", "multihead.fig6"])
def test_two_processes_have_the_bits_of_one(name, tmp_path):
    """Of other experiments than Figure 2, without a kill."""
    address = f"127.0.0.1:{_port()}"

    def start(process, out):
        words = [sys.executable, "-c", TWO, LOWERING, name, out, address, str(process)]
        return subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE, text=True)

    places = [(-1, "one.nc"), (0, "two.nc"), (1, "two.nc")]
    started = [start(process, tmp_path / out) for process, out in places]
    said = [process.communicate(timeout=280)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert load(tmp_path / "one.nc").identical(load(tmp_path / "two.nc"))


@pytest.mark.slow
def test_sigterm_to_one_of_two_stops_both_with_a_checkpoint(tmp_path, monkeypatch):
    """As where one of two machines is taken away; one alone goes on."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["run", *FIG2, *LONG, "--out", str(tmp_path / "alone")]) == 0
    out, port = tmp_path / "gang", _port()
    two = [_start(out, process, 2, port, "--deadline", "60") for process in range(2)]
    state = out / "checkpoints" / "panel0" / "curve" / "state.npz"
    while not state.is_file():
        time.sleep(0.05)
        assert all(process.poll() is None for process in two)
    before = state.stat().st_mtime_ns
    two[1].send_signal(signal.SIGTERM)
    said = [process.communicate(timeout=60)[1] for process in two]
    assert [process.returncode for process in two] == [130, 130]
    assert all("all results computed before the stop are saved" in words for words in said)
    assert state.stat().st_mtime_ns > before
    assert main(["run", *FIG2, *LONG, "--out", str(out), "--resume"]) == 0
    _same(tmp_path / "alone", out)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_one_of_two_is_killed_and_three_go_on(killed, tmp_path, monkeypatch):
    """Whoever is killed: the other ends within seconds and says how to go on."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["run", *FIG2, *LONG, "--out", str(tmp_path / "alone")]) == 0
    out, port = tmp_path / "gang", _port()
    two = [_start(out, process, 2, port) for process in range(2)]
    while not (out / "checkpoints" / "panel0" / "curve" / "state.npz").is_file():
        time.sleep(0.05)
        assert all(process.poll() is None for process in two)
    (worker,) = psutil.Process(two[killed].pid).children()[-1:]
    started = time.monotonic()
    for process in (worker.pid, two[killed].pid):
        os.kill(process, signal.SIGKILL)
    _, said = two[1 - killed].communicate(timeout=60)
    assert time.monotonic() - started < 15
    two[killed].communicate()
    assert two[1 - killed].returncode == 3
    assert said.splitlines()[-1].startswith("jaxbounds: another process of this run was lost")
    assert "--resume" in said.splitlines()[-1] and "Check failure" not in said
    assert not (out / "result.nc").exists()
    port = _port()
    three = [_start(out, process, 3, port, "--resume") for process in range(3)]
    said = [process.communicate(timeout=200) for process in three]
    assert [process.returncode for process in three] == [0, 0, 0], said
    assert "written to" in said[0][0] and not said[1][0] and not said[2][0]
    _same(tmp_path / "alone", out)
