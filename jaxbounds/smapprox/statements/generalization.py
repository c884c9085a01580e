"""Lemma 2.4 and Corollary A.1 with their constants, link by link, on classes known in closed form.

The class of most statements here is F = theta . x on unit vectors, |theta|_1 <= 1, whose margin is
|theta . x|; that of the coupons is any F whose wrong parameters, at each input, are one point.
"""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array

from jaxbounds.norms import project_l1, vector_norm
from jaxbounds.smapprox import finite_classes as finite
from jaxbounds.smapprox import generalization as general
from jaxbounds.smapprox import sample_complexity as samples
from jaxbounds.smapprox.all_layer_margin import ramp_loss
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement

LEVEL = 0.1
PRINTED_COVER, PRINTED_RADEMACHER, PRINTED_A1, PRINTED_XI = 4.0, 15.0, 12.5, 16.0
"""Hidden constants that the derivations give; see the notes of the printed forms."""


def _ball_points(key: Array, size: Size) -> Instance:
    a, b = jax.random.split(key)
    theta = jax.random.normal(a, (size["p"],))
    return {"theta": theta, "scale": jax.random.uniform(b, minval=1.0, maxval=3.2)}


def _ball_cases(size: Size) -> Instance:
    """The centre, a vertex and the centre of a face, at the ends of the scales."""
    p = size["p"]
    points = [np.zeros(p), np.eye(p)[0], np.full(p, 1.0 / p)]
    rows = [*itertools.product(points, (1.0, 1.5, 3.2))]
    return {"theta": np.array([x for x, _ in rows]), "scale": np.array([s for _, s in rows])}


def _in_ball(i: Instance, size: Size) -> Instance:
    theta = np.asarray(i["theta"], float)
    theta = theta / max(1.0, np.abs(theta).sum())
    return {"theta": theta, "scale": np.clip(i["scale"], 1.0, 3.2)}


def _l1_cover(i: Instance, size: Size) -> Sides:
    """All means of K vertices, one by one."""
    p, inside = size["p"], _in_ball(i, size)
    scale, theta = float(inside["scale"]), inside["theta"]
    K = math.floor((scale - 1.0) ** 2) + 1
    vertices = np.concatenate([np.eye(p), -np.eye(p)])
    chosen = itertools.combinations_with_replacement(range(2 * p), K)
    means = np.array([vertices[list(which)].mean(axis=0) for which in chosen])
    centres = means * math.sqrt(K) / (1.0 + math.sqrt(K))
    nearest = np.linalg.norm(centres - theta, axis=1).min()
    size_bound = float(general.l1_log_covering(scale, p))
    # Open intervals of length 2 / scale that cover [-1, 1].
    interval = math.log(math.floor(scale) + 1)
    printed = samples.log_covering_number(scale, p, 1.0, 1.0, constant=PRINTED_COVER)
    return Sides.pairs(
        {
            "printed": (size_bound, printed),
            "derived": (nearest, 1.0 / scale),
            "derived size": (math.log(len(means)), size_bound),
            "derived order": (size_bound, scale**2 * math.log(2 * p)),
            "derived interval": (interval, general.l1_log_covering(scale, 1)),
            "control": (nearest, 0.5 / scale),
        },
        error=1e-12,
    )


L1_COVER = Statement(
    id="smapprox.lemma2.4-l1-cover",
    label="Appendix A, proof of Lemma 2.4, covers of l_1 balls",
    formula="log N(r, {|theta|_1 <= alpha}) <= log C(2p + K - 1, K) <= (alpha/r)^2 log 2p, "
    "K = floor((alpha/r - 1)^2) + 1",
    tex=r"\log \mathcal{N}_{\|\cdot\|_2}(r, \Theta) \le \log \binom{2p + K - 1}{K} \le "
    r"\frac{\alpha^2 \log(2p)}{r^2}, \quad K = \left\lfloor (\alpha / r - 1)^2 \right\rfloor + 1",
    kind="inequality",
    evaluate=_l1_cover,
    judges=(general.l1_log_covering, samples.log_covering_number),
    host=True,
    sample=_ball_points,
    cases=_ball_cases,
    project=_in_ball,
    search="random",
    budget=Budget(samples=24, restarts=2, steps=20),
    sizes=({"p": 3},),
    forms=(
        Form(
            name="printed",
            cites="Appendix A: log N_2(gamma eps) <= O(floor(alpha^2 log p / (gamma eps)^2))",
            note="With the constant 4, for p >= 3: log 2p <= 2 log p, and y <= 2 floor(y) for "
            "y >= 1.",
        ),
        Form(name="derived", note="The nearest of all means of K vertices, shrunk."),
        Form(name="derived size", equality="always, where Maurey's count is below the volume's"),
        Form(name="derived order", equality="scale 1: 2p vertices"),
        Form(
            name="derived interval",
            note="p = 1: floor(scale) + 1 open intervals are the least cover.",
            equality="scale 1",
        ),
    ),
    control="half of the radius",
    assumptions="alpha = 1, p = 3; every mean of K <= 5 vertices is tried",
    source="Appendix A",
)

