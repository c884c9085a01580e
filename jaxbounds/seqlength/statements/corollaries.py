"""Corollaries 4.1.1, D.0.1 and D.0.2: Theorem 4.1 with the covers of Section 3."""

import math
from typing import Any

from jaxbounds.claims.sets import Box, Integers, Set
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size
from jaxbounds.seqlength.linear_bounds import lemma_3_3, lemma_3_4_leading, lemma_3_6
from jaxbounds.seqlength.single_layer import (
    alpha_4_1_1,
    alpha_4_1_1_corrected,
    alpha_D_0_1,
    alpha_D_0_2_leading,
    attention_expectation,
    corollary,
    entropy_terms,
    theorem_4_1,
)
from jaxbounds.seqlength.statements import instances as draw

PARAMETERS: dict[str, Set] = {
    "B": Box(0.1, 10),
    "B_x": Box(0.3, 3),
    "B_QK": Box(0.1, 3),
    "m": Box(1e4, 1e8),
    "d": Integers(2, 300),
}


def _corollary_4_1_1(instance: Instance, size: Size) -> Sides:
    B, B_x, B_QK, m, d = draw.numbers(instance, "B", "B_x", "B_QK", "m", "d")
    form = lambda alpha: float(corollary(B, B_x, alpha, m, d, exact_argument=False))
    theorem = float(theorem_4_1(B, B_x, _C(instance), m, d))
    exact = form(alpha_4_1_1_corrected(B_QK, d)) / theorem
    printed = form(alpha_4_1_1(B_QK, d))
    return Sides.pairs(
        {
            "printed": (theorem, math.sqrt(2.0) * printed),
            "corrected": (max(exact, 1.0 / exact), 1.0),
            "control": (theorem, 0.5 * printed),
        }
    )


def _C(instance: Instance) -> float:
    B_x, B_QK, d = draw.numbers(instance, "B_x", "B_QK", "d")
    return float(lemma_3_6(B_QK * B_x, k=int(d), d=int(d)))


def _informative(instance: Instance, size: Size) -> dict[str, Any]:
    # The numbers may be negative here, because a search checks the hypotheses before it projects.
    instance = draw.positive("B_x", "B_QK", "m")(instance, size)
    B_x, m, d = draw.numbers(instance, "B_x", "m", "d")
    a, b, B = entropy_terms(B_x, _C(instance), m, d)
    return {"m > d, so m > ln(2d)": m > d, "informative (E5)": b < B - a * B}


COROLLARY_4_1_1 = draw.random_search_on_host(
    id="seqlength.cor4.1.1",
    label="Corollary 4.1.1",
    tex=r"O\left( B \left( \frac{B_x^3 \alpha}{\sqrt{m}} \left( 1 + \ln \frac{\sqrt{m}}{B_x^2 "
    r"\alpha} \right) + B_x \sqrt{\frac{\ln(2d)}{m}} \right) \right), \quad \alpha = "
    r"B_{W_{QK}} \sqrt{2 \ln(2 d^2 + 1)}",
    formula="Theorem 4.1 at C = B_x^2 B_QK^2 ln(2 d^2 + 1) is O(the same with alpha / (2 B_x)"
    " for sqrt C), alpha = B_QK sqrt(2 ln(2 d^2 + 1))",
    over=PARAMETERS,
    sizes=({},),
    budget=Budget(samples=16, restarts=2, steps=6),
    evaluate=_corollary_4_1_1,
    judges=(theorem_4_1, corollary, alpha_4_1_1_corrected, alpha_4_1_1, lemma_3_6),
    hypotheses=_informative,
    assumptions="m > d, m > ln(2d), and the bound of Theorem 4.1 is informative (E5); sqrt 2 is "
    "the constant of O(.); seqlength.thm4.1.class checks that Theorem 4.1 bounds the "
    "complexity",
    forms=(
        Form(
            name="printed",
            cites="Corollary 4.1.1, alpha and the last display",
            erratum="E7",
            note="The corollary's printed constant alpha is too small by a factor sqrt 2, which "
            "O(.) hides. With b = 2 B_x^2 sqrt(C / m), sqrt 2 times the corollary's bound exceeds "
            "the bound of Theorem 4.1 by at least b ln(sqrt 2).",
        ),
        Form(
            name="corrected",
            note="The right value of the constant is alpha = 2 B_QK sqrt(ln(2 d^2 + 1)).",
            equality="always",
        ),
    ),
    control="half of the display",
)


def _corollaries_d(instance: Instance, size: Size) -> Sides:
    B, B_x, B_QK, m, d = draw.numbers(instance, "B", "B_x", "B_QK", "m", "d")
    square, x = {"k": int(d), "d": int(d)}, B_QK * B_x
    proof = lambda C: B * attention_expectation(B_x, C, m, d)
    form = lambda alpha: corollary(B, B_x, alpha, m, d, exact_argument=True)
    columns, rows = proof(lemma_3_3(x, **square)), proof(lemma_3_4_leading(x, **square))
    return Sides.pairs(
        {
            "printed (D.0.1)": (columns, form(alpha_D_0_1(B_QK, d))),
            "printed (D.0.2)": (rows, form(alpha_D_0_2_leading(B_QK, d))),
            "control": (columns, form(alpha_D_0_2_leading(B_QK, d))),
        }
    )


COROLLARIES_D = draw.identity_on_host(
    id="seqlength.cord.0",
    label="Corollaries D.0.1 and D.0.2",
    tex=r"B \left( \frac{B_x^3 \alpha}{\sqrt{m}} \left( 1 + \ln \frac{\sqrt{m} - "
    r"\sqrt{\ln(2d)}}{B_x^2 \alpha} \right) + B_x \sqrt{\frac{\ln(2d)}{m}} \right), \quad "
    r"\alpha = 2 B_{W_{QK}} \sqrt{d \ln(2d + 1)}, \ 2 B_{W_{QK}} \sqrt{2 \ln d}",
    formula="Appendix C's last display at alpha = 2 B_QK sqrt(d ln(2d+1)), 2 B_QK sqrt(2 ln d)",
    over=PARAMETERS,
    sizes=({},),
    evaluate=_corollaries_d,
    judges=(
        *(attention_expectation, corollary, alpha_D_0_1, alpha_D_0_2_leading),
        *(lemma_3_3, lemma_3_4_leading),
    ),
    assumptions="the check compares the expressions inside O(.) in D.0.1 and inside O^(.) in "
    "D.0.2, with the constant 1",
    forms=(
        Form(
            name="printed (D.0.1)",
            cites="Corollary D.0.1, alpha and the last display",
            note="The checked formula has sqrt m - sqrt(ln 2d) in the logarithm, as the proof "
            "does. The statement seqlength.cord.0.orientation decides which matrix norm makes the "
            "corollary true.",
        ),
        Form(
            name="printed (D.0.2)",
            cites="Corollary D.0.2, alpha and the last display",
            note="The check inserts the leading term of Lemma 3.4's bound into the last display of "
            "Appendix C.",
        ),
    ),
    control="D.0.1 with the alpha of D.0.2",
)

STATEMENTS = (COROLLARY_4_1_1, COROLLARIES_D)
