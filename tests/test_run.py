"""`jaxbounds run` and `jaxbounds plot` as a user meets them: files, statuses, messages."""

import contextlib
import importlib
import io
import os
import shutil
import signal
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

from jaxbounds.cli import main, plot
from jaxbounds.cli.plot import print_result
from jaxbounds.experiments import results
from jaxbounds.experiments.experiment import Experiment, Finding
from jaxbounds.experiments.results import load, save
from jaxbounds.ground.folders import MARK
from jaxbounds.papers import experiments

MACHINE = """
blank: '_'
start state: go
table:
  go:
    0: {write: 1, R: go}
    1: {write: 0, R: go}
    _: {R: yes}
"""


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    """A place of its own for compiled programs."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a finished run of a user's machine, and what was printed."""
    room, printed = tmp_path_factory.mktemp("whole"), io.StringIO()
    file, folder = room / "flip.yaml", room / "out"
    file.write_text(MACHINE)
    flags = ["--machine", str(file), "--input", "01", "--seed", "3"]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(room / "cache"))
        assert main(["run", "smapprox.machine", *flags, "--out", str(folder)]) == 0
    return folder, printed.getvalue()


@pytest.fixture
def done(whole, tmp_path):
    """A copy of them for a test."""
    return shutil.copytree(whole[0], tmp_path / "out"), whole[1].replace(
        str(whole[0]), str(tmp_path / "out")
    )


def test_run_writes_data_with_provenance_figure_and_trace(done, capsys):
    folder, printed = done
    assert printed.index("3 of 3 claims reproduced") < printed.index("step  network")
    assert "0 differences in 4 steps" not in printed
    dataset = load(folder / "result.nc")
    assert dataset.attrs["experiment"] == "smapprox.machine"
    assert dataset.attrs["config"]["input"] == "01" and dataset.attrs["key"] == [0, 3]
    assert dataset.attrs["versions"]["jax"] == jax.__version__
    assert all(claim.reproduced for claim in experiments()["smapprox.machine"].claims(dataset))
    (folder / "figure.png").unlink()
    assert main(["plot", str(folder)]) == 0
    assert capsys.readouterr().out.split() == printed.split()
    assert main(["plot", str(folder), "--verbose"]) == 0
    assert "0 differences in 4 steps" in capsys.readouterr().out
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")


CHOOSING = """
from dataclasses import dataclass
import xarray as xr
from jaxbounds.experiments.experiment import Experiment
from jaxbounds.experiments.provenance import products_in, products_used

@dataclass(frozen=True)
class Config:
    \"\"\"Nothing.\"\"\"

def choosing(config, key, /):
    with products_in("highest"):
        return leaving(config, key)

def leaving(config, key, /):
    return xr.Dataset(attrs={"matmul_precision_used": products_used()})

EXPERIMENTS = tuple(
    Experiment(id=f"mine.{run.__name__}", label="1", title="one", config=Config(), run=run,
               figure=None, claims=lambda dataset: ()) for run in (choosing, leaving)
)
"""


def test_the_precision_of_products_is_a_choice_and_is_recorded(tmp_path, monkeypatch):
    """Of experiments that choose one, and of those that leave it to JAX."""
    monkeypatch.setattr(plot, "_can_draw", lambda: False)
    monkeypatch.chdir(tmp_path)
    Path("my_precisions.py").write_text(CHOOSING)
    seen = []
    for name in ("choosing", "leaving"):
        for given in ((), ("--precision", "high")):
            run = ["run", f"mine.{name}", "--import", "my_precisions.py", *given]
            assert main([*run, "--out", f"{name}{len(given)}"]) == 0
            attrs = load(tmp_path / f"{name}{len(given)}" / "result.nc").attrs
            seen.append((attrs["matmul_precision"], attrs["matmul_precision_used"]))
    assert seen == [
        ("default", "highest"),
        ("high", "high"),
        ("default", "default"),
        ("high", "high"),
    ]


