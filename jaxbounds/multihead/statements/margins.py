"""Section 5.3, Appendix E: saturated attention, its margin, and whether it can be a target."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.multihead.model import attention_scores, head_output
from jaxbounds.multihead.oracle import (
    gamma_attention,
    gamma_linear,
    gamma_star,
    irrelevant_score,
    oracle_direction,
    oracle_projection,
    oracle_weights,
    relevance_scores,
    relevant_score,
    saturation_scale,
)
from jaxbounds.multihead.statements.contexts import SIZES, keep_context, sequence, unfold
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement

NOISE_LIMIT = 2**-0.5 - 0.5
"""S^4 - 4 S^2 Z - 4 Z^2 > 0 means Z < .2071 S^2 (S14); Proposition 3 asks for Z <= S^2 / 8."""


# --- Lemma 18 -------------------------------------------------------------------------------------


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


# --- Proposition 3 --------------------------------------------------------------------------------


def _limit_noise(instance: Instance) -> Instance:
    """Clip the noise so that Z_mu and Z_nu stay below .207 S^2."""
    instance = keep_context(instance)
    signal, d = instance["S"], instance["z"].shape[-1]
    bound = 0.999 * NOISE_LIMIT * signal * jnp.where(jnp.arange(d) < 2, 1.0, 1.0 / (d - 3))
    bound = jnp.where(jnp.arange(d) == d - 1, 2 * signal, bound)[None, :]
    level = jnp.clip(instance["log_eps"], -8.0, 0.0)
    return {**instance, "z": jnp.clip(instance["z"], -bound, bound), "log_eps": level}


def _quiet_sequence(key: jax.Array, size: Size) -> Instance:
    data_key, level_key = jax.random.split(key)
    level = jax.random.uniform(level_key, (), minval=-8.0, maxval=-0.05)
    return _limit_noise(sequence(data_key, size) | {"log_eps": level})


def _common_noise(c):
    return jnp.maximum(c.Z_mu, c.Z_nu)


def _scales(c, eps):
    """Gamma of Proposition 3: printed, its positive part, and with the gap A - B (S14)."""
    Z = _common_noise(c)
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


def _noise_eighth(instance: Instance) -> dict:
    c = unfold(instance)
    return {"Z_mu = Z_nu <= S^2 / 8": _common_noise(c) <= c.S**2 / 8}


def _noise_limit(instance: Instance) -> dict:
    c = unfold(instance)
    return {"S^4 - 4 S^2 Z - 4 Z^2 > 0": _common_noise(c) < NOISE_LIMIT * c.S**2}


def _score_bounds(instance: Instance) -> Sides:
    c = unfold(instance)
    scores = relevance_scores(c.X, oracle_weights(c.patterns))
    relevant = instance["relevant"][None, :]
    A = relevant_score(c.S, c.Z_mu, c.Z_nu)
    B = irrelevant_score(c.S, c.Z_mu, c.Z_nu)
    Z = _common_noise(c)
    most = irrelevant_score(c.S, Z, Z)
    return Sides(
        lhs={
            "printed": A,
            "printed, irrelevant tokens": jnp.max(jnp.where(relevant, -jnp.inf, scores)),
            "printed, 2 B <= 1.25 S^4 / 4": 2 * most,
            "corrected, 2 B <= A": 2 * most,
            "control": A + c.S**2 * c.Z_mu,
        },
        rhs={
            "printed": jnp.min(jnp.where(relevant, scores, jnp.inf)),
            "printed, irrelevant tokens": B,
            "printed, 2 B <= 1.25 S^4 / 4": 1.25 * c.S**4 / 4,
            "corrected, 2 B <= A": relevant_score(c.S, Z, Z),
            "control": jnp.min(jnp.where(relevant, scores, jnp.inf)),
        },
        error=1e-14 * (c.S + c.Z) ** 4,
    )


def _score_gap_cases(size: Size) -> Instance:
    return {"S": np.exp(np.linspace(0.0, 3.0, 13))}


def _score_gap(instance: Instance) -> Sides:
    """The gap between the scores of one relevant and one irrelevant token, noise (-.1, 0, 0)."""
    S = instance["S"]
    patterns = S * jnp.eye(3)
    tokens = jnp.stack([patterns[0], patterns[2] - 0.1 * jnp.eye(3)[0]])
    row = relevance_scores(tokens, oracle_weights(patterns))[0]
    normed = relevance_scores(tokens, oracle_direction(patterns, 2)["W"])[0]
    gap, after = row[0] - row[1], normed[0] - normed[1]
    return Sides(
        lhs={"printed": gap, "corrected": gap, "derived, W_opt": after, "control": gap},
        rhs={"printed": S**2, "corrected": S**4, "derived, W_opt": S**2, "control": S**3},
    )


# --- normalisation, eqs. (9) and (123) ------------------------------------------------------------


def _rotated(key: jax.Array, size: Size) -> Instance:
    """Orthogonal patterns of equal norm in general position."""
    frame_key, signal_key = jax.random.split(key)
    frame, _ = jnp.linalg.qr(jax.random.normal(frame_key, (size["d"], size["d"])))
    signal = jnp.exp(jax.random.uniform(signal_key, (), minval=-1.0, maxval=2.0))
    return {"S": signal, "patterns": signal * frame[:-1]}


def _normalised(length: int):
    def evaluate(instance: Instance) -> Sides:
        S, patterns = instance["S"], instance["patterns"]
        M = patterns.shape[0] - 2
        U, W = oracle_projection(patterns, length), oracle_weights(patterns)
        norm = jnp.linalg.norm
        inner = norm(W / (S**2 * (2 * (M + 1)) ** 0.5))
        outer = norm(U / (S * (2 * length) ** 0.5))
        appendix = norm(U / (S * length**0.5))
        found = lambda outer: jnp.stack([outer, inner, outer**2 + inner**2, norm(W, 2) / S**2])
        largest = jnp.sqrt(2.0 * M + 1)
        expected = jnp.stack([0 * S + 1, 0 * S + 1, 0 * S + 2, largest + 0 * S])
        return Sides(
            lhs={
                "printed": found(outer),
                "printed, eq. (123)": found(appendix),
                "control": found(2 * outer),
            },
            rhs={"printed": expected, "printed, eq. (123)": expected, "control": expected},
        )

    return evaluate


# --- orderings and the no-go of Section 5.3 -------------------------------------------------------


def _settings(key: jax.Array, size: Size) -> Instance:
    values = jax.random.uniform(key, (6,))
    return {
        "log_S": 3 * values[0] - 0.5,
        "zeta": 0.05 + 0.9 * values[1],
        "noise": 0.3 * values[2] ** 2,
        "T": jnp.floor(2 + 30 * values[3]),
        "M": jnp.floor(1 + 6 * values[4]),
    }


def _ordering(instance: Instance) -> Sides:
    """The best case for gamma*: P = 0; `noise` is Z_mu / S^2 = Z_nu / S^2."""
    S, zeta, T = jnp.exp(instance["log_S"]), instance["zeta"], instance["T"]
    Z = jnp.abs(instance["noise"]) * S**2
    star = gamma_star(S, zeta, Z, Z, 0.0, 0.0, T=T, M=instance["M"])
    linear, full = gamma_linear(S, zeta, Z, T=T), gamma_attention(S, Z, 0.0, T=T)
    # The deviation that the printed centre (zeta / 2) u* forces (E2).
    forced = gamma_star(S, zeta, Z, Z, 0.0, zeta * S * 2**0.5 / 4, T=T, M=instance["M"])
    return Sides(
        lhs={
            "printed": star,
            "printed, gamma* >= gamma_lin": linear,
            "derived": linear,
            "derived, printed centre": forced,
            "control": full,
        },
        rhs={
            "printed": full,
            "printed, gamma* >= gamma_lin": star,
            "derived": full,
            "derived, printed centre": linear,
            "control": linear,
        },
    )


def _valid_setting(instance: Instance) -> dict:
    return {
        "0 < zeta < 1": (instance["zeta"] > 0) & (instance["zeta"] < 1),
        "T >= 2, M >= 1": (instance["T"] >= 2) & (instance["M"] >= 1),
    }


def _candidates(key: jax.Array, size: Size) -> Instance:
    values = jax.random.uniform(key, (5,))
    return {
        "log_S": 12 * values[0],
        "log_H": 40 * values[1],
        "log_C": 40 * values[2] - 20,
        "p": 4 * values[3] + 1e-3,
        "log_n": 1.1 + 15 * values[4],
    }


def _candidate_norms(instance: Instance):
    """Logarithms of the two requirements' slacks; constants are one."""
    s, h, c = instance["log_S"], instance["log_H"], instance["log_C"]
    p, n = instance["p"], jnp.log(instance["log_n"])
    outer, inner = n - s, c + (0.5 - p) * h
    length = jnp.logaddexp(2 * outer, 2 * inner) / 2
    saturates = 2 * s + c - p * h
    return saturates, h / 2 - 5 * s - 3 * length, h / 2 - 3 * s - 2 * length, length


