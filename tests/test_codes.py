"""Short names (S6, E3, DM1) are explained wherever they stand; a figure names its command."""

import re

import pytest

import jaxbounds as jb
from jaxbounds.cli import main
from jaxbounds.cli.figures import drawing
from jaxbounds.cli.guide import topic_text
from jaxbounds.papers import experiments, load_papers
from jaxbounds.report.codes import carrying, codes_in, explained, legend, pointer

PAPERS = load_papers()
BY_PAPER = pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.id)
CODE = re.compile(r"(?<![\w.#^_])(?:[ESP]|DM)\d{1,2}(?![\w#^])")


def _texts(paper):
    """The words of a paper that a screen shows."""
    for s in paper.statements:
        yield from (s.label, s.formula, s.assumptions, s.source, s.control_in_words)
        for form in s.forms:
            yield from (form.name, form.note, form.equality, form.cites, form.reading)
    for e in paper.errata:
        yield from (e.where, e.text, e.detail, e.consequence, e.main, e.evidence)
    for entries in (paper.items, paper.unchecked, paper.remarks):
        yield from entries.values()


@BY_PAPER
def test_every_code_on_a_screen_is_explained(paper):
    used = {code for words in _texts(paper) for code in CODE.findall(words or "")}
    assert used <= {*explained(paper)}


@BY_PAPER
def test_the_page_of_codes_has_every_code_with_its_words(paper):
    page = " ".join(topic_text("codes").split())
    section = page.partition(f"## {paper.id} ")[2].partition("## ")[0]
    for code, words in paper.codes.items():
        assert f"**{code}**: {words}" in section
    assert f"`jaxbounds errata {paper.id}`" in section


@BY_PAPER
def test_an_explanation_is_sentences_of_its_own(paper):
    for code, words in paper.codes.items():
        assert words.endswith(".") and len(words.split()) > 4, code
        assert not words.startswith(("What", "Of ", "By ", "Where", "With")), code


def test_a_code_is_shown_with_its_forms_and_the_next_command(capsys):
    assert main(["show", "multihead.S6"]) == 0
    out = capsys.readouterr().out
    assert "The sharpened beta_3 is sqrt(T) R^3" in " ".join(out.split())
    assert "multihead.cor1.3" in out
    assert re.search(r"try: jaxbounds show multihead\.\w+", out)
    assert main(["show", "multihead S6"]) == 0 and capsys.readouterr().out == out


def test_an_erratum_is_a_code(capsys):
    erratum = jb.load_paper("multihead").errata[0]
    assert main(["show", f"multihead.{erratum.id}"]) == 0
    assert " ".join(erratum.where.split()[:3]) in " ".join(capsys.readouterr().out.split())


def test_a_code_without_a_paper_is_shown_for_all_that_have_it(capsys):
    assert main(["show", "S1"]) == 0
    out = capsys.readouterr().out
    assert "multihead S1\n" in out and "seqlength S1\n" in out


@pytest.mark.parametrize("name", ["multihead.T4", "multihead.S77", "T4", "smapprox S6"])
def test_a_code_that_is_none_is_one_sentence(name, capsys):
    assert main(["show", name]) == 2
    error = capsys.readouterr().err
    assert f"code={name!r}" in error and "Try " in error and error.count("\n") == 1


