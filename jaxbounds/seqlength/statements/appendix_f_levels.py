"""A disproof of Corollary F.0.1's bound, by networks whose weights differ in magnitude and in sign.

The printed bound on the cover's size grows with d, so networks that differ only in signs are too
few. The first layer of these networks distinguishes a number of magnitudes of the order B_x^2 / d.
The rest of the networks is as in the module `appendix_f`.
"""

import functools
from typing import Any

import numpy as np

from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size
from jaxbounds.numerics.arrays import array_module, number, real
from jaxbounds.seqlength.linear_bounds import lemma_3_3
from jaxbounds.seqlength.model import block
from jaxbounds.seqlength.multi_layer import (
    constants_F_0_1_corrected,
    covering_constant,
    terms_corrected,
    terms_derived,
    theorem_4_2,
)
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.seqlength.statements.appendix_f import meets, on_packings
from jaxbounds.seqlength.statements.packings import (
    corrected_size,
    derived_size,
    norms_of,
    one_row,
    outputs,
)


def _levels(instance: Instance, side: float) -> tuple[Any, dict[str, Any], Any]:
    """Build the network whose row 0 of W_QK is 1 / d at index 2 and l_i / d at i > 2.

    Each l_i is one of M equally spaced levels in [-1, 1]. The network compares l_i with a threshold
    t on the tokens +-B_x (15 e_1 + (e_i - t e_2) / 2) / 16. Here t is the middle between two
    neighbouring levels, and `side` chooses one of the two as l_i.
    """
    d, B_x, M, t = draw.numbers(instance, "d", "B_x", "M", "t")
    xp = array_module(d, B_x, M, t)
    entries = xp.stack([1.0 + 0.0 * t, t + side / (M - 1.0)]) / real(d)
    return one_row(entries, xp.stack([-t, 1.0 + 0.0 * t]) / 32.0, 15.0 / 16.0, B_x)


def _corollary_F_0_1(instance: Instance, size: Size) -> Sides:
    d, B_x, M, eps = draw.numbers(instance, "d", "B_x", "M", "epsilon")
    xp, norms = array_module(d, B_x, M, eps), norms_of(B_x)
    ends = [number(outputs(*_levels(instance, side)))[0] for side in (1.0, -1.0)]
    packing = xp.where(abs(ends[0] - ends[1]) >= 2.0 * eps, real(d - 3) * xp.log(M), 0.0)
    # The number 1 is traced if B_x is traced, so that the enclosure includes ln(2k + 1).
    C_1, C_Bx = (lemma_3_3(x, k=1, d=d) for x in (1.0 + 0.0 * B_x, B_x))
    printed = theorem_4_2(norms, C_1, C_Bx, size["L"]) / eps**2
    corrected = corrected_size(norms, constants_F_0_1_corrected(1.0, d, 1), size["L"])
    return Sides(
        packing,
        {
            "printed": printed,
            "printed, constant 10": 10.0 * printed,
            "derived": derived_size(norms, C_1, C_Bx, size["L"]) / eps**2,
            "corrected": corrected / eps**2,
            "control": xp.log(B_x) / 20.0 * printed,
        },
    )


def _whole(instance: Instance, size: Size) -> Instance:
    scales = draw.positive("B_x", "epsilon")(instance, size)
    M = np.maximum(np.round(np.abs(instance["M"])), 2.0)
    most = 1.0 - 1.0 / (M - 1.0)
    return {**scales, "M": M, "t": np.clip(instance["t"], -most, most)}


def _meets_F_0_1(instance: Instance, size: Size) -> dict[str, Any]:
    d, B_x, M, t = draw.numbers(instance, "d", "B_x", "M", "t")
    X, layer, w = _levels(instance, 1.0)
    # Row 0 has d - 2 entries of at most 1 / d; each is the only nonzero entry of its column.
    met = meets(X, layer, w, B_x, 1.0 / d, (d - 2) / d, (2 * (d - 3) * (M - 1) + 1, d))
    return {
        **met,
        "the two levels are in [-1, 1]": abs(t) + 1.0 / (M - 1.0) <= 1.0,
        "their entries and the reference are at most 1 / d": np.abs(layer["W_QK"]).max() <= 1.0 / d,
        "M is a whole number, at least 2": M >= 2 and int(M) == M,
        "eps > 0": instance["epsilon"] > 0,
    }


