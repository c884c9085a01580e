"""The main text's orders of growth, compared with the exact constants of the appendices."""

import functools
import math

import jax.numpy as jnp

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead import descent
from jaxbounds.multihead.certificate import GoodInitialisation, corollary5
from jaxbounds.multihead.descent_certificate import least_root
from jaxbounds.multihead.oracle import Assumption3
from jaxbounds.multihead.oracle_bounds import gamma_linear, gamma_star

as_it_grows = functools.partial(
    Statement,
    kind="rate",
    cases=lambda size: {"D": jnp.asarray([1.0 * size["D"]])},
    budget=Budget(samples=1, restarts=0, steps=0, batch=1),
)
"""Settings of statements about orders of growth in D or T, at token radius R = 1."""


def _head_rate(instance: Instance, size: Size) -> Sides:
    T, d, D = size["T"], size["d"], instance["D"]
    s = descent.Setting.bounded(distance=D, size=0.0, radius=1.0, T=T, d=d)
    # sqrt(H) = d sqrt(T) R^5 (D / sqrt(H)) D^3, with the constant one.
    printed = d * T**0.5 * D**4
    # sqrt(H) = d sqrt(T) R^5 (D + ||theta||_{2,inf}) D^2, where ||theta||_{2,inf} tends to 0.
    summed = d**2 * T * D**6
    return Sides(
        lhs=least_root(s, descent.PRINTED, D) ** 2,
        rhs={"derived": printed, "corrected": summed, "control": D**2},
    )


EQ_3 = as_it_grows(
    id="multihead.eq3",
    label="Theorem 1, eq. (3)",
    formula="the heads needed by (74) are O(those of sqrt(H) >= d sqrt(T) R^5 "
    "||theta||_{2,inf} D^3)",
    tex=r"H_{(74)} = O(H), \quad \sqrt{H} = d T^{1/2} R^5 \|\theta\|_{2,\infty} \|\theta - "
    r"\theta_0\|^3",
    evaluate=_head_rate,
    judges=(least_root, descent.root_heads),
    sizes=tuple({"T": 3, "d": 2, "D": D} for D in (2**k for k in range(2, 12))),
    forms=(
        Form(
            name="derived",
            expected="inconsistent",
            erratum="E11",
            sense="at most",
            exponent=(1.45, 1.55),
            note="A target spread over the heads has ||theta||_{2,inf} = D / sqrt(H). For this "
            "target (3) requires H >~ D^4, and Theorem 3 requires H >~ D^6.",
        ),
        Form(
            name="corrected",
            sense="at most",
            exponent=(0.98, 1.02),
            note="The right order of sqrt(H) is d sqrt(T) R^5 (D + ||theta||_{2,inf}) D^2.",
        ),
    ),
    control="H = O(D^2)",
    source="Section 4.1, eq. (3) against Appendix B.4",
    assumptions="theta_0 = 0, a target spread evenly over the heads, D -> infinity",
)


def _smoothness_rate(instance: Instance, size: Size) -> Sides:
    T, d, D = size["T"], size["d"], instance["D"]
    s = descent.Setting.bounded(distance=D, size=1.0, radius=1.0, T=T, d=d, heads=1e12)
    squared = d * T * (D + 1.0) ** 2
    return Sides(
        lhs=descent.rho(s),
        rhs={
            "derived": (d * T) ** 1.5 * D**2,
            "corrected": ((T * d) ** 0.5 / 1e6 + T) * squared,
            "control": T * D**2,
        },
    )


THEOREM_1_RHO = as_it_grows(
    id="multihead.thm1.rho",
    label="Theorem 1, rho",
    formula="rho of Theorem 3 is O(d^{3/2} T^{3/2} R^13 ||theta||_{2,inf}^2 D^2)",
    tex=r"\rho(\theta) = O\left( d^{3/2} T^{3/2} R^{13} \|\theta\|_{2,\infty}^2 \|\theta - "
    r"\theta_0\|^2 \right)",
    evaluate=_smoothness_rate,
    judges=(descent.rho, descent.alpha),
    sizes=tuple({"T": T, "d": 2, "D": 1} for T in (2**k for k in range(6, 16))),
    forms=(
        Form(
            name="derived",
            expected="inconsistent",
            erratum="E11",
            sense="at most",
            exponent=(1.3, 1.37),
            note="Theorem 3's rho contains the term (T R^2 / 4) alpha^2, which grows as T^2 and "
            "has no factor 1 / sqrt(H). The printed order of rho grows more slowly.",
        ),
        Form(
            name="corrected",
            sense="at most",
            exponent=(0.98, 1.02),
            note=(
                "The right order of rho is (sqrt(T d) R^3 / sqrt(H) + T R^2) d T R^10 (D + "
                "||theta||_{2,inf})^2. This order needs D or ||theta||_{2,inf} of order one or "
                "larger."
            ),
        ),
    ),
    control="rho = O(T)",
    source="Section 4.1, Theorem 1, against Appendix B.4",
    assumptions="d = 2, R = 1, ||theta||_{2,inf} = D = 1, T -> infinity at H = 10^12",
)