def test_a_statement_explains_the_codes_that_it_shows(capsys):
    assert main(["show", "multihead.prop1.2"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    words = jb.load_paper("multihead").codes
    assert all(f"{code} {words[code]}" in out for code in ("S4", "S5", "S11"))
    assert "E13 Erratum (" in out


def test_a_table_of_forms_names_the_command_that_explains_a_code(capsys):
    assert main(["list", "multihead.cor1"]) == 0
    assert "codes: `jaxbounds show multihead.S2` explains S2" in capsys.readouterr().out
    assert main(["list", "smapprox.thm4.1"]) == 0
    assert "codes:" not in capsys.readouterr().out


def test_verify_names_the_command_for_forms_and_for_errata(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    verify = ["verify", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert main([*verify, "multihead.eq42"]) == 0
    assert "codes: `jaxbounds show multihead.S1` explains S1\n" in capsys.readouterr().out
    paper = jb.load_paper("seqlength")
    (erratum, *_) = (e for e in paper.errata if e.changes_main)
    (shown, *_) = (s for s, form in carrying(paper, erratum.id) if form.erratum == erratum.id)
    assert main([*verify, shown.id]) == 0
    assert f"{paper.id}.{erratum.id}` explains {erratum.id}" in capsys.readouterr().out


def test_the_list_of_figures_names_the_page_of_codes(capsys):
    assert main(["run"]) == 0
    assert "explains short names such as DM1 and 1STR" in capsys.readouterr().out


def test_the_line_below_a_table_names_a_few_codes_once():
    papers = [jb.load_paper("multihead")]
    forms = [("multihead.thm3", "sharpened S2, S6, S8, S10"), ("multihead.eq42", "printed")]
    line = pointer(forms, papers)
    assert line == "codes: `jaxbounds show multihead.S2` explains S2, and so for S6, S8, ..."
    assert pointer(forms[1:], papers) == "" == pointer([("mine.one", "sharpened S2")], papers)


def test_a_code_is_a_whole_word():
    assert codes_in("S1, S11 and S1; beta_S6 S6# x.S6", ["S1", "S6", "S11"]) == ("S1", "S11")


@BY_PAPER
def test_a_sharpening_that_has_a_number_is_carried_by_forms(paper):
    named = {code for s in paper.statements for f in s.forms for code in CODE.findall(f.name)}
    for code in named:
        assert any(code in form.name for _, form in carrying(paper, code))


MINE = """
import jaxbounds as jb

def one_norm(x):
    return abs(x).sum()

PAPER = jb.Paper(id="mine", title="Mine", codes={"K4": "The fourth constant is one."}, statements=(
    jb.claim("mine.one", one_norm, "<=", 4.0, over={"x": jb.Ball(1, 2)}, note="By K4."),))
"""


def test_a_paper_of_ones_own_explains_its_codes(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    assert main(["show", "mine.K4", "--import", str(file)]) == 0
    assert "The fourth constant is one." in capsys.readouterr().out
    assert main(["show", "mine.one", "--import", str(file)]) == 0
    assert "K4          The fourth constant is one." in capsys.readouterr().out
    assert main(["show", "mine.S6", "--import", str(file)]) == 2
    assert "code='mine.S6' is in no paper. Try" in capsys.readouterr().err


def test_the_legend_of_a_text_without_codes_is_empty():
    assert not legend("no code here", jb.load_paper("qstr"))


FIGURES = [e for e in experiments().values() if e.label.startswith("Figure")]


@pytest.mark.parametrize("experiment", FIGURES, ids=lambda experiment: experiment.id)
def test_a_figure_names_the_command_that_draws_it(experiment, capsys):
    paper = experiment.id.partition(".")[0]
    for number in re.findall(r"\d+(?:\(\w\))?", experiment.label):
        assert experiment in drawing(paper, f"Figure {number}")
        assert main(["show", f"{paper} Figure {number}"]) == 0
        assert f"draw it: jaxbounds run {experiment.id}" in capsys.readouterr().out


def test_a_figure_between_two_is_drawn_with_them_and_a_theorem_is_no_figure():
    assert [e.id for e in drawing("seqlength", "Figure 2")] == ["seqlength.majority"]
    assert [e.id for e in drawing("qstr", "Figure 1")] == ["qstr.fig1a", "qstr.fig1b"]
    assert [e.id for e in drawing("qstr", "Figure 1(b)")] == ["qstr.fig1b"]
    assert drawing("qstr", "Table 1") == [] == drawing("smapprox", "Figure 4")


def test_a_figure_that_nothing_draws_says_why(capsys):
    assert main(["show", "multihead Figure 1"]) == 0
    assert "no command draws it: the figure is a diagram" in capsys.readouterr().out
    assert main(["show", "multihead Figure 9"]) == 2
    assert "figure='multihead Figure 9' is in no paper. Try" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["multihead figure 2", "multihead Fig. 2", "Figure 2"])
def test_a_figure_is_found_however_one_writes_it(name, capsys):
    assert main(["show", name]) == 0
    assert "jaxbounds run multihead.fig2" in capsys.readouterr().out


def test_a_program_gets_the_statements_that_carry_a_code(capsys):
    import json

    assert main(["show", "multihead.S3", "--json"]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)] == ["multihead.kappa3"]
