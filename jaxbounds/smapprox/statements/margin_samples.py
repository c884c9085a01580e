"""Lemma 2.4 with its constants: risks and sample sizes.

The class is F = theta . x on unit vectors x with |theta|_1 <= 1; the all-layer margin of F is
|theta . x|.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox import finite_classes as finite
from jaxbounds.smapprox import generalization as general
from jaxbounds.smapprox.statements.margin_covers import ALPHA, GAMMA

LEVEL = 0.1
"""The failure probability delta of the bounds; a larger probability needs fewer samples."""
RARE = np.array([2.0, 1.0, 0.5])
"""The masses of rare inputs, in units of 1/n, which n samples may miss."""
GRID = 180
"""The number of models (angles) on the l_1 sphere; a larger number finds models of larger risk."""
COUPONS, COUPON_SAMPLES = 21, 200
"""The number of coupons (inputs at which exactly one parameter makes F err), and the number of
samples. The coupons' parameters lie in [-1, 1], at distances of gamma = 1/10."""


def _coupon_mass(log_size: float) -> float:
    """Return 1.001 times the risk bound for COUPON_SAMPLES samples without training error."""
    return 1.001 * general.risk_from_cover(0.0, log_size, COUPON_SAMPLES, delta=LEVEL)


def _coupon_size() -> float:
    return float(general.l1_log_covering(2.0 * (COUPONS - 1) / 2.0, 1))


def _draw_coupons(key: Array, mass: float) -> Array:
    law = jnp.append(jnp.full(COUPONS, mass), 1.0 - COUPONS * mass)
    return jax.random.multinomial(key, COUPON_SAMPLES, law)[:-1].astype(int)


def law(size: Size) -> np.ndarray:
    """Return the probability of each point; the rare points are at the end."""
    common, rare = size["points"] - len(RARE), RARE / 2.0 ** size["log_n"]
    return np.append(np.full(common, (1.0 - rare.sum()) / common), rare)


def points(key: Array, size: Size) -> Instance:
    """Draw each point's angle, from a wider range for rare points, and its count in the sample."""
    a, b = jax.random.split(key)
    spread = np.append(np.full(size["points"] - len(RARE), 0.6), np.full(len(RARE), 1.2))
    angle = jax.random.uniform(a, spread.shape, minval=-1.0) * spread
    counts = jax.random.multinomial(b, 2 ** size["log_n"], jnp.asarray(law(size)))
    return {"angle": angle, "counts": counts.astype(int)}


def _realizable_sample(key: Array, size: Size) -> Instance:
    a, b, c = jax.random.split(key, 3)
    return {
        **points(a, size),
        "coupons": _draw_coupons(b, _coupon_mass(_coupon_size())),
        "few": _draw_coupons(c, _coupon_mass(0.0)),
    }


def outputs_of(angle: Any, xp: Any) -> Any:
    """Compute the outputs y F(x) of models on the l_1 sphere, where the margins are largest."""
    turn = xp.linspace(0.0, 2.0 * math.pi, GRID, endpoint=False)
    on = lambda a: xp.stack([xp.cos(a), xp.sin(a)], axis=1)
    return on(turn) / xp.abs(on(turn)).sum(axis=1, keepdims=True) @ on(angle).T


