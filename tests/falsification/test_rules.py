"""What is asked of a paper's declarations, rule by rule: just met, and just missed."""

import numpy as np
import pytest
from stubs import statement

import jaxbounds as jb
from jaxbounds.claims.statements import Counterexample, Form
from jaxbounds.falsification.rules import problems_of


def _paper(*forms, id="mine.claim", host=True, **options):
    claim = statement(id=id, forms=forms or (Form(name="printed"),), host=host)
    return jb.Paper(id="mine", title="Mine", statements=(claim,), **options)


def _erratum(id="E1", kind="false", evidence="mine.claim", **options):
    readings = {"readings": ("false", "true")} if kind == "reading" else {}
    return jb.Erratum(
        id=id, where="Lemma 1", kind=kind, quote="f <= g", text="no", consequence="none",
        main="survive", evidence=evidence, **(readings | options),
    )  # fmt: skip


def test_a_plain_paper_has_no_problem():
    assert problems_of(_paper()) == ()


@pytest.mark.parametrize("what, problem", [
    ("none: a definition", None),
    ("none: absent.", None),  # seven letters are a reason, six are none
    ("none: absent", "has no reason"),
    ("none: ", "has no reason"),
    ("code: json", None),
    ("code: json.loads, jaxbounds.falsification.bench.Bench.one", None),
    ("code: json.loads,jaxbounds.numerics.norms", None),
    ("code: json, json.no_such", "names json.no_such, which no module defines"),
    ("code: json.no_such.deeper", "names json.no_such.deeper, which no module defines"),
    ("code: no_such_module", "names no_such_module, which no module defines"),
    ("code: no_such_module.inner", "names no_such_module.inner, which no module defines"),
    ("mine.claim", None),
    ("mine.claim, E1", None),
    ("mine.claim,E1", None),
    ("mine.claim, E2", "names E2, which is neither a statement nor an erratum"),
    ("mine.other", "names mine.other, which is neither a statement nor an erratum"),
])  # fmt: skip
def test_an_item_is_judged_in_code_or_left_out_with_a_reason(what, problem):
    errata = {"errata": (_erratum(kind="gap"),), "survives": "all"}
    found = problems_of(_paper(items={"Lemma 1": what}, **errata))
    assert found == () if problem is None else len(found) == 1 and problem in found[0]
    if problem is not None:
        assert found[0].startswith("item 'Lemma 1' ")


def test_every_name_that_is_not_there_is_told():
    found = problems_of(_paper(items={"a": "mine.y, mine.x", "b": "code: no_such, json"}))
    assert [one.split(" names ")[1].split(",")[0] for one in found] == [
        "mine.x",
        "mine.y",
        "no_such",
    ]


KINDS = ("false", "gap", "reading", "typo", "undecidable")


@pytest.mark.parametrize("kinds, stands", [
    (KINDS, True), (("gap", "gap"), True), (("typo", "gap"), False),
    (("gap", "undecidable", "typo"), False), (("gap", "false"), False),
])  # fmt: skip
def test_errata_stand_by_weight(kinds, stands):
    errata = [_erratum(f"E{i}", kind, "by hand") for i, kind in enumerate(kinds)]
    found = problems_of(_paper(errata=tuple(errata), survives="all"))
    assert (found == ()) == stands
    if not stands:
        assert found == (
            "the errata must be in the order of their kinds: false, gap, reading, typo, "
            "undecidable",
        )


@pytest.mark.parametrize(
    "evidence, stranger",
    [
        ("mine.claim", None),
        ("see mine.claim, by hand", None),
        ("by mine.other-1.x", "mine.other-1.x"),
        ("yours.other", None),
        ("mine.claim and mine.x2.", "mine.x2"),
        ("jasmine.claims", None),
    ],
)
def test_an_erratum_rests_on_what_exists(evidence, stranger):
    found = problems_of(_paper(errata=(_erratum(kind="gap", evidence=evidence),), survives="all"))
    wanted = (
        ()
        if stranger is None
        else (f"the evidence of erratum E1 names {stranger}, which is no statement",)
    )
    assert found == wanted


@pytest.mark.parametrize("kind, evidence, cites, told", [
    ("false", "mine.claim", "", True),
    ("false", "mine.claim", "E1", False),  # a form shows it
    ("false", "mine.claim, mine.claim", "", True),
    ("false", "by hand", "", False),  # no statement can
    ("false", "mine.claim and by hand", "", False),
    ("gap", "mine.claim", "", False),
])  # fmt: skip
def test_what_is_false_is_shown_by_a_form_where_a_statement_can(kind, evidence, cites, told):
    form = Form(name="printed", erratum=cites)
    errata = {"errata": (_erratum(kind=kind, evidence=evidence),), "survives": "all"}
    found = problems_of(_paper(form, **errata))
    assert [("but no form cites the erratum" in one) for one in found] == ([True] if told else [])


@pytest.mark.parametrize("name, cites, citation, told", [
    ("printed", "", "A. Author", True), ("printed", "  ", "A. Author", True),
    ("printed", "(1)", "A. Author", False), ("printed", "", "", False),
    ("derived", "", "A. Author", False), ("printed early", "", "A. Author", True),
])  # fmt: skip
def test_what_is_called_printed_says_where_if_the_paper_is_cited(name, cites, citation, told):
    found = problems_of(_paper(Form(name=name, cites=cites), citation=citation))
    words = f"mine.claim ({name}) is a printed form without a place in print. Try cites=..."
    assert found == ((words,) if told else ())


def _stored(meets):
    return Counterexample(instance={"x": [1.0, 2.0]}, size={"d": 2}, ratio=2.0, meets=meets)


@pytest.mark.parametrize("host", [True, False])
@pytest.mark.parametrize("expected, flags, says", [
    ("fails", None, "the counterexample does not test the paper's hypotheses. Try meets=..."),
    ("holds", None, None),
    ("fails", {"a": True, "b": np.array([True, True])}, None),
    ("fails", {"a": True, "b": np.array([True, False])},
     "the counterexample violates the hypotheses b"),
    ("fails", {"a": False, "b": True, "c": False},
     "the counterexample violates the hypotheses a, c"),
    ("holds", {"a": False}, None),
])  # fmt: skip
def test_a_counterexample_meets_all_that_the_paper_assumes(host, expected, flags, says):
    given = []

    def meets(instance, size):
        given.append((instance["x"], size["d"]))
        return flags

    form = Form(name="printed", expected=expected, note="n",
                counterexample=_stored(None if flags is None else meets))  # fmt: skip
    found = problems_of(_paper(form, host=host))
    assert found == (() if says is None else (f"mine.claim (printed): {says}",))
    for x, d in given:  # as `evaluate` would get it
        assert isinstance(x, np.ndarray) == host and d == 2 and x.dtype == np.float64


def test_a_form_that_fails_needs_no_counterexample_here():
    claim = statement(
        kind="probability", level=0.1, forms=(Form(name="printed", expected="fails", note="n"),)
    )
    assert problems_of(jb.Paper(id="mine", title="Mine", statements=(claim,))) == ()
