"""Ill-formed statements and papers are refused with one message that says why."""

import dataclasses
import textwrap

import pytest

from jaxbounds.claims.statements import (
    Counterexample,
    Domain,
    Erratum,
    Form,
    Paper,
    Sides,
    Statement,
)
from jaxbounds.papers import load_paper, load_papers, select

GOOD = {
    "id": "mine.one",
    "label": "1",
    "formula": "0 <= 1",
    "kind": "inequality",
    "evaluate": lambda x, size: Sides(lhs=0.0, rhs={"printed": 1.0, "control": -1.0}),
    "sample": lambda key, size: {},
    "forms": (Form(name="printed"),),
    "control": "0 <= -1",
    "sizes": ({"d": 1},),
}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"id": "Mine"}, "paper.name"),
        ({"kind": "theorem"}, "kind must be one of"),
        ({"sizes": ()}, "sizes is empty"),
        ({"sample": {}}, "neither sample nor cases nor over"),
        ({"kind": "expectation", "control": " "}, "control=' ': the engine makes a control"),
        ({"level": 0.1}, "level=0.1 .* but only a probability has a level. Try level=None"),
        ({"forms": ()}, r"forms=\(\) is empty"),
        ({"forms": (Form(name="printed"), Form(name="printed"))}, "distinct"),
        ({"forms": (Form(name="mine"),)}, "must start with printed"),
        (
            {"forms": (Form(name="printed", expected="consistent"),)},
            "cannot have expected='consistent'",
        ),
        ({"forms": (Form(name="printed", expected="fails"),)}, "no note says why"),
        ({"forms": (Form(name="printed", expected="fails", note="x"),)}, "no counterexample"),
    ],
)
def test_ill_formed_statements(change, message, unannotated):
    with pytest.raises(ValueError, match=message):
        Statement(**(GOOD | change))


def _form(**given):
    return lambda: Form(**({"name": "printed"} | given))


BOX = {"name": "d", "chart": lambda p, s: {}, "size": {}, "lower": (0.0,), "upper": (1.0,)}


@pytest.mark.parametrize(
    "declare, message",
    [
        (_form(counterexample={"x": 1}), r"form 'printed': counterexample must be Counterexample"),
        (_form(domains=Domain(**BOX)), r"domains must be a tuple of Domain.*needs a comma"),
        (_form(name=3), "form 3: name must be str, got 3"),
        (_form(exponent=(1.0,)), "exponent must be a tuple of float or None"),
        (_form(hypotheses="x > 0"), "hypotheses must be a function or None, got 'x > 0'"),
        (lambda: Counterexample(instance=[1], size={}, ratio=2.0), "instance must be a dict"),
        (lambda: Counterexample(instance={}, size={}, ratio="2"), "ratio must be float"),
        (lambda: Domain(**BOX | {"chart": {}}), "domain 'd': chart must be a function"),
        (lambda: Statement(**GOOD | {"evaluate": None}), "'mine.one': evaluate must be a function"),
        (lambda: Paper(id="mine", title=None, statements=()), "title must be str, got None"),
    ],
)
def test_declarations_check_their_types_where_they_are_written(declare, message, unannotated):
    with pytest.raises(TypeError, match=message):
        declare()


def test_a_word_that_is_none_names_those_that_are(unannotated):
    with pytest.raises(ValueError, match="expected must be one of 'holds', 'fails'"):
        Form(name="printed", expected="true")


def test_papers_refuse_strangers_and_repetitions(unannotated):
    statement = Statement(**GOOD)
    with pytest.raises(ValueError, match="several statements of id="):
        Paper(id="mine", title="", statements=(statement, statement))
    with pytest.raises(ValueError, match="statements of another paper"):
        Paper(id="yours", title="", statements=(statement,))
    form = Form(name="printed", erratum="E1")
    given = {
        "id": "E1", "where": "eq. (1)", "kind": "typo", "quote": "a = a", "text": "a = b is meant",
        "consequence": "none", "main": "survive", "evidence": "by reading",
    }  # fmt: skip
    erratum = Erratum(**given)
    for wrong, message in (
        ({"kind": "proof"}, "kind must be one of 'false', 'gap', 'reading', 'typo'"),
        ({"quote": " "}, "has quote=' '"),
        ({"main": "stand"}, "Try 'survive'"),
        ({"kind": "reading"}, "two readings"),
        ({"readings": ("so", "or so")}, "two readings"),
    ):
        with pytest.raises(ValueError, match=message):
            Erratum(**(given | wrong))
    cited = dataclasses.replace(statement, forms=(form,))
    with pytest.raises(ValueError, match="unknown erratum"):
        Paper(id="mine", title="", statements=(cited,))
    with pytest.raises(ValueError, match="the results that remain true"):
        Paper(id="mine", title="", statements=(cited,), errata=(erratum,))
    heavy = Erratum(**(given | {"id": "E2", "kind": "false"}))
    paper = Paper(
        id="mine", title="", statements=(cited,), errata=(erratum, heavy), survives="The rest."
    )
    assert [e.id for e in paper.by_weight] == ["E2", "E1"]


def test_select_by_id_prefix_and_pattern():
    one, two = Statement(**GOOD), Statement(**(GOOD | {"id": "mine.one.b"}))
    assert select((one, two)) == (one, two)
    assert select((one, two), ("mine.one",)) == (one, two)
    assert select((one, two), ("*.b",)) == (two,)
    with pytest.raises(ValueError, match=r"Try mine\.one"):
        select((one, two), ("mine.on",))


def test_loading_papers_from_files(tmp_path):
    with pytest.raises(ValueError, match="no file"):
        load_paper(str(tmp_path / "no.py"))
    with pytest.raises(ValueError, match="no module"):
        load_paper("there_is_no_such_module")
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1")
    with pytest.raises(ValueError, match="defines no PAPER"):
        load_paper(str(empty))
    clash = tmp_path / "clash.py"
    clash.write_text(
        textwrap.dedent(
            """
            from jaxbounds.claims.statements import Paper
            PAPER = Paper(id="multihead", title="", statements=())
            """
        )
    )
    with pytest.raises(ValueError, match="more than one paper"):
        load_papers((str(clash),))


def test_a_search_would_leave_cases_that_are_all_there_are():
    """Along slopes the entries of a listed sign vector become anything."""
    given = GOOD | {"sample": {}, "enumerates": "all", "cases": lambda size: {"x": [1.0, -1.0]}}
    assert Statement(**given).search == "none"
    with pytest.raises(ValueError, match="Try search='none'"):
        Statement(**given, search="gradient")
