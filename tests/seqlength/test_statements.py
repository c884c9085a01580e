"""The paper's registry is complete, and the verdicts of its cheap statements are as expected."""

import pytest

from jaxbounds.falsify import falsify
from jaxbounds.falsify.bench import Bench, as_arrays
from jaxbounds.falsify.measure import form_names, verification
from jaxbounds.seqlength.statements import PAPER

FAILING = [
    (s, form) for s in PAPER.statements for form in s.forms if form.counterexample is not None
]
CHEAP = (
    "seqlength.sec2.1-norm",
    "seqlength.sec4.2",
    "seqlength.lemma3.3-count",
    "seqlength.lemma3.3-radius",
    "seqlength.lemma3.6-size",
    "seqlength.appc-dudley",
    "seqlength.cor-d.0",
    "seqlength.sec4.3-dudley",
    "seqlength.lemma-e.1-minimiser",
    "seqlength.appendix-g",
)


def test_every_erratum_is_shown_or_explained():
    shown = {form.erratum for s in PAPER.statements for form in s.forms if form.erratum}
    assert [e.id for e in PAPER.errata] == [f"E{i}" for i in range(1, 18)]
    ids = {s.id for s in PAPER.statements}
    for erratum in PAPER.errata:
        named = {word.rstrip(",:;") for word in erratum.evidence.split()} & ids
        assert erratum.id in shown or named or erratum.kind in ("typo", "inconsistent")


@pytest.mark.parametrize(
    "statement, form", FAILING, ids=[f"{s.id}-{f.name}".replace(" ", "_") for s, f in FAILING]
)
def test_stored_counterexamples_fail_and_spare_the_correct_forms(statement, form):
    with verification():
        measured = Bench(statement, 1).one(as_arrays(dict(form.counterexample)))
    edge = 1e3 * statement.tolerance if statement.relation == "=" else 1 + statement.tolerance
    names = form_names(statement)
    value, counted = dict(zip(names, measured.value)), dict(zip(names, measured.counted))
    assert counted[form.name] and value[form.name] > edge
    for other in statement.forms:
        if other.expected == "holds" and counted[other.name]:
            assert not value[other.name] > edge


@pytest.mark.parametrize("name", CHEAP)
def test_cheap_verdicts_are_as_expected(name):
    (statement,) = (s for s in PAPER.statements if s.id == name)
    for verdict in falsify(statement, seed=1):
        assert verdict.as_expected, (verdict.form, verdict.reason)
        assert verdict.control["status"] in ("fails", "inconsistent")
