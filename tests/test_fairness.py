"""What is said about the papers: quoted, classed, with every hypothesis of theirs met.

The numbers are judged elsewhere (`test_papers`); here the words about them are held to their rules.
"""

import dataclasses
import importlib
import re
import warnings
from pathlib import Path

import pytest

import jaxbounds
from jaxbounds.claims.statements import Erratum
from jaxbounds.falsification import problems_of
from jaxbounds.papers import find_statement, load_paper, load_papers, select
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
        ({"items": {"Lemma 9": "none: no"}}, "'Lemma 9' has no reason"),
        ({"items": {"Lemma 9": "qstr.lem99"}}, "names qstr.lem99, which is neither"),
        (
            {"items": {"Lemma 9": "code: jaxbounds.numerics.norms.nothing"}},
            "norms.nothing, which no",
        ),
        ({"errata": ("typo", "gap")}, "in the order of their kinds"),
        ({"errata": ("false",)}, "is qstr.lem12, but no form cites"),
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
    for meets, words in (
        (None, "does not test the paper's"),
        (lambda i, s: {"n > 3": False}, "violates the hypotheses n >"),
    ):
        stored = dataclasses.replace(form.counterexample, meets=meets)
        wrong = dataclasses.replace(form, counterexample=stored, erratum="", cites="", note="x")
        one = dataclasses.replace(statement, forms=(wrong,))
        problems = problems_of(dataclasses.replace(paper, statements=(one,)))
        assert any(words in p for p in problems) and any("place in print" in p for p in problems)


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


NUMBERED = re.compile(r"^(Theorem|Lemma|Corollary|Proposition|Claim|Fact) ([A-Z]?\.?\d[\d.]*)$")


def named(item, text):
    """Whether a text names a numbered item, alone ("Lemma 24") or with others ("Lemmas 13, 15")."""
    kind, number = NUMBERED.match(item).groups()
    many = kind[:-1] + "ies" if kind.endswith("y") else kind + "s"
    end = rf"{re.escape(number)}(?!\d|\.\d)"
    return bool(re.search(rf"{kind} {end}|{many} [\w., ]*?\b{end}", text))


def of_the_claim(item, cites):
    """Whether a citation is of the item itself: a step of its proof is not what the item claims."""
    if not named(item, cites):
        return False
    item = re.escape(item)
    beside = rf"{item},? proof|proof of {item}(?!\d|\.\d)|(?:after|above|below) {item}"
    return not re.search(beside, cites)


def printed_forms(paper, about):
    ids = {part.strip() for part in about.split(",")}
    return [
        (s.id, form)
        for s in paper.statements
        if s.id in ids
        for form in s.forms
        if form.name.startswith("printed")
    ]


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_a_numbered_item_has_a_printed_form_that_cites_it_or_is_unchecked(paper):
    covered = {
        item: any(of_the_claim(item, form.cites) for _, form in printed_forms(paper, about))
        for item, about in paper.items.items()
        if NUMBERED.match(item)
    }
    unchecked = {item for item in covered if any(named(item, label) for label in paper.unchecked)}
    assert {item for item, found in covered.items() if not found} <= unchecked


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_what_a_printed_form_cites_lists_its_statement(paper):
    """The item that a printed form cites first names the form's statement in ITEMS."""
    for s in paper.statements:
        for form in s.forms:
            first = re.match(r"\w+ [A-Z]?\.?\d[\d.]*\b", form.cites)
            item = first and first.group().rstrip(".")
            if form.name.startswith("printed") and item and NUMBERED.match(item):
                about = [what for label, what in paper.items.items() if label.startswith(item)]
                assert any(s.id in what.split(", ") for what in about), (s.id, form.name, item)


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_every_statement_is_about_an_item(paper):
    listed = {part.strip() for about in paper.items.values() for part in about.split(",")}
    assert {s.id for s in paper.statements} <= listed


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_an_erratum_with_readings_is_shown_by_a_form_that_takes_the_false_one(paper):
    """`problems_of` compares the verdicts of such forms with the readings."""
    taken = {form.erratum for s in paper.statements for form in s.forms if form.reading}
    shown = {form.erratum for s in paper.statements for form in s.forms}
    readings = {e.id for e in paper.errata if e.kind == "reading"}
    assert taken == readings & shown


