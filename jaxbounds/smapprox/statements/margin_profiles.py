"""Corollary A.1 with its constants: bounds on the risk from the margins on the sample.

The class is F = theta . x on unit vectors, |theta|_1 <= 1; the margin of F is |theta . x|.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox import generalization as general
from jaxbounds.smapprox import sample_complexity as samples
from jaxbounds.smapprox.statements.margin_covers import ALPHA
from jaxbounds.smapprox.statements.margin_samples import LEVEL, law, outputs_of, points

PRINTED_A1, PRINTED_XI = 12.5, 16.0
"""Values of the constants that the paper's O() hides; the note of the printed claim derives them.
"""


def _profile(i: Instance, size: Size) -> Sides:
    alpha, p, delta = 1.0, 50, 0.05
    first, others = i["log_margins"][:1], i["log_margins"]
    margins = np.exp(first + i["width"] * (others - first))
    closed = general.corollary_a1_explicit(alpha, p, margins, delta=delta)
    hidden: Any = {"constant": PRINTED_A1, "low_order": PRINTED_XI}
    printed = samples.margin_generalization_bound(alpha, p, jnp.asarray(margins), **hidden)
    return Sides.pairs(
        {
            "printed": (closed, float(printed)),
            "derived": (general.margin_profile_bound(alpha, p, margins, delta=delta), closed),
            "control": (closed, float(printed) / 20.0),
        }
    )


PROFILE = Statement(
    id="smapprox.cora.1.chain",
    label="Corollary A.1, its constants",
    formula="min_k P_k <= 8.83 alpha sqrt(log(2p)/n) sqrt(mean 1/rho_i^2) + xi, "
    "n kl(q_k, P_k) = log N(gamma_k/2) + log(1/delta_k)",
    tex=r"\min_k P_k \le \frac{8.83 \, \alpha \sqrt{\log(2p)}}{\sqrt{n}} \sqrt{\frac{1}{n} "
    r"\sum_{i=1}^{n} \frac{1}{\rho(\theta, x_i, y_i)^2}} + \xi, \quad n \, \mathrm{kl}(q_k, P_k) = "
    r"\log \frac{\mathcal{N}(\gamma_k / 2)}{\delta_k}",
    kind="inequality",
    evaluate=_profile,
    judges=(
        general.margin_profile_bound,
        general.corollary_a1_explicit,
        samples.margin_generalization_bound,
    ),
    host=True,
    over={"log_margins": Box(-7, 7, "n"), "width": Box(0, 1)},
    search="random",
    budget=Budget(samples=24, restarts=2, steps=20),
    sizes=({"n": 64},),
    forms=(
        Form(
            name="printed",
            cites="Corollary A.1, (A.2), and its xi",
            note="The hidden constants of (A.2) and of its xi are 12.5 and 16, for p >= 2, n >= 8 "
            "and alpha/n <= rho_i <= "
            "alpha n. The two constants follow from sqrt(log 2p) <= sqrt(2 log p) and xi = sqrt(2 "
            "l/n) + 2 l/n <= 4 l / sqrt n, with l = log(1/delta_k).",
        ),
        Form(
            name="derived",
            note="Each step of the proof, from the risk bound P_k at one scale gamma_k to the "
            "closed form, makes the bound on the risk slightly larger.",
        ),
    ),
    control="a twentieth of the printed bound",
    assumptions="the check compares formulas at drawn margins, without a class or a sample; "
    "smapprox.cora.1.explicit checks the corollary on a class",
    source="Appendix A",
)


def _all_at_once(i: Instance, size: Size) -> Sides:
    """Compare Corollary A.1's bounds with the risk of the worst model that has no training error.

    That model has the largest ratio of its risk to the root of the mean of 1/margin^2.
    """
    counts, n = np.asarray(i["counts"]), 2 ** size["log_n"]
    outputs = outputs_of(np.asarray(i["angle"]), np)
    right = np.flatnonzero(np.all((outputs > 0) | (counts == 0), axis=1))
    risks = (outputs[right] <= 0) @ law(size)
    inverse = np.where(counts > 0, outputs[right], np.inf) ** -2.0 @ counts / n
    at = np.argmax(risks / np.sqrt(inverse))
    margins = np.repeat(outputs[right[at]], counts)
    found = {
        "derived": general.corollary_a1_explicit(ALPHA, 2, margins, delta=LEVEL),
        "sharpened": general.margin_profile_bound(ALPHA, 2, margins, delta=LEVEL),
    }
    return Sides(risks[at], {**found, "control": found["sharpened"] / 1e3}, trivial=1.0)


COROLLARY = Statement(
    id="smapprox.cora.1.explicit",
    label="Corollary A.1",
    formula="E l_01 <= 8.83 alpha sqrt(log(2p)/n) sqrt(mean 1/rho_i^2) + xi for all theta without "
    "training error, with probability 1 - delta",
    tex=r"\mathbb{E}[\ell_{\text{0-1}}(F(x, \theta), y)] \le \frac{8.83 \, \alpha "
    r"\sqrt{\log(2p)}}{\sqrt{n}} \sqrt{\frac{1}{n} \sum_{i=1}^{n} "
    r"\frac{1}{\rho(\theta, x_i, y_i)^2}} + \xi \quad \text{with probability } 1 - \delta",
    kind="probability",
    level=LEVEL,
    evaluate=_all_at_once,
    judges=(general.corollary_a1_explicit, general.margin_profile_bound),
    host=True,
    sample=points,
    sizes=({"points": 10, "log_n": 12},),
    forms=(
        Form(
            name="derived",
            note="The bound on the risk is the printed bound with explicit constants and without "
            "log n.",
        ),
        Form(
            name="sharpened",
            note="The bound on the risk is the smallest of the bounds at the scales gamma_k. At "
            "each scale gamma_k, some samples may have a margin below gamma_k. Chernoff's bound "
            "limits the fraction of these samples.",
        ),
    ),
    control="a thousandth of the sharpened bound",
    assumptions="F = theta . x on ten unit vectors of the plane, n = 4096; the worst of 180 models",
    budget=Budget(samples=128, restarts=0),
    source="Appendix A",
)

STATEMENTS = (PROFILE, COROLLARY)
