"""Equations (8), (9) and (129): the relevance scores and the norms of the oracle."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.multihead.oracle import (
    Assumption3,
    irrelevant_score,
    oracle_direction,
    oracle_projection,
    oracle_weights,
    projection_norm,
    relevance_scores,
    relevant_score,
    separating_direction,
    weights_norm,
    weights_spectral_norm,
)
from jaxbounds.multihead.oracle_bounds import deviation_part_sharp
from jaxbounds.multihead.statements.contexts import (
    by_hand,
    noise_eighth,
    quiet_context,
    searched_sequence,
    unfold,
)


def _score_bounds(instance: Instance, size: Size) -> Sides:
    c = unfold(instance)
    scores, on = relevance_scores(c.X, oracle_weights(c.patterns)), instance["relevant"][None, :]
    A, B = relevant_score(c), irrelevant_score(c)
    alike = replace(c, Z_mu=c.noise, Z_nu=c.noise)
    twice = 2 * irrelevant_score(alike)
    most, least = jnp.max(jnp.where(on, -jnp.inf, scores)), jnp.min(jnp.where(on, scores, jnp.inf))
    return Sides.pairs(
        {
            "printed": (A, least),
            "printed, irrelevant tokens": (most, B),
            "printed, 2 B <= 1.25 S^4 / 4": (twice, 1.25 * c.S**4 / 4),
            "corrected, 2 B <= A": (twice, relevant_score(alike)),
            "control": (A + c.S**2 * c.Z_mu, least),
        },
        error=1e-14 * (c.S + c.Z) ** 4,
    )


EQ_129 = searched_sequence(
    id="multihead.eq129",
    label="eq. (129)",
    formula="scores under W* are at least A on R and at most B off R; Z <= S^2/8 gives A > 2 B",
    tex=r"[r_t]_{t'} \ge A = S^4 - S^2 (Z_\mu + Z_\nu) \; (t' \in \mathcal{R}), \quad "
    r"[r_t]_{t'} \le B = 2 (Z_\mu^2 + Z_\mu Z_\nu + S^2 Z_\mu) \; (t' \in \mathcal{R}^c)",
    evaluate=_score_bounds,
    judges=(relevant_score, irrelevant_score, relevance_scores),
    forms=(
        Form(
            name="printed",
            cites="eqs. (127), (128), (129), Appendix E.1",
            equality="no noise, or each at its bound",
            note="The relevance score r is at least A on the relevant tokens R.",
        ),
        Form(
            name="printed, irrelevant tokens",
            cites="eqs. (127), (128), (129), Appendix E.1",
            equality="every irrelevant token at its bound",
            note="The relevance score r is at most B on the irrelevant tokens.",
        ),
        Form(
            name="printed, 2 B <= 1.25 S^4 / 4",
            cites="the display below eq. (129), Appendix E.1",
            erratum="E20",
            hypotheses=noise_eighth,
            note=(
                "The printed number 1.25 S^4 / 4 is an upper bound on B, but not on 2 B. At Z = "
                "S^2/8, 2 B is .625 S^4, which is twice the printed number."
            ),
            counterexample=Counterexample(
                instance=by_hand([True, False], z=[[0.0] * 4, [0.125, 0, 0, 0]], log_eps=-2.0),
                size={"T": 2, "d": 4},
                ratio=2.0,
                meets=quiet_context,
            ),
        ),
        Form(name="corrected, 2 B <= A", hypotheses=noise_eighth),
    ),
    control="A + S^2 Z_mu for A",
    source="Appendix E.1, eqs. (127), (128), (129)",
    budget=Budget(samples=128, restarts=2, steps=40),
    assumptions="DM1, Assumption 3; only A > 2 B assumes Z_mu = Z_nu <= S^2 / 8",
)


def _score_gap(instance: Instance, size: Size) -> Sides:
    S = instance["S"]
    patterns = S * jnp.eye(3)
    quiet = jnp.stack([patterns[0], patterns[2] + 0.1 / S * jnp.ones(3)])
    on, off = jnp.max(jnp.abs(relevance_scores(quiet, oracle_weights(patterns))), axis=0)
    tokens = jnp.stack([patterns[0], patterns[2] - 0.1 * jnp.eye(3)[0]])
    row = relevance_scores(tokens, oracle_weights(patterns))[0]
    normed = relevance_scores(tokens, oracle_direction(patterns, 2)["W"])[0]
    gap, after = row[0] - row[1], normed[0] - normed[1]
    return Sides.pairs(
        {
            "printed, (8)": (on, S**4),
            "printed, (8), irrelevant tokens": (off, S**2),
            "printed": (gap, S**2),
            "corrected": (gap, S**4),
            "derived, W_opt": (after, S**2),
            "control": (gap, S**3),
        }
    )


EQ_8 = Statement(
    id="multihead.eq8",
    label="eq. (8); Section 5.3 on eq. (8)",
    formula="scores under W* are O(S^4) on R and O(S^2) off R; the gap of O(S^2) between them",
    tex=r"[r_t]_{t'} = O(S^4) \; (t' \in \mathcal{R}), \quad [r_t]_{t'} = O(S^2) \; (t' \in "
    r"\mathcal{R}^c), \quad \min_{t' \in \mathcal{R}} [r_t]_{t'} - \max_{t' \in "
    r"\mathcal{R}^c} [r_t]_{t'} = O(S^2)",
    kind="rate",
    evaluate=_score_gap,
    judges=(relevance_scores, oracle_weights, oracle_direction),
    forms=(
        Form(
            name="printed, (8)",
            cites="eq. (8), Section 5.2, its first line",
            sense="at most",
            exponent=(0.95, 1.03),
            note="Formulas (108) and (110) give the score S^4 and a further term of order S^2 "
            "(Z_mu + Z_nu).",
        ),
        Form(
            name="printed, (8), irrelevant tokens",
            cites="eq. (8), Section 5.2, its second line",
            sense="at most",
            exponent=(0.93, 1.03),
            note=(
                "In (108) and (110), the largest term of an irrelevant token's score is S^2 Z_mu, "
                "so the order O(S^2) requires Z_mu = O(1). The example below (7) has Z_mu = O(S). "
                "At such noise the score is O(S^3), which is still below S^4."
            ),
        ),
        Form(
            name="printed",
            cites="Section 5.3: 'Eq. (8) that it ensures a gap of O(S^2)'",
            expected="inconsistent",
            erratum="E7",
            sense="at most",
            exponent=(1.9, 2.05),
            note="The paper prints O(S^2) for the gap between relevant and irrelevant scores under "
            "W*. The gap under W* is of order S^4, and O(S^2) is the gap under W_opt.",
        ),
        Form(name="corrected", sense="at most", exponent=(0.95, 1.05)),
        Form(name="derived, W_opt", sense="at most", exponent=(0.93, 1.05)),
    ),
    control="the rate S^3",
    source="Section 5.2, eq. (8); Section 5.3",
    cases=lambda size: {"S": jnp.exp(jnp.linspace(0.0, 3.0, 13))},
    sizes=({"T": 2},),
    assumptions="one relevant token of two, M = 1; S from 1 to 20. (8) at Z_mu = Z_nu = 1/10",
)


def _rotated(key: jax.Array, size: Size) -> Instance:
    frame_key, signal_key = jax.random.split(key)
    frame, _ = jnp.linalg.qr(jax.random.normal(frame_key, (size["d"], size["d"])))
    signal = jnp.exp(jax.random.uniform(signal_key, (), minval=-1.0, maxval=2.0))
    return {"S": signal, "patterns": signal * frame[:-1]}


def _normalised(instance: Instance, size: Size) -> Sides:
    S, patterns, T, norm = instance["S"], instance["patterns"], size["T"], jnp.linalg.norm
    M = patterns.shape[0] - 2
    dm1 = Assumption3(S=S, zeta=1.0, Z_mu=0.0, Z_nu=0.0, Z=0.0, T=T, M=M)
    U, W = oracle_projection(patterns, T), oracle_weights(patterns)
    unit = oracle_direction(patterns, T)
    inner = norm(W / weights_norm(dm1))
    outer = norm(U / projection_norm(dm1))
    appendix = norm(U / (S * T**0.5))
    share = norm(W, 2) / norm(W) * T * S**3 / deviation_part_sharp(dm1, 1.0)
    top = norm(W, 2) / weights_spectral_norm(dm1)
    ours = jnp.asarray([1.0, 1, 1, 1, 2])
    aligned = jnp.sum(unit["U"] * U) / norm(U), jnp.sum(unit["W"] * W) / norm(W)
    spread = separating_direction(patterns, jnp.asarray([1.0, -1.0, 1.0]), T)
    total = sum(jnp.sum(leaf**2) for leaf in spread.values())
    found = lambda outer: jnp.stack([outer, inner, outer**2 + inner**2])
    expected = jnp.asarray([1.0, 1, 2])
    return Sides.pairs(
        {
            "printed": (found(outer), expected),
            "printed, eq. (123)": (found(appendix), expected),
            "derived": (jnp.stack([top, share, *aligned, total]), ours),
            "control": (found(2 * outer), expected),
        }
    )


def _orthogonal(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    patterns = instance["patterns"]
    gram = patterns @ patterns.T
    expected = instance["S"] ** 2 * jnp.eye(gram.shape[0])
    return {
        "mu_+, mu_-, nu_1, ..., nu_M in R^d, M >= 1 (DM1, Section 5)": patterns.ndim == 2
        and patterns.shape[0] >= 3
        and patterns.shape[1] == size["d"],
        "orthogonal patterns of norm S (Assumption 3, Section 5)": jnp.max(jnp.abs(gram - expected))
        < 1e-12,
        "0 < zeta < 1 for some integer zeta T (Assumption 3)": size["T"] >= 2,
        "R >= S >= 1 (Assumptions 1 and 3)": instance["S"] >= 1,
    }


EQ_9 = Statement(
    id="multihead.eq9",
    label="eqs. (9), (123), (124)",
    formula="||U_opt|| = ||W_opt|| = 1, ||theta_opt||^2 = 2",
    tex=r"\|U_{\mathrm{opt}}\|_F = \|W_{\mathrm{opt}}\|_F = 1, \quad "
    r"\|\theta_{\mathrm{opt}}\|_F = \sqrt{2}",
    kind="identity",
    evaluate=_normalised,
    judges=(
        projection_norm,
        weights_norm,
        weights_spectral_norm,
        oracle_projection,
        oracle_weights,
        oracle_direction,
        separating_direction,
        deviation_part_sharp,
    ),
    forms=(
        Form(
            name="printed",
            cites="eq. (9), Section 5.3",
            note="The proof of (11) uses the norm sqrt(2) of theta_opt.",
        ),
        Form(
            name="derived",
            note="The check computes the norm ||W*|| = S^2 sqrt(2 M + 1) of sharpening S13, and "
            "the norm of Lemma 13's theta*. The theta* of Lemma 13 has norm sqrt(2) for any "
            "signs alpha.",
        ),
        Form(
            name="printed, eq. (123)",
            cites="eq. (123), Appendix E",
            erratum="E6",
            note="The matrix U* / (S sqrt(T)) has norm sqrt(2), so theta_opt has norm sqrt(3). "
            "The printed 1_d should be 1_T.",
            counterexample=Counterexample(
                instance={"S": 1.0, "patterns": [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]},
                size={"T": 5, "d": 3},
                ratio=0.33333333333333315,
                meets=_orthogonal,
            ),
        ),
    ),
    control="U_opt doubled",
    source="Section 5.3; Appendix E",
    sample=_rotated,
    sizes=({"T": 5, "d": 5},),
    budget=Budget(samples=128, restarts=0),
)

STATEMENTS = (EQ_129, EQ_8, EQ_9)
