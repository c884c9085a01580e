"""Section 2.1 and Appendix A: the all-layer margin, its surrogate loss and its covers."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.smapprox.all_layer_margin import linear_margin, ramp_loss, zero_one_loss
from jaxbounds.smapprox.attack import blocks_by_layer, margin_upper, recertify
from jaxbounds.smapprox.straight_through import hard_attention
from jaxbounds.statements import Budget, Counterexample, Form, Instance, Sides, Size, Statement


def _linear(key: Array, size: Size) -> Instance:
    keys = jax.random.split(key, 6)
    m = size["m"]
    return {
        "w": jax.random.normal(keys[0], (m,)),
        "b": jax.random.normal(keys[1], ()),
        "x": jax.random.normal(keys[2], (m,)),
        "move": jax.random.normal(keys[3], (m + 1,)),
        "y": jax.random.bernoulli(keys[4]).astype(int),
        "gamma": jnp.exp(jax.random.normal(keys[5], ())),
    }


def _along_the_margin(key: Array, size: Size) -> Instance:
    """Both models right, the second moved towards the boundary along the nearest direction."""
    i = _linear(key, size)
    output = i["w"] @ i["x"] + i["b"]
    direction = jnp.append(i["x"], 1.0) * -jnp.sign(output)
    step = 0.5 * jnp.abs(output) / (direction @ direction)
    return {**i, "move": step * direction, "y": (output > 0).astype(int)}


def _signed(params: Any, x: Array, sign: Array) -> Array:
    return sign * (params["w"] @ x + params["b"])


def _least(i: Instance, size: Size) -> Sides:
    params = {"w": jnp.asarray(i["w"]), "b": jnp.asarray(i["b"])}
    output = i["w"] @ i["x"] + i["b"]
    data = (jnp.asarray(i["x"]), jnp.sign(output))
    blocks = blocks_by_layer(params, lambda path: False)
    search: Any = {"data": data, "refinements": 1, "largest": 20.0}
    found = margin_upper(_signed, _signed, params, blocks, **search)
    again = recertify(_signed, params, found.perturbation, data=data)
    inputs = (jnp.asarray(i[name]) for name in ("w", "b", "x"))
    exact = linear_margin(*inputs, jnp.where(output > 0, 1.0, 0.0))
    return Sides.pairs(
        {
            "printed": (exact, found.radius),
            "derived search": (found.radius, exact * (1 + 1e-4)),
            "derived again": (again, exact * (1 + 1e-4)),
            "control": (jnp.abs(output), found.radius),
        }
    )


LEAST = Statement(
    id="smapprox.eq2.1",
    label="(2.1) for linear models",
    formula="rho = |F| / |(x, 1)| <= |delta| for every delta that flips the prediction",
    kind="inequality",
    evaluate=_least,
    judges=(linear_margin, margin_upper, recertify),
    host=True,
    sample=_linear,
    sizes=({"m": 2},),
    forms=(
        Form(name="printed", equality="the attack reaches the nearest wrong model"),
        Form(name="derived search", note="What the attack finds is the margin, within 1e-4."),
        Form(
            name="derived again", note="So is what is found again on the ray of its perturbation."
        ),
    ),
    control="|F|, without the norm of the gradient",
    budget=Budget(samples=6, restarts=0),
    source="Section 2.1",
)


def _margins(i: Instance) -> tuple[Array, Array, Array]:
    y = i["y"].astype(i["w"].dtype)
    here = linear_margin(i["w"], i["b"], i["x"], y)
    there = linear_margin(i["w"] + i["move"][:-1], i["b"] + i["move"][-1], i["x"], y)
    return here, there, jnp.sqrt(i["move"] @ i["move"])


def _surrogate(i: Instance, size: Size) -> Sides:
    output = i["w"] @ i["x"] + i["b"]
    margin, _, _ = _margins(i)
    unsigned = jnp.abs(output) / jnp.sqrt(i["x"] @ i["x"] + 1)
    return Sides(
        zero_one_loss(output, i["y"].astype(output.dtype)),
        {"printed": ramp_loss(margin, i["gamma"]), "control": ramp_loss(unsigned, i["gamma"])},
    )


LINEAR: dict[str, Any] = {
    "kind": "inequality",
    "sizes": ({"m": 2},),
    "assumptions": "linear models, whose margin is |F| / |(x, 1)|",
}
"""Settings of the statements on linear models."""

SURROGATE = Statement(
    id="smapprox.eq2.2",
    label="(2.2)",
    formula="l_01(F(x, theta), y) <= l-bar_gamma(theta, x, y)",
    evaluate=_surrogate,
    judges=(zero_one_loss, ramp_loss),
    sample=_linear,
    search="none",
    forms=(Form(name="printed", equality="a wrong prediction: both are 1"),),
    control="the margin without its sign",
    source="Section 2.1",
    **LINEAR,
)


def _lipschitz(i: Instance, size: Size) -> Sides:
    here, there, distance = _margins(i)
    return Sides(jnp.abs(here - there), {"printed": distance, "control": distance / 2}, error=1e-13)


def _cover(i: Instance, size: Size) -> Sides:
    here, there, distance = _margins(i)
    change = jnp.abs(ramp_loss(here, i["gamma"]) - ramp_loss(there, i["gamma"]))
    bound = distance / i["gamma"]
    return Sides(change, {"printed": bound, "control": bound / 2}, error=1e-13)


IN_LEMMA_24: dict[str, Any] = LINEAR | {
    "label": "Appendix A, proof of Lemma 2.4",
    "sample": {"random": _linear, "towards the boundary": _along_the_margin},
    "control": "half of the right side",
    "source": "Appendix A",
}

LIPSCHITZ = Statement(
    id="smapprox.lemma2.4-lipschitz",
    formula="|rho(theta) - rho(theta')| <= |theta - theta'|",
    evaluate=_lipschitz,
    judges=(linear_margin,),
    forms=(Form(name="printed", equality="theta' on the way to the nearest wrong model"),),
    **IN_LEMMA_24,
)

COVER = Statement(
    id="smapprox.lemma2.4-cover",
    formula="a gamma epsilon cover of Theta gives an epsilon cover of the losses: "
    "|l-bar(theta) - l-bar(theta')| <= |theta - theta'| / gamma",
    evaluate=_cover,
    judges=(linear_margin, ramp_loss),
    forms=(Form(name="printed", equality="both margins in [0, gamma], theta' as above"),),
    **IN_LEMMA_24,
)


def _tied(key: Array, size: Size) -> Instance:
    values = jax.random.normal(key, (size["keys"],))
    return {"values": values + 0.2 * jnp.sign(values)}


def _positive_margin(i: Instance, size: Size) -> Sides:
    """Keys tied at score 0; does some perturbation of the scores by 1e-9 flip the output?"""
    values = i["values"]
    label = jnp.where(hard_attention(jnp.zeros_like(values), values) > 0, 1.0, -1.0)
    nudges = 1e-9 * jnp.eye(size["keys"], dtype=values.dtype)
    moved = jax.vmap(hard_attention, (0, None))(nudges, values)
    margin_is_positive = jnp.all(label * moved > 0).astype(values.dtype)
    return Sides(margin_is_positive, {"printed": 1.0, "corrected": 1.0, "control": 0.0})


def _same_sign(i: Instance, size: Size) -> dict[str, Any]:
    return {"tied values of one sign": jnp.all(i["values"] > 0) | jnp.all(i["values"] < 0)}


POSITIVE = Statement(
    id="smapprox.sec2.1-positive",
    label='Section 2.1, "strictly positive if and only if F predicts the correct label"',
    formula="F right at (x, y)  =>  rho(theta, x, y) > 0",
    kind="identity",
    evaluate=_positive_margin,
    judges=(hard_attention,),
    sample=_tied,
    sizes=({"keys": 2}, {"keys": 4}),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E12",
            note="F is right, yet an arbitrarily small perturbation breaks a tie of hard-max "
            "attention towards a value of the other sign: rho = 0 as an infimum.",
            counterexample=Counterexample(
                instance={"values": [3.0, -1.0]}, size={"keys": 2}, ratio=1.0
            ),
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
)

STATEMENTS = (POSITIVE, LEAST, SURROGATE, LIPSCHITZ, COVER)
