"""The paper's lists of statements and errata; their verdicts are tested with all the papers'."""

import jax

from jaxbounds.smapprox.statements import PAPER

FAILING = [(s, f) for s in PAPER.statements for f in s.forms if f.expected == "fails"]


def test_case_2_of_claim_c5_is_violated_78_times(x64):
    statement = next(s for s in PAPER.statements if s.id == "smapprox.claimc.5-case2")
    same_prefix = statement.form("corrected").hypotheses
    violations = 0
    for size in statement.sizes:
        cases = statement.cases(size)
        bit = jax.vmap(lambda i, size=size: statement.evaluate(i, size).lhs)(cases) == 1
        (kept,) = jax.vmap(lambda i, size=size: same_prefix(i, size))(cases).values()
        violations += int(bit.sum())
        assert not (bit & kept).any()
    assert violations == 78


def test_errata_and_paper():
    assert [erratum.id for erratum in PAPER.errata] == [f"E{i}" for i in range(1, 19)]
    cited = {form.erratum for _, form in FAILING}
    assert cited == {"E2", "E3", "E7", "E9", "E11", "E12"}
    known = {s.id for s in PAPER.statements}
    for erratum in PAPER.errata:
        for word in erratum.evidence.replace(",", " ").split():
            assert not word.startswith("smapprox.") or word in known, (erratum.id, word)
