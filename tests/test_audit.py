"""The audit of a paper: nothing is left out, every link leads somewhere, no text is markup."""

import dataclasses
import html.parser
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxbounds as jb
from jaxbounds.claims.statements import Paper
from jaxbounds.cli import main
from jaxbounds.falsification import unmeasured
from jaxbounds.papers import PAPERS, load_paper
from jaxbounds.report import audit as audits
from jaxbounds.report.markdown import block, bullets, code, quoted, table, text, to_html
from jaxbounds.report.tex import parts

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
    indices = lambda sentence: re.sub(r"[_^]\{([^{}]*)\}", r"\1", sentence)
    has = lambda sentence: re.sub(r"\s", "", indices(sentence)).rstrip(".") in words
    for s in paper.statements:
        assert has(s.id) and has(s.label) and has(s.control) and has(f"verify {s.id} --seed 0")
        assert all(has(form.note) for form in s.forms)
    for e in paper.errata:
        assert all(has(p.words) for p in parts(e.quote) if not p.is_tex)
        assert has(e.text) and has(e.consequence) and has(e.main)
    assert all(has(label) and has(why) for label, why in paper.unchecked.items())
    assert all(has(label) for label in [*paper.items, *paper.remarks])
    set_in_quotes = sum(p.is_tex for e in paper.errata for p in parts(e.quote))
    assert page.tags.count("math") == sum(bool(s.tex) for s in paper.statements) + set_in_quotes
    if name == "seqlength":
        assert set_in_quotes >= 17 and "\\left" not in words
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


def _changed(verdict, **more):
    return dataclasses.replace(verdict, **more)


def test_the_digest_is_of_what_was_found_wherever_it_was_found():
    paper = load_paper("qstr")
    blank = _audit(paper).verdicts
    one = _audit(paper)._replace(
        verdicts=tuple(
            _changed(v, status=v.expected, worst_ratio=0.123456 * (1 + i), seconds=1.0)
            for i, v in enumerate(blank)
        )
    )
    # The sixth digit, the seconds and the order are those of another machine.
    there = one._replace(
        settings=SETTINGS | {"jaxbounds": "9.9", "jax": "0.1", "machine": "another"},
        verdicts=tuple(
            _changed(v, worst_ratio=v.worst_ratio + 1e-6, seconds=2.0)
            for v in reversed(one.verdicts)
        ),
    )
    assert one.digest == there.digest
    first = next(v for v in one.verdicts if v.relation == "<=")
    for more in (
        {"status": "inconclusive"}, {"evidence": "attained"}, {"form": "other"}, {"id": "qstr.no"},
        {"worst_ratio": first.worst_ratio * 1.1}, {"worst_ratio": float("nan")},
    ):  # fmt: skip
        other = [_changed(v, **more) if v is first else v for v in one.verdicts]
        assert one._replace(verdicts=tuple(other)).digest != one.digest, more
    # What is left of an identity is rounding, which is no finding; where it fails it is one.
    exact = [
        _changed(first, relation="=", status=status, worst_ratio=ratio)
        for status in ("holds", "fails")
        for ratio in (1e-16, 0.3)
    ]
    digests = [one._replace(verdicts=(v,)).digest for v in exact]
    assert digests[0] == digests[1] and len(set(digests)) == 3


def test_an_audit_says_what_was_read_and_how_to_cite():
    paper = load_paper("qstr")
    bad = {"bad": "javascript:alert(1)", "worse": "https://x/)](javascript:alert(1)"}
    audit = _audit(dataclasses.replace(paper, links={**paper.links, **bad}))
    page = _Reader(to_html(audits.markdown(audit)))
    words = " ".join("".join(page.words).split())
    assert f"Read: {paper.edition.rstrip('.')}" in words
    assert " ".join(paper.bibtex.split()) in words
    assert [link for link in page.links if link.startswith("http")] == list(paper.links.values())
    assert not [link for link in page.links if link.startswith("javascript")]
    assert f"digest {audit.digest[:16]}" in words
    head = "11 errata: 2 false, 3 gaps, 3 readings, 1 typo, 2 undecidable"
    assert f"{head}; 1 changes a main theorem: qstr E1." in words