ALPHA, GAMMA = 1.0, 0.25


def _sphere(key: Array, *shape: int) -> Array:
    x = jax.random.normal(key, shape)
    return x / vector_norm(x)[..., None]


def _signs(key: Array, size: Size) -> Instance:
    """Points, labels, and the sums of 2^24 random signs at each of them."""
    a, b, c = jax.random.split(key, 3)
    shape, copies = (size["points"],), 2 ** size["log_copies"]
    sums = 2.0 * jax.random.binomial(c, copies, 0.5, shape) - copies
    return {"x": _sphere(a, *shape, size["p"]), "y": jax.random.rademacher(b, shape), "sums": sums}


def _climb(objective: Any, starts: Array, steps: int) -> Array:
    """The largest objective met in the l_1 ball by projected ascent: a lower estimate of a sup."""

    def step(theta: Array, rate: Array) -> tuple[Array, Array]:
        value, slope = jax.value_and_grad(objective)(theta)
        moved = theta + rate * slope / jnp.maximum(vector_norm(slope), 1e-30)
        return project_l1(moved, ALPHA), value

    rates = 0.5 * (1.0 - jnp.arange(steps) / steps)
    ends, met = jax.vmap(lambda start: jax.lax.scan(step, start, rates))(starts)
    return jnp.maximum(jnp.max(met), jnp.max(jax.vmap(objective)(ends)))


def _starts(p: int) -> Array:
    ends = jnp.concatenate([jnp.eye(p), -jnp.eye(p)])
    return jnp.concatenate([ends, (ends + jnp.roll(ends, 1, axis=0)) / 2.0])


def _losses(theta: Array, x: Array, y: Array) -> Array:
    return ramp_loss(jnp.maximum(y.astype(x.dtype) * (x @ theta), 0.0), GAMMA)


def _rademacher(i: Instance, size: Size) -> Sides:
    p, n = size["p"], size["points"] * 2 ** size["log_copies"]
    found = _climb(
        lambda theta: i["sums"] @ _losses(theta, i["x"], i["y"]) / n, _starts(p), size["steps"]
    )
    scale = (ALPHA, p, GAMMA, n)
    return Sides(
        found,
        {
            "printed": samples.rademacher_bound(*scale, constant=PRINTED_RADEMACHER),
            "derived": general.rademacher_explicit(*scale),
            "sharpened": general.rademacher_by_chaining(*scale),
            "control": 0.1 / math.sqrt(n),
        },
        trivial=0.5,
    )


RADEMACHER = Statement(
    id="smapprox.lemma2.4-rademacher",
    label="Appendix A, proof of Lemma 2.4, the Rademacher complexity",
    formula="Rad_n(L_G) <= sqrt(A/n) (7.8 + 2.63 log(n/A)), A = (alpha/gamma)^2 log 2p",
    tex=r"\mathrm{Rad}_{n,P}(\mathcal{L}_G) \le \sqrt{\frac{A}{n}} \left( 7.8 + 2.63 "
    r"\log \frac{n}{A} \right), \quad A = \frac{\alpha^2 \log(2p)}{\gamma^2}",
    kind="expectation",
    evaluate=_rademacher,
    judges=(
        general.rademacher_explicit,
        general.rademacher_by_chaining,
        samples.rademacher_bound,
    ),
    sample=_signs,
    sizes=({"p": 3, "points": 6, "log_copies": 24, "steps": 40},),
    forms=(
        Form(
            name="printed",
            cites="Appendix A: Rad <~ alpha log n sqrt(log p) / (gamma sqrt n), for all n",
            note="With the constant 15, for p >= 2 and n >= 3: log 2p <= 2 log p, and 7.8 + 2.63 "
            "log n <= 10.5 log n.",
        ),
        Form(name="derived", note="Chaining at ratio 4 with h_j <= A / e_j^2."),
        Form(name="sharpened", note="The chain itself, with the sizes of the covers."),
    ),
    control="a tenth of 1/sqrt n",
    assumptions="F = theta . x on six unit vectors, each 2^24 times, gamma = alpha/4; the supremum "
    "by projected ascent from 24 starts, from below",
    budget=Budget(samples=64, restarts=0, steps=0),
    source="Appendix A",
)

