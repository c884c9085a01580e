"""The audit of a paper: nothing is left out, every link leads somewhere, no text is markup."""

import dataclasses
import html.parser
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxbounds.cli import main
from jaxbounds.falsification import unmeasured
from jaxbounds.papers import PAPERS, load_paper
from jaxbounds.report import audit as audits
from jaxbounds.report.markdown import block, bullets, code, table, text, to_html
from jaxbounds.statements import Paper

SETTINGS = {"jaxbounds": "0.0", "seed": 0, "thorough": False, "certify": False}
HOSTILE = "<script>alert(1)</script> [x](javascript:alert) *a* _b_ `c` $d$ | &lt; \\ ![i](x)"


class _Reader(html.parser.HTMLParser):
    """The words of a page and its tags, by Python's own parser."""

    def __init__(self, page):
        super().__init__()
        self.words, self.tags, self.ids, self.links = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        self.links += [value for name, value in attributes if name == "href"]

    def handle_data(self, data):
        self.words.append(data)


SENTENCES = st.text(
    st.sampled_from(list("ab1 _*`[]()<>|$~&#+-=.!:/\\\n?γ∑")), min_size=1, max_size=30
)


@given(words=SENTENCES | st.just(HOSTILE))
def test_words_stay_words(words):
    """CommonMark's own reader gives back what was put in, wherever it stands."""
    plain = " ".join(words.split())
    for source, tags in (
        (text(words), {"p"}),
        (f"so {text(words)}", {"p"}),
        (bullets([f"a: {text(words)}"]), {"ul", "li"}),
        (table(["a"], [[f"x {text(words)}"]]), {"table", "thead", "tbody", "tr", "th", "td"}),
        (f"x {code(words)}" if plain else "", {"p", "code"}),
    ):
        page = _Reader(to_html(source))
        assert set(page.tags) <= tags, source
        assert " ".join(" ".join(page.words).split()).endswith(plain.strip()), source


def test_formulas_become_mathml_and_other_blocks_stay():
    page = to_html(block(r"\frac{1}{2} \le x", "math") + "\n\n" + block("a ``` b <i>"))
    assert "<mfrac>" in page and "a ``` b &lt;i&gt;" in page
    with pytest.raises(ValueError, match="tex cannot be read"):
        to_html(block(r"\left( x", "math"))


def _audit(paper, **changed):
    """As if nothing could be measured: what a paper says is there whatever was found."""
    verdicts = tuple(v for s in paper.statements for v in unmeasured(s, "not tried"))
    return audits.Audit(paper, verdicts, SETTINGS | changed, Path("out"))


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in PAPERS if name != "qstr"]


@pytest.mark.parametrize("name", ["qstr", *SLOW])
def test_all_of_a_paper_is_in_its_audit(name):
    paper = load_paper(name)
    source = audits.markdown(_audit(paper))
    page = _Reader(to_html(source))
    words = re.sub(r"\s", "", "".join(page.words))
    has = lambda sentence: re.sub(r"\s", "", sentence).rstrip(".") in words
    for s in paper.statements:
        assert has(s.id) and has(s.label) and has(s.control) and has(f"verify {s.id} --seed 0")
        assert all(has(form.note) for form in s.forms)
    for e in paper.errata:
        assert has(e.quote) and has(e.text) and has(e.consequence) and has(e.main)
    assert all(has(label) and has(why) for label, why in paper.unchecked.items())
    assert all(has(label) for label in [*paper.items, *paper.remarks])
    assert page.tags.count("math") == sum(bool(s.tex) for s in paper.statements)
    assert len(set(page.ids)) == len(page.ids)
    assert {link for link in page.links if link.startswith("#")} <= {f"#{i}" for i in page.ids}


def test_a_hostile_paper_is_words():
    paper = load_paper("qstr")
    one = dataclasses.replace(
        paper.statements[0], id="mine.one", formula=HOSTILE, tex="", control=HOSTILE
    )
    paper = Paper(id="mine", title=HOSTILE, statements=(one,), unchecked={HOSTILE: HOSTILE})
    page = _Reader(to_html(audits.markdown(_audit(paper))))
    assert "script" not in page.tags and "img" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert "".join(page.words).count("<script>alert(1)</script>") >= 5


