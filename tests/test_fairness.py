"""What is said about the papers: quoted, classed, with every hypothesis of theirs met.

The numbers are judged elsewhere (`test_papers`); here the words about them are held to their rules.
"""

import dataclasses
import re

import pytest

from jaxbounds.claims.statements import Erratum
from jaxbounds.falsification import problems_of
from jaxbounds.papers import find_statement, load_paper, load_papers
from jaxbounds.report.formula import formula

ALL = load_papers()


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_the_rules_of_every_paper(paper):
    """Those of the shipped ones and of a user's: `pytest` asks them of both."""
    assert problems_of(paper) == ()
    assert len(paper.items) > 20 and paper.edition and paper.links and paper.bibtex


SOMETHING = {
    "where": "Lemma 1", "quote": "x", "text": "y", "consequence": "none", "main": "survive",
}  # fmt: skip


@pytest.mark.parametrize(
    "change, words",
    [
        ({"items": {"Lemma 9": "none: no"}}, "'Lemma 9' is left out without a reason"),
        ({"items": {"Lemma 9": "qstr.lem99"}}, "names qstr.lem99, which is no statement"),
        (
            {"items": {"Lemma 9": "code: jaxbounds.numerics.norms.nothing"}},
            "norms.nothing, which is not",
        ),
        ({"errata": ("typo", "gap")}, "errata stand by weight"),
        ({"errata": ("false",)}, "rests on qstr.lem12 but no form cites it"),
    ],
)
def test_each_rule_finds_what_breaks_it(change, words):
    paper = load_paper("qstr")
    kinds = change.pop("errata", ())
    errata = tuple(
        Erratum(id=f"E{i}", kind=kind, evidence="qstr.lem12", **SOMETHING)
        for i, kind in enumerate(kinds)
    )
    few = tuple(s for s in paper.statements if s.id == "qstr.lem12")
    plain = dataclasses.replace(paper, statements=few, items={}, errata=(), unjudged={})
    assert problems_of(plain) == ()
    (problem,) = problems_of(dataclasses.replace(plain, errata=errata, **change))
    assert words in problem


def test_a_counterexample_outside_of_the_hypotheses_is_found():
    statement = find_statement("multihead.eq51")
    form = statement.form("printed")
    paper = dataclasses.replace(load_paper("multihead"), items={}, errata=(), statements=())
    for meets, words in ((None, "name the paper's"), (lambda i, s: {"n > 3": False}, "misses n >")):
        stored = dataclasses.replace(form.counterexample, meets=meets)
        wrong = dataclasses.replace(form, counterexample=stored, erratum="", cites="", note="x")
        one = dataclasses.replace(statement, forms=(wrong,))
        problems = problems_of(dataclasses.replace(paper, statements=(one,)))
        assert any(words in p for p in problems) and any("say where" in p for p in problems)


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_every_formula_is_set(paper):
    """Nothing of LaTeX is left over in what a reader sees."""
    for statement in paper.statements:
        assert statement.tex, f"{statement.id} has no tex"
        shown = re.sub(r"<[^>]*>", "", formula(statement))
        assert not re.search(r"[\\$_]|\b(le|ge|sqrt|frac|infty)\b", shown), (
            statement.id,
            shown,
        )