RARE = np.array([2.0, 1.0, 0.5])
"""Masses of inputs that n samples may miss, in units of 1/n."""
GRID = 180
COUPONS, COUPON_SAMPLES = 21, 200
"""Inputs of which each has one wrong parameter, gamma = 1/10 apart in [-1, 1], and samples."""


def _coupon_mass(log_size: float) -> float:
    """Just more than what that many samples may miss."""
    return 1.001 * general.risk_from_cover(0.0, log_size, COUPON_SAMPLES, delta=LEVEL)


def _coupon_size() -> float:
    return float(general.l1_log_covering(2.0 * (COUPONS - 1) / 2.0, 1))


def _draw_coupons(key: Array, mass: float) -> Array:
    law = jnp.append(jnp.full(COUPONS, mass), 1.0 - COUPONS * mass)
    return jax.random.multinomial(key, COUPON_SAMPLES, law)[:-1].astype(int)


def _law(size: Size) -> np.ndarray:
    common, rare = size["points"] - len(RARE), RARE / 2.0 ** size["log_n"]
    return np.append(np.full(common, (1.0 - rare.sum()) / common), rare)


def _points(key: Array, size: Size) -> Instance:
    """Points to the right, the rare ones farther up or down, and how often each was drawn."""
    a, b = jax.random.split(key)
    spread = np.append(np.full(size["points"] - len(RARE), 0.6), np.full(len(RARE), 1.2))
    angle = jax.random.uniform(a, spread.shape, minval=-1.0) * spread
    counts = jax.random.multinomial(b, 2 ** size["log_n"], jnp.asarray(_law(size)))
    return {"angle": angle, "counts": counts.astype(int)}


def _realizable_sample(key: Array, size: Size) -> Instance:
    a, b, c = jax.random.split(key, 3)
    return {
        **_points(a, size),
        "coupons": _draw_coupons(b, _coupon_mass(_coupon_size())),
        "few": _draw_coupons(c, _coupon_mass(0.0)),
    }


def _outputs(angle: Any, xp: Any) -> Any:
    """Outputs y F(x) of models on the edge of the plane's l_1 ball, where margins are largest."""
    turn = xp.linspace(0.0, 2.0 * math.pi, GRID, endpoint=False)
    on = lambda a: xp.stack([xp.cos(a), xp.sin(a)], axis=1)
    return on(turn) / xp.abs(on(turn)).sum(axis=1, keepdims=True) @ on(angle).T


def _realizable(i: Instance, size: Size) -> Sides:
    n, scale = 2 ** size["log_n"], (ALPHA, 2, GAMMA)
    outputs = _outputs(i["angle"], jnp)
    fits = jnp.all((outputs >= GAMMA) | (i["counts"] == 0)[None], axis=1)
    risks = (outputs <= 0).astype(outputs.dtype) @ jnp.asarray(_law(size))
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
    id="smapprox.lemma2.4-realizable",
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
        Form(name="derived", note="Proposition 2.3, 4 Rad + 2 sqrt(log(2/delta)/n)."),
        Form(name="sharpened", note="2 Rad, by the chain: one side of the supremum is needed."),
        Form(
            name="sharpened one cover",
            note="No complexity: a gamma/2 cover, and (1 - risk)^n for each of its members.",
        ),
        Form(
            name="sharpened coupons",
            note="p = 1, gamma = 1/10, 200 samples: each of 21 inputs is wrong at one parameter, "
            "gamma apart. A missed input leaves its model unrefuted; its mass is .1% more than the "
            "bound, so that failures occur, on half of the level.",
        ),
    ),
    control="one event in place of a cover's, for the coupons",
    assumptions="F = theta . x on ten unit vectors of the plane, gamma = alpha/4, n = 2^20, the "
    "worst of 180 models on the edge of the ball; and the coupons",
    budget=Budget(samples=1000, restarts=0, batch=500),
    source="Section 2.1, Appendix A",
)


