"""Instances that miss a hypothesis are rejected for that reason, whatever their sides do.

The hypotheses are the papers'; the instances were altered by hand, one hypothesis each, and rounded
to floats.
"""

import json
from fractions import Fraction
from pathlib import Path

import checker
import pytest

FILES = Path(__file__).parent / "files"

MISSED = [
    ("multihead.eq116", {"relevant": {1: "1"}}, "DM1"),
    ("multihead.eq116", {"S": {0: "1/2"}, "p": {0: "-1/16", 1: "1/16"}}, "R >= 1"),
    ("multihead.eq116", {"p": {0: "0"}}, "p of a first phase"),
    ("multihead.eq129", {"z": {4: "1/4"}}, "Z_mu = Z_nu <= S^2 / 8"),
    ("multihead.eq14", {"X": {0: "1/2", 3: "1/2"}}, "R >= 1"),
    ("multihead.eq14", {"y": {0: "2"}}, "labels are signs"),
    ("multihead.eq21", {"X": {0: "1/2", 1: "1/2"}}, "R >= 1"),
    ("multihead.eq21", {"copies": {0: "150", 1: "150"}}, "(84)"),
    ("multihead.eq21", {"step": {0: "1/100"}}, "eta K L(theta) <= D^2"),
    ("multihead.eq21", {"step": {0: "2"}}, "0 < eta <= 1"),
    ("multihead.eq24.loss", {"X": {0: "1/2", 2: "1/2", 4: "1/2"}}, "R >= 1"),
    ("multihead.eq51", {"X": dict.fromkeys(range(6), "1/2")}, "R >= 1"),
    ("multihead.eq9", {"patterns": {1: "1"}}, "patterns orthogonal"),
    ("multihead.fact2", {"H": {0: "6"}}, "0 < t <= 1"),
    ("multihead.footnote1.pooling", {"X": {0: "1/2", 2: "1/2"}}, "R >= 1"),
    ("multihead.lem12", {"delta": {0: "2"}}, "0 < delta < 1"),
    ("multihead.lem12", {"p": {2: "1/8"}}, "p of a first phase"),
    ("multihead.lem13", {"relevant": {1: "1"}}, "DM1"),
    ("multihead.lem16", {"alpha": {0: "2"}}, "alpha in [-1, 1]"),
    ("multihead.lem16", {"y": {0: "0"}}, "DM1"),
    ("multihead.lem18", {"r": {2: "-1/2", 3: "-1/2"}}, "A > 2 B"),
    ("multihead.lem18", {"extra": {0: "-1"}}, "extra >= 0"),
    ("multihead.prop3.mass", {"z": {16: "1/4"}}, "Z_mu = Z_nu <= S^2 / 8"),
    ("multihead.prop3.mass", {"choice": {4: "1"}}, "DM1"),
    ("multihead.lem13", {"z": {0: "1"}}, "DM1"),
    ("multihead.prop3.margin", {"more": {0: "-1"}}, "more >= 0"),
    ("multihead.prop3.mass", {"more": {0: "-1"}}, "more >= 0"),
    ("multihead.prop7.distance", {"excess": {0: "1"}}, "as many signs"),
    ("multihead.prop7.distance", {"log_eps": {0: "1"}}, "0 < eps <= 1"),
    ("multihead.prop7.exists", {"x": {0: "1/2"}}, "R = ||x|| >= 1"),
    ("multihead.prop7.exists", {"part": {0: "2"}}, "0 < gamma <= sqrt(2) ||x||"),
    ("multihead.sec5.2.phi0", {"v": {0: "1"}}, "v = 0"),
    ("multihead.sec5.3.exponent", {"log_S": {0: "5"}}, "||W|| >= Gamma"),
    ("multihead.sec5.3.order", {"noise": {0: "1/4"}}, "0 <= Z_mu = Z_nu <= S^2 / 8"),
    ("multihead.sec5.3.order", {"zeta": {0: "1/3"}}, "zeta T a count"),
    ("multihead.sec5.3.sparsity", {"less": {0: "3/5"}}, "0 < zeta' < zeta < 1"),
    ("multihead.sec5.3.sparsity", {"log_S": {0: "-1"}}, "S >= 1"),
    ("multihead.sec5.3.sparsity", {"M": {0: "0"}}, "M >= 1"),
    ("multihead.sec5.3.sparsity", {"less": {0: "1/4"}}, "zeta T, zeta' T counts"),
    ("multihead.sec5.3.sparsity", {"noise": {0: "1/4"}}, "0 <= Z_mu = Z_nu <= S^2 / 8"),
    ("multihead.sec5.3.sparsity", {"log_S": {0: "2"}}, "gamma_attn >= gamma* >= gamma_lin"),
    ("multihead.sec5.3.target", {"log_n": {0: "1/2"}}, "n >= 3"),
    ("seqlength.appc.norms", {"P": {0: "0", 1: "0"}}, "P, u, v are not zero"),
    ("seqlength.appc.norms", {"u": {0: "0"}}, "P, u, v are not zero"),
    ("seqlength.appc.optimum", {"m": {0: "5"}}, "m > d >= 1"),
    ("seqlength.appc.optimum", {"C": {0: "0"}}, "B_x, C > 0"),
    ("seqlength.appe.chain", {"w": {0: "2"}, "what": {0: "2"}}, "||w||, ||w^|| <= B_w = 1"),
    ("seqlength.appe.cover", {"w": {0: "2"}}, "||w||, ||w^|| <= B_w = 1"),
    ("seqlength.corf.0.1.constant", {"epsilon": {0: "3/4"}}, "sqrt 2 >= 2 eps"),
    ("seqlength.corf.0.1.constant", {"k": {0: "1025"}}, "1 <= d, k <= largest"),
    ("seqlength.corf.0.1.constant", {"d": {0: "0"}}, "1 <= d, k <= largest"),
    ("seqlength.corf.0.1.packing", {"B_x": {0: "1/2"}}, "B_x >= 1"),
    ("seqlength.corf.0.1.packing", {"M": {0: "1"}}, "d > 3, M > 1"),
    ("seqlength.corf.0.1.packing", {"d": {0: "4"}, "M": {0: "2"}}, "tokens"),
    ("seqlength.corf.0.1.packing", {"epsilon": {0: "1"}}, "networks 2 eps apart"),
    ("seqlength.corf.0.1.packing", {"t": {0: "1"}}, "both levels in [-1, 1]"),
    ("seqlength.corf.0.2.packing", {"B_x": {0: "1/2"}}, "B_x >= 1"),
    ("seqlength.corf.0.2.packing", {"d": {0: "3"}}, "2 d - 3 > d tokens"),
    ("seqlength.corf.0.2.packing", {"epsilon": {0: "3/4"}}, "networks 2 eps apart"),
    ("seqlength.cor4.2.1.packing", {"epsilon": {0: "3/4"}}, "networks 2 eps apart"),
    ("seqlength.lemmae.1", {"scales": {0: "1"}}, "eps > 0"),
    ("seqlength.lemmae.1", {"C": {0: "-1"}}, "C, beta >= 0"),
    ("seqlength.lemma3.1", {"weights": {0: "-1/2"}}, "weights >= 0"),
    ("seqlength.lemma3.1", {"weights": {0: "3/2"}}, "gamma <= 1"),
    ("seqlength.lemma3.1.count", {"K": {0: "0"}}, "n, K >= 1"),
    ("seqlength.lemma3.2", {"x": {0: "1"}}, "||x||_1 <= 1"),
    ("seqlength.lemma3.4.size", {"x": {0: "0"}}, "x > 0"),
    ("seqlength.thm4.2.packing", {"epsilon": {0: "1"}}, "1 >= 2 eps > 0"),
    ("seqlength.thm4.2", {"B_v": {0: "-1"}}, "all >= 0"),
    ("smapprox.claimc.5.case2", {"t": {0: "6"}}, "1 <= t <= i' < 2^w_pos"),
    ("smapprox.claimc.5.case2", {"last": {0: "7"}}, "bit j + 1 of i' is 0"),
    ("smapprox.condd.3.ties", {"epsilon": {0: "1/10"}}, "0 < epsilon < 1/poly"),
    ("smapprox.condd.3.ties", {"value": {0: "1/10"}}, "|value| < 1/poly"),
    ("smapprox.lemma2.4.epsilon", {"eta": {0: "3/5"}}, "0 < eta < 1/2"),
    ("smapprox.lemmab.1.norm", {"operation": {0: "0"}}, "one OR gate"),
    ("smapprox.lemmab.1.not", {"x": {0: "2"}}, "x in {0, 1}^2"),
    ("smapprox.sec2.1.positive", {"values": {1: "-3"}}, "F decides"),
    ("smapprox.sec2.1.positive", {"values": {1: "0"}}, "no value is 0"),
    ("qstr.lem12.small", {"r": {0: "-1"}}, "r > 0"),
    ("qstr.lem38.bias", {"z": {1: "-10"}}, "z increases"),
    ("qstr.lem38.bias", {"y": {0: "0", 1: "0"}}, "y != 0"),
    ("qstr.lem41", {"family": {0: "1"}}, "the whole unit ball"),
    ("qstr.thm1.heads", {"beta": {0: "2"}}, "0 < beta <= 1"),
    ("qstr.thm1.heads", {"signs": {0: "2"}}, "signs"),
]


@pytest.mark.parametrize(("statement", "entries", "hypothesis"), MISSED)
def test_missed_hypotheses_are_named(statement, entries, hypothesis):
    found = [json.loads(path.read_text()) for path in sorted(FILES.glob(f"{statement}.*.json"))]
    found = [document for document in found if document["statement"] == statement]
    assert found
    for document in found:
        for name, values in entries.items():
            for index, value in values.items():
                document["instance"][name]["exact"][index] = str(Fraction(float(Fraction(value))))
        document["digest"] = checker.digest(document)
        verdict = checker.check(document)
        assert not verdict.confirmed
        assert verdict.reason.startswith("not certainly so")
        assert hypothesis in verdict.reason
