"""Section 4.3 and Appendix F: Theorem 4.2 and its corollaries."""

import math

import jax.numpy as jnp
import numpy as np
from scipy import integrate, optimize
from scipy.special import gammaln

from jaxbounds.seqlength.dudley import inverse_square
from jaxbounds.seqlength.linear_bounds import lemma_3_6_sharp
from jaxbounds.seqlength.multi_layer import (
    NetworkNorms,
    covering_constant,
    downstream_factors,
    terms_derived,
    theorem_4_2_printed,
)
from jaxbounds.seqlength.statements.instances import FEW, log_uniform, stacked, terms
from jaxbounds.statements import Form, Sides, Statement

NAMES = NetworkNorms._fields


def _norms_sample(key, size):
    drawn = log_uniform(key, -0.5, 0.5, (len(NAMES) + 2,))
    C_1, C_Bx = drawn[-2] ** 2, drawn[-1] ** 2
    layers = jnp.zeros(size["L"], jnp.int32)
    return {**dict(zip(NAMES, drawn)), "C_1": C_1, "C_Bx": C_Bx, "layers": layers}


def _read(instance):
    return NetworkNorms(*(instance[name] for name in NAMES)), instance["layers"].shape[0]


def _theorem_4_2(instance):
    norms, L = _read(instance)
    C_1, C_Bx = instance["C_1"], instance["C_Bx"]
    terms = terms_derived(norms, C_1, C_Bx, L)
    B_w, B_c, B_v, _, Ls, _ = norms
    alpha = downstream_factors(norms, L)
    # gamma + eta as the last display of the proof gives them.
    each = alpha ** (2 / 3) * (1.0 + (Ls * B_c) ** (2 / 3))
    later = (2.0 * alpha[1:] * Ls * B_c * B_v) ** (2 / 3)
    sum_ = jnp.cbrt(C_1) * (1.0 + B_w ** (2 / 3) * (jnp.sum(each) + jnp.sum(later)))
    sum_ += jnp.cbrt(C_Bx) * (2.0 * Ls * B_c * B_v * alpha[0] * B_w) ** (2 / 3)
    return Sides(
        covering_constant(terms.C, terms.beta),
        {
            "printed": theorem_4_2_printed(norms, C_1, C_Bx, L),
            "derived": sum_**3,
            "control": (sum_ - jnp.cbrt(C_1)) ** 3,
        },
    )


_ONES = dict.fromkeys((*NAMES, "C_1", "C_Bx"), 1.0)

THEOREM_4_2 = Statement(
    id="seqlength.thm4.2",
    label="Theorem 4.2",
    formula="eps^2 ln N = (gamma + eta)^3 by Lemma E.1 from the proof's last display",
    kind="identity",
    sample=_norms_sample,
    evaluate=_theorem_4_2,
    sizes=({"L": 1}, {"L": 3}),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E10",
            note="one layer, everything 1: 46.2 printed, 96.5 from the proof",
            counterexample={**_ONES, "layers": [0]},
        ),
        Form(
            name="derived",
            note="tau_i = alpha_i^{2/3} (1 + (L B_c)^{2/3} + (2 L B_c B_v)^{2/3}), and in gamma"
            " the terms of eps_c^(1) and alpha_1",
        ),
    ),
    control="without the term of w",
    budget=FEW,
    source="Theorem 4.2, Appendix E",
)


def _cover_sizes(x, d, k):
    """Logarithms of the sizes of the covers that Lemma 3.6 builds for w, W_c, W_v, W_QK."""
    shapes = ((d, 1), (d, k), (d, k), (d, d))
    return np.array([float(lemma_3_6_sharp(x, k=a, d=b)) for a, b in shapes])


def _per_matrix_cases(size):
    grid = [(x, d, k) for x in (1.0, 2.0) for d in (2, 4, 16, 64) for k in (1, 4, 64)]
    as_row = lambda x, d, k: {"x": x, "d": float(d), "k": float(k), "sizes": _cover_sizes(x, d, k)}
    return stacked([as_row(*point) for point in grid])


def _per_matrix(instance):
    d, k = instance["d"], instance["k"]
    log = lambda n: jnp.log(2.0 * n + 1.0)
    # In units of B^2 with B = 1, in the order w, W_c, W_v, W_QK.
    corrected = jnp.stack([log(d), log(d * k), log(d * k), log(d * d)])
    printed = jnp.stack([log(d * k)] * 4)
    worst = lambda used: jnp.max(instance["sizes"] / (used * instance["x"] ** 2))
    return Sides(
        lhs={"printed": worst(printed), "corrected": worst(corrected), "control": worst(corrected)},
        rhs={"printed": 1.0, "corrected": 1.0, "control": 0.9},
    )