def _realizable(i: Instance, size: Size) -> Sides:
    n, scale = 2 ** size["log_n"], (ALPHA, 2, GAMMA)
    outputs = outputs_of(i["angle"], jnp)
    fits = jnp.all((outputs >= GAMMA) | (i["counts"] == 0)[None], axis=1)
    risks = (outputs <= 0).astype(outputs.dtype) @ jnp.asarray(law(size))
    found = jnp.max(jnp.where(fits, risks, 0.0))
    log_size = float(general.l1_log_covering(2.0 * ALPHA / GAMMA, 2))
    chained = general.rademacher_by_chaining(*scale, n)
    explicit = general.rademacher_explicit(*scale, n)
    missed = lambda counts, mass: jnp.where(jnp.any(counts == 0), mass, 0.0)
    of = lambda log_size: _coupon_mass(log_size) / 1.001
    return Sides.pairs(
        {
            "derived": (found, finite.erm_bound(0.0, explicit, n, LEVEL)),
            "sharpened": (found, general.erm_risk(chained, n, delta=LEVEL)),
            "sharpened one cover": (
                found, general.risk_from_cover(0.0, log_size, n, delta=LEVEL),
            ),
            "sharpened coupons": (
                missed(i["coupons"], _coupon_mass(_coupon_size())), of(_coupon_size()),
            ),
            "control": (missed(i["few"], _coupon_mass(0.0)), of(0.0)),
        },
        trivial=1.0,
    )  # fmt: skip


REALIZABLE = Statement(
    id="smapprox.lemma2.4.realizable",
    label="Lemma 2.4 with epsilon = 0 in (2.3)",
    formula="margin gamma on all samples  =>  risk <= (log N(gamma/2) + log(1/delta)) / n with "
    "probability 1 - delta",
    tex=r"\rho(\theta, x_i, y_i) \ge \gamma \ (i \le n) \Rightarrow "
    r"\mathbb{E}[\ell_{\text{0-1}}] \le 1 - \exp\left(-\frac{\log \mathcal{N}_{\|\cdot\|_2}"
    r"(\gamma / 2, \Theta) + \log(1/\delta)}{n}\right) \quad \text{with probability } 1 - \delta",
    kind="probability",
    level=LEVEL,
    evaluate=_realizable,
    judges=(
        general.risk_from_cover,
        general.l1_log_covering,
        general.erm_risk,
        general.rademacher_explicit,
        general.rademacher_by_chaining,
        finite.erm_bound,
    ),
    sample=_realizable_sample,
    sizes=({"points": 10, "log_n": 20},),
    forms=(
        Form(
            name="derived",
            note="The bound on the risk is 4 Rad + 2 sqrt(log(2/delta)/n), from Proposition 2.3.",
        ),
        Form(
            name="sharpened",
            note="The bound on the risk has 2 Rad in place of 4 Rad, because the proof bounds the "
            "deviation in one direction only. Chaining of covers bounds the Rademacher complexity "
            "Rad.",
        ),
        Form(
            name="sharpened one cover",
            note="This bound on the risk uses no complexity measure. The proof adds the "
            "probability (1 - risk)^n of each member of a gamma/2 cover (a union bound).",
        ),
        Form(
            name="sharpened coupons",
            note="The class has p = 1 parameter and gamma = 1/10. Each of 21 inputs has its own "
            "parameter at which the model errs on this input, and the 21 parameters are pairwise "
            "gamma apart. A sample has 200 points. If the sample misses an input, no data "
            "contradict the model that errs on this input. The input's mass is .1% above the "
            "bound, so the bound on the risk fails with about half of the probability that the "
            "lemma allows. The lemma therefore holds.",
        ),
    ),
    control="one event in place of a cover's, for the coupons",
    assumptions="F = theta . x on ten unit vectors of the plane, gamma = alpha/4, n = 2^20, the "
    "worst of 180 models on the sphere of the l_1 ball; and the class of coupons",
    budget=Budget(samples=1000, restarts=0, batch=500),
    source="Section 2.1, Appendix A",
)


