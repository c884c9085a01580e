"""The paper's lists of statements and errata; their verdicts are tested with all the papers'."""

from jaxbounds.smapprox.statements import PAPER, appendix_c_search

FAILING = [(s, f) for s in PAPER.statements for f in s.forms if f.expected == "fails"]


def test_case_2_of_claim_c5_is_violated_78_times():
    violations = [appendix_c_search._case2_cases({"bits": bits}) for bits in (3, 4)]
    assert sum(int(cases["bit"].sum()) for cases in violations) == 78
    assert not any((cases["bit"] & cases["same_prefix"]).any() for cases in violations)


def test_errata_and_paper():
    assert [erratum.id for erratum in PAPER.errata] == [f"E{i}" for i in range(1, 19)]
    cited = {form.erratum for _, form in FAILING}
    assert cited == {"E2", "E3", "E7", "E9", "E11", "E12"}
    known = {s.id for s in PAPER.statements}
    for erratum in PAPER.errata:
        for word in erratum.evidence.replace(",", " ").split():
            assert not word.startswith("smapprox.") or word in known, (erratum.id, word)