def _no_target(instance: Instance) -> Sides:
    saturates, printed, sharp, _ = _candidate_norms(instance)
    least = lambda slack: jnp.exp(jnp.minimum(saturates, slack) / 8)
    cube = instance["log_H"] / 2 + instance["log_S"]
    weak = cube - 2 * _candidate_norms(instance)[3]
    return Sides(
        lhs={
            "printed": least(printed),
            "sharpened S5": least(sharp),
            "control": least(weak),
        },
        rhs={"printed": 1.0, "sharpened S5": 1.0, "control": 1.0},
    )


def _more_samples(instance: Instance) -> dict:
    return {
        "n >= 3": instance["log_n"] >= 1.0986,
        "H >= 1, p > 0, S >= 1": (instance["log_H"] >= 0)
        & (instance["p"] > 0)
        & (instance["log_S"] >= 0),
    }


def _exponent(instance: Instance) -> Sides:
    """Where S^2 = H^p / C and ||U|| <= ||W||, (12) with S >= log(n) H^{p - 1/2} / C is this."""
    h, p, n = instance["log_H"], instance["p"], jnp.log(instance["log_n"])
    # H^{1/2} = log(n)^5 C^{-2} H^{2 p - 1}, solved for log C.
    solved = (5 * n + (2 * p - 1) * h - h / 2) / 2
    return Sides(
        lhs=solved,
        rhs={
            "printed": 2.5 * n + (p - 0.25) * h,
            "corrected": 2.5 * n + (p - 0.75) * h,
            "control": 2.5 * n + (p - 0.5) * h,
        },
        error=1e-14 * (jnp.abs(n) + jnp.abs(h) * (1 + p)),
    )


