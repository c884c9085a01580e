"""Proposition 2, Lemma 12 and Fact 2: theta^(1) has small heads and small outputs (P1, P2)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from jaxbounds.multihead.first_phase import centre, model_bound
from jaxbounds.multihead.model import model_output
from jaxbounds.multihead.statements.contexts import DATA_SIZES, Context, sequence, sequences, unfold
from jaxbounds.multihead.statements.phase_shared import euclidean, phase_statement, repeated_rows
from jaxbounds.statements import Budget, Form, Instance, Sides, Size

MOST_HEADS = 12
"""Up to this H the law of sum_h alpha_h is summed exactly."""


def _head_size(instance: Instance) -> Sides:
    c = unfold(instance)
    p, root = instance["p"], c.T**0.5
    size = lambda vector: euclidean(repeated_rows(vector, c.T))
    printed = root * (c.S + euclidean(p))
    return Sides(
        lhs={
            "printed": size(c.zeta / 2 * c.classifier + p),
            "corrected": size(centre(c.classifier, c.zeta) + p),
            "sharpened": size(centre(c.classifier, c.zeta) + p),
            "control": size(centre(c.classifier, c.zeta) + p),
        },
        rhs={
            "printed": printed,
            "corrected": printed,
            "sharpened": root * (c.zeta * c.S / 8**0.5 + euclidean(p)),
            "control": root * jnp.maximum(c.zeta * c.S / 8**0.5, euclidean(p)),
        },
    )


def _sign_sum_law(heads):
    """|sum_h alpha_h| and its probability, for k = 0, ..., MOST_HEADS plus signs."""
    k = jnp.arange(MOST_HEADS + 1).astype(float)
    logs = gammaln(heads + 1.0) - gammaln(k + 1.0) - gammaln(jnp.maximum(heads - k, 0.0) + 1.0)
    probability = jnp.where(k <= heads, jnp.exp(logs - heads * jnp.log(2.0)), 0.0)
    return jnp.abs(2 * k - heads), probability


def _exceeds(heads, size, threshold):
    """P(size |sum_h alpha_h| / sqrt(H) > threshold)."""
    sums, probability = _sign_sum_law(heads)
    return jnp.sum(jnp.where(size * sums / jnp.sqrt(heads) > threshold, probability, 0.0))


def _with_heads(sampler):
    def sample(key: jax.Array, size: Size) -> Instance:
        data_key, head_key, level_key, scale_key = jax.random.split(key, 4)
        instance = sampler(data_key, size)
        scale = jnp.exp(jax.random.uniform(scale_key, (), minval=0.0, maxval=9.0))
        return instance | {
            "p": scale * instance["p"],
            "H": jax.random.randint(head_key, (), 1, MOST_HEADS + 1),
            "delta": jax.random.uniform(level_key, (), minval=1e-3, maxval=1.0),
        }

    return sample


def _output_size(c: Context, p):
    """|<U, mean_t x_t>| summed over rows, for alpha = 1: Phi is this times sum alpha / sqrt(H)."""
    vector = centre(c.classifier, c.zeta) + p
    return jnp.max(jnp.abs(jnp.sum(c.X, axis=-2) @ vector))


def _model_size(instance: Instance) -> Sides:
    c = unfold(instance)
    heads, delta = instance["H"].astype(float), instance["delta"]
    size, P = _output_size(c, instance["p"]), euclidean(instance["p"])
    n = 1 if c.X.ndim == 2 else c.X.shape[0]
    printed = c.T * c.R * (c.S + P) * jnp.sqrt(2 * jnp.log(n / delta))
    corrected = model_bound(c.R, c.S, P, delta, T=c.T)
    exceeds = lambda threshold: _exceeds(heads, size, threshold)
    return Sides(
        lhs={
            "printed": exceeds(printed),
            "corrected": exceeds(corrected),
            "sharpened": exceeds(size * jnp.sqrt(2 * jnp.log(2 / delta))),
            "control": exceeds(size * jnp.sqrt(2 * jnp.log(1 / delta)) / 2),
        },
        rhs={"printed": delta, "corrected": delta, "sharpened": delta, "control": delta},
    )


def _balanced(instance: Instance) -> Sides:
    """The output at theta^(1) with one head of each sign, and with both of the same sign."""
    c = unfold(instance)
    rows = repeated_rows(centre(c.classifier, c.zeta) + instance["p"], c.T)
    zero = jnp.zeros((2, *c.direction["W"].shape))
    output = lambda signs: model_output({"U": signs[:, None, None] * rows[None], "W": zero}, c.X)
    scale = jnp.sum(jnp.abs(rows)) * c.R
    both = lambda value: jnp.stack([value, scale])
    return Sides(
        lhs=both(output(jnp.asarray([1.0, -1.0]))),
        rhs={"sharpened S12": both(0.0), "control": both(output(jnp.asarray([1.0, 1.0])))},
    )


def _hoeffding_cases(size: Size) -> Instance:
    heads, plus = zip(*[(H, k) for H in range(1, MOST_HEADS + 1) for k in range(H // 2 + 1, H + 1)])
    return {"H": np.asarray(heads), "plus": np.asarray(plus)}


def _hoeffding(instance: Instance) -> Sides:
    heads = instance["H"].astype(float)
    # Just below the mean of `plus` signs +1, where the tail is largest against the bound.
    t = (1 - 1e-9) * (2 * instance["plus"].astype(float) - heads) / heads
    sums, probability = _sign_sum_law(heads)
    beyond = jnp.sum(jnp.where(sums / heads > t, probability, 0.0))
    delta = jnp.exp(-heads * t**2 / 2)
    return Sides(
        lhs={
            "printed": beyond,
            "corrected": beyond,
            "derived, one-sided": beyond / 2,
            "control": beyond,
        },
        rhs={
            "printed": delta,
            "corrected": 2 * delta,
            "derived, one-sided": delta,
            "control": delta**2,
        },
    )


_ONE_TOKEN = {
    "S": 1.0,
    "y": 1,
    "relevant": [True, False],
    "choice": [0, 0],
    "z": [[0.0] * 4] * 2,
    "p": [10.0, 0.0, 10.0, 0.0],
    "H": 1,
    "delta": 0.85,
}

STATEMENTS = (
    phase_statement(
        "fact2",
        "Fact 2",
        "|mean_h X_h - mu| <= 2 B sqrt(log(1/delta) / (2 H)) with probability 1 - delta",
        "inequality",
        _hoeffding,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E9",
                note="Two-sided, so log(2/delta). Three signs, t just below 1: 1/4 > .2232.",
                counterexample={"H": 3, "plus": 3},
            ),
            Form(name="corrected", note="Hoeffding with log(2/delta)."),
            Form(name="derived, one-sided", note="What Lemma 14 uses: log(1/delta) suffices."),
        ),
        "delta^2 for delta",
        "Appendix D.1; exact binomial tails of Rademacher means, H <= 12",
        sample={},
        cases=_hoeffding_cases,
        sizes=({"H": MOST_HEADS},),
        search="none",
        assumptions="IID signs, B = 1",
    ),
    phase_statement(
        "prop2.p1",
        "Proposition 2, P1",
        "||theta_h^(1)|| <= B_2 = sqrt(T) (S + P)",
        "inequality",
        _head_size,
        (
            Form(name="printed", note="About (zeta / 2) u*, as printed."),
            Form(name="corrected", note="About (zeta / 4) u*."),
            Form(
                name="sharpened",
                equality="p parallel to u*, or p = 0",
                note="sqrt(T) (zeta S / (2 sqrt 2) + P).",
            ),
        ),
        "the larger of both terms in place of their sum",
        "Section 5.1; Appendix D.2.1",
        search="none",
    ),
    phase_statement(
        "lem12",
        "Lemma 12",
        "|Phi(X; theta^(1))| <= T R (S + P) sqrt(2 log(1/delta)) with probability 1 - delta",
        "inequality",
        _model_size,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E9",
                note="Inherits Fact 2. One head, T = 2, S = 1, p = (10, 0, 10, 0): surely "
                "|Phi| = 20.1 > 15.1 * sqrt(2) * .57 at delta = .85.",
                counterexample=_ONE_TOKEN,
            ),
            Form(name="corrected", note="log(2/delta)."),
            Form(name="sharpened", note="<(zeta/4) u* + p, sum_t x_t> for T R (S + P)."),
        ),
        "half the sharpened bound with log(1/delta)",
        "Appendix D.2.2; the exact law of the signs' sum, H <= 12",
        sample=_with_heads(sequence),
        search="none",
        budget=Budget(samples=512, restarts=0),
    ),
    phase_statement(
        "prop2.p2",
        "Proposition 2, P2",
        "|Phi(X_i; theta^(1))| <= T R (S + P) sqrt(2 log(n/delta)) for all i <= n "
        "with probability 1 - delta",
        "inequality",
        _model_size,
        (
            Form(name="printed", note="True for n >= 2 although Lemma 12 is not, since n >= 2."),
            Form(
                name="corrected",
                note="log(2/delta) for every n: W^(1) = 0 makes each output a multiple of the same "
                "sum of signs, so no union bound is needed.",
            ),
            Form(name="sharpened", note="max_i |<(zeta/4) u* + p, sum_t x_it>| for T R (S + P)."),
        ),
        "half the sharpened bound with log(1/delta)",
        "Section 5.1; Lemma 12; the exact law of the signs' sum, H <= 12",
        sample=_with_heads(sequences),
        sizes=DATA_SIZES,
        search="none",
        budget=Budget(samples=512, restarts=0),
    ),
    phase_statement(
        "prop2.balanced",
        "Proposition 2, P2 with balanced signs",
        "Phi(X; theta^(1)) = 0 if as many alpha_h are +1 as -1",
        "identity",
        _balanced,
        (Form(name="sharpened S12", note="So P2 holds surely, with the least B_Phi = 1."),),
        "both signs equal",
        "Section 5.1",
        budget=Budget(samples=64, restarts=0),
    ),
)
