"""Every statement of every paper: its verdicts are as expected and its control is rejected."""

import pytest

from jaxbounds.falsify import falsify
from jaxbounds.falsify.engine import REJECTED
from jaxbounds.statements import load_papers

PAPERS = load_papers()
STATEMENTS = [statement for paper in PAPERS for statement in paper.statements]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.id)
def test_statement(statement):
    verdicts = falsify(statement)
    for verdict in verdicts:
        assert verdict.control["status"] in REJECTED, verdict.control
        assert verdict.as_expected, f"{verdict.form}: {verdict.status}: {verdict.reason}"


@pytest.mark.parametrize("paper", PAPERS, ids=lambda p: p.id)
def test_every_false_claim_that_rests_on_statements_is_shown_by_a_form(paper):
    ids = {s.id for s in paper.statements}
    shown = {form.erratum for s in paper.statements for form in s.forms}
    for erratum in paper.errata:
        cited = erratum.evidence.replace(",", " ").split()
        if erratum.kind == "false" and set(cited) <= ids:
            assert erratum.id in shown, f"{erratum.id} rests on {cited} but no form cites it"