def test_the_digest_is_of_what_was_found():
    paper = load_paper("qstr")
    one = _audit(paper)
    slower = one._replace(
        verdicts=tuple(dataclasses.replace(v, seconds=v.seconds + 1) for v in one.verdicts)
    )
    other = one._replace(
        verdicts=(dataclasses.replace(one.verdicts[0], status="holds"), *one.verdicts[1:])
    )
    assert one.digest == slower.digest
    assert len({one.digest, other.digest, _audit(paper, seed=1).digest}) == 3


CLAIMS = """
import numpy as np
import jaxbounds as jb

def double(x):
    return 5 * x

def evaluate(instance, size):
    x = instance["x"]
    return jb.Sides(lhs=x + x, rhs={"printed": double(x), "corrected": 2 * x, "control": 3 * x})

DOUBLE = jb.Statement(
    id="mine.double", label="Lemma 1", formula="x + x = 5 x", kind="identity", judges=(double,),
    cases=lambda size: {"x": np.arange(1.0, 5.0)}, evaluate=evaluate, host=True, sizes=({"n": 4},),
    forms=(
        jb.Form(name="printed", expected="fails", erratum="E1", note="five is two",
                counterexample=jb.Counterexample(instance={"x": 1.0}, size={"n": 4}, ratio=0.6)),
        jb.Form(name="corrected"),
    ),
    control="3 x",
)
E1 = jb.Erratum(id="E1", where="Lemma 1", kind="false", quote="x + x = 5 x", text="2 is meant.",
                consequence="Theorem 2 has 2 for 5.", main="survive", evidence="mine.double")
PAPER = jb.Paper(id="mine", title="Mine", statements=(DOUBLE,), errata=(E1,), survives="The rest.",
                 unchecked={"Remark 1": "it is a remark"})
"""


def test_audit_judges_once_and_writes_both_pages(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(CLAIMS)
    command = ["audit", "mine", "--import", "own.py", "--out", "for/them", "--jobs", "1"]
    assert main(command) == 0
    first = capsys.readouterr()
    assert "1/1 mine.double" in first.err
    source = Path("for/them/audit.md").read_text()
    digest = re.search(r"\(SHA-256\): `(\w{64})`", source)[1]
    assert digest[:16] in first.out and json.loads(Path("for/them/verdicts.json").read_text())
    for words in (
        "**fails**, off by 60.0%", "Theorem 2 has 2 for 5.", "{'x': 1.0}", "disproved",
        "[counterexamples/mine.double.printed.json](counterexamples/mine.double.printed.json)",
        "`jaxbounds replay them/counterexamples/mine.double.printed.npz --import own.py`",
        "`jaxbounds verify mine.double --seed 0 --import own.py`", "**Remark 1**: it is a remark",
    ):  # fmt: skip
        assert words in source, words
    assert Path("for/them/counterexamples/mine.double.printed.json").is_file()
    page = Path("for/them/audit.html").read_text()
    assert "default-src 'none'" in page and "<script" not in page and "://" not in page
    assert main(command) == 0  # nothing changed: nothing is judged, and it is the same text
    again = capsys.readouterr()
    assert "mine.double" not in again.err and Path("for/them/audit.md").read_text() == source
    monkeypatch.chdir("for")
    stored = "them/counterexamples/mine.double.printed.npz"
    assert main(["replay", stored, "--import", "../own.py"]) == 0


def test_an_audit_never_mixes_papers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(CLAIMS.replace("mine", "yours"))
    assert main(["audit", "yours", "--import", "own.py", "--out", "x", "--jobs", "1"]) == 0
    Path("other.py").write_text(CLAIMS.replace("mine", "theirs"))
    capsys.readouterr()
    assert main(["audit", "theirs", "--import", "other.py", "--out", "x"]) == 2
    assert "x holds verdicts on yours" in capsys.readouterr().err


@pytest.mark.slow
def test_a_paper_that_is_not_there_is_one_sentence(capsys):
    assert main(["audit", "nothing"]) == 2
    error = capsys.readouterr().err
    assert "no paper 'nothing'; there are: multihead" in error and error.count("\n") == 1