def _gain(instance: Instance, size: Size) -> Sides:
    S = instance["S"]
    dm1 = Assumption3(S=S, zeta=0.5, Z_mu=S, Z_nu=S, Z=S, T=4.0, M=2.0)
    gain = gamma_star(dm1, 1.0) - gamma_linear(dm1)
    rate = dm1.zeta**2 * (1 - dm1.zeta) * S**4
    return Sides(lhs=gain, rhs={"printed": rate, "control": rate * S})


GAIN = Statement(
    id="multihead.sec5.1.gain",
    label="Section 5.1, gamma* against gamma_lin",
    formula="gamma* = gamma_lin + Omega(zeta^2 (1 - zeta) S^4) if T, M, P = O(1), Z, Z_mu, Z_nu "
    "= O(S)",
    tex=r"\gamma_\star = \gamma_{\mathrm{lin}} + \Omega(\zeta^2 (1 - \zeta) S^4), \quad P = "
    r"O(1)",
    kind="rate",
    evaluate=_gain,
    judges=(gamma_star, gamma_linear),
    forms=(
        Form(
            name="printed",
            cites="Section 5.1, below eq. (7): 'it holds gamma* = gamma_lin + Omega(...)'",
            sense="at least",
            exponent=(0.95, 1.05),
            note="The deviation bound P is O(1) only for the true centre (zeta/4) u* and n1 >~ S^2 "
            "d. If p is measured "
            "about the printed centre, P is at least zeta S sqrt(2) / 4 (erratum E2), and gamma* "
            "< gamma_lin.",
        ),
    ),
    control="Omega(S^5)",
    source="Section 5.1, below Proposition 2",
    cases=lambda size: {"S": jnp.logspace(5, 8, 13)},
    sizes=({"C": 1},),
    assumptions="zeta = 1/2, T = 4, M = 2, P = 1, Z = Z_mu = Z_nu = S -> infinity",
)


def _certified_heads(instance: Instance, size: Size) -> Sides:
    d, D = size["d"], float(instance["D"])
    gamma, R = 1 / D, math.sqrt(d)
    found = corollary5(GoodInitialisation(1.0, 1.0, gamma), R, 10, T=d, d=d, corrected=False)
    printed = D**3 * R**10 / gamma**6
    return Sides(lhs=found.heads, rhs={"printed": printed, "control": printed**0.9})


HEADS = as_it_grows(
    id="multihead.sec7.heads",
    label="Section 7, the number of heads",
    formula="Corollary 5 needs H = O(d^2 T R^10 polylog(n) / gamma^6)",
    tex=r"H = O\left( \frac{d^2 T R^{10} \, \mathrm{polylog}(n)}{\gamma^6} \right)",
    host=True,
    evaluate=_certified_heads,
    judges=(corollary5, descent.root_heads),
    sizes=tuple({"d": d, "D": d} for d in (2**k for k in range(4, 14))),
    forms=(
        Form(
            name="printed",
            cites="Section 7: 'O(d^2 T R^10 polylog(n) / gamma^6) number of heads'",
            sense="at most",
            exponent=(0.95, 1.05),
        ),
    ),
    control="the power 0.9 of the right side",
    source="Section 7, first paragraph; Corollary 2, which has B_2^2 and g_0^3",
    assumptions="B_2 = B_Phi = 1, K = 10; T = d, R = sqrt(d), gamma = 1 / d, d -> infinity",
)

STATEMENTS = (EQ_3, THEOREM_1_RHO, GAIN, HEADS)
