"""The numbered items of a paper from its LaTeX: all of them, with their printed numbers."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import jaxbounds as jb
from jaxbounds.cli import main
from jaxbounds.report.items import NOT_COVERED, coverage, in_short, tex_as_html

pytest.importorskip("pylatexenc")
from jaxbounds.papers.latex import items_in
from jaxbounds.papers.latex.counters import Counters
from jaxbounds.papers.latex.macros import Macro, written_out
from jaxbounds.papers.latex.walk import rows

PAPER = Path(__file__).parent / "paper"
PRINTED = (
    "Definition 1", "Fact 2", "Assumption A1", "Assumption A2", "Equation (1.1)", "Equation (1.3)",
    "Equation (1.4)", "Theorem 1.1", "Equation ($\\star$)", "Lemma 1.2", "Corollary 1.4",
    "Proposition 1.5", "Lemma 1.6", "Theorem 2.1", "Equations (2.1)", "Equation (2.1a)",
    "Equation (2.1b)", "Equation (2.2)", "Equation (2.3)", "Lemma 2.2", "Corollary 2.3",
    "Proposition A.2", "Definition 3", "Definition 4", "Fact 5", "Equation (2.4)", "Theorem 2.4",
    "Theorem 2.5", "Lemma 2.6", "Equation (2.5)", "Equation (2.10)", "Lemma A.1", "Equation (A.1)",
    "Assumption A3", "Theorem A.3", "Lemma B.1", "Corollary B.2", "Definition 6", "Equation (B.1)",
    "Equation (B.2)",
)  # fmt: skip
"""Counted by hand in the files of `paper`, whose comments number them."""


@pytest.fixture(scope="module")
def source():
    return items_in(PAPER, "norms")


def written(folder, text, **others):
    folder.mkdir(exist_ok=True)
    head = "\\documentclass{article}\n\\newtheorem{theorem}{Theorem}\n\\begin{document}\n"
    (folder / "main.tex").write_text(f"{head}{text}\n\\end{{document}}\n")
    for name, more in others.items():
        (folder / f"{name}.tex").write_text(more)
    return folder


def printed_of(folder, text, **others):
    return [item.printed for item in items_in(written(folder, text, **others), "t").items]


def test_forty_items_with_their_printed_numbers(source):
    assert len(PRINTED) == 40
    assert [item.printed for item in source.items] == list(PRINTED)
    assert source.title == "Norms of attention"
    assert len({item.id for item in source.items}) == 40


def test_an_item_has_label_title_section_and_place(source):
    one = source.items["thm:main"]
    assert (one.id, one.kind, one.number) == ("norms.thm2.1", "Theorem", "2.1")
    assert (one.title, one.section, one.place) == ("Main", "2 Results", "sections/results.tex:1")
    assert source.items["Lemma A.1"].section == "A Proofs"
    assert source.items["lem:list"].label == "lem:list"  # not that of an item of its list
    assert source.items["Proposition 1.5"].section == "1.1 More"
    for item in source.items:
        file, line = item.place.split(":")
        assert (PAPER / file).read_text().splitlines()[int(line) - 1], item


def test_the_tex_has_its_macros_written_out(source):
    assert source.items["def:ball"].tex == (
        r"The ball is $B = \{x \in \mathbb{R}^d : \left\lVert x \right\rVert_{2} \le 1\}$."
    )
    assert "_{\\infty}" in source.items["Fact 2"].tex and "Definition~1" in source.items[1].tex
    assert r"\operatorname*{arg\,min}_x f(x) \rightarrow 0" in source.items["thm:main"].tex
    assert source.items["eq:c"].tex == r"c &= \langle a, b \rangle"
    assert "100\\%" in source.items["asm:data"].tex
    own = ("\\R", "\\norm", "\\be", "\\ee", "\\eps", "\\inner", "\\label", "\\softmax")
    for item in source.items:
        assert not any(f"{name} " in item.tex or f"{name}{{" in item.tex for name in own), item


def test_every_tex_is_set_on_the_page(source):
    for item in source.items:
        shown = str(tex_as_html(item.tex, display=item.kind.startswith("Equation")))
        assert "<code" not in shown, (item.printed, shown)
        assert "&amp;" not in shown and "*" not in shown, (item.printed, shown)
        assert not item.kind.startswith("Equation") or "<math" in shown, item


def test_shared_files_do_not_matter_for_rows():
    assert rows(r"a \\ \begin{pmatrix} 1 \\ 2 \end{pmatrix} \\ {b \\ c}") == [
        "a ", r" \begin{pmatrix} 1 \\ 2 \end{pmatrix} ", r" {b \\ c}",
    ]  # fmt: skip


def test_books_count_chapters(tmp_path):
    (tmp_path / "book.tex").write_text(
        "\\documentclass[a4paper]{report}\\newtheorem{thm}{Theorem}[chapter]\n"
        "\\begin{document}\\chapter{One}\\section{S}\\begin{thm}A\\end{thm}\n"
        "\\begin{equation}\\label{e}1\\end{equation}\\appendix\\chapter{App}"
        "\\begin{thm}B\\end{thm}\\end{document}"
    )
    found = items_in(tmp_path, "t").items
    assert [item.printed for item in found] == ["Theorem 1.1", "Equation (1.1)", "Theorem A.1"]
    assert found[0].section == "1.1 S"


def test_environments_of_a_class_are_counted(tmp_path):
    body = "\\begin{document}\\section{A}\\begin{theorem}x\\end{theorem}\\begin{lemma}y\\end{lemma}"
    for style, numbers in (("llncs", ["1", "1"]), ("jmlr", ["1", "2"])):
        file = tmp_path / f"{style}.tex"
        file.write_text(f"\\documentclass{{{style}}}{body}\\end{{document}}")
        assert [item.number for item in items_in(file, "t").items] == numbers, style


def test_counters_of_many_kinds():
    counters = Counters(chapters=False)
    counters.declare("thm", "section")
    counters.print_as("section", "\\Roman{section}")
    counters.step("section"), counters.step("section")
    assert counters.step("thm") == "II.1"
    counters.print_as("thm", "\\thesection-\\alph{thm}")
    assert counters.step("thm") == "II-b"
    counters.print_as("thm", "\\thethm")  # a circle
    assert "?" in counters.step("thm")


def test_own_environments_and_commands_may_hold_theorems(tmp_path):
    text = (
        "\\newenvironment{main}[1]{\\begin{theorem}[#1]}{\\end{theorem}}\n"
        "\\newcommand{\\half}[1]{\\frac{#1}{2}}\n"
        "\\begin{main}{Big}\\label{a} $\\half{x}$\\end{main}\n"
    )
    (one,) = items_in(written(tmp_path / "p", text), "t").items
    assert (one.printed, one.title, one.label) == ("Theorem 1", "Big", "a")
    assert one.tex == "$\\frac{x}{2}$"


def test_macros_without_an_end_stay_as_they_are(tmp_path):
    text = (
        "\\def\\a{\\a\\a}\\newcommand{\\b}{\\c\\c}\\newcommand{\\c}{\\b\\b}\n"
        "\\begin{theorem}$\\a$ and $\\b$ and \\undefined{x}\\end{theorem}"
    )
    (one,) = items_in(written(tmp_path / "p", text), "t").items
    assert "\\undefined{x}" in one.tex and len(one.tex) < 1000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\\input{../outside}", "outside the folder"),
        ("\\input{/etc/hostname}", "outside the folder"),
        ("\\include{sub/../../outside}", "outside the folder"),
        ("\\input{missing}", "no file 'missing'"),
        ("\\input{main}", "includes itself"),
        ("\\begin{theorem} never ends", "readable="),
        ("{" * 3000 + "}" * 3000, "nested too deep"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, text, words):
    (tmp_path / "outside.tex").write_text("secret")
    folder = written(tmp_path / "p", text)
    with pytest.raises(ValueError, match=words):
        items_in(folder, "t")


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "outside.tex").write_text("secret")
    folder = written(tmp_path / "p", "\\input{link}")
    (folder / "link.tex").symlink_to(tmp_path / "outside.tex")
    with pytest.raises(ValueError, match="outside the folder"):
        items_in(folder, "t")


def test_sizes_are_bounded(tmp_path):
    many = written(tmp_path / "p", "\\input{a}" * 400, a="x")
    with pytest.raises(ValueError, match="more than 300 files"):
        items_in(many, "t")
    (tmp_path / "q").mkdir()
    large = written(tmp_path / "q", "x" * 8_000_001)
    with pytest.raises(ValueError, match="bytes"):
        items_in(large / "main.tex", "t")


def test_nothing_of_the_source_runs(tmp_path):
    mark = tmp_path / "ran"
    code = f"import pathlib; pathlib.Path({str(mark)!r}).touch()"
    folder = written(
        tmp_path / "p",
        f"\\usepackage{{evil}}\\immediate\\write18{{touch {mark}}}\\input{{|touch {mark}}}"
        "\\begin{theorem}'); import os; ('\\end{theorem}",
    )
    (folder / "evil.py").write_text(code)
    with pytest.raises(ValueError, match="no file"):
        items_in(folder, "t")
    text = (folder / "main.tex").read_text().replace(f"\\input{{|touch {mark}}}", '""" + 1/0 + """')
    (folder / "main.tex").write_text(text)
    assert main(["new", str(tmp_path / "texed"), "--from", str(folder)]) == 0
    paper = jb.load_paper(str(tmp_path / "texed"))
    assert paper.contents[0].tex == "'); import os; ('" and not mark.exists()


def test_several_documents_are_told_apart(tmp_path):
    for name in ("one", "two"):
        written(tmp_path, "x")
        (tmp_path / "main.tex").rename(tmp_path / f"{name}.tex")
    with pytest.raises(ValueError, match=r"got one\.tex, two\.tex\. Try"):
        items_in(tmp_path, "t")
    with pytest.raises(ValueError, match="is no file or folder"):
        items_in(tmp_path / "none", "t")


def test_without_the_extra_an_error_names_it(tmp_path, capsys, monkeypatch):
    folder = written(tmp_path / "p", "\\begin{theorem}x\\end{theorem}")
    monkeypatch.setitem(sys.modules, "pylatexenc", None)
    assert main(["new", str(tmp_path / "fresh"), "--from", str(folder)]) == 2
    assert "jaxbounds[latex]" in capsys.readouterr().err
    assert not (tmp_path / "fresh").exists()


COVERING = '''
import jaxbounds as jb
from .items import ITEMS


def one_norm(x):
    """The left side of Theorem 1.1."""
    return abs(x).sum()


def root(d):
    """The right side."""
    return d**0.5


BALL = {"x": jb.Ball(1, "d")}
ONE = ITEMS["thm:one"].claim(one_norm, "<=", root, over=BALL, sizes={"d": 3}, equality="equal x",
                             false=[0.5])
PAPER = jb.Paper(id="covered", title="Covered", contents=ITEMS, statements=(ONE,),
                 items={"Definition 1": "none: it fixes the notation"})
'''


def test_a_paper_from_its_source_shows_what_is_covered(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "covered", "--from", str(PAPER)]) == 0
    assert "40 items" in capsys.readouterr().out
    assert main(["verify", "covered", "--import", "covered", "--out", "empty"]) == 0
    assert "0 of 40 items of the source have a verdict; 40 not yet" in capsys.readouterr().out
    assert "Theorem 2.1" in (tmp_path / "empty" / "report.html").read_text()
    command = ["audit", "covered", "--import", "covered", "--no-certify"]
    assert main([*command, "--out", "audit-empty"]) == 0
    (tmp_path / "covered" / "statements.py").write_text(COVERING)
    capsys.readouterr()
    assert main(["verify", "covered", "--import", "covered", "--out", "some", "--jobs", "1"]) == 0
    assert "1 of 40 items of the source have a verdict; 38 not yet" in capsys.readouterr().out
    page = (tmp_path / "some" / "report.html").read_text()
    assert page.count("not yet covered") == 38 + 1 and "it fixes the notation" in page
    assert "printed: holds" in page and "printed: fails" not in page
    assert main([*command, "--out", "audit"]) == 0
    audit = (tmp_path / "audit" / "audit.md").read_text()
    assert audit.count("not yet covered") == 38 + 1 and "sections/setting.tex:" in audit
    statement = jb.load_paper("covered").statements[0]
    assert statement.label == "Theorem 1.1" and "Section 1 Setting" in statement.source


@pytest.mark.parametrize("name", ["Equation (1.1)", "Equation 1.1", "(1.1)"])
def test_a_display_is_found_by_each_of_its_spellings(name):
    display = jb.Item(id="t.eq1.1", kind="Equation", number="1.1", label="eq:one")
    theorem = jb.Item(id="t.thm1.1", kind="Theorem", number="1.1")
    bare = jb.Item(id="t.eq-two", kind="Equation", label="eq:two")
    items = jb.Items(theorem, display, bare)
    assert items[name] is display and items["Theorem 1.1"] is theorem
    with pytest.raises(KeyError):
        items["()"]


def test_a_display_has_the_verdict_of_the_theorem_in_which_it_stands():
    inner = r"\begin{equation}x^2 \ge 0\end{equation}"
    theorem = jb.Item(id="t.thm1", kind="Theorem", number="1", tex=f"For all x, {inner} holds.")
    display = jb.Item(id="t.eq1", kind="Equation", number="1", tex=inner.replace("0", "0 "))
    row = jb.Item(id="t.eq2", kind="Equation", number="2", tex="y = 2")
    empty = jb.Item(id="t.eq3", kind="Equation", number="3")
    other = jb.Item(id="t.thm2", kind="Theorem", number="2", tex="y = 2")
    claim = theorem.claim(1.0, "<=", 2.0, over={}, sizes={"d": 1})
    paper = jb.Paper(
        id="t", title="t", contents=jb.Items(theorem, display, row, empty, other),
        statements=(claim,), items={"Theorem 2": "none: it is cited from elsewhere"},
    )  # fmt: skip
    found = coverage(paper, jb.falsify(claim))
    assert [one.words for one in found[:4]] == [
        "printed: holds", "in Theorem 1: printed: holds", NOT_COVERED, NOT_COVERED,
    ]  # fmt: skip
    assert in_short(found) == (
        "2 of 5 items of the source have a verdict; 2 not yet covered; 1 excused with a reason"
    )
    assert in_short(coverage(paper, ())).startswith("0 of 5 items")


def test_the_id_of_no_statement_is_no_excuse():
    item = jb.Item(id="t.lem1", kind="Lemma", number="1", label="lem:one")
    paper = jb.Paper(
        id="t", title="t", contents=jb.Items(item), statements=(), items={"lem:one": "t.thm1"}
    )
    (found,) = coverage(paper, ())
    assert found.words == f"{NOT_COVERED}: no statement has the id 't.thm1'"
    assert "1 not yet covered" in in_short([found]) and "excused" not in in_short([found])


@pytest.mark.parametrize("text, found", [
    (r"\Ren{a}\le\Ren{b}", r"D_{a}\le D_{b}"), (r"\al x", r"\alpha x"), (r"\al{}x", r"\alpha{}x"),
    (r"2\Ren{a}", r"2D_{a}"), (r"\{\Ren{a}\}", r"\{D_{a}\}"),
])  # fmt: skip
def test_no_letter_beside_a_macro_joins_a_command(text, found):
    macros = {"Ren": Macro("D_{#1}", (None,)), "al": Macro(r"\alpha")}
    assert written_out(text, macros) == found


def test_coverage_in_words():
    item = jb.Item(id="t.thm1", kind="Theorem", number="1")
    claim = item.claim(1.0, "<=", 2.0, over={}, sizes={"d": 1})
    paper = jb.Paper(id="t", title="t", contents=jb.Items(item), statements=(claim,))
    assert in_short(coverage(paper, ())) == (
        "0 of 1 items of the source have a verdict; 0 not yet covered; "
        "1 with a statement that this run did not judge"
    )
    lost = [replace(one, status="error") for one in jb.falsify(claim)]
    assert in_short(coverage(paper, lost)) == (
        "1 of 1 items of the source have a verdict (1 undecided); 0 not yet covered"
    )
    bare = jb.Paper(id="t", title="t", contents=jb.Items(item), statements=())
    assert coverage(bare, ())[0].words == NOT_COVERED
    with pytest.raises(KeyError, match=r"no item has name='thm2'\. Try 'thm1' or .* lists all"):
        jb.Items(item)["thm2"]
    labelled = jb.Items(item, jb.Item(id="t.lem", kind="Lemma", label="lem:typo"))
    with pytest.raises(KeyError, match="Try 'lem:typo' or "):
        labelled["lem:tpyo"]
    with pytest.raises(ValueError, match=r"t\.thm1"):
        jb.Items(item, item)
    with pytest.raises(ValueError, match="of another paper: other"):
        jb.Paper(
            id="t", title="t", statements=(), contents=jb.Items(jb.Item(id="other.x", kind="L"))
        )
