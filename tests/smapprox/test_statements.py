"""The paper's statements: well formed, and every failing form fails on its stored counterexample.

`jaxbounds verify smapprox` tries all of them; here only the cheap parts run.
"""

import jax
import numpy as np
import pytest

from jaxbounds.falsify import falsify
from jaxbounds.falsify.measure import form_names, measure, verification
from jaxbounds.smapprox.statements import PAPER, appendix_c_search
from jaxbounds.statements import Budget

FAILING = [(s, f) for s in PAPER.statements for f in s.forms if f.expected == "fails"]
CHEAP = ("smapprox.claimc.5-case2", "smapprox.lemmac.7", "smapprox.propb.2", "smapprox.lemmac.1")


@pytest.mark.parametrize("statement, form", FAILING, ids=[f"{s.id}:{f.name}" for s, f in FAILING])
def test_stored_counterexamples(statement, form):
    with verification():
        instance = jax.tree.map(np.asarray, dict(form.counterexample))
        measured = jax.tree.map(np.asarray, jax.jit(measure(statement))(instance))
    column = form_names(statement).index(form.name)
    assert measured.counted[column]
    edge = 0.1 if statement.relation == "=" else 1.1
    assert measured.value[column] > edge
    assert form.erratum


@pytest.mark.parametrize("name", CHEAP)
def test_cheap_statements_get_their_verdicts(name):
    statement = next(s for s in PAPER.statements if s.id == name)
    for verdict in falsify(statement, budget=Budget(samples=8, restarts=0)):
        assert verdict.as_expected, verdict.reason


def test_case_2_of_claim_c5_is_violated_78_times():
    violations = [appendix_c_search._case2_cases({"bits": bits}) for bits in (3, 4)]
    assert sum(int(cases["bit"].sum()) for cases in violations) == 78
    assert not any((cases["bit"] & cases["same_prefix"]).any() for cases in violations)


def test_errata_and_paper():
    cited = {form.erratum for _, form in FAILING}
    assert cited == {"E2", "E3", "E7", "E9", "E11", "E12"}
    assert cited <= {erratum.id for erratum in PAPER.errata}
    known = {s.id for s in PAPER.statements}
    for erratum in PAPER.errata:
        for word in erratum.evidence.replace(",", " ").split():
            assert not word.startswith("smapprox.") or word in known, (erratum.id, word)