def _constant_cases(size: Size) -> Instance:
    rng = np.random.default_rng(0)
    names = ("alpha", "gamma", "epsilon", "fraction", "delta")
    ends = np.array([[1, 0.01, 1e-3, 0.01, 1e-4], [50, 0.5, 0.5, 0.6, 0.5]]).T
    columns = [np.exp(rng.uniform(low, high, 16)) for low, high in np.log(ends)]
    return {**dict(zip(names, columns)), "p": rng.integers(1, 10**6, 16)}


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
    id="smapprox.lemma2.4-constants",
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
    cases=_constant_cases,
    sizes=({},),
    forms=(
        Form(name="derived chained", note="Proposition 2.3 at the n of the derived Rad."),
        Form(name="derived Rademacher", note="7.29 = 5 sqrt(2 + 1/8) for each factor 16 of n/A."),
        Form(name="sharpened chained", note="The same for 2 Rad."),
        Form(name="sharpened tail", note="Half of Proposition 2.3 at level delta^2/2."),
        Form(name="sharpened", note="The union bound over the cover is used up."),
        Form(name="sharpened Chernoff", note="So is Chernoff's, with errors on the samples."),
    ),
    control="the square root of the level",
    source="Section 2.1, Appendix A",
)


def _profiles(size: Size) -> Instance:
    """Margins of samples, from concentrated to spread over orders of magnitude."""
    rng = np.random.default_rng(0)
    widths, means = np.tile([0.0, 0.3, 1.0, 2.0], 3)[:, None], np.repeat([-3.0, -1.0, 1.0], 4)
    return {"log_margins": means[:, None] + widths * rng.normal(size=(12, size["n"]))}


def _profile(i: Instance, size: Size) -> Sides:
    alpha, p, delta = 1.0, 50, 0.05
    margins = np.exp(np.clip(i["log_margins"], -7.0, 7.0))
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
    id="smapprox.cora.1-chain",
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
    cases=_profiles,
    search="random",
    budget=Budget(restarts=1, steps=5),
    sizes=({"n": 64},),
    forms=(
        Form(
            name="printed",
            cites="(A.2), and its xi",
            note="With 12.5 and 16 for the hidden constants, for p >= 2, n >= 8 and alpha/n <= "
            "rho_i <= alpha n: sqrt(log 2p) <= sqrt(2 log p), sqrt(2 l/n) + 2 l/n <= 4 l / sqrt n.",
        ),
        Form(name="derived", note="Each step from P_k to the closed form loses a little."),
    ),
    control="a twentieth of the printed bound",
    source="Appendix A",
)


def _all_at_once(i: Instance, size: Size) -> Sides:
    """Of all models without error on the samples the one that is worst against the corollary."""
    counts, n = np.asarray(i["counts"]), 2 ** size["log_n"]
    outputs = _outputs(np.asarray(i["angle"]), np)
    right = np.flatnonzero(np.all((outputs > 0) | (counts == 0), axis=1))
    risks = (outputs[right] <= 0) @ _law(size)
    inverse = np.where(counts > 0, outputs[right], np.inf) ** -2.0 @ counts / n
    at = np.argmax(risks / np.sqrt(inverse))
    margins = np.repeat(outputs[right[at]], counts)
    found = {
        "derived": general.corollary_a1_explicit(ALPHA, 2, margins, delta=LEVEL),
        "sharpened": general.margin_profile_bound(ALPHA, 2, margins, delta=LEVEL),
    }
    return Sides(risks[at], {**found, "control": found["sharpened"] / 1e3}, trivial=1.0)


COROLLARY = Statement(
    id="smapprox.cora.1-explicit",
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
    sample=_points,
    sizes=({"points": 10, "log_n": 12},),
    forms=(
        Form(name="derived", note="The printed bound with its constants, and no log n in it."),
        Form(
            name="sharpened",
            note="The best scale, with Chernoff's bound for the fraction of smaller margins.",
        ),
    ),
    control="a thousandth of the sharpened bound",
    assumptions="F = theta . x on ten unit vectors of the plane, n = 4096; the worst of 180 models",
    budget=Budget(samples=128, restarts=0),
    source="Appendix A",
)

STATEMENTS = (L1_COVER, RADEMACHER, REALIZABLE, CONSTANTS, PROFILE, COROLLARY)
