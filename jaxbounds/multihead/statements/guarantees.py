"""Consequences of Corollary 2 in Sections 4.3 and 5.1: orders of growth in K, n, S and R.

K goes up to 10^300, where a power of log K = 690 and a power of K clearly differ.
"""

import functools
import math

import jax
import jax.numpy as jnp

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead import descent
from jaxbounds.multihead.certificate import GoodInitialisation, corollary5, realized_distance
from jaxbounds.multihead.first_phase import deviation_bound_dimension, model_bound
from jaxbounds.multihead.oracle import Assumption3, Real
from jaxbounds.multihead.oracle_bounds import gamma_linear, gamma_star

on_orders = functools.partial(
    Statement,
    kind="rate",
    host=True,
    sizes=({"C": 1},),
    budget=Budget(samples=1, restarts=0, steps=0, batch=1),
)
"""Settings of statements about a quantity's growth in one variable."""

DATA = Assumption3(S=1.0, zeta=0.5, Z_mu=0.0, Z_nu=0.0, Z=0.0, T=2.0, M=1.0)
"""A population of Section 5.1 with gamma* > 0 for P = 0: no noise, T = 2, M = 1, S = 1."""


@jax.jit
def _section_5_1(failure: Real) -> tuple[Real, ...]:
    return model_bound(DATA, 0.0, failure), gamma_star(DATA, 0.0), DATA.R


def _polylogarithmic(instance: Instance, size: Size) -> Sides:
    K, shape = float(instance["K"]), {"T": 3, "d": 2}
    log = math.log(K)
    good = GoodInitialisation(1.0, 1.0, 1.0)
    found = corollary5(good, 1.0, K, **shape, corrected=False)
    distance = realized_distance(good, 1 / K, corrected=False)
    test = found.loss_bound + descent.corollary4_gap(distance, found.step_size, K)
    # Section 5.1: gamma = gamma*/2 and B_Phi of Proposition 2 for n = K samples, delta = 1/10.
    phi, star, R = map(float, _section_5_1(0.1 / K))
    start = GoodInitialisation(1.0, phi, star / 2)
    mixture = corollary5(start, R, K, T=2, d=3, corrected=False)
    far = realized_distance(start, 1 / K, corrected=False)
    both = mixture.loss_bound + descent.corollary4_gap(far, mixture.step_size, K)
    rate = mixture.step_size * star**2 * K
    return Sides.pairs(
        {
            "printed, H": (found.heads, log**6),
            "printed, eta": (1 / found.step_size, log**2),
            "printed, train loss": (found.loss_bound * K, log**4),
            "printed, test loss": (test * K, log**4),
            "printed, Section 5.1": (both * rate, log**2),
            "control": (found.heads, log**5),
        }
    )


POLYLOGARITHMIC = on_orders(
    id="multihead.cor2.rates",
    label="Sections 4.3 and 5.1, what Corollary 2 guarantees",
    formula="if B_Phi and 1/gamma are polylogarithmic: H = Omega(log^6 K), eta = O~(1), train loss "
    "O~(1/K), test loss O~(1/n) at K = n; on DM1 O~(1/(eta gamma*^2 n))",
    tex=r"H = \Omega(\ln^6 K), \quad \eta = \tilde O_K(1), \quad \hat L(\theta_K) = \tilde "
    r"O_K(1/K), \quad \mathbb{E} L(\theta_n) = \tilde O(1/n) = \tilde O(1/(\eta "
    r"\gamma_\star^2 n))",
    evaluate=_polylogarithmic,
    judges=(corollary5, realized_distance, descent.corollary4_gap, model_bound),
    forms=(
        Form(
            name="printed, H",
            cites="Section 4.3, below Corollary 2: 'provided polylogarithmic number of heads "
            "H = Omega(log^6(K))'; Section 1",
            sense="at most",
            exponent=(0.97, 1.03),
            note="The head count grows like the square of B_2 (4 g_0 + B_2) g_0^2, and g_0 is of "
            "order log K.",
        ),
        Form(
            name="printed, eta",
            cites="Section 4.3, below Corollary 2: 'choosing eta = O~_K(1)'",
            sense="at most",
            exponent=(0.97, 1.03),
            note="The number 1 / eta = rho(K) is of order log^2 K, and Corollary 5 allows this "
            "step size.",
        ),
        Form(
            name="printed, train loss",
            cites="Section 4.3, below Corollary 2: 'the corollary guarantees train loss is "
            "O~_K(1/K)'",
            sense="at most",
            exponent=(0.97, 1.03),
            note="K times the train loss is of order log^4 K. At Corollary 5's step size, g_0^2 "
            "and 1 / eta are both of order log^2 K. At the rho(K) that Corollary 2 prints, 1 "
            "/ eta is of order log^4 K.",
        ),
        Form(
            name="printed, test loss",
            cites="Section 4.3, below Corollary 2: 'Moreover, after K = n GD steps the expected "
            "test loss is O(1/n)'; Section 1, O~(1/n)",
            sense="at most",
            exponent=(0.97, 1.03),
            note=(
                "This version of the claim adds the two bounds of Corollary 2 at Corollary 5's "
                "step size. The product of n and this sum is of order log^4 n, so the test loss is "
                "O~(1/n), as Section 1 says (erratum E28)."
            ),
        ),
        Form(
            name="printed, Section 5.1",
            cites="Section 5.1: 'applying Cor. 2 for K = n and a polylogarithmic polylog(n) number "
            "of heads leads to O~(1/(eta gamma*^2 n)) train loss and expected generalization gap'",
            sense="at most",
            exponent=(0.85, 1.0),
            note="This version of the claim uses gamma = gamma*/2 and the B_Phi of Proposition 2, "
            "which is of order sqrt(log n). Then eta gamma*^2 n times the sum of the bounds on "
            "loss and gap is of order log^2 n. The measured order of growth approaches log^2 n "
            "from below.",
        ),
    ),
    control="log^5 K heads",
    cases=lambda size: {"K": jnp.logspace(100, 300, 21)},
    source="Section 4.3, below Corollary 2; Section 5.1, below Proposition 2",
    assumptions="K from 10^100 to 10^300, n = K; B_2 = B_Phi = gamma = R = 1, T = 3, d = 2; for "
    "Section 5.1 DM1 without noise, P = 0, S = 1, T = 2, d = 3, M = 1, zeta = 1/2",
)


