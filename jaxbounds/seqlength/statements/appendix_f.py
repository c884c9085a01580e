"""A disproof of Corollary F.0.2's bound, for norms over rows and over columns.

The networks have one layer and a constant [CLS] token, and they differ only in row 0 of W_QK. Every
other matrix has one row or one column. All tokens lie in the l_1 ball, so the projection on the l_1
or l_2 ball changes no token. The printed bound is false because the first layer's cover of W_QK
lacks a factor B_x^2 (E9), and its cover of W_v is for inputs of norm 1 (E10).
"""

import functools
import math
from typing import Any

import numpy as np

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.numerics.arrays import array_module, number, real
from jaxbounds.seqlength.linear_bounds import lemma_3_4_leading
from jaxbounds.seqlength.model import block
from jaxbounds.seqlength.multi_layer import (
    constants_F_0_2_corrected_leading,
    covering_constant,
    terms_corrected,
    terms_derived,
    theorem_4_2,
)
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.seqlength.statements.packings import (
    corrected_size,
    derived_size,
    norms_of,
    outputs,
    sigma_is_allowed,
    signs,
)

on_packings = functools.partial(
    Statement,
    kind="inequality",
    host=True,
    search="random",
    budget=Budget(samples=1, restarts=4, steps=20),
    sizes=({"L": 1},),
)


def meets(
    X: Any, layer: dict[str, Any], w: Any, B_x: float, columns: float, rows: float, points: tuple
) -> dict[str, Any]:
    """Check every assumption of Sections 2.6, 4.3 and Appendix F except the lemma's norm of W_QK.

    `columns` and `rows` are norms of the whole matrix W_QK; `layer` contains only three
    coordinates.
    """
    one = 1.0 + 1e-12
    narrow = (layer["W_v"], layer["W_c"].T, w[:, None])
    l_1, l_2 = (max(np.linalg.norm(W[:, 0], p) for W in narrow) for p in (1, 2))
    read = np.abs(X @ layer["W_v"]).max()
    return {
        "w, W_c, W_v have one row or column, of l_1 and l_2 norm at most B = 1: so ||.||_{1,inf}"
        " and ||.||_{2,1}, of each and of its transpose": max(l_1, l_2) <= one,
        "W_QK in the printed norm, over columns: at most B = 1": columns <= one,
        "and over rows, the other orientation of E3": rows <= one,
        "||W_v^T||_2 <= B_v2 = 1 / B_x (Theorem 4.2)": np.linalg.norm(layer["W_v"]) <= one / B_x,
        "||W_c^T||_2 <= B_c2 = 1, ||w|| <= B_w = 1 (Theorem 4.2)": l_2 <= one,
        "||x||_1 <= B_x (Lemmas 3.3 and 3.4), so ||x||_2 <= B_x": np.abs(X).sum(axis=2).max()
        <= B_x * one,
        "rows before Pi_norm have l_1 norm at most 1, so that either ball leaves them: mixtures of"
        " X W_v, times W_c": max(read, read * np.abs(layer["W_c"]).sum()) <= one,
        "N > d points (Lemmas 3.3 and 3.4)": points[0] > points[1],
        "a constant [CLS] token (Section 2.6)": bool(X[0, 0, 0] == B_x) and not X[0, 0, 1:].any(),
        "W_QK in R^{d x d}, W_v in R^{d x 1}, W_c in R^{1 x d} (Section 2.6)": layer["W_v"].shape
        == layer["W_c"].T.shape
        == (len(layer["W_QK"]), 1),
        "sigma(0) = 0, 1-Lipschitz (Section 2.6)": sigma_is_allowed(),
    }


def _corollary_F_0_2(instance: Instance, size: Size) -> Sides:
    d, B_x, eps = draw.numbers(instance, "d", "B_x", "epsilon")
    xp, norms = array_module(d, B_x, eps), norms_of(B_x)
    ends = [number(outputs(*signs(instance, s, 1)))[0] for s in (1.0, -1.0)]
    packing = xp.where(abs(ends[0] - ends[1]) >= 2.0 * eps, real(d - 2) * xp.log(2.0), 0.0)
    C_1, C_Bx = (lemma_3_4_leading(x, k=1, d=d) for x in (1.0, B_x))
    printed = theorem_4_2(norms, C_1, C_Bx, size["L"]) / eps**2
    # The proof's own list, with the C of the d x d matrix W_QK for every matrix. This list repairs
    # E11 and the terms of E10. It does not repair E9, nor W_v's cover for inputs of norm 1.
    C_1, C_Bx = (lemma_3_4_leading(x, k=d, d=d) for x in (1.0, B_x))
    derived = derived_size(norms, C_1, C_Bx, size["L"]) / eps**2
    corrected = corrected_size(norms, constants_F_0_2_corrected_leading(1.0, d, 1), size["L"])
    return Sides(
        packing,
        {
            "printed": printed,
            "printed, constant 100": 100.0 * printed,
            "derived": derived,
            "corrected": corrected / eps**2,
            "control": B_x * printed,
        },
    )


