"""The paper's errata and its statements cite each other; the verdicts are in test_papers.py."""

from jaxbounds.qstr.statements import PAPER


def test_every_erratum_that_names_a_statement_finds_it():
    cited = {form.erratum for s in PAPER.statements for form in s.forms if form.erratum}
    assert cited <= {erratum.id for erratum in PAPER.errata}
    known = {s.id for s in PAPER.statements}
    for erratum in PAPER.errata:
        if erratum.evidence.startswith("qstr."):
            assert erratum.evidence.replace(";", " ").split()[0] in known
