"""Statements about the widths and norms of the networks in Lemmas 22 to 25 (Appendix C.1)."""

import functools
import math
from typing import Any

import numpy as np

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.qstr import gates
from jaxbounds.qstr.relu_networks import Layer, product_error
from jaxbounds.qstr.rnn_construction import inner_products


def _setting(i: Instance) -> tuple[float, float]:
    r = float(i["r_x"])
    return r, float(i["share"]) * min(r, math.sqrt(1 + r**2) / math.e)


def _norms(i: Instance, size: Size) -> Sides:
    (r, eps), r_h, found, exact = _setting(i), float(i["r_h"]), {}, 0.0
    for state, name in ((1, "printed"), (0, "printed r_h = 0")):
        given = {"radius": r, "eps": eps, "state_radius": state * r_h}
        norms = gates.network_norms(gates.gate_network(**given))
        stated: Any = gates.gate_norms(**given)
        exact = max([exact, *(abs(a / b - 1) for a, b in zip(norms, stated))])
        R = math.sqrt(1 + 4 * r**2 + state * r_h**2)  # R of Lemma 24
        limit = gates.printed_norms(R=R, eps=eps, dimension=2 + state)
        found[f"{name} m"] = norms.width, limit.width
        found[f"{name} |a|"] = norms.outer, limit.outer / math.sqrt(norms.width)
        found[f"{name} |W|, |b|"] = max(norms.rows / limit.rows, norms.bias / limit.bias), 1.0
    found["derived exact"] = exact, 1e-12
    found["control"] = found["printed r_h = 0 m"][0], r / (4 * eps)
    return Sides.pairs(found, error=1e-14)


on_settings = functools.partial(
    Statement,
    kind="inequality",
    host=True,
    search="random",
    budget=Budget(samples=24, restarts=2, steps=10),
    over={"r_x": Box(0.5, math.inf), "r_h": Box(1e-3, math.inf), "share": Box(0.02, 0.99)},
    sizes=({},),
)

NORMS = on_settings(
    id="qstr.lem24.norms",
    label="Lemma 24 (norms)",
    formula="m <= (R^2 log(R/eps)/eps)^D, |a| <= R^2 (..)^{(D+1)/2}/sqrt(m), |W^T|_{1,inf} <= 1/R, "
    "|b|_inf <= 1, D = 3 or 2",
    tex=r"m = O\left(R^6 (\log(R / \varepsilon) / \varepsilon)^3\right), \; \|a\|_2 \le "
    r"O\left(R^6 (\log(R / \varepsilon) / \varepsilon)^2 / \sqrt{m}\right), \; "
    r"\|W^\top\|_{1, \infty} \le R^{-1}, \; \|b\|_\infty \le 1",
    judges=(gates.gate_network, gates.gate_norms, gates.network_norms, gates.printed_norms),
    evaluate=_norms,
    forms=(
        *(
            form
            for name, cites in (
                ("printed", "Lemma 24, Appendix C.1"),
                ("printed r_h = 0", "Lemma 24: 'if r_h = 0, we have the improved bounds'"),
            )
            for form in (
                Form(
                    name=f"{name} m",
                    cites=cites,
                    note="Every hidden constant of the bound is set to 1.",
                ),
                Form(
                    name=f"{name} |a|",
                    cites=cites,
                    note="Every hidden constant of the bound is set to 1.",
                ),
                Form(name=f"{name} |W|, |b|", cites=cites, equality="every row of W"),
            )
        ),
        Form(
            name="derived exact",
            note="Let K = ceil(r_x/(4 eps) + 1/2) and e = eps/r_x^2. Then m = 2 K and |a|^2 = 2 "
            "R^2 (1 + e)^2 r_x^2 (4 K - 3). A gate that also reads a state h has 2 more units, "
            "which add 2 R^2 to |a|^2. So m grows like 1/eps, and not like eps^-3.",
        ),
    ),
    control="r_x/(4 eps) units: one direction alone",
    assumptions="eps < r_x and log(R/eps) >= 1, without which the printed bounds are 0 or "
    "negative; r_x >= 1/2, eps at least 1/50 of the largest such",
    source="Lemma 24; Lemma 42 with L = 2 R",
)


def _block_norms(i: Instance, size: Size) -> Sides:
    q, d, (r, eps) = size["q"], size["d"], _setting(i)
    network = gates.block_network(q=q, d=d, radius=r, eps=eps)
    norms, one = gates.network_norms(network), gates.gate_norms(radius=r, eps=eps)
    stated: Any = one._replace(width=q * d * one.width)
    exact = max(abs(a / b - 1) for a, b in zip(norms, stated))
    R = math.sqrt(1 + r**2)
    limit = gates.printed_norms(R=R, eps=eps, dimension=2)
    sums = np.max(np.sum(np.abs(network[1].W), axis=1))
    return Sides.pairs(
        {
            "printed m": (norms.width / (q * d), limit.width),
            "printed |A_2|": (sums, 2 * limit.outer),
            "printed |W|, |b|": (max(norms.rows * R, norms.bias), 1.0),
            "derived exact": (exact, 1e-12),
            "control": (sums, math.sqrt(one.width) * one.outer / 2),
        },
        error=1e-14,
    )


