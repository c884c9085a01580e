"""Constants on record: in place of those of the same form, without seconds and long instances."""

import pytest

import jaxbounds as jb
from jaxbounds.constants import AtSize, SharpConstant, constants_on_record, on_record


def constant(form, ratio, **more):
    size = AtSize(size={}, ratio=ratio, where="drawn", **more)
    return SharpConstant(id="mine.one", form=form, label="", formula="", sizes=(size,))


def test_constants_replace_those_of_the_same_form(tmp_path, claim):
    paper = jb.Paper(id="own", title="Own", statements=(claim(),), folder=tmp_path)
    assert constants_on_record(paper) == ()
    on_record.put_on_record([constant("b", 1.0), constant("a", 2.0)], paper)
    on_record.put_on_record([constant("a", 3.0)], paper)
    assert constants_on_record(paper) == (constant("a", 3.0), constant("b", 1.0))


@pytest.mark.parametrize("letters, kept", [(400, True), (401, False)])
def test_short_instances_are_kept_and_seconds_are_not(letters, kept, tmp_path, claim):
    # As JSON {"x": "aaa"} has nine characters more than the letters.
    instance = {"x": "a" * (letters - 9)}
    paper = jb.Paper(id="own", title="Own", statements=(claim(),), folder=tmp_path)
    on_record.put_on_record([constant("a", 1.0, instance=instance, seconds=7.0)], paper)
    (found,) = constants_on_record(paper)
    assert found == constant("a", 1.0, instance=instance if kept else {})