_REFUTED = functools.partial(Counterexample, meets=_meets_F_0_1)
LEVELS = {"d": 1000, "B_x": 3e9, "M": 1e13, "t": 0.0, "epsilon": 0.93}
FAR = LEVELS | {"B_x": 1e63, "M": 1e120}

COROLLARY_F_0_1 = on_packings(
    id="seqlength.corf.0.1.packing",
    label="Corollary F.0.1, as a number",
    tex=r"(d - 3) \ln M \le \ln \mathcal{N}_\infty\left( g_{\mathrm{scalar}}^{L+1}, \epsilon "
    r"\right) \le \frac{(\gamma + \eta)^3}{\epsilon^2}, \quad L = 1, \ k = 1, \ B = 1, \ M \sim "
    r"\frac{B_x^2}{d}",
    formula="(d - 3) ln M <= ln N(eps) <= (gamma + eta)^3 / eps^2 for L = 1, k = 1, B = 1 and M"
    " levels, of the order B_x^2 / d, with d B^2 ln(2k + 1) in gamma and eta",
    cases=lambda size: draw.stacked(
        [LEVELS, FAR, LEVELS | {"d": 10**5, "B_x": 3e10}]
        + [LEVELS | {"B_x": 3e5, "M": 1e5, "t": t} for t in (-0.99, 0.5)]
        + [
            {"d": d, "B_x": B_x, "M": M, "t": 0.0, "epsilon": epsilon}
            for d in (4, 100)
            for B_x, M, epsilon in ((30.0, 3.0, 0.5), (1e3, 10.0, 0.85), (1e6, 1e6, 0.85))
        ]
    ),
    project=_whole,
    evaluate=_corollary_F_0_1,
    judges=(
        *(theorem_4_2, terms_derived, terms_corrected, constants_F_0_1_corrected),
        *(covering_constant, lemma_3_3, block),
    ),
    assumptions="T = 3, one constant [CLS] token, sigma linear; the M^(d-3) networks differ only "
    "in W_QK, and (d - 3)(M - 1) inputs tell them apart; the check computes two neighbouring "
    "levels and the threshold between them, because outputs depend only on l_i - t and grow with "
    "l_i - t",
    forms=(
        Form(
            name="printed",
            cites="Corollary F.0.1, its two displays",
            erratum="E9",
            note="The networks of the packing have pairwise distances of 1.87. Their norms are "
            "bounded over columns and over rows, and their tokens are in the l_1 ball. For B_v2 = "
            "1 / B_x the printed bound does not depend on B_x, but ln N grows like 2 d ln B_x.",
            counterexample=_REFUTED(instance=LEVELS, ratio=1.3563886612160536),
        ),
        Form(
            name="printed, constant 10",
            cites="Corollary F.0.1, its two displays, with a constant",
            erratum="E9",
            note="No constant factor repairs the bound: the log size of the packing grows like ln "
            "B_x, and the printed bound does not depend on B_x.",
            counterexample=_REFUTED(instance=FAR, ratio=1.2520517698007316),
        ),
        Form(
            name="derived",
            erratum="E9",
            note="The check uses the terms that the paper's proof lists (erratum E10), with covers "
            "for inputs of norm 1. The resulting bound on ln N is too small.",
            counterexample=_REFUTED(instance=FAR, ratio=2.24653613279618),
        ),
        Form(
            name="corrected",
            note=(
                "In the corrected bound, the term of the first layer's matrix W_QK has a factor "
                "B_x^2 (B_x: the largest token norm). Each matrix has its own constant C for the "
                "log size of its cover."
            ),
        ),
    ),
    control="ln(B_x) / 20 times the printed number, where ln N grows like 2 ln B_x",
    source="Corollary F.0.1",
)

STATEMENTS = (COROLLARY_F_0_1,)
