"""Every notebook runs, and is the pair of its text source."""

import runpy
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