def test_readings_in_the_wrong_order_are_found():
    one = find_statement("multihead.eq116")
    paper = dataclasses.replace(load_paper("multihead"), items={}, statements=(one,))
    assert not any("reading" in problem for problem in problems_of(paper))
    errata = tuple(dataclasses.replace(e, readings=e.readings[::-1]) for e in paper.errata)
    problems = problems_of(dataclasses.replace(paper, errata=errata))
    assert any(
        "eq116 (printed, alpha = +-1) is expected to be 'fails', but takes the true" in problem
        for problem in problems
    )
    odd = dataclasses.replace(one.form("printed, alpha = +-1"), reading="no such words")
    statement = dataclasses.replace(one, forms=(odd,))
    problems = problems_of(dataclasses.replace(paper, statements=(statement,)))
    assert any("exactly one reading" in problem for problem in problems)


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_an_erratum_says_in_three_sentences_what_is_printed_why_it_is_false_and_what_is_right(
    paper,
):
    for erratum in paper.errata:
        assert len(re.split(r"(?<!\.)\.\s+", erratum.text)) == 3, (erratum.id, erratum.text)


PRONOUNS = re.compile(r"\b(it|its|they|them|their|this|these|those)\b", re.IGNORECASE)
QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"")
PRINTED = re.compile(r"\b(prints?|bounds|calls|concludes|fixes|lets|replaces|restates)\b")


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_an_outsider_reads_an_erratum_without_looking_back(paper):
    """The first sentence says what is printed, and no sentence has a pronoun for its subject."""
    for erratum in paper.errata:
        sentences = re.split(r"(?<!\.)\.\s+", QUOTED.sub("''", erratum.text))
        assert PRINTED.search(sentences[0]), (erratum.id, sentences[0])
        for sentence in sentences:
            assert not PRONOUNS.search(sentence), (erratum.id, sentence)
            assert not re.match(r"(What|Of|By|Where|With)\b", sentence), (erratum.id, sentence)
            assert len(sentence.split()) <= 75, (erratum.id, sentence)


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_slips_and_single_glyphs_change_no_main_theorem(paper):
    """The rule of `jaxbounds guide papers`, as far as a class decides."""
    for erratum in paper.errata:
        if erratum.kind in ("typo", "undecidable"):
            assert not erratum.changes_main, erratum.id


LETTERS = {
    "Theorem": "thm", "Lemma": "lem(?:ma)?", "Corollary": "cor", "Proposition": "prop",
    "Claim": "claim", "Fact": "fact",
}  # fmt: skip


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_the_plain_id_of_a_result_includes_its_printed_claim(paper):
    """`verify seqlength.lemma3.4` judges what the paper prints, wherever a form does."""
    for item, about in paper.items.items():
        if not (match := NUMBERED.match(item)):
            continue
        kind, number = match.groups()
        short = number.replace(".", "", 1) if number[1:2] == "." and number[0].isalpha() else number
        plain = rf"({paper.id}\.{LETTERS[kind]}{re.escape(short.lower())})(?:\.\w.*)?"
        bases = {m.group(1) for s in paper.statements if (m := re.fullmatch(plain, s.id))}
        cites = {s for s, form in printed_forms(paper, about) if named(item, form.cites)}
        for base in bases:
            chosen = {s.id for s in select(paper.statements, [base])}
            assert not cites or chosen & cites, (item, base, cites)


def _renamed_functions():
    """The rows of the guide's table of functions named after a result: module, was, is."""
    page = (Path(jaxbounds.__file__).parent / "guide" / "changes.md").read_text(encoding="utf8")
    table = page.split("## Functions named after a result")[1].split("\n## ")[0]
    for row in re.findall(r"^\| (`.*`) \| `(\w+)` \| `(\w+)` \|$", table, re.MULTILINE):
        for module in re.findall(r"`([\w/]+)`", row[0]):
            yield "jaxbounds." + module.replace("/", "."), *row[1:]


def test_a_name_that_changed_its_meaning_says_so_and_every_other_old_name_warns():
    rows = [*_renamed_functions()]
    taken = {(module, now) for module, _, now in rows}
    changed = {(module, was): now for module, was, now in rows if (module, was) in taken}
    assert {was for _, was in changed} == {"theorem_4_1", "alpha_4_1_1", "attention_expectation"}
    for module, was, now in rows:
        holder = importlib.import_module(module)
        if (module, was) in changed:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                function = getattr(holder, was)
            assert f"gave this name to `{now}`" in " ".join(function.__doc__.split()), was
        else:
            with pytest.warns(DeprecationWarning, match=now):
                assert getattr(holder, was) is getattr(holder, now)


@pytest.mark.slow_cases("multihead.onset", "qstr.prop28")
@pytest.mark.parametrize("id", ["multihead.onset", "qstr.lem20", "qstr.prop28"])
def test_a_form_that_rested_on_samples_alone_is_searched(id):
    """A search reaches worse instances than those drawn, or an equality case is attained."""
    for verdict in jaxbounds.falsify(find_statement(id)):
        assert verdict.status == "holds", verdict.form
        assert verdict.evidence in ("searched", "attained"), (verdict.form, verdict.evidence)
