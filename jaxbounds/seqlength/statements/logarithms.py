"""Corollaries D.0.2 and F.0.2 with the logarithms that the paper omits; Section 4.3's orders.

The orders of Section 4.3 say how the bound on ln N grows with each norm.
"""

import functools
import math
from typing import Any

import numpy as np
import scipy

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.seqlength.linear_bounds import lemma_3_4_explicit
from jaxbounds.seqlength.logarithmic_entropy import (
    LogarithmicEntropy,
    corollary_D_0_2_explicit,
    corollary_F_0_2_explicit,
    entropy_D_0_2,
    entropy_F_0_2,
    entropy_integral,
    log_integral,
    logarithmic_dudley,
)
from jaxbounds.seqlength.model import head_at
from jaxbounds.seqlength.multi_layer import (
    Constants,
    NetworkNorms,
    constants_4_2_1_corrected,
    covering_constant,
    divide_scale,
    terms_corrected,
    theorem_4_2,
)
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.seqlength.statements.packings import corrected_size
from jaxbounds.seqlength.statements.single_layer import class_sample, complexity_below


def _closed_form(instance: Instance, size: Size) -> Sides:
    names = ("A", "kappa", "letters", "m", "B", "signs")
    A, kappa, letters, m, B, signs = draw.numbers(instance, *names)
    entropy, upper = LogarithmicEntropy(A, kappa, letters), min(B, kappa)
    height = lambda e: math.sqrt(
        A / e**2 / m * math.log(letters * (math.log2(2.0 * kappa**2 / e**2) + 2.0) + 1.0)
    )
    # The integral is over ln(epsilon), in which the integrand is smooth.
    area = lambda low: scipy.integrate.quad(
        lambda t: math.exp(t) * height(math.exp(t)), math.log(low), math.log(upper)
    )[0]
    root = math.sqrt(math.log(signs) / m)
    total = lambda t: math.exp(t) + (B - math.exp(t)) * root + area(math.exp(t))
    least = scipy.optimize.minimize_scalar(
        total, bounds=(math.log(1e-9 * upper), math.log(upper)), method="bounded",
        options={"xatol": 1e-9},
    ).fun  # fmt: skip
    found, low = logarithmic_dudley(entropy, m, B, signs=signs), 0.1 * upper
    s = entropy.argument(low)
    step = 1e-4 * s
    slope = (log_integral(s + step) - log_integral(s - step)) / (2.0 * step)
    return Sides.pairs(
        {
            "derived": (entropy_integral(entropy, low, B, m), area(low)),
            "derived, least": (found, min(least, total(math.log(upper)), B)),
            "derived, G'": (slope, math.sqrt(math.log(s))),
            "control": (
                entropy_integral(entropy._replace(letters=2 * letters), low, B, m),
                area(low),
            ),
        }
    )


CLOSED_FORM = draw.identity_on_host(
    id="seqlength.sec4.3.logarithms",
    label="Dudley's integral with the logarithms of Lemma 3.4",
    tex=r"\int_\delta^U \sqrt{\frac{A}{m} \ln s(\epsilon)} \, \frac{d\epsilon}{\epsilon} = "
    r"\sqrt{\frac{A}{m}} \, \frac{\ln 2}{2 l} \left( G(s(\delta)) - G(s(U)) \right), \quad s = l "
    r"\left( \log_2 \frac{2 \kappa^2}{\epsilon^2} + 2 \right) + 1, \quad G(s) = s \left( "
    r"\sqrt{\ln s} - D(\sqrt{\ln s}) \right)",
    formula="int sqrt(A/m ln s) / eps d eps = sqrt(A/m) ln 2 / (2 l) (G(s(delta)) - G(s(U))),"
    " G(s) = s (sqrt(ln s) - Dawson(sqrt(ln s)))",
    over={"A": Box(1, 1e3), "kappa": Box(0.1, 10), "letters": Box(1, 1e4), "B": Box(0.1, 10)}
    | {"m": Integers(100, 10**8), "signs": Integers(1, 100)},
    evaluate=_closed_form,
    judges=(entropy_integral, logarithmic_dudley, log_integral),
    tolerance=1e-7,
    sizes=({},),
    forms=(
        Form(
            name="derived",
            note="The proof substitutes t = ln(1 / eps); the argument s of the "
            "logarithm is linear in t.",
        ),
        Form(
            name="derived, least",
            note="This version of the claim checks the formula for the delta that minimises the "
            "bound.",
        ),
        Form(
            name="derived, G'",
            note=(
                "Dawson's function D satisfies D'(z) = 1 - 2 z D(z), so the function G of the "
                "closed form has the derivative G'(s) = sqrt(ln s)."
            ),
        ),
    ),
    control="twice the letters",
    source="Corollaries D.0.2 and F.0.2, 'some logarithms .. omitted'",
)


