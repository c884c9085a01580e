"""Lemma 18 and Proposition 3: attention on the relevant tokens and the margin it buys."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.model import attention_scores, head_output
from jaxbounds.multihead.oracle import gamma_attention, saturation_scale
from jaxbounds.multihead.statements.contexts import unfold
from jaxbounds.multihead.statements.margins_shared import margin_statement
from jaxbounds.multihead.statements.saturation_shared import (
    PROP3,
    common_noise,
    noise_eighth,
    noiseless,
)
from jaxbounds.statements import Form, Instance, Sides, Size


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


def _moderate(instance: Instance) -> Instance:
    return {**instance, "log_eps": jnp.clip(instance["log_eps"], -8.0, 0.5)}


def _saturation(instance: Instance) -> Sides:
    r, count, eps = instance["r"], instance["L"], jnp.exp(instance["log_eps"])
    top = jnp.arange(r.shape[0]) < count
    A, B = jnp.min(jnp.where(top, r, jnp.inf)), jnp.max(jnp.where(top, -jnp.inf, r))
    rest = (r.shape[0] / count.astype(r.dtype)) - 1
    odds, extra = jnp.log(rest / eps), jnp.abs(instance["extra"])
    exact = jnp.log(rest * jnp.maximum(1 / eps - 1, 1e-300))
    gap = jnp.where(A > B, A - B, 1.0)
    safe = jnp.where(A != 0, A, 1.0)

    def mass(scale):
        return jnp.sum(jnp.where(top, 0.0, jax.nn.softmax((scale + extra) * r)))

    positive = lambda scale: jnp.maximum(scale, 0.0)
    return Sides(
        lhs={
            "printed": mass(2 / safe * odds),
            "corrected": mass(positive(2 / safe * odds)),
            "sharpened S14": mass(positive(odds / gap)),
            "sharpened S14, exact odds": mass(positive(exact / gap)),
            "control": mass(positive(odds / gap) / 2),
        },
        rhs={
            "printed": eps,
            "corrected": eps,
            "sharpened S14": eps,
            "sharpened S14, exact odds": eps,
            "control": eps,
        },
        trivial=1.0,
    )


def _ordered(instance: Instance) -> tuple:
    top = jnp.arange(instance["r"].shape[0]) < instance["L"]
    r = instance["r"]
    return jnp.min(jnp.where(top, r, jnp.inf)), jnp.max(jnp.where(top, -jnp.inf, r))


def _separated(instance: Instance) -> dict:
    A, B = _ordered(instance)
    return {"A > 2 B": A > 2 * B, "A != 0": jnp.abs(A) > 1e-6}


def _positive(instance: Instance) -> dict:
    return {"A > 0": _ordered(instance)[0] > 0}


def _apart(instance: Instance) -> dict:
    A, B = _ordered(instance)
    return {"A > B": A > B + 1e-6}


def _scales(c, eps):
    """Gamma of Proposition 3: printed, its positive part, and with the gap A - B (S14)."""
    Z = common_noise(c)
    printed = saturation_scale(c.S, c.zeta, eps, M=c.M)
    odds = jnp.maximum(jnp.log((1 / c.zeta - 1) / eps), 0.0)
    norm = c.S**2 * (2 * (c.M + 1)) ** 0.5
    gap = c.S**4 - 4 * c.S**2 * Z - 4 * Z**2
    return {
        "printed": printed,
        "corrected": jnp.maximum(printed, 0.0),
        "sharpened S14": norm / c.S**4 * 16 / 7 * odds,
        "sharpened S14, relaxed": norm / gap * odds,
        "control": norm / gap * odds / 2,
    }


def _off_mass(instance: Instance) -> Sides:
    c, eps = unfold(instance), jnp.exp(instance["log_eps"])

    def mass(scale):
        scores = attention_scores(scale * c.direction["W"], c.X)
        return jnp.max(jnp.sum(jnp.where(instance["relevant"][None, :], 0.0, scores), axis=1))

    scales = _scales(c, eps)
    return Sides(
        lhs={name: mass(scale) for name, scale in scales.items()},
        rhs=dict.fromkeys(scales, eps),
        trivial=1.0,
    )


def _saturated_margin(instance: Instance) -> Sides:
    c, eps = unfold(instance), jnp.exp(instance["log_eps"])
    scales = _scales(c, eps)
    margin = lambda scale: c.y * head_output(c.direction["U"], scale * c.direction["W"], c.X)
    bound = gamma_attention(c.S, c.Z_mu, eps, T=c.T)
    restated = c.S * (c.T / 2) ** 0.5 * (1 - eps - 2 * eps * c.Z_mu / c.S)
    found = margin(scales["corrected"])
    return Sides(
        # Section 7 prints an equality: its other half is that the margin is at most this.
        lhs=dict.fromkeys(scales, bound) | {"printed, Section 7": found},
        rhs={name: margin(scale) for name, scale in scales.items()}
        | {"printed, Section 7": restated},
        error=1e-13 * c.T**0.5 * (c.S + c.Z),
    )


_NEGATIVE_SCALE = noiseless([True, True, True, True, False], -0.6931471805599453)


_HALF = noiseless([True, False], -2.0)


_LOG_PLUS = "Gamma at least the positive part of the logarithm's bound."


STATEMENTS = (
    margin_statement(
        "lem18",
        "Lemma 18",
        "Gamma >= (2/A) log((T/L - 1) / eps) implies mass at most eps off the top L tokens",
        "inequality",
        _saturation,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E25",
                note="Needs A > 0 and Gamma >= 0. A = -1, B = -2, T = 4, L = 2, Gamma = 0 meets "
                "2/A log(1/eps) = -4.6 and leaves mass 1/2 > eps = .1.",
                counterexample={
                    "r": [-1.0, -1.0, -2.0, -2.0],
                    "L": 2,
                    "log_eps": -2.302585092994046,
                    "extra": 4.605170185988092,
                },
            ),
            Form(name="corrected", hypotheses=_positive, note="A > 0 and Gamma >= 0."),
            Form(name="sharpened S14", hypotheses=_apart, note="1/(A - B) for 2/A, for any A > B."),
            Form(
                name="sharpened S14, exact odds",
                hypotheses=_apart,
                equality="two values of r",
                note="log((T/L - 1)(1/eps - 1)) for log((T/L - 1)/eps): with top scores A and the "
                "others B the odds are exactly (T/L - 1) exp(-Gamma (A - B)).",
            ),
        ),
        "half of the sharpened Gamma",
        "Appendix E, eq. (125)",
        sample=_relevances,
        sizes=({"T": 6},),
        project=_moderate,
        hypotheses=_separated,
        assumptions="r_i >= A on L tokens, r_i <= B on the others, A > 2 B",
    ),
    margin_statement(
        "prop3.mass",
        "Proposition 3 (10)",
        "Gamma >= 8 sqrt(2 (M+1)) / (3 S^2) log((1/zeta - 1)/eps) leaves mass at most eps off R",
        "inequality",
        _off_mass,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E25",
                hypotheses=noise_eighth,
                note="Inherits Lemma 18: four of five tokens relevant and eps = 1/2 allow "
                "Gamma < 0. " + _LOG_PLUS,
                counterexample=_NEGATIVE_SCALE,
            ),
            Form(name="corrected", hypotheses=noise_eighth, note=_LOG_PLUS),
            Form(
                name="sharpened S14",
                hypotheses=noise_eighth,
                note="16/7 for 8/3: A - B >= 7 S^4 / 16.",
            ),
            Form(
                name="sharpened S14, relaxed",
                note="A - B = S^4 - 4 S^2 Z - 4 Z^2 itself; needs only Z < .207 S^2.",
            ),
        ),
        "half of the sharpened Gamma",
        "Section 5.3; Appendix E.1",
        **PROP3,
    ),
    margin_statement(
        "prop3.margin",
        "Proposition 3 (11)",
        "y Phi(X; U_opt, Gamma W_opt) >= gamma_attn(eps) "
        "= sqrt(T/2) (S^2 (1 - eps) - 2 eps Z_mu) / S",
        "inequality",
        _saturated_margin,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E25",
                hypotheses=noise_eighth,
                note="As (10), where Gamma < 0 is allowed.",
                counterexample=_NEGATIVE_SCALE,
            ),
            Form(
                name="printed, Section 7",
                expected="fails",
                erratum="E7",
                hypotheses=noise_eighth,
                note="Prints an equality, Z_mu / S for Z_mu / S^2 and 1/S for 1/S^2 in Gamma. One "
                "relevant token of two, no noise, eps = e^-2: the margin exceeds it.",
                counterexample=_HALF,
            ),
            Form(name="corrected", hypotheses=noise_eighth, note=_LOG_PLUS),
            Form(name="sharpened S14", hypotheses=noise_eighth, note="16/7 for 8/3 in Gamma."),
            Form(name="sharpened S14, relaxed", note="Needs only Z < .207 S^2."),
        ),
        "half of the sharpened Gamma",
        "Section 5.3; Section 7; Appendix E.1",
        **PROP3,
        search="none",
    ),
)
