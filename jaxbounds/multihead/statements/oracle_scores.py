"""Eqs. (8), (9), (129): the relevance scores and the norms of the oracle."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.multihead.oracle import (
    irrelevant_score,
    oracle_direction,
    oracle_projection,
    oracle_weights,
    relevance_scores,
    relevant_score,
)
from jaxbounds.multihead.statements.contexts import unfold
from jaxbounds.multihead.statements.margins_shared import margin_statement
from jaxbounds.multihead.statements.saturation_shared import (
    PROP3,
    common_noise,
    noise_eighth,
    noiseless,
)
from jaxbounds.statements import Budget, Form, Instance, Sides, Size


def _score_bounds(instance: Instance) -> Sides:
    c = unfold(instance)
    scores = relevance_scores(c.X, oracle_weights(c.patterns))
    relevant = instance["relevant"][None, :]
    A = relevant_score(c.S, c.Z_mu, c.Z_nu)
    B = irrelevant_score(c.S, c.Z_mu, c.Z_nu)
    Z = common_noise(c)
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


_EIGHTH = noiseless([True, False], -2.0, [[0.0] * 4, [0.125, 0.0, 0.0, 0.0]])


STATEMENTS = (
    margin_statement(
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
                hypotheses=noise_eighth,
                note="1.25 S^4 / 4 bounds B; 2 B = .625 S^4 at Z = S^2/8.",
                counterexample=_EIGHTH,
            ),
            Form(name="corrected, 2 B <= A", hypotheses=noise_eighth),
        ),
        "A + S^2 Z_mu for A",
        "Appendix E.1, eqs. (127), (128), (129)",
        **PROP3,
        search="none",
    ),
    margin_statement(
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
    margin_statement(
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
)
