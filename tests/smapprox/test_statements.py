"""The paper's lists of statements and errata; their verdicts are tested with all the papers'."""

import jax
import numpy as np

from jaxbounds.smapprox.statements import PAPER

FAILING = [(s, f) for s in PAPER.statements for f in s.forms if f.expected == "fails"]


def test_case_2_of_claim_c5_is_violated_78_times(x64):
    statement = next(s for s in PAPER.statements if s.id == "smapprox.claimc.5.case2")
    same_prefix = statement.form("corrected").hypotheses
    violations = 0
    for size in statement.sizes:

        @jax.jit
        @jax.vmap
        def asked(i, size=size):
            (kept,) = same_prefix(i, size).values()
            return statement.hypotheses(i, size), statement.evaluate(i, size).lhs, kept

        within, left, kept = jax.tree.map(np.asarray, asked(statement.cases(size)))
        bit = (left == 1) & np.all([*within.values()], axis=0)
        violations += int(bit.sum())
        assert not (bit & kept).any()
    assert violations == 78


def test_errata_and_paper():
    """Withdrawn: E10, E15 to E18, E21, which the paper answers itself or which are no errata."""
    ids = {int(erratum.id[1:]) for erratum in PAPER.errata}
    assert ids == set(range(1, 25)) - {10, 15, 16, 17, 18, 21}
    assert PAPER.errata[0].id == "E11"
    assert all(erratum.quote and erratum.main.startswith("survive") for erratum in PAPER.errata)
    cited = {form.erratum for _, form in FAILING}
    assert cited == {"E2", "E3", "E7", "E9", "E11", "E12", "E19", "E20", "E24"}
    assert {e.id for e in PAPER.errata if e.kind == "false"} == {"E11", "E19"} <= cited


def test_every_numbered_item_is_listed():
    lemmas = {
        f"Lemma {n}"
        for n in [
            "2.4",
            "3.2",
            "3.3",
            "B.1",
            "C.1",
            "C.2",
            "C.3",
            "C.7",
            "C.8",
            "D.7",
            "D.8",
            "D.9",
        ]
    }
    displays = {f"(C.{n})" for n in range(1, 17)} | {f"(D.{n})" for n in range(1, 12)}
    displays |= {f"({n})" for n in ["2.1", "2.2", "2.3", "3.1", "4.1", "A.1", "A.2"]}
    others = {"Theorem 3.1", "Theorem 4.1", "Theorem D.6", "Corollary A.1", "Claim 3.5"}
    others |= {f"Claim C.{n}" for n in (4, 5, 6)} | {f"Definition {n}" for n in ("2.1", "2.2")}
    others |= {f"Definition D.{n}" for n in (1, 2, 5)} | {"Condition D.3", "Condition D.4"}
    others |= {f"Proposition {n}" for n in ("2.3", "3.4", "B.2")}
    assert lemmas | displays | others <= set(PAPER.items)
