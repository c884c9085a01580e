"""Section 2.1 and Appendix A: the all-layer margin, its surrogate loss and its covers."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Reals
from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.smapprox.all_layer_margin import (
    balls_margin,
    linear_margin,
    ramp_loss,
    zero_one_loss,
)
from jaxbounds.smapprox.attack import blocks_by_layer, margin_upper, recertify
from jaxbounds.smapprox.straight_through import hard_attention


def _signed(params: Any, x: Array, sign: Array) -> Array:
    return sign * (params["w"] @ x + params["b"])


@jax.jit
def _exact(x: Array, sign: Array, params: Any) -> Array:
    return linear_margin(params["w"], params["b"], x, jnp.where(sign > 0, 1.0, 0.0))


def _least(i: Instance, size: Size) -> Sides:
    params = {"w": jnp.asarray(i["w"]), "b": jnp.asarray(i["b"])}
    output = i["w"] @ i["x"] + i["b"]
    data = (jnp.asarray(i["x"]), jnp.sign(output))
    blocks = blocks_by_layer(params, lambda path: False)
    search: Any = {"data": data, "refinements": 1, "largest": 20.0}
    found = margin_upper(_signed, _signed, params, blocks, **search)
    again = recertify(_signed, params, found.perturbation, data=data)
    exact = _exact(*data, params)
    return Sides.pairs(
        {
            "derived": (exact, found.radius),
            "derived search": (found.radius, exact * (1 + 1e-4)),
            "derived again": (again, exact * (1 + 1e-4)),
            "control": (jnp.abs(output), found.radius),
        }
    )


LEAST = Statement(
    id="smapprox.eq2.1",
    label="(2.1) for linear models",
    formula="rho = |F| / |(x, 1)| <= |delta| for every delta that flips the prediction",
    tex=r"\rho_F(\theta, x, y) = \frac{|F(x, \theta)|}{\|(x, 1)\|_2} \le \|\delta\|_2 "
    r"\quad \text{if } (y - 0.5) F(x, \theta + \delta) \le 0",
    kind="inequality",
    evaluate=_least,
    judges=(linear_margin, margin_upper, recertify),
    host=True,
    over=dict.fromkeys("wx", Box(-3, 3, "m")) | {"b": Box(-3, 3)},
    sizes=({"m": 2},),
    forms=(
        Form(
            name="derived",
            note="The closed form gives the margin (2.1): no shorter perturbation flips the "
            "prediction.",
            equality="the attack reaches the nearest wrong model",
        ),
        Form(
            name="derived search",
            note="The attack, a search over perturbations, finds the margin with an error of at "
            "most 1e-4.",
        ),
        Form(
            name="derived again",
            note="A second search, along the ray through the perturbation that the attack found, "
            "also gives the margin.",
        ),
    ),
    control="|F|, without the norm of the gradient",
    search="random",
    budget=Budget(samples=10, restarts=4, steps=15),
    source="Section 2.1",
)


def _balls(key: Array, size: Size) -> Instance:
    keys = jax.random.split(key, 6)
    p, k = size["p"], size["k"]
    return {
        "theta": jax.random.normal(keys[0], (p,)),
        "centres": 2 * jax.random.normal(keys[1], (k, p)),
        "log_radii": 0.5 * jax.random.normal(keys[2], (k,)) - 1.0,
        "move": jax.random.normal(keys[3], (p,)),
        "y": jax.random.bernoulli(keys[4]).astype(int),
        "log_gamma": jax.random.normal(keys[5], ()),
    }


def _towards_a_ball(key: Array, size: Size) -> Instance:
    i = _balls(key, size)
    away = i["theta"][None] - i["centres"]
    length = jnp.sqrt((away**2).sum(axis=1))
    inside = jnp.min(jnp.log(length)) - 0.1
    i = {**i, "log_radii": jnp.minimum(i["log_radii"], inside)}
    gaps = length - jnp.exp(i["log_radii"])
    nearest = gaps.argmin()
    step = -0.5 * gaps[nearest] / length[nearest] * away[nearest]
    return {**i, "move": step, "log_gamma": jnp.log(gaps[nearest]) + jnp.abs(i["log_gamma"])}


def _margins(i: Instance) -> tuple[Array, Array, Array]:
    radii = jnp.exp(i["log_radii"])
    here = balls_margin(i["theta"], i["centres"], radii)
    there = balls_margin(i["theta"] + i["move"], i["centres"], radii)
    return here, there, jnp.sqrt(i["move"] @ i["move"])


def _surrogate(i: Instance, size: Size) -> Sides:
    away = jnp.sqrt(((i["theta"][None] - i["centres"]) ** 2).sum(axis=1))
    y = i["y"].astype(away.dtype)
    output = (2 * y - 1) * (away - jnp.exp(i["log_radii"])).min()
    margin, _, _ = _margins(i)
    wrong = zero_one_loss(output, y)
    return Sides(
        wrong,
        {
            "printed": ramp_loss(margin, jnp.exp(i["log_gamma"])),
            "control": ramp_loss(margin + 1, jnp.exp(i["log_gamma"])),
        },
    )


on_balls = functools.partial(
    Statement,
    kind="inequality",
    sizes=({"p": 2, "k": 1}, {"p": 3, "k": 4}),
    assumptions="the wrong parameters are a union of balls, of which every closed set is a "
    "limit; the margin is then known in closed form",
    sample={"random": _balls, "towards the boundary": _towards_a_ball},
)
"""Declare a statement about any classifier F, given by the set of parameters at which F is wrong.
"""

SURROGATE = on_balls(
    id="smapprox.eq2.2",
    label="(2.2)",
    formula="l_01(F(x, theta), y) <= l-bar_gamma(theta, x, y)",
    tex=r"\ell_{\text{0-1}}(F(x, \theta), y) \le \bar\ell_\gamma(\theta, x, y)",
    evaluate=_surrogate,
    judges=(zero_one_loss, ramp_loss),
    search="none",
    forms=(
        Form(
            name="printed",
            cites="Section 2.1, the second sentence after (2.2)",
            equality="a wrong prediction: both are 1",
        ),
    ),
    control="the margin plus one",
    source="Section 2.1",
)


def _rounding(i: Instance) -> Array:
    """Bound the rounding error of a margin; the margin is a distance minus a radius."""
    entries = (i["theta"], i["move"], i["centres"], jnp.exp(i["log_radii"]))
    return 1e-13 * jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in entries]))


def _lipschitz(i: Instance, size: Size) -> Sides:
    here, there, distance = _margins(i)
    bounds = {"printed": distance, "control": distance / 2}
    return Sides(jnp.abs(here - there), bounds, error=_rounding(i))


def _cover(i: Instance, size: Size) -> Sides:
    here, there, distance = _margins(i)
    change = jnp.abs(
        ramp_loss(here, jnp.exp(i["log_gamma"])) - ramp_loss(there, jnp.exp(i["log_gamma"]))
    )
    bound = distance / jnp.exp(i["log_gamma"])
    error = jnp.maximum(1e-13, _rounding(i) / jnp.exp(i["log_gamma"]))
    return Sides(change, {"printed": bound, "control": bound / 2}, error=error, trivial=1.0)


LIPSCHITZ = on_balls(
    id="smapprox.lemma2.4.lipschitz",
    formula="|rho(theta) - rho(theta')| <= |theta - theta'|",
    tex=r"|\rho(\theta, x, y) - \rho(\theta', x, y)| \le \|\theta - \theta'\|_2",
    evaluate=_lipschitz,
    judges=(balls_margin,),
    forms=(
        Form(
            name="printed",
            cites="Appendix A, the third paragraph of the proof of Lemma 2.4",
            equality="theta' on the way to the nearest wrong model",
        ),
    ),
    label="Appendix A, proof of Lemma 2.4",
    control="half of the right side",
    source="Appendix A",
)

COVER = on_balls(
    id="smapprox.lemma2.4.cover",
    formula="a gamma epsilon cover of Theta gives an epsilon cover of the losses: "
    "|l-bar(theta) - l-bar(theta')| <= |theta - theta'| / gamma",
    tex=r"|\bar\ell_\gamma(\theta, x, y) - \bar\ell_\gamma(\theta', x, y)| \le "
    r"\|\theta - \theta'\|_2 / \gamma",
    evaluate=_cover,
    judges=(balls_margin, ramp_loss),
    forms=(
        Form(
            name="printed",
            cites="Appendix A, log N(eps, L_G) <= log N(gamma eps, Theta), by its argument",
            equality="both margins in [0, gamma], theta' as above",
        ),
    ),
    label="Appendix A, proof of Lemma 2.4",
    control="half of the right side",
    source="Appendix A",
)


def _positive_margin(i: Instance, size: Size) -> Sides:
    """Test whether a perturbation of tied attention scores by 1e-9 can flip the output.

    All keys have the score 0. The label that F predicts is the sign of the mean of the values.
    """
    values = i["values"]
    label = jnp.where(jnp.mean(values) > 0, 1.0, -1.0)
    nudges = 1e-9 * jnp.eye(size["keys"], dtype=values.dtype)
    moved = jax.vmap(hard_attention, (0, None))(nudges, values)
    margin_is_positive = jnp.all(label * moved > 0).astype(values.dtype)
    return Sides(margin_is_positive, {"printed": 1.0, "corrected": 1.0, "control": 0.0})


def _same_sign(i: Instance, size: Size) -> dict[str, Any]:
    return {"tied values of one sign": jnp.all(i["values"] > 0) | jnp.all(i["values"] < 0)}


def _predicts(i: Instance, size: Size) -> dict[str, Any]:
    values = jnp.asarray(i["values"])
    output = hard_attention(jnp.zeros_like(values), values)
    return {
        "F predicts the label, the sign of F (Section 2.1)": output != 0,
        "F is real-valued with parameters in R^p (Section 2.1)": jnp.isfinite(output),
    }


POSITIVE = Statement(
    id="smapprox.sec2.1.positive",
    label='Section 2.1, "strictly positive if and only if F predicts the correct label"',
    formula="F right at (x, y)  <=>  rho(theta, x, y) > 0",
    tex=r"\rho_F(\theta, x, y) > 0 \Leftrightarrow (y - 0.5) F(x, \theta) > 0",
    kind="identity",
    evaluate=_positive_margin,
    judges=(hard_attention,),
    over={"values": Reals("keys")},
    sizes=({"keys": 2}, {"keys": 4}),
    forms=(
        Form(
            name="printed",
            cites='Section 2.1, before (2.2): "strictly positive if and only if F(x, theta) '
            'predicts the correct label"',
            erratum="E12",
            reading="a general parameterized",
            note="F is hard-max attention, and its prediction is correct. An arbitrarily small "
            "perturbation breaks a tie of F in favour of a value of the other sign, so the margin "
            "rho is 0.",
            counterexample=Counterexample(
                instance={"values": [3.0, -1.0]}, ratio=1.0, meets=_predicts
            ),
        ),
        Form(
            name="corrected",
            hypotheses=_same_sign,
            note="If the values of all tied keys have the same sign, a perturbation that decides "
            "the tie does not change the output's sign. In compiled networks, tied keys have equal "
            "values.",
        ),
    ),
    control="the margin is never positive",
    source="Section 2.1",
)

STATEMENTS = (POSITIVE, LEAST, SURROGATE, LIPSCHITZ, COVER)
