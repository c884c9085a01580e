"""Old ids, forms and functions: each finds what took its place, and warns."""

import dataclasses
import importlib
import json

import pytest

from jaxbounds.claims import renamed
from jaxbounds.claims.records import RATIOS, read_records
from jaxbounds.claims.statements import Paper
from jaxbounds.falsification.engine import StoredInstance, replay
from jaxbounds.ground import renamed as functions
from jaxbounds.papers import find_statement, load_papers, select

ALL = load_papers()
IDS = {s.id for paper in ALL for s in paper.statements}


def test_every_old_id_has_a_statement_now_and_none_has_both():
    assert set(renamed.STATEMENTS.values()) <= IDS
    assert not set(renamed.STATEMENTS) & IDS
    assert len(set(renamed.STATEMENTS.values())) == len(renamed.STATEMENTS)


def test_parts_of_an_id_stand_between_dots():
    assert [name for name in IDS if "-" in name] == []


def test_an_old_id_warns_and_finds_the_statement():
    old, now = next(iter(renamed.STATEMENTS.items()))
    with pytest.warns(DeprecationWarning, match="is now called"):
        assert find_statement(old).id == now
    statements = [s for paper in ALL for s in paper.statements]
    with pytest.warns(DeprecationWarning, match=f"is now called {now}"):
        assert now in {s.id for s in select(statements, [old])}


def test_a_pattern_goes_on_at_a_dot_or_a_dash():
    one = find_statement("qstr.lem37")
    own = [dataclasses.replace(one, id=f"mine.{name}") for name in ("a", "a.b", "a-b", "ab")]
    assert [s.id for s in select(own, ["mine.a"])] == ["mine.a", "mine.a.b", "mine.a-b"]


def test_old_forms_are_forms_now():
    for (statement, old), now in renamed.FORMS.items():
        names = {form.name for form in find_statement(statement).forms}
        assert now in names and old not in names, (statement, old)


def test_an_instance_stored_under_old_names_is_replayed():
    meta = {"id": "qstr.thm10.rate", "form": "printed", "size": {}, "ratio": "1.0"}
    statement, ratios, before = replay(find_statement, StoredInstance({"n": 2.0**30}, meta))
    assert statement.id == "qstr.thm10.rate" and before == 1.0 and ratios["derived"] > 0


def test_records_under_old_ids_are_read(tmp_path):
    old, now = next(iter(renamed.STATEMENTS.items()))
    (tmp_path / RATIOS).write_text(json.dumps({old: {"printed": {"worst": 1.0}}}))
    paper = Paper(id="multihead", title="-", statements=(), folder=tmp_path)
    assert read_records(paper, RATIOS) == {now: {"printed": {"worst": 1.0}}}


@pytest.mark.parametrize(
    ("module", "old", "now"),
    [
        ("seqlength.single_layer", "theorem_4_1_printed", "theorem_4_1"),
        ("seqlength.single_layer", "alpha_4_1_1_printed", "alpha_4_1_1"),
        ("seqlength.multi_layer", "theorem_4_2_printed", "theorem_4_2"),
        ("seqlength.multi_layer", "constants_4_2_1", "constants_4_2_1_corrected"),
        ("seqlength.logarithmic_entropy", "corollary_D_0_2", "corollary_D_0_2_explicit"),
        ("seqlength.linear_bounds", "lemma_3_5_leading", "lemma_3_5_corrected_leading"),
        ("seqlength.sparsification", "maurey_printed", "maurey"),
        ("qstr.packing", "maurey_printed", "maurey"),
    ],
)
def test_an_old_name_of_a_function_warns(module, old, now):
    home = importlib.import_module(f"jaxbounds.{module}")
    with pytest.warns(DeprecationWarning, match=f"{old} is now called {now}"):
        assert getattr(home, old) is getattr(home, now)


def test_a_name_that_never_was_is_an_attribute_error():
    look_up = functions.renamed("math", {"root": "sqrt"})
    with pytest.raises(AttributeError, match="module 'math' has no attribute 'power'"):
        look_up("power")
