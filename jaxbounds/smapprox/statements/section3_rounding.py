"""Section 3.1: the margin of compiled circuits, and rounding that keeps it."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.smapprox.all_layer_margin import naive_chain_margin
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.statements.margin_cases import attack_radius, case_network, margin_cases
from jaxbounds.statements import Form, Sides, Statement


def _round_sample(key, size):
    return {"z": jax.random.uniform(key, (size["points"],), minval=-1.0, maxval=2.0)}


def _round(i):
    z = i["z"]
    relu = lambda v: jnp.maximum(v, 0.0)
    piecewise = jnp.where(z < 1 / 3, 0.0, jnp.where(z < 2 / 3, 3 * z - 1, 1.0))
    return Sides(
        piecewise,
        {
            "printed": 3 * relu(z - 1 / 3) - 3 * relu(z - 2 / 3),
            "control": 2 * relu(z - 1 / 3) - 2 * relu(z - 2 / 3),
        },
        error=1e-14,
    )


def _chain_sample(key, size):
    return {"log_factors": 0.3 * jax.random.normal(key, (size["d"],))}


def _chain(i):
    """Factors with product one half: every such perturbation of the chain is on the boundary."""
    u = i["log_factors"]
    d = u.shape[0]
    delta = jnp.expm1(u - u.mean() - math.log(2) / d)
    exact = naive_chain_margin(d)
    root = math.sqrt(d)
    return Sides(
        exact,
        {
            "printed": 1 / root,
            "sharpened": math.log(2) / root,
            "derived": jnp.sqrt(delta @ delta),
            "control": 0.4 / root,
        },
    )


def _box_sample(key, size):
    return {"delta": jax.random.uniform(key, (size["d"],), minval=-1 / 3, maxval=1 / 3)}


def _corner_sample(key, size):
    signs = jax.random.rademacher(key, (size["d"],), dtype=float)
    return {"delta": signs * (1 / 3 - 1e-12)}


def _rounded_chain(i):
    def value(delta):
        z = jnp.ones(())
        for k in range(delta.shape[0]):
            z = THIRDS((1 + delta[k]) * z)
        return z - 0.5

    half = jnp.full((), 0.5)
    return Sides(
        {"printed": value(i["delta"]), "control": value(2.2 * i["delta"])},
        {"printed": half, "control": half},
        error=1e-14,
    )


def _lemma33(i):
    upper = attack_radius(i)
    lower = case_network(i)["lower"]["joint"]
    return Sides(
        lower,
        {
            "printed": jnp.where(i["value"] == 1, upper, 0.0),
            "corrected": upper,
            "control": upper / 300,
        },
    )


_ZERO_OUTPUT = {"circuit": np.array(0), "x": np.zeros(4, int), "value": np.array(0)}

STATEMENTS = (
    Statement(
        id="smapprox.lemma3.3",
        label="Lemma 3.3",
        formula="certified lower bound <= rho(theta, x, G(x)) for every x",
        kind="inequality",
        evaluate=_lemma33,
        cases=margin_cases,
        sizes=({"all": 1},),
        search="none",
        forms=(
            Form(
                name="printed",
                expected="fails",
                erratum="E2",
                note="With F = G in {0, 1} and G(x) = 0, (y - 0.5) F = 0 <= 0: the margin is 0.",
                counterexample=_ZERO_OUTPUT,
            ),
            Form(
                name="corrected",
                note="With the last layer z -> 2z - 1 (which the proof of Theorem 3.1 adds), "
                "Theorem D.6 applies; the right side is an attack, an upper estimate of rho.",
            ),
        ),
        control="the attack's radius divided by 300",
        assumptions="an identity chain and a random circuit; upper estimates by attack",
        source="Section 3.1",
    ),
    Statement(
        id="smapprox.prop3.4",
        label="Proposition 3.4",
        formula="round(z) = 3 relu(z - 1/3) - 3 relu(z - 2/3)",
        kind="identity",
        evaluate=_round,
        sample=_round_sample,
        sizes=({"points": 64},),
        forms=(Form(name="printed", note="Reading 3x - 1 as 3z - 1 (E14)."),),
        control="slope 2 at the same thresholds",
        tolerance=1e-12,
        source="Section 3.1",
    ),
    Statement(
        id="smapprox.claim3.5-naive",
        label="Section 3.1, the example before Proposition 3.4",
        formula="rho(f, (1,..,1), 1, 1) <= 1/sqrt(d) for f(x) = w_d ... w_1 x - 0.5",
        kind="inequality",
        evaluate=_chain,
        sample=_chain_sample,
        sizes=({"d": 2}, {"d": 5}, {"d": 16}),
        forms=(
            Form(name="printed", note="The hidden constant is at most 1."),
            Form(name="sharpened", note="1 - 2^(-1/d) <= ln 2 / d."),
            Form(
                name="derived",
                note="rho = sqrt(d) (1 - 2^(-1/d)) <= |delta| for every delta on the boundary: by "
                "convexity of exp, equal factors are best.",
                equality="all factors equal",
            ),
        ),
        control="0.4 / sqrt(d)",
        source="Section 3.1",
    ),
    Statement(
        id="smapprox.claim3.5",
        label="Claim 3.5",
        formula="|delta_i| <= 1/3 for all i leaves the rounded chain's output at 1/2",
        kind="identity",
        evaluate=_rounded_chain,
        sample={"box": _box_sample, "corners": _corner_sample},
        sizes=({"d": 3}, {"d": 8}),
        forms=(
            Form(name="printed", note="Hence rho >= 1/3; 'delta_i <= 1/3' is |delta_i| (E14)."),
        ),
        control="perturbations 2.2 times as large",
        tolerance=1e-11,
        source="Section 3.1",
    ),
)
