"""Lemma 18 and Proposition 3: attention on the relevant tokens, and the resulting margin."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Domain,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.multihead.model import attention_scores, head_output
from jaxbounds.multihead.oracle import Real, irrelevant_score, oracle_direction, relevant_score
from jaxbounds.multihead.oracle_bounds import (
    gamma_attention,
    lemma_18,
    lemma_18_sharp,
    saturation_scale,
    saturation_scale_sharp,
)
from jaxbounds.multihead.statements.boxes import scores
from jaxbounds.multihead.statements.contexts import (
    Context,
    by_hand,
    noise_eighth,
    on_quiet,
    quiet_context,
    unfold,
)


def _relevances(key: jax.Array, size: Size) -> Instance:
    keys = jax.random.split(key, 5)
    shape = (size["T"],)
    count = jax.random.randint(keys[0], (), 1, size["T"])
    gap = jnp.exp(jax.random.uniform(keys[1], (), minval=-2.0, maxval=3.0))
    spread = jax.random.bernoulli(keys[2]).astype(float)
    base = jnp.where(jnp.arange(size["T"]) < count, gap, 0.0)
    return {
        "r": base + spread * jax.random.normal(keys[3], shape),
        "L": count,
        "log_eps": jax.random.uniform(keys[4], (), minval=-8.0, maxval=0.5),
        "extra": jnp.zeros(()),
    }


def _moderate(instance: Instance, size: Size) -> Instance:
    return {**instance, "log_eps": jnp.clip(instance["log_eps"], -8.0, 0.5)}


def _extremes(instance: Instance) -> tuple[Array, Array, Array]:
    r = instance["r"]
    top = jnp.arange(r.shape[0]) < instance["L"]
    return top, jnp.min(jnp.where(top, r, jnp.inf)), jnp.max(jnp.where(top, -jnp.inf, r))


def _separated(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    _, A, B = _extremes(instance)
    return {"A > 2 B": A > 2 * B, "A != 0": jnp.abs(A) > 1e-6}


def _positive(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    return {"A > 0": _extremes(instance)[1] > 0}


def _apart(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    _, A, B = _extremes(instance)
    return {"A > B": A > B + 1e-6}


def _saturation(instance: Instance, size: Size) -> Sides:
    r, eps, extra = instance["r"], jnp.exp(instance["log_eps"]), jnp.abs(instance["extra"])
    top, A, B = _extremes(instance)
    share = instance["L"].astype(r.dtype) / size["T"]
    printed = lemma_18(jnp.where(A != 0, A, 1.0), share, eps)
    gap = jnp.where(A > B, A - B, 1.0)
    sharp = lemma_18_sharp(gap, share, eps)
    scales = {
        "printed": printed,
        "corrected": jnp.maximum(printed, 0.0),
        "sharpened S14": sharp,
        "sharpened S14, exact odds": lemma_18_sharp(gap, share, eps, exact=True),
        "control": 0.9 * sharp,
    }
    mass = lambda scale: jnp.sum(jnp.where(top, 0.0, jax.nn.softmax((scale + extra) * r)))
    lhs = {name: mass(scale) for name, scale in scales.items()}
    return Sides(lhs=lhs, rhs=dict.fromkeys(scales, eps), trivial=1.0)


def _lemma_18(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    r, L = jnp.asarray(instance["r"]), jnp.asarray(instance["L"])
    top, A, B = _extremes({**instance, "r": r})
    eps, off, share = jnp.exp(instance["log_eps"]), ~top, L.astype(r.dtype) / size["T"]
    gamma = lemma_18(A, share, eps) + jnp.abs(instance["extra"])
    return {
        "r_1 >= ... >= r_L (Lemma 18, Appendix E)": jnp.all(~top[1:] | (r[1:] <= r[:-1])),
        "A > 2 B for A = r_L and B = max r_i over i > L (Lemma 18)": (r[L - 1] == A)
        & jnp.all(~off | (r < A / 2))
        & (A > 2 * B),
        "L in [T] (Lemma 18)": (L >= 1) & (size["T"] >= L) & (r.shape[0] == size["T"]),
        "eps > 0 (Lemma 18)": jnp.isfinite(instance["log_eps"]),
        "Gamma >= (2/A) log((T/L - 1)/eps) (Lemma 18)": gamma
        >= 2 / A * jnp.log((size["T"] / L - 1) / eps) - 1e-12,
    }


LEMMA_18 = Statement(
    id="multihead.lem18",
    label="Lemma 18",
    formula="Gamma >= (2/A) log((T/L - 1) / eps) implies mass at most eps off the top L tokens",
    tex=r"\Gamma \ge \frac{2}{A} \ln\left( \frac{T/L - 1}{\epsilon} \right) \implies \sum_{i "
    r"> L} \varphi_i(\Gamma r) \le \epsilon",
    kind="inequality",
    evaluate=_saturation,
    judges=(lemma_18, lemma_18_sharp),
    forms=(
        Form(
            name="printed",
            cites="Lemma 18, eq. (125), Appendix E",
            erratum="E25",
            note=(
                "The lemma needs A > 0. For A = -1, B = -2, T = 4, L = 2 and eps = .1 the printed "
                "condition is Gamma >= -4.6. Gamma = 1 satisfies this condition, but the softmax "
                "mass of the other tokens is .269, which exceeds eps."
            ),
            counterexample=Counterexample(
                instance={
                    "r": [-1.0, -1.0, -2.0, -2.0],
                    "L": 2,
                    "log_eps": -2.302585092994046,
                    "extra": 5.605170185988092,
                },
                size={"T": 4},
                ratio=2.6894142136999512,
                meets=_lemma_18,
            ),
        ),
        Form(
            name="corrected",
            hypotheses=_positive,
            note="This version of the claim assumes A > 0 and Gamma >= 0.",
            domains=(
                Domain(
                    name="T = 3, L = 1, epsilon = e^-2, relevances (2 + a, b, 0), a in [0, 2], "
                    "|b| <= 1, Gamma up to 1 above what is asked for",
                    chart=scores,
                    size={"T": 3},
                    lower=(0.0, -1.0, 0.0),
                    upper=(2.0, 1.0, 1.0),
                    slack=1e-9,
                ),
            ),
        ),
        Form(
            name="sharpened S14",
            hypotheses=_apart,
            note="In the condition on Gamma, the factor 1/(A - B) replaces 2/A, for any A > B.",
            equality="two values of r, eps to 0",
        ),
        Form(
            name="sharpened S14, exact odds",
            hypotheses=_apart,
            equality="two values of r",
            note="The logarithm log((T/L - 1)(1/eps - 1)) replaces log((T/L - 1)/eps). If all "
            "relevant scores are A and all other scores are B, the odds of the other tokens are "
            "exactly (T/L - 1) exp(-Gamma (A - B)).",
        ),
    ),
    control="0.9 of the sharpened Gamma",
    source="Appendix E, eq. (125)",
    sample=_relevances,
    sizes=({"T": 6},),
    project=_moderate,
    hypotheses=_separated,
    assumptions="r_i >= A on L tokens, r_i <= B on the others, A > 2 B",
    budget=Budget(samples=256, restarts=4, steps=100),
)


def _scales(c: Context, eps: Array) -> dict[str, Real]:
    printed = saturation_scale(c, eps)
    relaxed = saturation_scale_sharp(c, eps)
    eighth = replace(c, Z_mu=c.S**2 / 8, Z_nu=c.S**2 / 8)
    return {
        "printed": printed,
        "printed, Gamma >= 0": jnp.maximum(printed, 0.0),
        "sharpened S14": saturation_scale_sharp(eighth, eps),
        "sharpened S14, relaxed": relaxed,
        "control": 0.8 * relaxed,
    }


def _above(scale: Real, instance: Instance) -> Real:
    return scale + jnp.abs(instance["more"]) / instance["S"] ** 2


def _proposition_3(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    c, eps = unfold(instance), jnp.exp(instance["log_eps"])
    least = 8 * jnp.sqrt(2 * (c.M + 1.0)) / (3 * c.S**2) * jnp.log((1 / c.zeta - 1) / eps)
    used = _above(saturation_scale(c, eps), instance)
    return {
        **quiet_context(instance, size),
        "Gamma >= 8 sqrt(2 (M+1)) / (3 S^2) log((1/zeta - 1)/eps) (Proposition 3)": used
        >= least - 1e-12,
    }


def _section_7(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    small = {"eps in (0, 1) (Section 7)": instance["log_eps"] < 0}
    return _proposition_3(instance, size) | small


def _off_mass(instance: Instance, size: Size) -> Sides:
    c, eps = unfold(instance), jnp.exp(instance["log_eps"])

    def mass(scale: Real) -> Array:
        scores = attention_scores(_above(scale, instance) * c.direction["W"], c.X)
        return jnp.max(jnp.sum(jnp.where(instance["relevant"][None, :], 0.0, scores), axis=1))

    lhs = {name: mass(scale) for name, scale in _scales(c, eps).items()}
    return Sides(lhs=lhs, rhs=dict.fromkeys(lhs, eps), trivial=1.0)


_NEGATIVE_SCALE = by_hand([True] * 4 + [False], log_eps=-0.6931471805599453, more=0.0)
_LOG_PLUS = "The scale Gamma is at least the positive part of the printed bound."

PROPOSITION_3_MASS = on_quiet(
    id="multihead.prop3.mass",
    label="Proposition 3 (10)",
    formula="Gamma >= 8 sqrt(2 (M+1)) / (3 S^2) log((1/zeta - 1)/eps) "
    "leaves mass at most eps off R",
    tex=r"\Gamma \ge \frac{8 \sqrt{2 (M + 1)}}{3 S^2} \ln\left( \frac{\zeta^{-1} - "
    r"1}{\epsilon} \right) \implies \sum_{t' \in \mathcal{R}^c} \varphi_{t'}(x_t^\top "
    r"\Gamma W_{\mathrm{opt}} X^\top) \le \epsilon",
    evaluate=_off_mass,
    judges=(
        saturation_scale,
        saturation_scale_sharp,
        lemma_18,
        lemma_18_sharp,
        relevant_score,
        irrelevant_score,
        oracle_direction,
    ),
    forms=(
        Form(
            name="printed",
            cites="Proposition 3, eq. (10), Section 5.3",
            erratum="E29",
            reading="any real number",
            hypotheses=noise_eighth,
            note="This version of the claim allows any real Gamma. For four relevant tokens of "
            "five and eps = 1/2 the condition allows Gamma < 0. " + _LOG_PLUS,
            counterexample=Counterexample(
                instance=_NEGATIVE_SCALE,
                size={"T": 5, "d": 4},
                ratio=1.2270235808713812,
                meets=_proposition_3,
            ),
        ),
        Form(
            name="printed, Gamma >= 0",
            cites="Proposition 3, eq. (10), Section 5.3",
            hypotheses=noise_eighth,
            note=_LOG_PLUS,
        ),
        Form(
            name="sharpened S14",
            hypotheses=noise_eighth,
            note="In the condition on Gamma the factor 16/7 replaces 8/3, because the gap A - B of "
            "the scores is at least 7 S^4 / 16.",
        ),
        Form(
            name="sharpened S14, relaxed",
            note=(
                "This version of the claim uses the gap A - B = S^4 - 4 S^2 Z - 4 Z^2 without "
                "further bounds on it, and needs only Z < .207 S^2."
            ),
            equality="no noise, eps to 0",
        ),
    ),
    control="0.8 of the sharpened Gamma",
    source="Section 5.3; Appendix E.1",
)


def _saturated_margin(instance: Instance, size: Size) -> Sides:
    c, eps = unfold(instance), jnp.exp(instance["log_eps"])

    def margin(scale: Real) -> Array:
        return c.y * head_output(c.direction["U"], _above(scale, instance) * c.direction["W"], c.X)

    bound = gamma_attention(c, eps)
    pairs = {name: (bound, margin(scale)) for name, scale in _scales(c, eps).items()}
    # Section 7 prints an equality; the other half of it says that the margin is at most this bound.
    restated = c.S * (c.T / 2) ** 0.5 * (1 - eps - 2 * eps * c.Z_mu / c.S)
    pairs["printed, Section 7"] = (pairs["printed, Gamma >= 0"][1], restated)
    return Sides.pairs(pairs, error=1e-13 * c.T**0.5 * (c.S + c.Z))


PROPOSITION_3_MARGIN = on_quiet(
    id="multihead.prop3.margin",
    label="Proposition 3 (11)",
    formula="y Phi(X; U_opt, Gamma W_opt) >= gamma_attn(eps) "
    "= sqrt(T/2) (S^2 (1 - eps) - 2 eps Z_mu) / S",
    tex=r"y \Phi(X; U_{\mathrm{opt}}, \Gamma W_{\mathrm{opt}}) \ge "
    r"\gamma_{\mathrm{attn}}(\epsilon) = \frac{\sqrt{T}}{\sqrt{2} S} \left( S^2 (1 - "
    r"\epsilon) - 2 \epsilon Z_\mu \right)",
    evaluate=_saturated_margin,
    judges=(gamma_attention, saturation_scale, saturation_scale_sharp, oracle_direction),
    forms=(
        Form(
            name="printed",
            cites="Proposition 3, eq. (11), Section 5.3",
            erratum="E29",
            reading="any real number",
            hypotheses=noise_eighth,
            note="This version of the claim assumes the condition (10) on Gamma, which allows "
            "Gamma < 0.",
            counterexample=Counterexample(
                instance=_NEGATIVE_SCALE,
                size={"T": 5, "d": 4},
                ratio=1.2937005259840997,
                meets=_proposition_3,
            ),
        ),
        Form(
            name="printed, Section 7",
            cites="Section 7, the sentence that restates Proposition 3",
            erratum="E7",
            hypotheses=noise_eighth,
            note="Section 7 prints '=' in place of '>=', Z_mu / S in place of Z_mu / S^2, and a "
            "Gamma of order 1/S in place of 1/S^2. For one relevant token of two, no noise and "
            "eps = e^-2, the margin exceeds the printed value.",
            counterexample=Counterexample(
                instance=by_hand([True, False], log_eps=-2.0, more=0.0),
                size={"T": 2, "d": 4},
                ratio=1.1509608612666133,
                meets=_section_7,
            ),
        ),
        Form(
            name="printed, Gamma >= 0",
            cites="Proposition 3, eq. (11), Section 5.3",
            hypotheses=noise_eighth,
            note=_LOG_PLUS,
            equality="no noise, eps to 0",
        ),
        Form(
            name="sharpened S14",
            hypotheses=noise_eighth,
            note="In the condition on Gamma, the factor 16/7 replaces 8/3.",
            equality="no noise, eps to 0",
        ),
        Form(
            name="sharpened S14, relaxed",
            note="This version of the claim assumes only that the noise satisfies Z < .207 S^2.",
            equality="none but in the limit of large S",
        ),
    ),
    control="0.8 of the sharpened Gamma",
    source="Section 5.3; Section 7; Appendix E.1",
    budget=Budget(samples=256, restarts=2, steps=40),
)

STATEMENTS = (LEMMA_18, PROPOSITION_3_MASS, PROPOSITION_3_MARGIN)