TINY = ["multihead.weakconvexity", "--heads", "1", "2", "--arms", "fixed", "--dimension", "4"]
TINY += ["--tokens", "4", "--distractors", "1", "--n", "6", "--records", "0", "--seeds", "1"]


def test_a_run_in_pieces_that_is_cut_says_so_and_goes_on(tmp_path, capsys, monkeypatch):
    """Its pieces are kept whole, not in the middle of a sweep."""
    module = importlib.import_module("jaxbounds.multihead.experiments.weakconvexity")
    numbers, asked = (1, 1, 2, len(module._NAMES)), []

    def one(config, arm, heads, key):
        asked.append(heads)
        if len(asked) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return np.full(numbers, float(heads))

    monkeypatch.setattr(module, "_one_arm", one)
    run = lambda *more: main(["run", *TINY, "--out", str(tmp_path / "out"), *more])
    assert run() == 130
    assert "can be continued. Try to add --resume" in capsys.readouterr().err
    assert run() == 2
    assert "holds an unfinished run" in capsys.readouterr().err
    assert run("--resume") == 0
    assert asked == [1, 2, 2]
    assert load(tmp_path / "out" / "result.nc").ratio.values.ravel().tolist() == [1, 1, 2, 2]


def test_a_damaged_result_is_refused(done, capsys):
    folder, _ = done
    file = folder / "result.nc"
    whole = file.read_bytes()
    for damaged in (b"", b"CDF", whole[: len(whole) // 2], b"x" + whole):
        file.write_bytes(damaged)
        assert main(["plot", str(folder)]) == 2
        assert "damaged" in capsys.readouterr().err
    file.unlink()
    assert main(["plot", str(folder)]) == 2
    assert "run the experiment first" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["smapprox.nothing"], "no experiment has id='smapprox.nothing'. Try one of: "),
        (["smapprox.machine", "--preset", "huge"], "no preset='huge'. Try one of: default"),
        (["smapprox.machine", "--resume"], "cannot be resumed"),
        (["smapprox.machine", "--seed", "-1"], "whole number from 0"),
        (["smapprox.machine", "--precision", "bfloat16"], "In bfloat16 a step below 1/256"),
        (["smapprox.machine", "--deadline", "0"], "positive number of seconds"),
        (["smapprox.machine", "--machine", "FILE", "--input", "01"], "not total"),
        (["smapprox.machine", "--input", "abc"], "outside the input alphabet"),
        (["smapprox.machine", "--T", "3"], "not halted"),
    ],
)
def test_bad_input_gives_one_line_and_status_2(arguments, message, tmp_path, capsys):
    file = tmp_path / "partial.yaml"
    file.write_text(MACHINE.replace("    1: {write: 0, R: go}\n", "    1: {write: 2, R: go}\n"))
    arguments = [str(file) if word == "FILE" else word for word in arguments]
    assert main(["run", *arguments, "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and not captured.out
    assert not (tmp_path / "out" / "result.nc").exists()


def test_every_experiment_is_complete_and_its_flags_parse(capsys):
    found = experiments()
    assert {"smapprox.machine", "qstr.fig1a", "seqlength.majority"} <= set(found)
    for name in found:
        with pytest.raises(SystemExit) as stop:
            main(["run", name, "--help"])
        assert stop.value.code == 0
        assert "--" in capsys.readouterr().out


OWN = """
from dataclasses import dataclass
import xarray as xr
from jaxbounds.experiments.experiment import Finding, Experiment

@dataclass(frozen=True)
class Config:
    \"\"\"Nothing but a number.

    Attributes:
        number: of ones.
    \"\"\"

    number: int = 3

def run(config, key, /):
    return xr.Dataset({"one": ("i", [1.0] * config.number)})

def claims(dataset, /):
    return (Finding("they add up to four", bool(dataset.one.sum() == 4), "sum"),)

def figure(dataset, /):
    import matplotlib.pyplot as plt
    return plt.figure()

EXPERIMENTS = (
    Experiment(id="mine.ones", label="Figure 1", title="ones", config=Config(), run=run,
               figure=figure, claims=claims),
)
"""


def test_an_experiment_of_the_users_runs_from_its_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my_ones.py").write_text(OWN)
    own = ["--import", "my_ones.py"]
    assert main(["run", "mine.ones", *own, "--number", "4", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert "yes  they add up to four" in printed
    assert main(["plot", "out", *own]) == 0
    assert capsys.readouterr().out == printed
    assert main(["plot", "out"]) == 2
    assert "no experiment has id='mine.ones'" in capsys.readouterr().err
    assert main(["run", "mine.twos", *own]) == 2
    assert "mine.ones" in capsys.readouterr().err
    assert main(["run", "mine.ones", "--import", "no.py"]) == 2
    assert "no file no.py" in capsys.readouterr().err


def test_the_verdict_comes_first_and_numbers_where_something_is_missed(capsys):
    claims = (Finding("[a]", True, "n1"), Finding("b", False, "n2"), Finding("c", None, "n3"))
    nothing = {"run": None, "figure": None, "config": None, "label": "Figure 1", "title": "one"}
    mine = Experiment(id="mine.one", claims=lambda dataset: claims, **nothing)
    dataset = xr.Dataset(attrs={"text": "line\n" * 200})
    print_result(mine, dataset)
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert shown[1] == "1 of 3 claims reproduced, 1 NO, 1 open (--verbose: the numbers of all)"
    assert shown[2:7] == ["yes   [a]", "NO    b", "n2", "open  c", "n3"]
    print_result(mine, dataset, verbose=True)
    assert "n1" in capsys.readouterr().out


def test_a_flipped_byte_is_noticed(tmp_path):
    values = {
        "loss": (("seed", "step"), np.ones((2, 3), np.float32)),
        "done": ("seed", [True, False]),
    }
    coords = {"seed": [0, 1], "rule": ("seed", ["gd", "adam"])}
    path = save(xr.Dataset(values, coords=coords), tmp_path / "result.nc", note="a")
    assert load(path).attrs == {"note": "a"}
    (tmp_path / MARK).unlink()  # as where it came without its folder
    content = path.read_bytes()
    place = content.index(np.ones(3, "<f4").tobytes())
    path.write_bytes(content[:place] + b"\x01" + content[place + 1 :])
    with pytest.raises(ValueError, match="checksum"):
        load(path)
    attribute = content.index(b'"a"')  # of the data set, as JSON
    path.write_bytes(content[:attribute] + b'"b"' + content[attribute + 3 :])
    with pytest.raises(ValueError, match="checksum"):
        load(path)


def test_what_was_changed_since_it_was_written_is_not_even_looked_at(tmp_path, monkeypatch):
    """Some damage makes the library of the format look for ever."""
    path = save(xr.Dataset({"loss": ("step", [1.0, 2.0])}), tmp_path / "result.nc")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    opened = []
    monkeypatch.setattr(results, "check_netcdf", lambda *_, **__: opened.append(1))
    with pytest.raises(ValueError, match="is damaged"):
        load(path)
    assert not opened


def test_every_type_survives_and_files_of_before_are_read(tmp_path):
    kinds = ("int64", "uint32", "uint64", "float16", "float64", "bool", "complex128", "<U1")
    values = {kind: ("place", np.arange(3).astype(kind)) for kind in kinds}
    values["int64"] = ("place", np.arange(3) + 2**40)
    dataset = xr.Dataset(values, coords={"place": ["a", "b", "c"]})
    again = load(save(dataset, tmp_path / "new.nc", seed=2**40))
    assert again.attrs == {"seed": 2**40}
    xr.testing.assert_identical(again.drop_attrs(), dataset)
    assert all(again[kind].dtype == dataset[kind].dtype for kind in kinds)
    old = dataset[["float64"]].assign_attrs(format="jaxbounds-result-1", sha256="", note="[1]")
    old.to_netcdf(tmp_path / "old.nc", engine="scipy")
    assert load(tmp_path / "old.nc").attrs == {"note": [1]}
