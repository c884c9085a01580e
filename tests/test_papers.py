"""Every statement of every paper: its verdicts are as expected and its control is rejected."""

import pytest

from jaxbounds.falsify import falsify
from jaxbounds.falsify.engine import REJECTED
from jaxbounds.statements import load_papers

PAPERS = load_papers()
STATEMENTS = [statement for paper in PAPERS for statement in paper.statements]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.id)
def test_statement(statement):
    verdicts = falsify(statement, budget=statement.budget.scaled(0.5))
    for verdict in verdicts:
        assert verdict.control["status"] in REJECTED, verdict.control
        assert verdict.as_expected, f"{verdict.form}: {verdict.status}: {verdict.reason}"


@pytest.mark.parametrize("paper", PAPERS, ids=lambda p: p.id)
def test_every_erratum_that_cites_a_statement_is_shown_by_one(paper):
    ids = {s.id for s in paper.statements}
    shown = {form.erratum for s in paper.statements for form in s.forms}
    for erratum in paper.errata:
        cited = [word for word in erratum.evidence.replace(",", " ").split() if word in ids]
        if cited:
            assert erratum.id in shown, f"{erratum.id} cites {cited} but no form of them cites it"