def test_a_false_twin_is_no_finding_and_no_form_of_the_paper():
    made = jb.claim("mine.twin", 0.5, "<=", 1.0, over={}, false={"a third": 0.3})
    paper = Paper(id="mine", title="Mine", statements=(made,))
    verdicts = unmeasured(made, "not tried")
    assert [v.form for v in verdicts if v.is_twin] == ["false a third"]

    def cited(**statuses):
        found = tuple(dataclasses.replace(v, status=statuses[v.form.split()[0]]) for v in verdicts)
        return audits.markdown(audits.Audit(paper, found, SETTINGS, Path("out")))

    page = cited(printed="holds", false="fails")
    assert '"Mine": mine.twin (printed) holds; seed' in page
    assert "1 statement of the paper in 1 form were measured" in page
    assert "sharpened, and 1 false twin." in page
    assert '"Mine": mine.twin (printed) fails; seed' in cited(printed="fails", false="fails")
    alone = tuple(v for v in verdicts if v.is_twin)
    assert '"Mine": seed 0, digest' in audits.markdown(
        audits.Audit(paper, alone, SETTINGS, Path("out"))
    )


BY_ZERO = """
import jax.numpy as jnp
import jaxbounds as jb

def left(x):
    return 2 + x**2

GIVEN = {
    "over": {"x": jb.Box(-1, 1, ())}, "budget": jb.Budget(samples=32, restarts=1, steps=10)
}
PAPER = jb.Paper(id="zero", title="Zero", statements=(
    jb.claim("zero.below", left, "<=", lambda x: 0.0 * x, **GIVEN),
    jb.claim("zero.above", lambda x: -1 - x**2, ">=", left, **GIVEN),
    jb.claim("zero.quotient", left, "<=", 1.0, **GIVEN),
))
"""


