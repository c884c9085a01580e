"""Runs of a user's experiment go on, and merge, only if nothing changed that they rest on."""

import json
import sys
from pathlib import Path

import pytest

from jaxbounds.cli import main
from jaxbounds.experiments.sweeps import Checkpoints
from jaxbounds.ground import recording
from jaxbounds.runs import ledger

OWN = """
from dataclasses import dataclass
from pathlib import Path
import jax.numpy as jnp, numpy as np, xarray as xr
import jaxbounds as jb
import rates
from jaxbounds.experiments.experiment import Experiment

@dataclass(frozen=True)
class Config:
    \"\"\"A short sweep.

    Attributes:
        steps: of descent.
    \"\"\"

    steps: int = 8

def run(config, key, /, *, folder=None, resume=False):
    count = len(Path("data.txt").read_text())  # that no trace shows
    lanes = {"rate": np.float32([rates.RATE, 0.2])}
    found = jb.sweep(
        lambda lane: jnp.ones(3), lambda lane, state: state - lane["rate"] * state,
        lambda lane, state: {"loss": jnp.sum(state**2)}, lanes, config.steps, chunk=4,
        folder=None if folder is None else folder / "descent", resume=resume,
    )
    return xr.Dataset({"loss": (("lane", "record"), count * found.metrics["loss"])})

def figure(dataset, /):
    import matplotlib.pyplot as plt
    return plt.figure()

EXPERIMENTS = (
    Experiment(id="own.one", label="Figure 1", title="one", config=Config(), run=run,
               figure=figure, claims=lambda dataset, /: (), resumable=True),
)
"""
RUN = ["run", "own.one", "--import", "own_runs.py"]


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The file of an experiment, with a helper and data, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("own_runs.py").write_text(OWN)
    Path("rates.py").write_text("RATE = 0.1\n")
    Path("data.txt").write_text("abc")
    another_process()
    yield tmp_path
    another_process()


def another_process():
    for name in recording.forget():
        sys.modules.pop(name, None)


def cut(monkeypatch, *words):
    """A run that ends at its first checkpoint; the record of then."""
    save, seen = Checkpoints.save, []

    def dying(self, *given):
        save(self, *given)
        seen.append(Path("out", ledger.LEDGER).read_text())
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", dying)
        assert main([*RUN, "--out", "out", *words]) == 130
    return seen[0]


@pytest.mark.parametrize(
    "change, words",
    [
        ("", ""),
        ("rates.py", "depends on file {}/rates.py, which changed since then"),
        ("data.txt", "depends on file {}/data.txt, which changed since"),
    ],
)
def test_a_run_goes_on_only_on_what_it_rests_on(change, words, own, monkeypatch, capsys):
    before = cut(monkeypatch)
    assert f"file: {own}/rates.py" in before and f"file: {own}/data.txt" in before
    if change:
        Path(change).write_text(Path(change).read_text() + "# more\n")
    another_process()
    content = sorted(path for path in Path("out").rglob("*"))
    assert main([*RUN, "--out", "out", "--resume"]) == (2 if change else 0)
    if change:
        assert words.format(own) in capsys.readouterr().err
        assert sorted(path for path in Path("out").rglob("*")) == content
    else:
        assert Path("out/result.nc").is_file()


def test_a_record_that_was_changed_is_no_record(own, monkeypatch, capsys):
    cut(monkeypatch)
    file = Path("out", ledger.LEDGER)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:1], "[3, 4]", *lines[1:], ""]))
    assert main([*RUN, "--out", "out", "--resume"]) == 2
    assert f"{file} is damaged" in capsys.readouterr().err


def test_a_new_run_begins_a_new_record(own, monkeypatch):
    assert main([*RUN, "--out", "out"]) == 0
    Path("data.txt").write_text("abcd")
    another_process()
    assert main([*RUN, "--out", "out"]) == 0
    assert main([*RUN, "--out", "out", "--resume"]) == 0
    lines = Path("out", ledger.LEDGER).read_text().splitlines()
    names = [json.loads(line)[0] for line in lines[1:]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("change", ["", "rates.py", "data.txt"])
def test_shards_merge_only_if_they_rest_on_the_same_files(change, own, capsys):
    share = lambda i: main([*RUN, "--shard", f"{i}/2", "--out", "parts"])
    assert share(1) == 0
    if change:
        Path(change).write_text(Path(change).read_text() + "# more\n")
    another_process()
    assert share(2) == 0
    capsys.readouterr()
    assert main(["merge", "parts", "--import", "own_runs.py", "--out", "all"]) == (2 * bool(change))
    if change:
        assert f"{own}/{change} " in capsys.readouterr().err
        assert not Path("all").exists()