def _constants(i: Instance, size: Size) -> Sides:
    names = ("alpha", "p", "gamma", "epsilon", "fraction", "delta")
    alpha, p, gamma, epsilon, q, delta = (float(i[name]) for name in names)
    scale = (alpha, p, gamma)
    log_size = float(general.l1_log_covering(2.0 * alpha / gamma, p))
    n = general.realizable_sample_complexity(*scale, epsilon, delta=delta)
    P = general.risk_from_cover(q, log_size, n, delta=delta)
    kl = float(scipy.special.rel_entr([q, 1.0 - q], [P, 1.0 - P]).sum())
    of: Any = {"delta": delta, "rademacher": general.rademacher_explicit}
    m = general.chained_sample_complexity(*scale, epsilon, **of)
    few = general.chained_sample_complexity(*scale, epsilon, sharp=True, **of)
    at = general.rademacher_explicit(*scale, few)
    printed = finite.erm_bound(0.0, general.rademacher_explicit(*scale, m), m, delta)
    A = (alpha / gamma) ** 2 * math.log(2 * p)
    closed = lambda n: math.sqrt(A / n) * (0.5 + 5 * math.sqrt(2.125) * (1 + math.log(n / A, 16)))
    return Sides.pairs(
        {
            "derived chained": (printed, epsilon),
            "derived Rademacher": (general.rademacher_explicit(*scale, m), closed(m)),
            "sharpened chained": (general.erm_risk(at, few, delta=delta), epsilon),
            "sharpened tail": (
                2 * general.erm_risk(at, few, delta=delta),
                finite.erm_bound(0.0, at, few, delta**2 / 2),
            ),
            "sharpened": (log_size + n * math.log1p(-epsilon), math.log(delta)),
            "sharpened Chernoff": (n * kl, log_size - math.log(delta)),
            "control": (log_size + n * math.log1p(-epsilon), math.log(delta) / 2),
        }
    )


CONSTANTS = Statement(
    id="smapprox.lemma2.4.constants",
    label="Lemma 2.4, its sample sizes",
    formula="at the stated n: N (1 - epsilon)^n = delta; 4 Rad + 2 sqrt(log(2/delta)/n) = epsilon",
    tex=r"\mathcal{N} (1 - \epsilon)^n = \delta, \quad 4 \mathrm{Rad}_n + "
    r"2 \sqrt{\frac{\log(2/\delta)}{n}} = \epsilon, \quad n \, \mathrm{kl}(q, P) = "
    r"\log \frac{\mathcal{N}}{\delta}",
    kind="identity",
    tolerance=1e-7,
    evaluate=_constants,
    judges=(
        general.realizable_sample_complexity,
        general.chained_sample_complexity,
        general.risk_from_cover,
        general.rademacher_explicit,
        general.erm_risk,
        finite.erm_bound,
    ),
    host=True,
    over={"alpha": Box(1, 50), "gamma": Box(0.01, 0.5), "epsilon": Box(1e-3, 0.5)}
    | {"fraction": Box(0.01, 0.6), "delta": Box(1e-4, 0.5), "p": Integers(1, 10**6)},
    budget=Budget(samples=16),
    sizes=({},),
    forms=(
        Form(
            name="derived chained",
            note=(
                "At the sample size n that the library returns, Proposition 2.3 with the derived "
                "bound on Rad gives the risk epsilon."
            ),
        ),
        Form(
            name="derived Rademacher",
            note="Here A = (alpha/gamma)^2 log 2p, for p parameters of l_1 norm alpha and margin "
            "gamma. If n/A grows by a factor 16, the bound on Rad grows by the additional term "
            "7.29 sqrt(A/n), with 7.29 = 5 sqrt(2 + 1/8).",
        ),
        Form(
            name="sharpened chained",
            note="At the sample size n that the library returns, the sharpened bound (2 Rad in "
            "place of 4 Rad) gives the risk epsilon.",
        ),
        Form(
            name="sharpened tail",
            note="The sharpened bound on the risk is half of Proposition 2.3's bound, with "
            "delta^2/2 in place of delta.",
        ),
        Form(
            name="sharpened",
            note="At the sample size n that the library returns, the union bound over the cover "
            "gives exactly the failure probability delta.",
        ),
        Form(
            name="sharpened Chernoff",
            note=(
                "At the risk that `risk_from_cover` returns, Chernoff's bound gives exactly the "
                "failure probability delta. The model may err on some samples."
            ),
        ),
    ),
    control="the square root of the level",
    source="Section 2.1, Appendix A",
)

STATEMENTS = (REALIZABLE, CONSTANTS)
