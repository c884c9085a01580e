"""The paper's statements: complete, and their errata as expected even without a search."""

import pytest

from jaxbounds.falsify import falsify
from jaxbounds.qstr.statements import PAPER
from jaxbounds.statements import Budget, select

ERRATA = ("qstr.thm1.heads", "qstr.prop8", "qstr.lem38.bias", "qstr.lem41")
SHARPENED = ("qstr.prop3", "qstr.prop26", "qstr.prop28")
FEW = Budget(samples=24, restarts=0, steps=0, batch=24)


@pytest.mark.parametrize("name", [*ERRATA, *SHARPENED])
def test_verdicts_without_search_are_as_expected(name):
    (statement,) = select(PAPER.statements, [name])
    for verdict in falsify(statement, budget=FEW):
        assert verdict.as_expected, verdict.reason
        assert verdict.control["status"] in ("fails", "inconsistent")


@pytest.mark.slow
@pytest.mark.parametrize("statement", PAPER.statements, ids=lambda s: s.id)
def test_every_verdict_is_as_expected(statement):
    for verdict in falsify(statement):
        assert verdict.as_expected, f"{verdict.form}: {verdict.status}: {verdict.reason}"


def test_every_erratum_that_names_a_statement_finds_it():
    cited = {form.erratum for s in PAPER.statements for form in s.forms if form.erratum}
    assert cited <= {erratum.id for erratum in PAPER.errata}
    known = {s.id for s in PAPER.statements}
    for erratum in PAPER.errata:
        if erratum.evidence.startswith("qstr."):
            assert erratum.evidence.replace(";", " ").split()[0] in known