BLOCK_NORMS = on_settings(
    id="qstr.lem25.norms",
    label="Lemma 25 (norms)",
    formula="m_2 <= (R^2 log(R/eps)/eps)^2, |A_2^T|_{1,inf} <= 2 R^2 (..)^{3/2}, "
    "|W_2^T|_{1,inf} <= 1/R, |b_2|_inf <= 1",
    tex=r"\tilde m_2 \le O\left(R^4 (\log(R / \varepsilon) / \varepsilon)^2\right), \; "
    r"\|A_2^\top\|_{1, \infty} \le O\left(R^5 (\log(R / \varepsilon) / \varepsilon)^{3/2}\right), "
    r"\; \|W_2^\top\|_{1, \infty} \le R^{-1}, \; \|b_2\|_\infty \le 1",
    judges=(gates.block_network, gates.gate_norms, gates.network_norms, gates.printed_norms),
    evaluate=_block_norms,
    forms=(
        Form(
            name="printed m",
            cites="Lemma 25, Appendix C.1",
            note="Every hidden constant is set to 1, and R^2 = 1 + r_x^2. Some powers are only "
            "partly legible in the text at hand; the check takes these powers from Lemma 24.",
        ),
        Form(
            name="printed |A_2|",
            cites="Lemma 25, Appendix C.1",
            note="This version of the claim sets the hidden constant of the bound on |A_2| to 2; "
            "R^2 is 1 + r_x^2.",
        ),
        Form(
            name="printed |W|, |b|",
            cites="Lemma 25, Appendix C.1",
            note="Each row of W has the l_1 norm (1 + 4 r_x^2)^{-1/2}. As in Lemma 24, the bound "
            "on this norm is R^-1, with the smaller R of Lemma 25.",
        ),
        Form(
            name="derived exact",
            note="The network consists of q d copies of Lemma 24's network. The copies multiply "
            "the width by q d, and increase no other norm.",
        ),
    ),
    control="half of sqrt(m) |a| for the l_1 norm of its row",
    assumptions="eps < r_x and log(R/eps) >= 1; r_x >= 1/2, eps at least 1/50 of the largest such",
    source="Lemma 25",
    sizes=({"q": 2, "d": 2},),
)


def _product_norms(i: Instance, size: Size) -> Sides:
    q, d, de, knots = size["q"], size["d"], int(i["de"]), int(i["knots"])
    eps = de * product_error(2.0, knots)
    limit = gates.printed_product_norms(de=de, eps=eps)
    found = {}
    for name, slots, tokens in (("Lemma 22", 1, 0), ("Lemma 23", q, d)):
        first, A = inner_products(q=slots, d=tokens, de=de, knots=knots)
        norms = gates.network_norms((first, Layer(A[tokens:], np.zeros(slots))))
        m = (norms.width - 2 * tokens) / slots
        sums = np.max(np.sum(np.abs(A), axis=1))
        outer = norms.outer * math.sqrt(m) if slots == 1 else sums
        found[f"printed {name}, m"] = m, limit.width
        found[f"printed {name}, |{'a' if slots == 1 else 'A_1'}|"] = outer, limit.outer
        found[f"printed {name}, |W|"] = norms.rows, limit.rows
        found[f"printed {name}, |b|"] = norms.bias, limit.bias
    found["control"] = 2 * norms.rows, limit.rows
    return Sides.pairs(found, error=1e-14)


def _product_cases(size: Size) -> Instance:
    grid = np.array([(de, knots) for de in (2, 5, 12, 40) for knots in (1, 2, 4, 8, 32)])
    return {"de": grid[:, 0], "knots": grid[:, 1]}


PRODUCT_NORMS = Statement(
    id="qstr.lem22.norms",
    label="Lemmas 22 and 23 (norms)",
    formula="m <= de^3 (log(de/eps)/eps)^2, |a| <= de^{5/2} (log(de/eps)/eps)^{3/2}/sqrt(m), "
    "|W^T|_{1,inf} <= 1, |b|_inf <= 1, |A_1^T|_{1,inf} likewise",
    tex=r"m = O\left(d_e^3 (\log(d_e / \varepsilon) / \varepsilon)^2\right), \; \|a\|_2 \le "
    r"O\left(d_e^{5/2} (\log(d_e / \varepsilon) / \varepsilon)^{3/2} / \sqrt m\right), \; "
    r"\|W^\top\|_{1, \infty} \le 1, \; \|b\|_\infty \le 1",
    kind="inequality",
    host=True,
    search="random",
    judges=(inner_products, gates.printed_product_norms, gates.network_norms),
    over={"de": Integers(2, 60), "knots": Integers(1, 64)},
    cases=_product_cases,
    evaluate=_product_norms,
    hypotheses=lambda i, size: {
        "log(de/eps) >= 1, else the printed bounds are 0 or negative": (
            i["de"] * product_error(2.0, int(i["knots"])) * math.e <= i["de"]
        )
    },
    forms=tuple(
        Form(name=f"printed {lemma}, {what}", cites=f"{lemma}, Appendix C.1", equality=equality,
             note=note)
        for lemma, outer in (("Lemma 22", "|a|"), ("Lemma 23", "|A_1|"))
        for what, equality, note in (
            ("m", "", "Every hidden constant of the bound is set to 1."),
            (
                outer,
                "",
                "Every hidden constant is set to 1. For 8 knots and de = 12, m = 384 and |a| = "
                "4.7.",
            ),
            (
                "|W|",
                "every row",
                "The units read (w + w') / 2 and (w - w') / 2 for unit vectors w and w'.",
            ),
            ("|b|", "", "The last knot, a bias, is at 1 - 1/knots."),
        )
    ),
    control="rows of l_1 norm 2, as w + w' has them",
    sizes=({"q": 2, "d": 2},),
    budget=Budget(samples=24, restarts=2, steps=10),
    assumptions="explicit products in place of Lemma 42's; eps is the error bound of qstr.lem22. "
    "The power of de in Lemma 23's |A_1| is half legible and taken from its proof, |a|_1 <= "
    "sqrt(m) |a|_2",
    source="Lemmas 22 and 23",
)  # fmt: skip

STATEMENTS = (PRODUCT_NORMS, NORMS, BLOCK_NORMS)
