"""Shares of a sweep and of a run, put together, have the bits of the whole."""

import functools
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.cli import main, plot
from jaxbounds.experiments.results import load
from jaxbounds.experiments.sweeps import (
    Checkpoints,
    OnlyAShare,
    Share,
    lanes_of,
    merge_parts,
    sweep,
)
from jaxbounds.experiments.sweeps.shares import mine, only, own
from jaxbounds.ground.folders import Marked
from jaxbounds.papers import experiments

pytestmark = pytest.mark.usefixtures("kept_programs")


@pytest.mark.parametrize("count", [1, 3, 7, 35, 100])
@pytest.mark.parametrize("shares", [1, 2, 7, 16])
def test_every_lane_is_in_one_share(count, shares):
    """Also in sweep after sweep, where each share has its turn with what is too little for all."""
    taken = [[] for _ in range(3)]
    loads = []
    for index in range(1, shares + 1):
        with only(Share(index, shares)):
            parts = [own(count) for _ in taken]
        for lanes, part in zip(taken, parts):
            lanes += part
        loads.append(sum(map(len, parts)))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert all(sorted(lanes) == list(range(count)) for lanes in taken)
    assert max(loads) - min(loads) <= 3
    assert own(count) == range(count) and mine()


@pytest.mark.parametrize("text", ["17/16", "0/4", "3", "a/b", "3/0", "-1/2", "1/2/3"])
def test_a_share_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="I/N with 1 <= I <= N"):
        Share.read(text)


def _start(lane):
    return {"w": jax.random.normal(lane["key"], (5, 5)), "key": lane["key"]}


def _step(lane, state):
    """Noisy descent with a product of matrices: vmapped, it goes through another routine."""
    key, noise_key = jax.random.split(state["key"])
    w = state["w"] + 0.01 * jax.random.normal(noise_key, (5, 5))
    return {"w": w - lane["rate"] * jnp.tanh(w @ w.T) @ w, "key": key}


def _measure(lane, state):
    return {"loss": jnp.sum(state["w"] ** 2), "w": state["w"]}


def _finished(state):
    return jnp.sum(state["w"] ** 2) < 2.0


def _run(finished=None, **options):
    keys = jax.random.split(jax.random.key(0), 5)
    lanes, _ = lanes_of(keys, rate=np.asarray([0.01, 0.1], np.float32))
    more = {"chunk": 10, "group": 4, "finished": finished, "fingerprint": "a"}
    return sweep(_start, _step, _measure, lanes, 60, **more | options)


@functools.cache
def _alone(finished):
    return _run(finished, devices=jax.devices()[:1])


@pytest.mark.parametrize("finished", [None, _finished])
@pytest.mark.parametrize("shares", [3, 12])
def test_shares_of_a_sweep_merge_to_its_bits(finished, shares, tmp_path):
    """On other numbers of devices, some shares without a lane, some ending before the others."""
    alone = _alone(finished)
    parts = []
    for index in range(1, shares + 1):
        parts.append(tmp_path / str(index))
        with only(Share(index, shares)):
            part = _run(
                finished, folder=parts[-1] / "curve", devices=jax.devices()[: index % 3 + 1]
            )
        assert part.metrics["loss"].shape[0] == 10
    merge_parts(parts, tmp_path / "whole")
    merged = _run(finished, folder=tmp_path / "whole" / "curve", resume=True)
    chex.assert_trees_all_equal(alone, merged)
    assert np.ptp(alone.metrics["loss"][:, -1]) > 0


def test_parts_that_do_not_fit_together_are_refused(tmp_path):
    parts = [tmp_path / str(index) for index in (1, 2, 3)]
    for index, part in enumerate(parts, 1):
        with only(Share(index, 3)):
            _run(folder=part / "curve")
    with pytest.raises(ValueError, match="3 to 5 of 10 are in no shard"):
        merge_parts([parts[0], parts[2]], tmp_path / "whole")
    with pytest.raises(ValueError, match="0 to 2 of 10 are in two shards"):
        again = shutil.copytree(parts[0], tmp_path / "again")
        merge_parts([again, *parts], tmp_path / "whole")


