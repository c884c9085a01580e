"""Section 4.3, Appendix F: Theorem 4.2 and its corollaries."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size
from jaxbounds.numerics.arrays import array_module
from jaxbounds.seqlength.dudley import CERTIFIED, inverse_square
from jaxbounds.seqlength.linear_bounds import (
    lemma_3_3,
    lemma_3_4_leading,
    lemma_3_6,
    lemma_3_6_sharp,
)
from jaxbounds.seqlength.multi_layer import (
    Constants,
    NetworkNorms,
    constants_4_2_1_corrected,
    constants_F_0_1_corrected,
    constants_F_0_2_corrected_leading,
    covering_constant,
    downstream_factors,
    rademacher_multi_layer,
    terms_corrected,
    terms_derived,
    theorem_4_2,
)
from jaxbounds.seqlength.statements import instances as draw

NAMES = NetworkNorms._fields


def _theorem_4_2(instance: Instance, size: Size) -> Sides:
    norms, L = NetworkNorms(*(instance[name] for name in NAMES)), size["L"]
    C_1, C_Bx = instance["C_1"], instance["C_Bx"]
    listed = terms_derived(norms, C_1, C_Bx, L)
    B_w, B_c, B_v, _, Ls, _ = norms
    alpha = downstream_factors(norms, L)
    # gamma and eta are those of the last display of the proof.
    each = alpha ** (2 / 3) * (1.0 + (Ls * B_c) ** (2 / 3))
    later = (2.0 * alpha[1:] * Ls * B_c * B_v) ** (2 / 3)
    sum_ = jnp.cbrt(C_1) * (1.0 + B_w ** (2 / 3) * (jnp.sum(each) + jnp.sum(later)))
    sum_ += jnp.cbrt(C_Bx) * (2.0 * Ls * B_c * B_v * alpha[0] * B_w) ** (2 / 3)
    return Sides(
        covering_constant(listed.C, listed.beta),
        {
            "printed": theorem_4_2(norms, C_1, C_Bx, L),
            "derived": sum_**3,
            "control": (sum_ - jnp.cbrt(C_1)) ** 3,
        },
    )


def _theorem_4_2_meets(instance: Instance, size: Size) -> dict[str, Any]:
    return {
        "norm bounds are not negative (Theorem 4.2)": min(instance[n] for n in NAMES) >= 0,
        "C_1, C_Bx >= 0 (Theorem 4.2)": min(instance["C_1"], instance["C_Bx"]) >= 0,
        "L >= 1 (Section 2.6)": size["L"] >= 1,
    }


THEOREM_4_2 = draw.identity(
    id="seqlength.thm4.2",
    label="Theorem 4.2",
    tex=r"\epsilon^2 \ln \mathcal{N} = (\gamma + \eta)^3, \quad \gamma = C_{B_x}^{1/3} (2 "
    r"L_\sigma B_{c2} B_{v2} \alpha_1 B_w)^{2/3} + C_1^{1/3} \left( 1 + (B_w L_\sigma "
    r"B_{v2})^{2/3} \right), \quad \eta = C_1^{1/3} B_w^{2/3} \sum_{i=2}^L \tau_i, "
    r"\quad \tau_i = \alpha_i^{2/3} + (2 \alpha_i L_\sigma B_{c2} B_{v2})^{2/3} + (\alpha_i "
    r"L_\sigma B_{v2})^{2/3}, \quad \alpha_i = \prod_{j=i+1}^L L_\sigma B_{c2} B_{v2} (1 + 4 "
    r"B_{QK2})",
    formula="eps^2 ln N = (gamma + eta)^3 by Lemma E.1 from the proof's last display",
    over=dict.fromkeys((*NAMES, "C_1", "C_Bx"), Box(0, math.inf)),
    evaluate=_theorem_4_2,
    judges=(theorem_4_2, terms_derived, covering_constant, downstream_factors),
    sizes=({"L": 1}, {"L": 3}),
    assumptions="the check compares only formulas, the theorem's and the proof's; "
    "seqlength.thm4.2.packing compares the theorem with networks",
    forms=(
        Form(
            name="printed",
            cites="Theorem 4.2, its two displays",
            erratum="E10",
            note="For one layer and all norms equal to one, the theorem prints the bound 46.2, "
            "and the proof gives 96.5.",
            counterexample=Counterexample(
                instance=dict.fromkeys((*NAMES, "C_1", "C_Bx"), 1.0),
                ratio=0.5217668644740577,
                meets=_theorem_4_2_meets,
            ),
        ),
        Form(
            name="derived",
            note="Here alpha_i is the printed product over the layers j > i. The proof gives tau_i "
            "= alpha_i^{2/3} (1 + (L_sigma B_c)^{2/3} + (2 L_sigma B_c B_v)^{2/3}). In gamma the "
            "proof gives C_1^{1/3} (B_w alpha_1)^{2/3} (1 + (L_sigma B_c)^{2/3}) in place of "
            "C_1^{1/3} (B_w L_sigma B_v)^{2/3}.",
        ),
    ),
    control="without the term of w",
    source="Theorem 4.2, Appendix E",
)


def _per_matrix(instance: Instance, size: Size) -> Sides:
    x, d, k = draw.numbers(instance, "x", "d", "k")
    xp = array_module(x, d, k)
    # The covers that Lemma 3.6 builds for w, W_c, W_v, W_QK.
    built = xp.stack([lemma_3_6_sharp(x, k=a, d=b) for a, b in ((d, 1), (d, k), (d, k), (d, d))])
    own = xp.stack(constants_4_2_1_corrected(1.0, d, k)) * x**2
    worst = xp.max(built / own)
    return Sides.pairs(
        {
            "derived": (xp.max(built / lemma_3_6(x, k=k, d=d)), 1.0),
            "corrected": (worst, 1.0),
            "control": (worst, 0.9),
        }
    )


def _shapes_4_2_1(instance: Instance, size: Size) -> dict[str, Any]:
    return {
        "d, k >= 1 (Section 2.6)": min(instance["d"], instance["k"]) >= 1,
        "x = B B_x / eps > 0 (Lemma 3.6)": instance["x"] > 0,
    }


COROLLARY_4_2_1 = draw.on_host(
    id="seqlength.cor4.2.1",
    label="Corollary 4.2.1",
    tex=r"\ln \mathcal{N} \le \frac{B^2 B_x^2}{\epsilon^2} \ln(2dk + 1) \quad \text{for } w, "
    r"W_c, W_v, W_{QK}",
    formula="the covers of Lemma 3.6 for w, W_c, W_v, W_QK have ln N <= x^2 ln(2dk + 1),"
    " x = B B_x / eps",
    cases=draw.grid(x=(1.0, 2.0), d=(2, 4, 16, 64), k=(1, 4, 64)),
    evaluate=_per_matrix,
    judges=(constants_4_2_1_corrected, lemma_3_6, lemma_3_6_sharp),
    sizes=({"d": 64},),
    assumptions="the check compares the sizes of the proof's covers with the printed C, one "
    "matrix at a time; seqlength.lemma3.6 checks that these sets are covers; "
    "seqlength.cor4.2.1.packing compares the corollary with networks",
    forms=(
        Form(
            name="derived",
            cites="Corollary 4.2.1, (B^2 B_x^2 ln(2dk + 1))^{1/3}",
            erratum="E11",
            note="If k < d, the cover that Lemma 3.6 builds for the d x d matrix W_QK is larger "
            "than the printed C = x^2 ln(2dk + 1) allows. The paper does not prove this C, but "
            "the check does not refute it.",
            counterexample=Counterexample(
                instance={"x": 1.0, "d": 4, "k": 1}, ratio=1.5913291693220688, meets=_shapes_4_2_1
            ),
        ),
        Form(
            name="corrected",
            note="In the corrected bound, matrices of each shape have their own constant C for the "
            "log size of their covers.",
            equality="x = 1, where the cover has the 2n + 1 points 0 and +-B e_i",
        ),
    ),
    control="nine tenths of the constants",
    source="Corollaries 4.2.1, F.0.1 and F.0.2",
)


def _shapes(instance: Instance, size: Size) -> Sides:
    B, d, k = draw.numbers(instance, "B", "d", "k")
    # The maps are x -> w.x, W_c^T x, W_v^T x and W_QK^T x, from R^b to R^a.
    shapes = ((1, d), (d, k), (k, d), (d, d))
    columns = np.array([B**2 * b * math.log(2 * a + 1) for a, b in shapes])
    return Sides.pairs(
        {
            "corrected (F.0.1)": (np.array(constants_F_0_1_corrected(B, d, k), float), columns),
            "corrected (F.0.2)": (
                np.array(constants_F_0_2_corrected_leading(B, d, k), float),
                np.array([B**2 * math.log(a * b) for a, b in shapes]),
            ),
            "control": (columns[::-1], columns),
        }
    )


SHAPES = draw.identity_on_host(
    id="seqlength.corf.0.shapes",
    label="Corollaries F.0.1 and F.0.2, one C for each matrix",
    tex=r"C = b \, B^2 \ln(2a + 1), \quad C = B^2 \ln(ab) \quad \text{for maps from } "
    r"\mathbb{R}^b \text{ to } \mathbb{R}^a",
    formula="C = b B^2 ln(2a + 1) and B^2 ln(ab) for maps from R^b to R^a",
    cases=draw.grid(B=(0.2, 1.0, 1.5), d=(1, 2, 5, 64), k=(1, 2, 7, 300)),
    evaluate=_shapes,
    judges=(
        constants_F_0_1_corrected,
        constants_F_0_2_corrected_leading,
        lemma_3_3,
        lemma_3_4_leading,
    ),
    sizes=({},),
    assumptions="the check compares formulas only; seqlength.corf.0.1.constant compares them with "
    "matrices",
    forms=(
        Form(name="corrected (F.0.1)"),
        Form(
            name="corrected (F.0.2)",
            note="The check compares the constants C of the library with B^2 ln(ab), the leading "
            "term of Lemma 3.4.",
        ),
    ),
    control="in reverse order",
)


def _rademacher(instance: Instance, size: Size) -> Sides:
    A, m, B = draw.numbers(instance, "A", "m", "B")
    height = lambda e: math.sqrt(A / e**2 / m)
    area = lambda x: x + scipy.integrate.quad(height, x, B, limit=200)[0]
    inner = scipy.optimize.minimize_scalar(
        area, bounds=(1e-8 * B, B), method="bounded", options={"xatol": 1e-12 * B}
    )
    least = min(inner.fun, B)
    return Sides.pairs(
        {
            "derived": (least, inverse_square(A, m, B)),
            "derived clipped": (min(CERTIFIED * least, B), rademacher_multi_layer(A, m, B)),
            "control": (least, inverse_square(2.0 * A, m, B)),
        }
    )


RADEMACHER = draw.identity_on_host(
    id="seqlength.sec4.3.dudley",
    label="Section 4.3, Dudley after Theorem 4.2",
    tex=r"\min_\delta \left( \delta + \int_\delta^B \frac{1}{\epsilon} \sqrt{\frac{A}{m}} \, "
    r"d\epsilon \right) = b + b \ln \frac{B}{b}, \quad b = \sqrt{\frac{A}{m}} \le B",
    formula="min_delta delta + int_delta^B sqrt(A/m) / eps d eps = b + b ln(B/b), b = sqrt(A/m)",
    over={"A": Box(0.1, 1e4), "m": Box(10, 1e5), "B": Box(0.1, 10)},
    evaluate=_rademacher,
    judges=(inverse_square, rademacher_multi_layer),
    tolerance=1e-8,
    sizes=({},),
    forms=(
        Form(
            name="derived",
            note="For covers with ln N = A / eps^2, the minimum of Dudley's bound over delta is B "
            "if b = sqrt(A/m) is at least B. The paper leaves this computation to the reader.",
        ),
        Form(
            name="derived clipped",
            note="The bound on the network's Rademacher complexity has the factor c = 12 in front "
            "of Dudley's integral and never exceeds B = B_w.",
        ),
    ),
    control="A doubled",
    source="Section 4.3 ('we can recover an upper bound')",
)


def _many_heads(instance: Instance, size: Size) -> Sides:
    C, beta = instance["C"], instance["beta"]
    norms = NetworkNorms(1.0, beta[0], beta[1], beta[2], 1.0, 1.0)

    def constant(heads: int) -> Array:
        listed = terms_corrected(norms, Constants(0.0, *C), 1, heads=heads)
        return jnp.sqrt(covering_constant(listed.C, listed.beta))

    one = constant(1)
    return Sides(constant(3), {"printed": 3.0**1.5 * one, "control": 3.0 * one})


MANY_HEADS = draw.identity(
    id="seqlength.sec4.3.heads",
    label="Section 4.3, several heads",
    tex=r"\sqrt{(\gamma_H)^3} = H^{3/2} \sqrt{(\gamma_1)^3}, \quad L = 1, \ B_x = 1, \ C_w = 0",
    formula="H times the terms of one layer give H^{1.5} in sqrt((gamma + eta)^3)",
    over=dict.fromkeys(("C", "beta"), Box(0, math.inf, "n")),
    evaluate=_many_heads,
    judges=(terms_corrected, covering_constant),
    sizes=({"n": 3},),
    assumptions="one layer, which the sentence compares with Section 4.1; the check leaves out "
    "the term of w; B_x = 1",
    forms=(
        Form(
            name="printed",
            cites="Section 4.3, the last sentence, 'a dependence of H^{1.5}'",
            note="The exponent 1.5 of H (the number of heads) is correct for the terms of the "
            "perturbed layer, without the term of the read-out w. In a network of L layers, "
            "alpha_i of an earlier layer i gains another factor H^{L-i}.",
        ),
    ),
    control="H",
)

STATEMENTS = (THEOREM_4_2, COROLLARY_4_2_1, RADEMACHER, MANY_HEADS, SHAPES)