def test_a_counterexample_to_a_bound_by_zero_shows_its_sides(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("zero.py").write_text(BY_ZERO)
    main(["audit", "zero", "--import", "zero.py", "--out", "out", "--jobs", "1", "--no-certify"])
    page = (tmp_path / "out" / "audit.md").read_text()
    assert "Counterexample, the left side 2.000 against the right side 0: " in page
    assert "Counterexample, the left side -1.000 against the right side 2.000: " in page
    assert "Counterexample, ratio 2.000: " in page
    report = (tmp_path / "out" / "report.html").read_text()
    assert "made small, the left side 2.000 against the right side 0" in report
    assert "printed: the left side 2.000 against the right side 0" in capsys.readouterr().out
    stored = jb.load_instance("out/counterexamples/zero.above.printed.npz")
    assert (stored.meta["lhs"], stored.meta["rhs"]) == (-1.0, 2.0)
    assert jb.replay("out/counterexamples/zero.above.printed.npz", imports=["zero.py"])


def test_the_formulas_of_a_quote_are_set():
    for words, formulas in (
        (r"\frac{a}{b} \le \|W\|_{2,\infty}", 1),
        (r"Let $q \in \mathbb{R}$, * and $$\sqrt{C} < 1$$ [x](y)", 2),
        (r"the (k_1, \ldots, k_d) that fit the criteria of $5", 1),
        (r"cut here: \left( \frac{a}{b}", 1),
        (r"a_1_2 \le b_1", 0),
        ("costs $5 and $6", 0),
    ):
        page = _Reader(to_html(quoted(words)))
        assert page.tags.count("math") == formulas, words
        assert ("\\" in "".join(page.words)) == (formulas == 0 and "\\" in words), words
    page = to_html(text("the norm ||W||_{2,inf} <b> and x^{i-1}"))
    assert "||W||<sub>2,inf</sub> &lt;b&gt; and x<sup>i-1</sup>" in page


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
    assert f"digest {digest[:16]}" in source
    recompute = re.search(r"```python\n(.*?)```", source, re.DOTALL)[1]
    command_line = [sys.executable, "-I", "-c", recompute, "for/them/verdicts.json"]
    assert subprocess.check_output(command_line, text=True).strip() == digest
    assert digest[:16] in first.out and json.loads(Path("for/them/verdicts.json").read_text())
    for words in (
        "**fails**, off by 60.0%", "Theorem 2 has 2 for 5.", "{'x': 1.0}", "disproved",
        "[counterexamples/mine.double.printed.json](counterexamples/mine.double.printed.json)",
        "`jaxbounds replay for/them/counterexamples/mine.double.printed.npz --import own.py`",
        "`jaxbounds verify mine.double --seed 0 --import own.py`", "**Remark 1**: it is a remark",
    ):  # fmt: skip
        assert words in source, words
    assert Path("for/them/counterexamples/mine.double.printed.json").is_file()
    page = Path("for/them/audit.html").read_text()
    assert "default-src 'none'" in page and "<script" not in page and "://" not in page
    assert main(command) == 0  # nothing changed: nothing is judged, and it is the same text
    again = capsys.readouterr()
    assert "mine.double" not in again.err and Path("for/them/audit.md").read_text() == source
    assert "jaxbounds audit mine --seed 0 --out for/them --import own.py" in source
    shown = re.search(r"`jaxbounds (replay [^`]*)`", source)[1]
    assert main(shlex.split(shown)) == 0  # as pasted, in the folder of the audit's caller


def test_an_audit_never_mixes_papers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(CLAIMS.replace("mine", "yours"))
    assert main(["audit", "yours", "--import", "own.py", "--out", "x", "--jobs", "1"]) == 0
    Path("other.py").write_text(CLAIMS.replace("mine", "theirs"))
    capsys.readouterr()
    assert main(["audit", "theirs", "--import", "other.py", "--out", "x"]) == 2
    assert "x holds verdicts on yours" in capsys.readouterr().err


STOPS = """
import os
import jaxbounds as jb

def evaluate(instance, size):
    if not os.path.exists("go"):
        raise KeyboardInterrupt
    return jb.Sides(lhs=size["n"], rhs={"printed": size["n"] + 1, "control": size["n"] - 1})

ONE = jb.claim("mine.one", 1, "<=", 2, over={})
TWO = jb.Statement(id="mine.two", label="2", formula="n <= n + 1", kind="inequality", control="n-1",
    over={}, evaluate=evaluate, host=True, sizes=({"n": 4},), forms=(jb.Form(name="printed"),))
PAPER = jb.Paper(id="mine", title="Mine", statements=(ONE, TWO))
"""


def test_a_stopped_audit_keeps_its_verdicts_and_says_that_it_is_incomplete(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(STOPS)
    command = ["audit", "mine", "--import", "own.py", "--out", "x", "--jobs", "1", "--no-certify"]
    assert main(command) == 1
    page = Path("x/audit.md").read_text()
    assert "**Incomplete**: the run stopped before it judged 1 of 2 statements: `mine.two`" in page
    assert "### mine.one" in page and "### mine.two" not in page
    assert "audit.md is incomplete: the run did not judge 1 statement." in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        jb.audit("own.py", out="y", jobs=1, certify=False)
    assert "mine.two" in Path("y/audit.md").read_text()
    Path("go").touch()
    main(command)
    assert "1/2 mine.one" not in capsys.readouterr().err  # its verdict was kept
    page = Path("x/audit.md").read_text()
    assert "Incomplete" not in page and "### mine.two" in page


@pytest.mark.slow
def test_a_paper_that_is_not_there_is_one_sentence(capsys):
    assert main(["audit", "nothing"]) == 2
    error = capsys.readouterr().err
    assert "no paper has id='nothing'" in error
    assert error.count("\n") == 1
