"""Every notebook runs, and is the pair of its text source."""

import importlib.metadata
import importlib.util
import runpy
import subprocess
import tomllib
from pathlib import Path

import jax
import jupytext
import pytest

SOURCES = sorted((Path(__file__).parents[1] / "colab").glob("*.py"))
WITH_SOURCE = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
QUICK = ("01", "05", "07")
"""Those that run by default; all of them run in full with the slow tests."""


def _run(source, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    # Colab's defaults, not those of the tests.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        runpy.run_path(str(source))


@pytest.mark.parametrize(
    "source", [s for s in SOURCES if s.stem[:2] in QUICK], ids=lambda path: path.stem
)
def test_notebook_runs_in_fast_mode(source, monkeypatch, capsys):
    monkeypatch.setenv("JAXBOUNDS_FAST", "1")
    _run(source, monkeypatch)
    assert capsys.readouterr().out.strip()


@pytest.mark.slow
@pytest.mark.timeout(900)
@WITH_SOURCE
def test_notebook_runs_in_full(source, monkeypatch):
    monkeypatch.delenv("JAXBOUNDS_FAST", raising=False)
    _run(source, monkeypatch)


@WITH_SOURCE
def test_notebook_is_the_pair_of_its_source_without_outputs(source):
    text, paired = jupytext.read(source), jupytext.read(source.with_suffix(".ipynb"))
    cells = lambda book: [(cell.cell_type, cell.source) for cell in book.cells]
    assert cells(text) == cells(paired), "run: jupytext --to notebook colab/*.py"
    assert not any(cell.get("outputs") for cell in paired.cells)


def test_there_are_at_least_six():
    assert len(SOURCES) >= 6


def _first_cell(source):
    return next(cell.source for cell in jupytext.read(source).cells if cell.cell_type == "code")


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A machine without the library: what the first cell asks of it, and what it answers."""
    asked, answers = [], {"jax": "0.12.0", "jaxlib": "0.12.0", "numpy": "2.1.0", "pip": ""}
    find = importlib.util.find_spec

    def there(name, package=None):
        return answers.get(name) if name in ("jaxbounds", "jax", "jaxlib") else find(name, package)

    def pip(command, **how):
        asked.append(command[command.index("install") + 1 :])
        return subprocess.CompletedProcess(command, bool(answers["pip"]), "", answers["pip"])

    monkeypatch.setattr(importlib.util, "find_spec", there)
    monkeypatch.setattr(importlib.metadata, "version", answers.__getitem__)
    monkeypatch.setattr(subprocess, "run", pip)
    monkeypatch.chdir(tmp_path)
    return asked, answers


def test_every_notebook_begins_with_the_same_cell():
    assert len({_first_cell(source) for source in SOURCES}) == 1


def test_the_first_cell_takes_the_index_or_an_uploaded_wheel(elsewhere, tmp_path):
    asked, answers = elsewhere
    pins = ["jax==0.12.0", "jaxlib==0.12.0", "numpy==2.1.0"]
    exec(_first_cell(SOURCES[0]), {})
    (tmp_path / "jaxbounds-0.2.0-py3-none-any.whl").touch()
    exec(_first_cell(SOURCES[0]), {})
    wheel = "./jaxbounds-0.2.0-py3-none-any.whl[plots]"
    assert asked == [["-q", "jaxbounds[plots]", *pins], ["-q", wheel, *pins]]
    answers["jaxbounds"] = "there"
    exec(_first_cell(SOURCES[0]), {})
    assert len(asked) == 2
    del answers["jaxbounds"], answers["jax"], answers["jaxlib"]
    exec(_first_cell(SOURCES[0]), {})
    assert asked[2:] == [["-q", wheel, "numpy==2.1.0"]]


def test_the_first_cell_says_in_one_sentence_what_to_do(elsewhere):
    asked, answers = elsewhere
    answers["pip"] = "Looking.\nERROR: No matching distribution found for jaxbounds[plots]\n"
    with pytest.raises(SystemExit, match=r"upload a wheel .* set SOURCE .* No matching") as ended:
        exec(_first_cell(SOURCES[0]), {})
    assert "\n" not in str(ended.value)
    asked.clear()
    project = tomllib.loads((SOURCES[0].parents[1] / "pyproject.toml").read_text())["project"]
    (floor,) = (d.split(">=")[1] for d in project["dependencies"] if d.startswith("jax>="))
    major, minor = map(int, floor.split(".")[:2])
    answers["jax"] = f"{major}.{minor - 1}.9"
    with pytest.raises(SystemExit, match=rf"needs jax {major}\.{minor} or newer, here .*9: .*-U"):
        exec(_first_cell(SOURCES[0]), {})
    assert not asked  # before pip has tried
    answers["jax"], answers["pip"] = f"{major}.{minor}.0.1", ""
    exec(_first_cell(SOURCES[0]), {})
    assert len(asked) == 1