def _meets_F_0_2(instance: Instance, size: Size) -> dict[str, Any]:
    d, B_x = draw.numbers(instance, "d", "B_x")
    X, layer, w = signs(instance, 1.0, 1)
    entry = abs(layer["W_QK"][0, 3])  # row 0 has d - 2 such entries, one per column
    # The [CLS] token, and two for each i.
    met = meets(X, layer, w, B_x, (d - 2) * entry, math.sqrt(d - 2) * entry, (2 * d - 3, d))
    return {**met, "eps > 0": instance["epsilon"] > 0}


_REFUTED = functools.partial(Counterexample, meets=_meets_F_0_2)
HALVES = {"d": 1000, "B_x": 100.0 * math.sqrt(1000.0), "epsilon": 0.49}


def _halves(d: int, **changed: float) -> dict[str, Any]:
    return HALVES | {"d": d, "B_x": 100.0 * math.sqrt(d)} | changed


COROLLARY_F_0_2 = on_packings(
    id="seqlength.corf.0.2.packing",
    label="Corollary F.0.2, as a number",
    tex=r"(d - 2) \ln 2 \le \ln \mathcal{N}_\infty\left( g_{\mathrm{scalar}}^{L+1}, \epsilon "
    r"\right) \le \frac{(\gamma + \eta)^3}{\epsilon^2}, \quad L = 1, \ k = 1, \ B = 1",
    formula="(d - 2) ln 2 <= ln N(eps) <= (gamma + eta)^3 / eps^2 for L = 1, k = 1, B = 1, with"
    " B^2 ln(dk) in gamma and eta",
    cases=lambda size: draw.stacked(
        [_halves(d) for d in (1000, 10**5, 10**6)]
        # B_x is hardly larger than this d needs.
        + [_halves(10**8, B_x=3e4, epsilon=0.45)]
        + [
            {"d": d, "B_x": B_x, "epsilon": epsilon}
            for d in (4, 10, 100)
            for B_x, epsilon in ((2.0, 0.1), (30.0, 0.4), (1e3, 0.49))
        ]
    ),
    project=draw.positive("B_x", "epsilon"),
    evaluate=_corollary_F_0_2,
    judges=(
        *(theorem_4_2, terms_derived, terms_corrected, constants_F_0_2_corrected_leading),
        *(covering_constant, lemma_3_4_leading, block),
    ),
    assumptions="T = 3, one constant [CLS] token, sigma linear; the 2^(d-2) networks differ only "
    "in W_QK, and d - 2 inputs tell them apart; the check computes one of these inputs, because "
    "the others are permutations of it; the form `corrected` has only the leading term of Lemma "
    "3.4, so the packing can refute this form but cannot prove it",
    forms=(
        Form(
            name="printed",
            cites="Corollary F.0.2, its two displays",
            erratum="E9",
            note="The networks of the packing have pairwise distances of 1. Their norms are "
            "bounded over columns and over rows, and their tokens are in the l_1 ball. This "
            "packing gives ln N >= 691.8, but the corollary prints the bound 501.0. The paper's "
            "cover of the first layer's W_QK lacks a factor B_x^2.",
            counterexample=_REFUTED(instance=HALVES, ratio=1.3806538043109735),
        ),
        Form(
            name="printed, constant 100",
            cites="Corollary F.0.2, its two displays; Lemma 3.4, 'hides logarithmic dependencies'",
            erratum="E9",
            note="No constant factor repairs the bound: the log size of the packing grows like d, "
            "and the printed bound grows like ln d.",
            counterexample=_REFUTED(instance=_halves(10**6), ratio=6.950640978146577),
        ),
        Form(
            name="derived",
            erratum="E9",
            note="The proof lists other terms than the corollary (erratum E10), with covers for "
            "inputs of norm 1 and ln(d^2) for every matrix (E11). The bound from the proof's terms "
            "is too small as well.",
            counterexample=_REFUTED(instance=_halves(10**5), ratio=7.486746304747405),
        ),
        Form(
            name="corrected",
            note="In the corrected bound, the term of the first layer's matrix W_QK has a factor "
            "B_x^2 (B_x: the largest token norm). Each matrix has its own constant C for the log "
            "size of its cover, to leading order.",
        ),
    ),
    control="B_x times the printed number, where the first W_QK needs B_x^2",
    source="Corollary F.0.2",
)

STATEMENTS = (COROLLARY_F_0_2,)
