"""Appendix C.1: the widths and norms of Lemmas 24 and 25, exactly and against what is printed."""

import math
from typing import Any

import numpy as np

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Budget, Form, Sides, Statement
from jaxbounds.qstr import gates


def _setting(i):
    """r_x, and eps as a share of the largest with eps <= r_x and log(R/eps) >= 1."""
    r = float(i["r_x"])
    return r, float(i["share"]) * min(r, math.sqrt(1 + r**2) / math.e)


def _norms(i, size):
    (r, eps), r_h, found, exact = _setting(i), float(i["r_h"]), {}, 0.0
    for state, name in ((1, "printed"), (0, "printed r_h = 0")):
        given = {"radius": r, "eps": eps, "state_radius": state * r_h}
        norms = gates.network_norms(gates.gate_network(**given))
        stated = gates.gate_norms(**given)
        exact = max([exact, *(abs(a / b - 1) for a, b in zip(norms, stated))])
        R = math.sqrt(1 + 4 * r**2 + state * r_h**2)  # of Lemma 24
        limit = gates.printed_norms(R=R, eps=eps, dimension=2 + state)
        found[f"{name} m"] = norms.width, limit.width
        found[f"{name} |a|"] = norms.outer, limit.outer / math.sqrt(norms.width)
        found[f"{name} |W|, |b|"] = max(norms.rows / limit.rows, norms.bias / limit.bias), 1.0
    found["derived exact"] = exact, 1e-12
    found["control"] = found["printed r_h = 0 m"][0], r / (4 * eps)
    return Sides.pairs(found, error=1e-14)


ON_SETTINGS: dict[str, Any] = {
    "kind": "inequality",
    "host": True,
    "search": "random",
    "budget": Budget(samples=24, restarts=2, steps=10),
    "over": {"r_x": Box(0.5, math.inf), "r_h": Box(1e-3, math.inf), "share": Box(0.02, 0.99)},
    "sizes": ({},),
}

NORMS = Statement(
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
                Form(name=f"{name} m", cites=cites, note="Every hidden constant 1."),
                Form(name=f"{name} |a|", cites=cites, note="Every hidden constant 1."),
                Form(name=f"{name} |W|, |b|", cites=cites, equality="every row of W"),
            )
        ),
        Form(
            name="derived exact",
            note="m = 2 K and |a|^2 = 2 R^2 (1 + e)^2 r_x^2 (4 K - 3), K = ceil(r_x/(4 eps) + 1/2),"
            " e = eps/r_x^2; with a state 2 more units and 2 R^2: m grows like 1/eps, not eps^-3.",
        ),
    ),
    control="r_x/(4 eps) units: one direction alone",
    assumptions="eps < r_x and log(R/eps) >= 1, without which the printed bounds are 0 or "
    "negative; r_x >= 1/2, eps at least 1/50 of the largest such",
    source="Lemma 24; Lemma 42 with L = 2 R",
    **ON_SETTINGS,
)


def _block_norms(i, size):
    q, d, (r, eps) = size["q"], size["d"], _setting(i)
    network = gates.block_network(q=q, d=d, radius=r, eps=eps)
    norms, one = gates.network_norms(network), gates.gate_norms(radius=r, eps=eps)
    stated = one._replace(width=q * d * one.width)
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


BLOCK_NORMS = Statement(
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
            note="Every hidden constant 1, R^2 = 1 + r_x^2. Powers that are half legible in the "
            "text at hand are taken as Lemma 24 gives them.",
        ),
        Form(
            name="printed |A_2|",
            cites="Lemma 25, Appendix C.1",
            note="As above, with the hidden constant 2.",
        ),
        Form(
            name="printed |W|, |b|",
            cites="Lemma 25, Appendix C.1",
            note="R^-1 as in Lemma 24, with the smaller R of Lemma 25: rows have the l_1 norm "
            "(1 + 4 r_x^2)^{-1/2}.",
        ),
        Form(name="derived exact", note="q d copies: the width q d times, no other norm larger."),
    ),
    control="half of sqrt(m) |a| for the l_1 norm of its row",
    assumptions="eps < r_x and log(R/eps) >= 1; r_x >= 1/2, eps at least 1/50 of the largest such",
    source="Lemma 25",
    **{**ON_SETTINGS, "sizes": ({"q": 2, "d": 2},)},
)

STATEMENTS = (NORMS, BLOCK_NORMS)
