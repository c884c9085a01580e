"""Section 2 and Appendix A: SM-approximation, the all-layer margin, its losses and covers."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.smapprox import finite_classes as finite
from jaxbounds.smapprox.all_layer_margin import linear_margin, ramp_loss, zero_one_loss
from jaxbounds.statements import Budget, Form, Sides, Statement

POINTS = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
"""The distribution on five points of the finite class."""
LOSSES = np.array(
    [
        [0.0, 0.0, 0.0, 0.1, 1.0],
        [0.0, 0.0, 0.1, 0.0, 1.0],
        [0.1, 0.0, 0.0, 0.0, 0.9],
        [1.0, 1.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 1.0, 1.0, 0.0],
        [0.6, 0.2, 0.9, 0.4, 0.0],
    ]
)
"""Its surrogate losses; the evaluation loss is 1 where the surrogate is 1 and 0 elsewhere.

The first three models are nearly equal, so the sample decides which one is chosen, and two of them
are wrong on the rarest point.
"""
DEVIATION_LEVEL, ERM_LEVEL = 0.1, 0.01


@functools.cache
def _rademacher(n: int) -> float:
    return finite.exact_rademacher(LOSSES, POINTS, n)


def _sample(key, size):
    return {"sample": finite.draw(key, jnp.asarray(POINTS), size["n"])}


def _deviation(instance):
    n = instance["sample"].shape[0]
    losses, points = jnp.asarray(LOSSES), jnp.asarray(POINTS)
    population, empirical = losses @ points, losses[:, instance["sample"]].mean(axis=1)
    term = math.sqrt(math.log(2 / DEVIATION_LEVEL) / n)
    rademacher = _rademacher(n)
    return Sides(
        jnp.abs(population - empirical).max(),
        {
            "printed": finite.uniform_deviation_bound(rademacher, n, DEVIATION_LEVEL),
            "sharpened": finite.uniform_deviation_bound_sharpened(rademacher, n, DEVIATION_LEVEL),
            "control": 0.1 * term,
        },
    )


def _minimiser(instance):
    n = instance["sample"].shape[0]
    surrogate, points = jnp.asarray(LOSSES), jnp.asarray(POINTS)
    best = float((LOSSES @ POINTS).min())
    rademacher = math.sqrt(2 * math.log(len(LOSSES)) / n)
    evaluation = (surrogate >= 1.0).astype(surrogate.dtype)
    chosen = finite.empirical_risk_minimiser(surrogate, instance["sample"])
    risk = finite.erm_risk(surrogate, evaluation, points, instance["sample"])
    own = surrogate[chosen] @ points
    epsilon = max(best, rademacher)
    slack = 2 * math.sqrt(math.log(2 / ERM_LEVEL) / n)
    return Sides(
        {"printed": risk, "sharpened": own, "control": own},
        {
            "printed": 5 * epsilon + slack,
            "sharpened": finite.erm_bound(best, rademacher, n, ERM_LEVEL),
            "control": best * (1 - 1e-6),
        },
        trivial=1.0,
    )


def _linear(key, size):
    keys = jax.random.split(key, 4)
    m = size["m"]
    return {
        "w": jax.random.normal(keys[0], (m,)),
        "b": jax.random.normal(keys[1], ()),
        "x": jax.random.normal(keys[2], (m,)),
        "move": jax.random.normal(keys[3], (m + 1,)),
        "y": jax.random.bernoulli(keys[0]).astype(int),
        "gamma": jnp.exp(jax.random.normal(keys[1], ())),
    }


def _along_the_margin(key, size):
    """Both models right, the second moved towards the boundary along the nearest direction."""
    i = _linear(key, size)
    output = i["w"] @ i["x"] + i["b"]
    direction = jnp.append(i["x"], 1.0) * -jnp.sign(output)
    step = 0.5 * jnp.abs(output) / (direction @ direction)
    return i | {"move": step * direction, "y": (output > 0).astype(int)}


def _margins(i):
    y = i["y"].astype(i["w"].dtype)
    here = linear_margin(i["w"], i["b"], i["x"], y)
    there = linear_margin(i["w"] + i["move"][:-1], i["b"] + i["move"][-1], i["x"], y)
    distance = jnp.sqrt(i["move"] @ i["move"])
    return here, there, distance


def _surrogate(i):
    y = i["y"].astype(i["w"].dtype)
    output = i["w"] @ i["x"] + i["b"]
    margin, _, _ = _margins(i)
    unsigned = jnp.abs(output) / jnp.sqrt(i["x"] @ i["x"] + 1)
    return Sides(
        zero_one_loss(output, y),
        {"printed": ramp_loss(margin, i["gamma"]), "control": ramp_loss(unsigned, i["gamma"])},
    )


def _lipschitz(i):
    here, there, distance = _margins(i)
    return Sides(jnp.abs(here - there), {"printed": distance, "control": distance / 2}, error=1e-13)


def _cover(i):
    here, there, distance = _margins(i)
    change = jnp.abs(ramp_loss(here, i["gamma"]) - ramp_loss(there, i["gamma"]))
    return Sides(
        change,
        {"printed": distance / i["gamma"], "control": distance / (2 * i["gamma"])},
        error=1e-13,
    )


def _tied(key, size):
    values = jax.random.normal(key, (size["keys"],))
    return {"values": values + 0.2 * jnp.sign(values)}


def _positive_margin(i):
    """Keys tied at score 0; does some perturbation of the scores by 1e-9 flip the output?"""
    values = i["values"]

    def output(scores):
        best = (scores == scores.max()).astype(values.dtype)
        return best @ values / best.sum()

    output_here = output(jnp.zeros_like(values))
    label = jnp.where(output_here > 0, 1.0, -1.0)
    moved = jax.vmap(output)(1e-9 * jnp.eye(values.shape[0], dtype=values.dtype))
    margin_is_positive = jnp.all(label * moved > 0).astype(values.dtype)
    one = jnp.ones_like(margin_is_positive)
    return Sides(margin_is_positive, {"printed": one, "corrected": one, "control": 0 * one})


def _same_sign(i):
    return {"tied values of one sign": jnp.all(i["values"] > 0) | jnp.all(i["values"] < 0)}


STATEMENTS = (
    Statement(
        id="smapprox.eqa.1",
        label="(A.1)",
        formula="sup_F |L(F) - L-hat(F)| <= 2 Rad + sqrt(log(2/delta)/n) with probability 1-delta",
        kind="probability",
        evaluate=_deviation,
        sample=_sample,
        sizes=({"n": 6}, {"n": 9}),
        forms=(
            Form(name="printed"),
            Form(name="sharpened", note="McDiarmid's constant: sqrt(log(2/delta)/(2n))."),
        ),
        control="no Rademacher term, and a tenth of the other",
        assumptions="six models on five points, Rademacher complexity by exact enumeration",
        level=DEVIATION_LEVEL,
        budget=Budget(samples=1500, restarts=0),
        source="Appendix A",
    ),
    Statement(
        id="smapprox.prop2.3",
        label="Proposition 2.3",
        formula="E l(F-hat) <= 5 epsilon + 2 sqrt(log 200 / n) with probability 0.99",
        kind="probability",
        evaluate=_minimiser,
        sample=_sample,
        sizes=({"n": 400},),
        forms=(
            Form(name="printed", note="The constants are those of the proof."),
            Form(
                name="sharpened",
                note="L-bar(F-hat) <= L-bar(F*) + 4 Rad + 2 sqrt(log 200/n): the proof, before "
                "both terms are replaced by epsilon.",
            ),
        ),
        control="the empirical minimiser is the population minimiser",
        assumptions="a finite class; Rademacher complexity by Massart's bound",
        level=ERM_LEVEL,
        budget=Budget(samples=3000, restarts=0),
        source="Section 2.1, Appendix A",
    ),
    Statement(
        id="smapprox.sec2.1-positive",
        label='Section 2.1, "strictly positive if and only if F predicts the correct label"',
        formula="F right at (x, y)  =>  rho(theta, x, y) > 0",
        kind="identity",
        evaluate=_positive_margin,
        sample=_tied,
        sizes=({"keys": 2}, {"keys": 4}),
        forms=(
            Form(
                name="printed",
                expected="fails",
                erratum="E12",
                note="F is right, yet an arbitrarily small perturbation breaks a tie of hard-max "
                "attention towards a value of the other sign: rho = 0 as an infimum.",
                counterexample={"values": np.array([3.0, -1.0])},
            ),
            Form(
                name="corrected",
                hypotheses=_same_sign,
                note="Breaking a tie changes no sign if the tied values have one sign; compiled "
                "networks tie only equal values.",
            ),
        ),
        control="the margin is never positive",
        source="Section 2.1",
    ),
    Statement(
        id="smapprox.eq2.2",
        label="(2.2)",
        formula="l_01(F(x, theta), y) <= l-bar_gamma(theta, x, y)",
        kind="inequality",
        evaluate=_surrogate,
        sample=_linear,
        sizes=({"m": 2},),
        search="none",
        forms=(Form(name="printed", equality="a wrong prediction: both are 1"),),
        control="the margin without its sign",
        assumptions="linear models, whose margin is |F| / |(x, 1)|",
        source="Section 2.1",
    ),
    Statement(
        id="smapprox.lemma2.4-lipschitz",
        label="Appendix A, proof of Lemma 2.4",
        formula="|rho(theta) - rho(theta')| <= |theta - theta'|",
        kind="inequality",
        evaluate=_lipschitz,
        sample={"random": _linear, "towards the boundary": _along_the_margin},
        sizes=({"m": 2},),
        forms=(Form(name="printed", equality="theta' on the way to the nearest wrong model"),),
        control="half of the right side",
        assumptions="linear models, exact margins",
        source="Appendix A",
    ),
    Statement(
        id="smapprox.lemma2.4-cover",
        label="Appendix A, proof of Lemma 2.4",
        formula="a gamma epsilon cover of Theta gives an epsilon cover of the losses: "
        "|l-bar(theta) - l-bar(theta')| <= |theta - theta'| / gamma",
        kind="inequality",
        evaluate=_cover,
        sample={"random": _linear, "towards the boundary": _along_the_margin},
        sizes=({"m": 2},),
        forms=(Form(name="printed", equality="both margins in [0, gamma], theta' as above"),),
        control="half of the right side",
        assumptions="linear models, exact margins",
        source="Appendix A",
    ),
)