FIG2 = ["multihead.fig2", "--heads", "1", "4", "--trials", "2", "--steps", "40"]
FIG2 += ["--opening", "2", "--n", "10", "--test", "10"]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Where compiled programs are kept: those of one test are those of the next."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def undrawn(programs, monkeypatch):
    """Runs without figures."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(programs))
    monkeypatch.setattr(plot, "_can_draw", lambda: False)


def _same_results(one, other):
    one, other = load(one / "result.nc"), load(other / "result.nc")
    assert one.attrs == other.attrs
    for name in one.variables:
        assert one[name].values.tobytes() == other[name].values.tobytes(), name


def test_shards_in_any_order_one_cut_and_resumed_give_the_run(tmp_path, undrawn, monkeypatch):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main(["run", *FIG2, "--out", str(whole)]) == 0
    share = lambda i, *more: main(["run", *FIG2, "--shard", f"{i}/2", "--out", str(parts), *more])
    save, calls = Checkpoints.save, []

    def dying(self, *arguments):
        save(self, *arguments)
        calls.append(self.folder)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "save", dying)
    assert share(2) == 130
    monkeypatch.setattr(Checkpoints, "save", save)
    assert share(2) == 2  # it holds work
    for index in (2, 1):
        assert share(index, "--resume") == 0
    assert main(["merge", str(parts), "--out", str(tmp_path / "merged")]) == 0
    _same_results(whole, tmp_path / "merged")


@pytest.mark.slow
def test_shards_on_processes_are_the_run_and_what_was_done_stays(tmp_path, undrawn, capsys):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(["run", *FIG2, "--out", str(whole)]) == 0
    assert main(["run", *FIG2, "--shard", "2/3", "--out", str(cut)]) == 0
    capsys.readouterr()
    assert main(["run", *FIG2, "--shards", "3", "--out", str(cut)]) == 0
    done = [line for line in capsys.readouterr().err.splitlines() if line.endswith("is done")]
    assert sorted(done) == ["shard 1/3 is done", "shard 3/3 is done"]
    _same_results(whole, cut)


def test_shards_that_make_no_run_are_refused(tmp_path, undrawn, capsys):
    few = [*FIG2, "--heads", "4"]
    share = lambda text, out, *more: main(["run", *few, *more, "--shard", text, "--out", str(out)])

    def refused(*folders):
        out = tmp_path / "merged"
        assert main(["merge", *map(str, folders), "--out", str(out)]) == 2
        assert not out.exists()
        said = capsys.readouterr().err.splitlines()[-1]
        return said

    a, b = tmp_path / "a", tmp_path / "b"
    assert share("8/7", a) == 2
    assert "1 <= I <= N" in capsys.readouterr().err
    assert main(["run", "smapprox.machine", "--shard", "1/2", "--out", str(a)]) == 2
    assert "be cut into shards" in capsys.readouterr().err
    assert share("1/2", a, "--shards", "2") == 2
    assert "only one of --shard, --shards and --distributed" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert "holds no shards" in refused(tmp_path / "empty")
    assert share("1/2", a) == 0
    missing = refused(a)
    assert "missing=2/2" in missing and f"--shard 2/2 --resume --out {a}" in missing
    assert share("2/2", b, "--seed", "1") == 0
    assert "computed with key=" in refused(a, b)
    shutil.copytree(a / "shard-1-of-2", tmp_path / "d" / "shard-1-of-2")
    assert "both hold shard=1/2" in refused(a, tmp_path / "d")
    assert share("2/3", tmp_path / "e") == 0
    assert "different numbers of shards" in refused(a, tmp_path / "e")
    assert share("2/2", a) == 0
    file = a / "shard-2-of-2" / "shard.json"
    text = file.read_text()
    file.write_text(text.replace('"numpy": "', '"numpy": "0.'))
    assert "damaged" in refused(a)  # nobody believes what no run wrote
    Marked(file.parent).write(file.name, text.replace('"numpy": "', '"numpy": "0.'))
    assert "computed with versions.numpy=" in refused(a)
    file.write_text(text[:-9])
    assert "damaged" in refused(a)


LOWERING = Path(__file__).parents[1] / "benchmarks" / "lowering.py"
"""Has every experiment at toy size."""


def _small():
    """Each experiment that can be cut; of the figures of one kind one."""
    found = runpy.run_path(str(LOWERING))["toys"]()
    alike = ("multihead.fig2", "multihead.fig5", "qstr.fig1b")
    cut = [name for name, one in experiments().items() if one.resumable and name not in alike]
    return {name: found[name] for name in cut}


ON_DEVICES = """
import runpy, sys
import jax
from jaxbounds.papers import experiments
from jaxbounds.experiments.results import save

file, name, out = sys.argv[1:]
config = runpy.run_path(file)["toys"]()[name]
save(experiments()[name].run(config, jax.random.key(0)).drop_attrs(), out)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(_small()))
def test_every_run_is_that_of_one_device(name, tmp_path):
    for count in (1, 2, 3, 8):
        out = tmp_path / str(count) / "result.nc"
        out.parent.mkdir()
        flags = f"--xla_force_host_platform_device_count={count}"
        command = [sys.executable, "-c", ON_DEVICES, str(LOWERING), name, str(out)]
        subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, check=True, timeout=280)
    one, *others = (load(tmp_path / count / "result.nc") for count in "1238")
    for other in others:
        assert one.identical(other)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(_small()))
def test_every_run_that_resumes_can_be_cut(name, tmp_path, key):
    """Its shares never look at numbers that are not theirs, and merge to its bits."""
    config, run = _small()[name], experiments()[name].run
    alone = run(config, key)
    parts = [tmp_path / str(index) for index in (1, 2, 3)]
    for index, part in enumerate(parts, 1):
        with only(Share(index, 3)), pytest.raises(OnlyAShare):
            run(config, key, folder=part)
        assert list(part.rglob("*.npz"))
    merge_parts(parts, tmp_path / "whole")
    files = sorted((tmp_path / "whole").rglob("*"))
    assert alone.identical(run(config, key, folder=tmp_path / "whole", resume=True))
    assert sorted((tmp_path / "whole").rglob("*")) == files  # nothing was left to compute