def _at_scale_one(norms: NetworkNorms, constants: Constants, layers: int) -> tuple[Any, Any]:
    listed = terms_corrected(norms, constants, layers)
    return listed.C, divide_scale(listed.C, listed.beta, 1.0).scales


def _logarithms(instance: Instance, size: Size) -> Sides:
    (*others, B_x, B), fraction = instance["norms"].tolist(), float(instance["fraction"])
    norms, (d, k, L) = NetworkNorms._make((*others, B_x)), (size[name] for name in "dkL")
    shapes = [(1, d), *[(d, k), (k, d), (d, d)] * L]
    C, unit = _at_scale_one(norms, Constants(*[B**2] * 4), L)
    x_at_1 = np.sqrt(C) / unit
    network, single = entropy_F_0_2(norms, B, d, k, L), entropy_D_0_2(B_x, B, d)
    pairs = {}
    for name, above, of in (
        ("corrected (D.0.2)", single, [(2.0 * B_x**3 * B, (d, d))]),
        ("corrected (F.0.2)", network, list(zip(x_at_1, shapes))),
    ):
        epsilon = fraction * above.kappa
        covers = [lemma_3_4_explicit(x / epsilon, k=out, d=into) for x, (out, into) in of]
        bound = above.A / epsilon**2 * math.log(above.argument(epsilon))
        pairs[name] = float(sum(covers)), bound
    pairs["control"] = pairs["corrected (F.0.2)"][0], 0.4 * pairs["corrected (F.0.2)"][1]
    return Sides.pairs(pairs)


WITH_LOGARITHMS = draw.random_search_on_host(
    id="seqlength.cord.0.logarithms",
    label="Corollaries D.0.2 and F.0.2 with their logarithms",
    tex=r"\sum_i \lfloor 2 x_i^2 \rfloor \ln\left( 2 d_i k_i \left( \lceil \log_2(2 x_i^2) "
    r"\rceil + 1 \right) + 1 \right) \le \frac{A}{\epsilon^2} \ln s(\epsilon)",
    formula="the covers of Lemma 3.4, at the scales of Lemma E.1, have ln N <="
    " (A / eps^2) ln s(eps), s = l (log2(2 kappa^2 / eps^2) + 2) + 1",
    budget=Budget(samples=12, restarts=2, steps=10),
    over={"norms": Box(0.3, 3, len(NetworkNorms._fields) + 1), "fraction": Box(0.003, 0.999)},
    evaluate=_logarithms,
    judges=(entropy_D_0_2, entropy_F_0_2, lemma_3_4_explicit),
    sizes=({"d": 4, "k": 3, "L": 2}, {"d": 2, "k": 5, "L": 2}),
    assumptions="the row norms of the maps are at most B (E3); tokens lie in the l_1 ball in "
    "every layer (E18)",
    forms=(
        Form(
            name="corrected (D.0.2)",
            note="The entropy bound has the constants A = 2 kappa^2 and kappa = 2 B_x^3 B_QK. The "
            "argument s of the bound's logarithm has the factor l = 2 d^2.",
        ),
        Form(
            name="corrected (F.0.2)",
            note="The entropy bound has the constants A = 2 gamma^3 and kappa = gamma sqrt(max "
            "C_i^{1/3} beta_i^{2/3}). The argument s of the bound's logarithm has the factor l = 2 "
            "d max(d, k).",
        ),
    ),
    control="two fifths of the right side",
    source="Corollaries D.0.2 and F.0.2",
)


