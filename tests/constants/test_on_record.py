"""Constants on record: in place of those of the same form, without seconds and long instances."""

import math
import re
from decimal import Decimal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.claims.records import CONSTANTS, RATIOS, read_records
from jaxbounds.claims.statements import Size
from jaxbounds.constants import AtSize, SharpConstant, constants_on_record, on_record
from jaxbounds.falsification.evaluation import in_order, pick
from jaxbounds.papers import find_statement, load_papers


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


RECORDED = [one for paper in load_papers() for one in constants_on_record(paper)]
WITH_AN_INSTANCE = [one for one in RECORDED if any(size.instance for size in one.sizes)]


@pytest.mark.default_cases(
    "seqlength.lemma3.4.size printed, constant 100", "smapprox.lemma2.4.lipschitz printed",
    "qstr.lem12.small printed",
)  # fmt: skip
@pytest.mark.parametrize("recorded", WITH_AN_INSTANCE, ids=lambda one: f"{one.id} {one.form}")
def test_a_stored_instance_has_its_recorded_ratio(recorded):
    """The statement as it stands now measures the instance, without any search."""
    statement = find_statement(recorded.id)
    for found in (one for one in recorded.sizes if one.instance):
        with jb.float64_on_cpu(), np.errstate(all="ignore"):  # as the search measures
            kind = np.asarray if statement.host else jnp.asarray
            arrays = jax.tree.map(kind, found.instance, is_leaf=_is_leaf)
            sides = in_order(statement, statement.evaluate(arrays, Size(found.size)))
            lhs = np.asarray(pick(sides.lhs, recorded.form, "lhs", statement))
            rhs = np.asarray(pick(sides.rhs, recorded.form, "rhs", statement))
        assert np.max(lhs / rhs) == pytest.approx(found.instance_ratio, rel=1e-9, abs=1e-9)


def _is_leaf(part):
    return not isinstance(part, dict)


def test_constants_on_record_are_of_forms_that_are_declared():
    declared = {(s.id, form.name) for p in load_papers() for s in p.statements for form in s.forms}
    assert {(one.id, one.form) for one in RECORDED} <= declared


SETTLED = ("attained", "every instance", "enumerated", "limit")
"""Words for a supremum that the stored instance shows, apart from the rounding for display."""
SHOWN = 1e-3
"""The largest relative difference of the ratio of a stored instance, which is rounded."""


def _slips(found, worst):
    """Yield what cannot be of a constant at one size; no statement is evaluated."""
    if found.low and found.digits:
        low, high = float(found.low), float(found.high)
        near = pytest.approx(found.ratio, rel=max(1e-9, 10.0 ** (1 - found.digits)))
        if not (low == near and found.ratio <= high * (1 + 1e-9)):
            yield f"ratio {found.ratio} is not within {low} ... {high}"
        end = Decimal(found.high)
        if Decimal(10) ** (-2 - found.digits) * abs(end) > end - Decimal(found.low) > 0:
            yield f"{found.digits} digits, and the enclosure has more"
    counts = sum(found.agreed.values()), sum(found.kinds.values())
    if counts != (found.agreeing, found.starts) or found.agreeing > found.starts:
        yield f"{found.agreeing} of {found.starts} starts agree: {found.agreed}, {found.kinds}"
    if found.where in SETTLED and found.instance_ratio != pytest.approx(found.ratio, rel=SHOWN):
        yield f"ratio {found.ratio}, and its instance has {found.instance_ratio}"
    known = found.where in SETTLED or not found.low
    if known and found.where not in ("none", "unbounded") and found.ratio < 0.9 * worst:
        yield f"ratio {found.ratio}, and `verify` has {worst} on record"


def _value_of(text, size):
    """The number that a closed form or a law denotes; a space stands for a product."""
    names = {name: getattr(math, name) for name in ("sqrt", "log", "pi", "e")} | dict(size)
    return eval(re.sub(r"(?<=[\w)]) (?=[\w(])", "*", text).replace("^", "**"), names)


@pytest.mark.parametrize("paper", load_papers(), ids=lambda paper: paper.id)
def test_a_constant_on_record_agrees_with_what_stands_beside_it(paper):
    """Halves, copied lines and changed sizes are seen without any evaluation."""
    worst = read_records(paper, RATIOS)
    assert [*read_records(paper, CONSTANTS)] == sorted(read_records(paper, CONSTANTS))
    for one in constants_on_record(paper):
        statement, name = find_statement(one.id), f"{one.id} {one.form}"
        sizes = [Size(found.size) for found in one.sizes]
        assert sorted(map(repr, sizes)) == sorted(map(repr, statement.sizes)), name
        assert (one.label, one.formula) == (statement.label, statement.formula), name
        assert one.seed == 0, f"{name}: a record has the seed of the command without --seed"
        several = len(sizes) > 1
        held = next(form for form in statement.forms if form.name == one.form).expected == "holds"
        assert not held or max(found.ratio for found in one.sizes) <= 1 + 1e-6, name
        for found in one.sizes:
            there = worst[one.id][one.form]
            known = there.get(repr(Size(found.size)), 0 if several else there["worst"])
            assert [*_slips(found, known)] == [], f"{name} at {found.size}"
            texts = [found.closed.text] if found.closed else []
            for text in [*texts, *([one.law] if one.law else [])]:
                value = _value_of(text, found.size)
                assert value == pytest.approx(found.ratio, rel=1e-6), f"{name}: {text}"
            for entry, chosen in (statement.over or {}).items():
                if entry in found.instance:
                    shape = np.shape(found.instance[entry])
                    assert shape == chosen.shape_at(Size(found.size)), f"{name}, {entry}"