# --- the statements -------------------------------------------------------------------------------


def _statement(name, label, formula, kind, evaluate, forms, control, source, **options):
    defaults = {"sizes": SIZES}
    if kind == "inequality":
        defaults |= {"budget": Budget(samples=256, restarts=4, steps=100)}
    return Statement(
        id=f"multihead.{name}",
        label=label,
        formula=formula,
        kind=kind,
        evaluate=evaluate,
        forms=forms,
        control=control,
        source=source,
        **(defaults | options),
    )


def _noiseless(relevant, level, z=None):
    T = len(relevant)
    return {
        "S": 1.0,
        "y": 1,
        "relevant": relevant,
        "choice": [0] * T,
        "z": z or [[0.0] * 4] * T,
        "p": [0.0] * 4,
        "log_eps": level,
    }


_NEGATIVE_SCALE = _noiseless([True, True, True, True, False], -0.6931471805599453)
_HALF = _noiseless([True, False], -2.0)
_EIGHTH = _noiseless([True, False], -2.0, [[0.0] * 4, [0.125, 0.0, 0.0, 0.0]])
_PROP3 = {
    "sample": _quiet_sequence,
    "project": _limit_noise,
    "hypotheses": _noise_limit,
    "assumptions": "DM1, Assumption 3; Z_mu = Z_nu <= S^2 / 8 except where relaxed",
}
_LOG_PLUS = "Gamma at least the positive part of the logarithm's bound."

