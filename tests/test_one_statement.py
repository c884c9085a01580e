"""`jaxbounds verify ID`: one process, no copies, and no word about other statements."""

import subprocess
import sys
import tempfile

import pytest

from jaxbounds.cli import main
from jaxbounds.papers import Catalogue
from jaxbounds.runs import driver

PAPER = """
import jax
from jaxbounds import Counterexample, Erratum, Form, Paper, Sides, Statement

def evaluate(instance, size):
    x = abs(instance["x"]) + 1
    return Sides(x, {"printed": 2 * x, "control": x / 2})

def wrong(instance, size):
    x = abs(instance["x"]) + 1
    return Sides(x, {"printed": x / 4, "corrected": x, "control": x / 2})

def statement(name, evaluate, *forms):
    return Statement(
        id=f"single.{name}", label=f"Lemma {name}", formula="x <= 2 x", kind="inequality",
        evaluate=evaluate, sample=lambda key, size: {"x": jax.random.uniform(key)},
        sizes=({},), forms=forms, control="half")

FAILS = Form(name="printed", expected="fails", erratum="E1", note="x / 4 is smaller than x",
             counterexample=Counterexample(instance={"x": 0.0}, size={}, ratio=4.0))
PAPER = Paper(
    id="single", title="Two statements", survives="all of it",
    errata=(Erratum(id="E1", kind="false", where="Lemma wrong", quote="x / 4", text="x",
                    consequence="no other", main="survive",
                    evidence="single.wrong"),
            Erratum(id="E2", kind="typo", where="page 9", quote="a", text="b",
                    consequence="none", main="survive", evidence="read")),
    statements=(statement("right", evaluate, Form(name="printed")),
                statement("wrong", wrong, FAILS, Form(name="corrected", equality="every x"))))
"""


@pytest.fixture
def paper(tmp_path):
    file = tmp_path / "single.py"
    file.write_text(PAPER)
    return file


def _printed(paper, capsys, *words):
    out = str(paper.parent / "out")
    assert main(["verify", *words, "--import", str(paper), "--out", out]) == 0
    return capsys.readouterr().out


def test_a_sound_statement_prints_no_table_of_papers_and_no_erratum(paper, capsys):
    said = _printed(paper, capsys, "single.right")
    assert "single.right" in said and "1 statement, 1 form" in said
    assert "errat" not in said and "median looseness" not in said and "E1" not in said


def test_a_statement_with_an_erratum_prints_its_own_alone(paper, capsys):
    said = _printed(paper, capsys, "single.wrong")
    assert "1 erratum: 1 false" in said and "typo" not in said
    assert "median looseness" not in said


def test_a_whole_paper_prints_all_its_errata(paper, capsys):
    said = _printed(paper, capsys, "single", "--jobs", "1")
    assert "2 errata: 1 false, 1 typo" in said and "single.wrong" in said


@pytest.mark.parametrize("words", [("single.right",), ("single", "--jobs", "1")])
def test_nothing_is_copied_or_looked_up_in_one_process(paper, capsys, monkeypatch, words):
    def refuse(*_, **__):
        raise AssertionError("the run copied files or looked up names; one process needs neither")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    monkeypatch.setattr(driver, "packed", refuse)
    monkeypatch.setattr(Catalogue, "statement", refuse)
    _printed(paper, capsys, *words)
    out = paper.parent / "out"
    assert (out / "worst" / "single.right.printed.npz").is_file()
    assert not (out / "unfinished").exists()


def test_the_command_loads_no_optimiser_before_it_needs_one():
    text = "import sys, jaxbounds.cli.verify; assert 'scipy.optimize' not in sys.modules"
    subprocess.run([sys.executable, "-c", text], check=True)
