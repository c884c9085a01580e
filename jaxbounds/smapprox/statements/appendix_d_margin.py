"""Theorem D.6 and Lemmas D.7 to D.9: the lower bound on the all-layer margin."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from jaxbounds.smapprox import certified
from jaxbounds.smapprox.attack import try_rays
from jaxbounds.smapprox.certified import joint_budget, layer_norm, theorem_d6, without_halvings
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import feedforward
from jaxbounds.smapprox.statements.appendix_d import IN_D
from jaxbounds.smapprox.statements.margin_cases import (
    INPUTS,
    attacked,
    case_network,
    margin_cases,
)
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement


def _d6(i: Instance, size: Size) -> Sides:
    lower, (_, upper) = case_network(i["circuit"])["lower"], attacked(i)
    bounds = {
        "printed": lower["printed"],
        "sharpened": lower["halvings"],
        "sharpened joint": lower["joint"],
        "control": 300 * lower["joint"],
    }
    return Sides.pairs({name: (bound, upper) for name, bound in bounds.items()})


THEOREM_D6 = Statement(
    id="smapprox.thmd.6",
    label="Theorem D.6",
    formula="the minimum of the nine terms (D.5) <= rho",
    evaluate=_d6,
    judges=(
        theorem_d6,
        certified.theorem_d6_terms,
        without_halvings,
        joint_budget,
        certified.best_over_trust,
        certified.circuit_constants,
        certified.circuit_margin_lower,
        try_rays,
    ),
    cases=margin_cases,
    host=True,
    sizes=({"inputs": INPUTS},),
    forms=(
        Form(name="printed", note="Constants measured on the ball of the trust radius (E13)."),
        Form(
            name="sharpened",
            note="Without the halvings: kappa_theta lambda r + mu kappa_xi (lambda + "
            "sigma_zeta) r <= sigma_zeta, with |g| <= lambda + sigma_zeta for 2 lambda.",
        ),
        Form(
            name="sharpened joint",
            note="theta_i and xi_{i-1} are parts of one delta, so the two terms add in squares.",
        ),
    ),
    control="300 times the bound",
    assumptions="an identity chain and a random circuit; rho from above, by attack",
    **IN_D,
)


def _mixed() -> tuple[Any, Any]:
    network = case_network(1)
    return network["params"], network["lower"]


def _direction(key: Array, size: Size) -> Instance:
    bits, normal = jax.random.split(key)
    theta, _ = ravel_pytree(_mixed()[0])
    return {
        "x": jax.random.bernoulli(bits, shape=(size["inputs"],)).astype(int),
        "direction": jax.random.normal(normal, theta.shape),
    }


def _in_corrections(key: Array, size: Size) -> Instance:
    """Only the corrections' own parameters move, the most sensitive ones."""
    params, _ = _mixed()
    place = jnp.arange(1, params["hidden"]["b"].shape[0] + 1) % 4
    inside = ((place == 2) | (place == 3)).astype(params["hidden"]["b"].dtype)
    mask = jax.tree.map(jnp.zeros_like, params)
    mask["hidden"] = jax.tree.map(
        lambda leaf: leaf + inside.reshape((-1,) + (1,) * (leaf.ndim - 1)), mask["hidden"]
    )
    sample = _direction(key, size)
    return {**sample, "direction": sample["direction"] * ravel_pytree(mask)[0]}


def _unit_direction(i: Instance, size: Size) -> Instance:
    v = i["direction"]
    return {**i, "direction": v / jnp.maximum(jnp.sqrt(v @ v), 1e-12)}


def _errors(i: Instance, radii: dict[str, Array]) -> dict[str, Array]:
    """|g_i - h_i| at every layer i, for perturbations of these norms."""
    theta, unravel = ravel_pytree(_mixed()[0])
    unit = i["direction"] / jnp.sqrt(i["direction"] @ i["direction"])
    x = i["x"].astype(theta.dtype)
    states = lambda radius: feedforward(unravel(theta + radius * unit), x)[1][1::4]
    off = lambda radius: ((states(radius) - states(0.0)) ** 2).sum(axis=1)
    return {name: jnp.sqrt(jnp.maximum(off(r), 1e-300)) for name, r in radii.items()}


def _d7(i: Instance, size: Size) -> Sides:
    _, lower = _mixed()
    errors = _errors(i, {"printed": lower["printed"], "control": 120 * lower["joint"]})
    return Sides.pairs({name: (e[0], THIRDS.radius) for name, e in errors.items()})


def _d8(i: Instance, size: Size) -> Sides:
    _, lower = _mixed()
    radii = {
        "printed": lower["printed"],
        "sharpened": lower["halvings"],
        "sharpened joint": lower["joint"],
        "control": 120 * lower["joint"],
    }
    return Sides.pairs({name: (e.max(), THIRDS.radius) for name, e in _errors(i, radii).items()})


SEARCHED: dict[str, Any] = IN_D | {
    "sample": {"all weights": _direction, "corrections only": _in_corrections},
    "project": _unit_direction,
    "sizes": ({"inputs": INPUTS},),
    "control": "120 times the radius",
    "assumptions": "a random circuit, perturbations of all weights, searched",
    "budget": Budget(samples=96, restarts=6, steps=60, batch=64),
}

LEMMA_D7 = Statement(
    id="smapprox.lemmad.7",
    label="Lemma D.7",
    formula="|g_0 - h_0| <= sigma_zeta whenever (D.6) holds",
    evaluate=_d7,
    judges=(theorem_d6, feedforward),
    forms=(Form(name="printed"),),
    **SEARCHED,
)

LEMMA_D8 = Statement(
    id="smapprox.lemmad.8",
    label="Lemma D.8",
    formula="|g_i - h_i| <= sigma_zeta at every layer whenever |delta| is at most the bound",
    evaluate=_d8,
    judges=(theorem_d6, without_halvings, joint_budget, feedforward),
    forms=(
        Form(name="printed"),
        Form(name="sharpened", note="At the bound without halvings."),
        Form(name="sharpened joint", note="At the joint bound."),
    ),
    **SEARCHED,
)


def _shared(key: Array, size: Size) -> Instance:
    return {"delta": jax.random.normal(key, (size["p"],))}


def _sharing(i: Instance, size: Size) -> Sides:
    """Layers reading parameters (0, 1, 2), (2, 3, 0) and (1, 3); the control reads 0 twice."""
    delta = i["delta"]
    norms = [layer_norm(delta, reads) for reads in ((0, 1, 2), (2, 3, 0), (1, 3))]
    twice = jnp.sqrt(delta[0] ** 2 + (delta[:3] ** 2).sum())
    whole = jnp.sqrt(delta @ delta)
    pairs = {"printed": (jnp.stack(norms).max(), whole), "control": (twice, whole)}
    return Sides.pairs(pairs, error=1e-14)


LEMMA_D9 = Statement(
    id="smapprox.lemmad.9",
    label="Lemma D.9, shared weights",
    formula="|tau_i(delta)| <= |delta| for every layer i",
    evaluate=_sharing,
    judges=(layer_norm,),
    sample=_shared,
    sizes=({"p": 4},),
    forms=(
        Form(
            name="printed",
            note="Distinct indices inside a layer; the same parameter may feed many layers.",
            equality="delta in the parameters of one layer",
        ),
    ),
    control="a parameter read twice by one layer",
    **IN_D,
)

STATEMENTS = (THEOREM_D6, LEMMA_D7, LEMMA_D8, LEMMA_D9)