STATEMENTS = (
    _statement(
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
    _statement(
        "eq129",
        "eq. (129)",
        "scores under W* are at least A on R and at most B off R; Z <= S^2/8 gives A > 2 B",
        "inequality",
        _score_bounds,
        (
            Form(name="printed", equality="no noise, or each at its bound", note="r >= A on R."),
            Form(
                name="printed, irrelevant tokens",
                equality="every irrelevant token at its bound",
                note="r <= B off R.",
            ),
            Form(
                name="printed, 2 B <= 1.25 S^4 / 4",
                expected="fails",
                erratum="E20",
                hypotheses=_noise_eighth,
                note="1.25 S^4 / 4 bounds B; 2 B = .625 S^4 at Z = S^2/8.",
                counterexample=_EIGHTH,
            ),
            Form(name="corrected, 2 B <= A", hypotheses=_noise_eighth),
        ),
        "A + S^2 Z_mu for A",
        "Appendix E.1, eqs. (127), (128), (129)",
        **_PROP3,
        search="none",
    ),
    _statement(
        "eq8",
        "eq. (8)",
        "the gap between relevant and irrelevant scores under W* grows with S",
        "rate",
        _score_gap,
        (
            Form(
                name="printed",
                expected="inconsistent",
                erratum="E7",
                sense="at most",
                note="Prints a gap of O(S^2): that is W_opt's; W* has S^4.",
            ),
            Form(name="corrected", sense="at most"),
            Form(name="derived, W_opt", sense="at most"),
        ),
        "the rate S^3",
        "Section 5.2; Section 5.3",
        cases=_score_gap_cases,
        sizes=({"T": 2},),
    ),
    _statement(
        "eq9",
        "eqs. (9), (123), (124)",
        "||U_opt|| = ||W_opt|| = 1, ||theta_opt||^2 = 2; ||W*|| = S^2 sqrt(2 M + 1)",
        "identity",
        _normalised(5),
        (
            Form(name="printed", note="Eq. (9), which (11)'s proof uses."),
            Form(
                name="printed, eq. (123)",
                expected="fails",
                erratum="E6",
                note="U* / (S sqrt(T)) has norm sqrt(2), theta_opt sqrt(3); and 1_d is 1_T.",
                counterexample={"S": 1.0, "patterns": [[1.0, 0.0], [0.0, 1.0]]},
            ),
        ),
        "U_opt doubled",
        "Section 5.3; Appendix E",
        sample=_rotated,
        budget=Budget(samples=128, restarts=0),
    ),
    _statement(
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
                hypotheses=_noise_eighth,
                note="Inherits Lemma 18: four of five tokens relevant and eps = 1/2 allow "
                "Gamma < 0. " + _LOG_PLUS,
                counterexample=_NEGATIVE_SCALE,
            ),
            Form(name="corrected", hypotheses=_noise_eighth, note=_LOG_PLUS),
            Form(
                name="sharpened S14",
                hypotheses=_noise_eighth,
                note="16/7 for 8/3: A - B >= 7 S^4 / 16.",
            ),
            Form(
                name="sharpened S14, relaxed",
                note="A - B = S^4 - 4 S^2 Z - 4 Z^2 itself; needs only Z < .207 S^2.",
            ),
        ),
        "half of the sharpened Gamma",
        "Section 5.3; Appendix E.1",
        **_PROP3,
    ),
    _statement(
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
                hypotheses=_noise_eighth,
                note="As (10), where Gamma < 0 is allowed.",
                counterexample=_NEGATIVE_SCALE,
            ),
            Form(
                name="printed, Section 7",
                expected="fails",
                erratum="E7",
                hypotheses=_noise_eighth,
                note="Prints an equality, Z_mu / S for Z_mu / S^2 and 1/S for 1/S^2 in Gamma. One "
                "relevant token of two, no noise, eps = e^-2: the margin exceeds it.",
                counterexample=_HALF,
            ),
            Form(name="corrected", hypotheses=_noise_eighth, note=_LOG_PLUS),
            Form(name="sharpened S14", hypotheses=_noise_eighth, note="16/7 for 8/3 in Gamma."),
            Form(name="sharpened S14, relaxed", note="Needs only Z < .207 S^2."),
        ),
        "half of the sharpened Gamma",
        "Section 5.3; Section 7; Appendix E.1",
        **_PROP3,
        search="none",
    ),
    _statement(
        "sec5.3-order",
        "Sections 5.3 and 7, order of the margins",
        "gamma_attn >= gamma* >= gamma_lin",
        "inequality",
        _ordering,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E18",
                note="gamma* is not normalised by the size of theta^(1): it grows as S^4 and "
                "passes gamma_attn. T = 10, zeta = 1/2, S = 10, M = 2, no noise: 1287 > 22.4.",
                counterexample={
                    "log_S": 2.302585092994046,
                    "zeta": 0.5,
                    "noise": 0.0,
                    "T": 10.0,
                    "M": 2.0,
                },
            ),
            Form(
                name="printed, gamma* >= gamma_lin",
                expected="fails",
                erratum="E18",
                note="Fails at moderate noise, even at P = 0: the paper's own T = 10, zeta = .1, "
                "S = 2, M = 2 with Z_mu = Z_nu = .6, three standard deviations, gives "
                "gamma* = -2.6 < gamma_lin = -.76.",
                counterexample={
                    "log_S": 0.6931471805599453,
                    "zeta": 0.1,
                    "noise": 0.15,
                    "T": 10.0,
                    "M": 2.0,
                },
            ),
            Form(name="derived", note="gamma_lin <= gamma_attn(0) always."),
            Form(
                name="derived, printed centre",
                erratum="E2",
                note="With P >= zeta S sqrt(2)/4, which the printed centre forces, gamma* is "
                "always below gamma_lin: the recentring is what makes it a gain.",
            ),
        ),
        "gamma_attn <= gamma_lin",
        "Section 5.3, after eq. (11); Section 7",
        sample=_settings,
        hypotheses=_valid_setting,
    ),
    _statement(
        "sec5.3-target",
        "Section 5.3, eq. (12)",
        "no (p, C) has S^2 >= H^p / C and sqrt(H) >= S^5 ||theta||^3",
        "inequality",
        _no_target,
        (
            Form(
                name="printed",
                note="Constants one. S^2 >= H^p / C makes ||W|| >= sqrt(H) / S^2, so (12) forces "
                "S >= H; then ||U|| = log(n) / S needs sqrt(H) >= S^2 log(n)^3. Both cases.",
            ),
            Form(
                name="sharpened S5",
                note="Even for sqrt(H) >= S^3 ||theta||^2, which only the tight mixed block "
                "needs: S >= sqrt(H) and sqrt(H) >= S log(n)^2 contradict for n >= 3.",
            ),
        ),
        "sqrt(H) S >= ||theta||^2",
        "Section 5.3; minima of both ratios, to the power 1/8",
        sample=_candidates,
        hypotheses=_more_samples,
        assumptions="n >= 3, S >= 1, H >= 1, p > 0; constants hidden by >~ are one",
        sizes=({"C": 1},),
    ),
    _statement(
        "sec5.3-exponent",
        "Section 5.3, below eq. (12)",
        "H^{1/2} >= log(n)^5 C^{-2} H^{2p-1} iff C >= log(n)^{5/2} H^{p-1/4}",
        "identity",
        _exponent,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E10",
                note="The exponent is p - 3/4; the contradiction survives.",
                counterexample={
                    "log_S": 0.0,
                    "log_H": 1.0,
                    "log_C": 0.0,
                    "p": 1.0,
                    "log_n": 2.718281828459045,
                },
            ),
            Form(name="corrected"),
        ),
        "the exponent p - 1/2",
        "Section 5.3",
        sample=_candidates,
        sizes=({"C": 1},),
        budget=Budget(samples=64, restarts=0),
    ),
)