COROLLARY_4_2_1 = Statement(
    id="seqlength.cor4.2.1",
    label="Corollary 4.2.1",
    formula="the covers of Lemma 3.6 for w, W_c, W_v, W_QK have ln N <= B^2 x^2 ln(2dk + 1)",
    kind="inequality",
    cases=_per_matrix_cases,
    evaluate=_per_matrix,
    search="none",
    sizes=({"d": 64},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E11",
            note="W_QK is d x d: ln(2 d^2 + 1) is larger where k < d",
            counterexample={
                "x": 1.0,
                "d": 4.0,
                "k": 1.0,
                "sizes": [math.log(9), math.log(9), math.log(9), math.log(33)],
            },
        ),
        Form(
            name="corrected",
            note="one C for each shape",
            equality="x = 1, where the cover has the 2n + 1 points 0 and +-B e_i",
        ),
    ),
    control="nine tenths of the constants",
    budget=FEW,
    source="Corollaries 4.2.1, F.0.1 and F.0.2",
)


def _cube_cases(size):
    rows = []
    for d in (8, 32, 64, 256):
        # Volume of the cube [-1, 1]^d over that of a ball of radius sqrt(d)/4.
        ball = d / 2 * math.log(math.pi) - gammaln(d / 2 + 1) + d * math.log(math.sqrt(d) / 4)
        rows.append({"d": float(d), "packing": d * math.log(2.0) - ball})
    return stacked(rows)


def _cube(instance):
    d = instance["d"]
    # x = B_w B_x / eps = 4 / sqrt d, k = 1.
    printed = d * (16.0 / d) * math.log(3.0)
    return Sides(
        instance["packing"],
        {"printed": printed, "corrected": d * printed, "control": printed / 2.0},
    )


COROLLARY_F_0_1 = Statement(
    id="seqlength.cor-f.0.1",
    label="Corollary F.0.1",
    formula="ln N <= d x^2 ln(2k + 1) for ||W||_{1,inf} <= B_w and tokens in the l_2 ball",
    kind="inequality",
    cases=_cube_cases,
    evaluate=_cube,
    search="none",
    sizes=({"d": 256},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E11",
            note="the projection is on the l_2 ball: k = 1, eps = sqrt(d) B_w / 4, by volume",
            counterexample={"d": 256.0, "packing": 170.0},
        ),
        Form(name="corrected", note="||x||_1 <= sqrt d ||x||_2: C times d"),
    ),
    control="half of it",
    budget=FEW,
    source="Corollaries F.0.1 and F.0.2",
)


def _rademacher_cases(size):
    rng, rows = np.random.default_rng(0), []
    for _ in range(16):
        A, m, B = (float(10 ** rng.uniform(*r)) for r in ((-1, 4), (1, 5), (-1, 1)))
        height = lambda e, A=A, m=m: math.sqrt(A / e**2 / m)
        area = lambda x, B=B, h=height: x + integrate.quad(h, x, B, limit=200)[0]
        inner = optimize.minimize_scalar(
            area, bounds=(1e-8 * B, B), method="bounded", options={"xatol": 1e-12 * B}
        )
        rows.append({"A": A, "m": m, "B": B, "minimum": min(inner.fun, B)})
    return stacked(rows)


RADEMACHER = Statement(
    id="seqlength.sec4.3-dudley",
    label="Section 4.3, Dudley after Theorem 4.2",
    formula="min_delta delta + int_delta^B sqrt(A/m) / eps d eps = b + b ln(B/b), b = sqrt(A/m)",
    kind="identity",
    cases=_rademacher_cases,
    evaluate=lambda i: Sides(
        i["minimum"],
        {
            "derived": inverse_square(i["A"], i["m"], i["B"]),
            "control": inverse_square(2.0 * i["A"], i["m"], i["B"]),
        },
    ),
    tolerance=1e-8,
    sizes=({"draws": 16},),
    forms=(Form(name="derived", note="and B where b >= B; the paper leaves this to the reader"),),
    control="A doubled",
    budget=FEW,
    source="Section 4.3 ('we can recover an upper bound')",
)


def _many_heads(instance):
    C, beta = instance["C"], instance["beta"]
    one = covering_constant(C, beta)
    three = covering_constant(jnp.tile(C, 3), jnp.tile(beta, 3))
    return Sides(jnp.sqrt(three), {"printed": 3.0**1.5 * jnp.sqrt(one), "control": 3.0 * one**0.5})


MANY_HEADS = Statement(
    id="seqlength.sec4.3-heads",
    label="Section 4.3, several heads",
    formula="H times the terms of one layer give H^{1.5} in sqrt((gamma + eta)^3)",
    kind="identity",
    sample=terms,
    evaluate=_many_heads,
    sizes=({"n": 3},),
    forms=(
        Form(
            name="printed",
            note="for the last layer; in earlier ones alpha_i gains another H^{L-i}",
        ),
    ),
    control="H",
    budget=FEW,
    source="Section 4.3",
)


STATEMENTS = (
    THEOREM_4_2,
    COROLLARY_4_2_1,
    RADEMACHER,
    MANY_HEADS,
    COROLLARY_F_0_1,
)