def _class(instance: Instance, size: Size) -> Sides:
    m, d = 2**26 * len(instance["X"]), size["d"]
    turns = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    circle = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    maps = np.einsum("ni,cj->ncij", circle, np.eye(d)).reshape(-1, d, d)
    # One layer of the multi-layer network: w has an l_2 norm, and there is no factor for the sign.
    norms = NetworkNorms(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    return Sides(
        complexity_below(instance, maps, 2**26),
        {
            "corrected (D.0.2)": corollary_D_0_2_explicit(1.0, 1.0, 1.0, m, d),
            "sharpened (D.0.2)": corollary_D_0_2_explicit(
                1.0, 1.0, 1.0, m, d, softmax_constant=1.0
            ),
            "corrected (F.0.2)": corollary_F_0_2_explicit(norms, 1.0, m, d, 1, 1),
            "control": 0.1 / math.sqrt(m),
        },
        trivial=1.0,
    )


COROLLARY_CLASS = Statement(
    id="seqlength.cord.0.class",
    label="Corollaries D.0.2 and F.0.2, the classes",
    tex=r"\mathrm{Rad}_m \le 2 B \min(B_x, 12 E), \quad \mathrm{Rad}_m \le \min(B_w, 12 F), \quad "
    r"E, F \ \text{Dudley's integrals with the logarithms of Lemma 3.4}",
    formula="Rad of the single layer <= 2 B min(B_x, 12 E), of one layer of Theorem 4.2 <="
    " min(B_w, 12 F); E, F with the logarithms of Lemma 3.4",
    kind="expectation",
    host=True,
    sample=functools.partial(class_sample, p=1.0),
    evaluate=_class,
    judges=(corollary_D_0_2_explicit, corollary_F_0_2_explicit, head_at),
    sizes=({"points": 16, "T": 8, "d": 2},),
    assumptions="all norms are 1, W_QK = v e_i^T with ||v||_2 = 1, sigma = relu, k = 1, tokens on "
    "the l_1 sphere; networks at extreme points estimate the complexity from below; m "
    "= 2^30",
    forms=(
        Form(
            name="corrected (D.0.2)",
            note="All constants and logarithms of the bound are explicit, with c = 12 in front of "
            "Dudley's integral.",
        ),
        Form(
            name="sharpened (D.0.2)",
            note="The bound uses the Lipschitz constant 1 of softmax (sharpening S4), where the "
            "paper uses 2.",
        ),
        Form(
            name="corrected (F.0.2)",
            note="The network has one layer. The layer's outputs have l_1 norm at most 1, so the "
            "projection Pi_norm changes nothing.",
        ),
    ),
    control="a tenth of 1 / sqrt m",
    budget=Budget(samples=10, restarts=0, steps=0, batch=10),
)


def _orders(instance: Instance, size: Size) -> Sides:
    (g,) = draw.numbers(instance, "g")
    ones = NetworkNorms(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    log = math.log(9.0)

    def printed(norms: NetworkNorms, B: float = 1.0, log: float = log) -> float:
        C = B**2 * log
        return float(theorem_4_2(norms, C, C * norms.B_x**2, size["layers"]))

    def proved(norms: NetworkNorms, d: int = 2) -> float:
        return float(corrected_size(norms, constants_4_2_1_corrected(1.0, d, d), size["layers"]))

    width = round(g)
    return Sides.pairs(
        {
            "printed, B": (printed(ones, B=g), g**2),
            "printed, B_x": (printed(ones._replace(B_x=g)), g**2),
            "printed, B_w": (printed(ones._replace(B_w=g)), g**2),
            "printed, B_c2": (printed(ones._replace(B_c=g)), g ** (2 * size["layers"])),
            "printed, B_QK2": (printed(ones._replace(B_QK=g)), g ** (2 * size["layers"] - 2)),
            "printed, d k": (printed(ones, log=math.log(2.0 * width**2 + 1.0)), math.log(width)),
            "printed, B_c2 below one": (
                printed(ones._replace(B_c=1 / g)),
                g ** (-2 * size["layers"]),
            ),
            "derived, B_x": (proved(ones._replace(B_x=g)), g**2),
            "corrected, B_x": (proved(ones._replace(B_x=g)), g**6),
            "corrected, d k": (proved(ones, d=width), math.log(width)),
            "control": (printed(ones, B=g), g),
        }
    )


_rate = functools.partial(Form, sense="at most")
SHOWN = "Section 4.3, 'ignoring polylog terms and constants'"

ORDERS = Statement(
    id="seqlength.sec4.3.order",
    label="Section 4.3, the order of the log covering number",
    tex=r"\epsilon^2 \ln \mathcal{N} = \tilde{O}\left( B^2 B_x^2 B_w^2 (L_\sigma B_{c2} B_{v2} "
    r"B_{QK2})^{O(L)} \right)",
    formula="eps^2 ln N = O~(B^2 B_x^2 B_w^2 (L_sigma B_c2 B_v2 B_QK2)^{O(L)})",
    kind="rate",
    host=True,
    cases=lambda size: {"g": 2.0 ** np.arange(8, 21)},
    evaluate=_orders,
    judges=(theorem_4_2, terms_corrected, constants_4_2_1_corrected, covering_constant),
    sizes=({"layers": 2},),
    assumptions="one quantity grows, the others are 1, d = k = 2; two layers; the polylogarithm "
    "is the first power of ln(2dk + 1); the check compares the orders of two formulas "
    "and runs no network",
    forms=(
        _rate(name="printed, B", exponent=(0.99, 1.001), cites=SHOWN),
        _rate(
            name="printed, B_x",
            exponent=(0.95, 1.001),
            cites=SHOWN,
            note="As B_x grows, Theorem 4.2's printed bound on eps^2 ln N has the order that "
            "Section 4.3 prints.",
        ),
        _rate(name="printed, B_w", exponent=(0.95, 1.001), cites=SHOWN),
        _rate(
            name="printed, B_c2",
            exponent=(0.95, 1.001),
            cites=SHOWN,
            note=(
                "The exponent O(L) of (L_sigma B_c2 B_v2 B_QK2) is 2L for B_c2, L_sigma and B_v2."
            ),
        ),
        _rate(
            name="printed, B_QK2",
            exponent=(0.95, 1.001),
            cites=SHOWN,
            note="The exponent O(L) of (L_sigma B_c2 B_v2 B_QK2) is 2L - 2 for B_QK2.",
        ),
        _rate(
            name="printed, d k",
            exponent=(0.9, 1.001),
            cites=SHOWN,
            note="The bound on eps^2 ln N grows with the dimensions d and k like ln(dk).",
        ),
        Form(
            name="printed, B_c2 below one",
            sense="at least",
            exponent=(-0.1, 0.1),
            expected="inconsistent",
            erratum="E20",
            reading="of any size",
            cites=SHOWN,
            note="As B_c2 tends to 0, the display of Section 4.3 tends to 0. The cover of w does "
            "not shrink with B_c2, so the bound of Theorem 4.2 does not tend to 0.",
        ),
        _rate(
            name="derived, B_x",
            exponent=(2.8, 3.001),
            expected="inconsistent",
            erratum="E9",
            note="The corrected proof gives eps^2 ln N the order B_x^6, but the paper prints "
            "B_x^2.",
        ),
        _rate(
            name="corrected, B_x",
            exponent=(0.95, 1.001),
            note="The corrected bound on eps^2 ln N grows like B_x^6.",
        ),
        _rate(
            name="corrected, d k",
            exponent=(0.9, 1.001),
            note="The bound on eps^2 ln N grows with the dimensions d and k like ln(dk).",
        ),
    ),
    control="of order B",
    source="Section 4.3, the last display",
)

STATEMENTS = (CLOSED_FORM, WITH_LOGARITHMS, COROLLARY_CLASS, ORDERS)