def _large_signal(instance: Instance, size: Size) -> Sides:
    S, d = instance["S"], 4
    dm1 = Assumption3(S=S, zeta=0.5, Z_mu=S, Z_nu=S, Z=S, T=4.0, M=2.0)
    P = deviation_bound_dimension(S, S, d, S**2 * d, 0.1)
    linear = gamma_linear(dm1)
    return Sides.pairs(
        {
            "printed, gamma_lin": (linear, dm1.zeta * S),
            "printed, P": (S * P, S),
            "control": (linear, dm1.zeta * S**1.5),
        }
    )


SIGNAL = on_orders(
    id="multihead.sec5.1.signal",
    label="Section 5.1, gamma_lin and P",
    formula="gamma_lin = Omega(zeta S), and P = O(1) once n1 >~ S^2 d, if T, M = O(1) and Z, Z_mu, "
    "Z_nu = O(S)",
    tex=r"\gamma_{\mathrm{lin}} = \Omega(\zeta S), \quad n_1 \gtrsim S^2 d \implies P = O(1)",
    evaluate=_large_signal,
    judges=(gamma_linear, deviation_bound_dimension),
    forms=(
        Form(
            name="printed, gamma_lin",
            cites="Section 5.1, below eq. (7): 'where gamma_lin = Omega(zeta S) is the margin of a "
            "linear model'",
            sense="at least",
            exponent=(0.98, 1.02),
            note="The margin is gamma_lin = S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu / S^2). Since "
            "Z_mu = O(S), the second term lowers the margin only by O(1).",
        ),
        Form(
            name="printed, P",
            cites="Section 5.1, below eq. (7): 'provided first-phase sample size n1 >~ S^2 d so "
            "that P = O(1)'",
            sense="at most",
            exponent=(0.98, 1.02),
            note=(
                "This version of the claim multiplies the bound P of (6) by S. Here P bounds the "
                "distance of u1 from its true centre (erratum E2)."
            ),
        ),
    ),
    control="Omega(zeta S^{3/2})",
    cases=lambda size: {"S": jnp.logspace(3, 6, 13)},
    source="Section 5.1, below Proposition 2; Appendix F",
    assumptions="zeta = 1/2, T = 4, M = 2, d = 4, Z = Z_mu = Z_nu = S, n1 = S^2 d, S -> infinity",
)


def _good_heads(instance: Instance, size: Size) -> Sides:
    """Compare the sqrt(H) of Corollary 5 with its order as R grows, for equal tokens R e_1.

    This comparison has d = 1, T = R and K = 10. At the start zero, gamma = sqrt(2 T) R, so g_0
    tends to 0 as R grows.
    """
    R = float(instance["R"])
    good = GoodInitialisation(1.0, 1.0, math.sqrt(2.0 * R) * R)
    heads = corollary5(good, R, 10, T=int(R), d=1, corrected=False).heads
    g0, shape = realized_distance(good, 0.1, corrected=False), R**0.5 * R**5
    return Sides.pairs(
        {
            "derived": (heads**0.5, shape * g0**3),
            "corrected": (heads**0.5, shape * (g0 + 1) * g0**2),
            "control": (heads**0.5, shape * (g0 + 1) * g0**3),
        }
    )


GOOD_HEADS = on_orders(
    id="multihead.cor2.heads",
    label="Corollary 2, the head count",
    formula="the sqrt(H) of Corollary 5 is O(d sqrt(T) R^5 B_2^2 g_0(1/K)^3)",
    tex=r"\sqrt{H_{\mathrm{Cor.\,5}}} = O\left( d T^{1/2} R^5 B_2^2 \, g_0(1/K)^3 \right)",
    evaluate=_good_heads,
    judges=(corollary5, realized_distance),
    forms=(
        Form(
            name="derived",
            expected="inconsistent",
            erratum="E11",
            sense="at most",
            exponent=(2.4, 2.6),
            note="Corollary 5 has the factor B_2 (4 g_0 + B_2) g_0^2, which is O(B_2^2 g_0^3) "
            "only for g_0 >~ 1. One sequence of T equal tokens of norm R has g_0 = (2 + log "
            "K) / (sqrt(2 T) R). At T = R the printed order of sqrt(H) is R, and Corollary 5 "
            "requires R^{5/2}.",
        ),
        Form(
            name="corrected",
            sense="at most",
            exponent=(0.97, 1.03),
            note="The right order of sqrt(H) is d sqrt(T) R^5 B_2 (g_0 + B_2) g_0^2.",
        ),
    ),
    control="g_0 once too often",
    cases=lambda size: {"R": jnp.exp2(jnp.arange(8.0, 24.0))},
    source="Section 4.3, Corollary 2, against Appendix C.4",
    assumptions="theta_0 = 0, B_2 = B_Phi = 1, d = 1, T = R -> infinity, K = 10",
)

STATEMENTS = (GOOD_HEADS, POLYLOGARITHMIC, SIGNAL)
