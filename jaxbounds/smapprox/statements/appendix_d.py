"""Appendix D: correction functions and the lower bound on the all-layer margin."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import feedforward
from jaxbounds.smapprox.statements.margin_cases import (
    attack_radius,
    case_network,
    margin_cases,
    margin_networks,
)
from jaxbounds.statements import Budget, Form, Sides, Statement


def _restoring(key, size):
    bits, noise = jax.random.split(key)
    w = size["w"]
    return {
        "h": jax.random.bernoulli(bits, shape=(w,)).astype(int),
        "noise": jax.random.uniform(noise, (w,), minval=-1.0, maxval=1.0),
    }


def _restoring_corners(key, size):
    sample = _restoring(key, size)
    return sample | {"noise": jnp.sign(sample["noise"])}


def _restored(i):
    h = i["h"].astype(float)
    radius = THIRDS.radius - 1e-15
    return Sides(
        {
            "printed": THIRDS(h + radius * i["noise"]),
            "control": THIRDS(h + 1.5 * radius * i["noise"]),
        },
        {"printed": h, "control": h},
        error=1e-14,
    )


def _tie(key, size):
    keys = jax.random.split(key, 3)
    return {
        "b": jax.random.normal(keys[0], (2,)),
        "change": jax.random.uniform(keys[1], (2,), minval=-0.3, maxval=0.3),
        "epsilon": jnp.exp(jax.random.uniform(keys[2], (1,), minval=-20.0, maxval=-4.0)),
    }


def _tied_layer(i):
    """Keys g_t = (1, b_t) tie; their values g_t[0] agree. The layer is h + mean of the values.

    At theta-hat the value map is (1, e) and, for the corrected form, the key map (1, f): the
    tied keys then differ.
    """
    e, f = i["change"][0], i["change"][1]
    eps = i["epsilon"][0]
    base = jnp.stack([jnp.ones(2), i["b"]], axis=1)
    near = base.at[0, 0].add(eps)

    def layer(g, value_change, key_change):
        scores = g[:, 0] + key_change * g[:, 1]
        best = (scores == scores.max()).astype(g.dtype)
        return best @ (g[:, 0] + value_change * g[:, 1]) / best.sum()

    largest = jnp.maximum(jnp.sqrt((base**2).sum(axis=1)).max(), 1.0)
    mu = 2.0
    change = jnp.sqrt(e * e + f * f)
    jump = jnp.abs(layer(base, e, 0.0) - layer(near, e, 0.0))
    from_base = jnp.abs(layer(near, e, f) - layer(base, 0.0, 0.0))
    bound = change * (largest + eps) + mu * eps
    return Sides(
        {"printed": jump, "corrected": from_base, "control": from_base},
        {"printed": mu * eps, "corrected": bound, "control": mu * eps},
        error=1e-12,
    )


def _d6(i):
    lower, upper = case_network(i)["lower"], attack_radius(i)
    return Sides(
        {
            "printed": lower["printed"],
            "sharpened": lower["halvings"],
            "sharpened joint": lower["joint"],
            "control": 300 * lower["joint"],
        },
        dict.fromkeys(("printed", "sharpened", "sharpened joint", "control"), upper),
    )


def _direction(key, size):
    bits, normal = jax.random.split(key)
    theta, _ = ravel_pytree(_mixed_circuit()[0])
    return {
        "x": jax.random.bernoulli(bits, shape=(4,)).astype(int),
        "direction": jax.random.normal(normal, theta.shape),
    }


def _in_corrections(key, size):
    """Only the corrections' own parameters move, the most sensitive ones."""
    params, _ = _mixed_circuit()
    place = jnp.arange(1, params["hidden"]["b"].shape[0] + 1) % 4
    mask = jax.tree.map(jnp.zeros_like, params)
    inside = ((place == 2) | (place == 3)).astype(params["hidden"]["b"].dtype)
    mask["hidden"] = jax.tree.map(
        lambda leaf: leaf + inside.reshape((-1,) + (1,) * (leaf.ndim - 1)), mask["hidden"]
    )
    sample = _direction(key, size)
    return sample | {"direction": sample["direction"] * ravel_pytree(mask)[0]}


def _mixed_circuit():
    table = margin_networks()
    pick = lambda tree: jax.tree.map(lambda leaf: jnp.asarray(leaf)[1], tree)
    return pick(table["params"]), pick(table["lower"])


def _moved_states(i, radius):
    params, _ = _mixed_circuit()
    theta, unravel = ravel_pytree(params)
    unit = i["direction"] / jnp.sqrt(i["direction"] @ i["direction"])
    x = i["x"].astype(theta.dtype)
    states = lambda v: feedforward(unravel(v), x)[1]
    error = states(theta + radius * unit) - states(theta)
    return jnp.sqrt(jnp.maximum((error[1::4] ** 2).sum(axis=1), 1e-300))


def _d8(i):
    _, lower = _mixed_circuit()
    error = {
        "printed": _moved_states(i, lower["printed"]).max(),
        "sharpened": _moved_states(i, lower["halvings"]).max(),
        "sharpened joint": _moved_states(i, lower["joint"]).max(),
        "control": _moved_states(i, 120 * lower["joint"]).max(),
    }
    return Sides(error, dict.fromkeys(error, jnp.asarray(THIRDS.radius)))


def _d7(i):
    _, lower = _mixed_circuit()
    error = {
        "printed": _moved_states(i, lower["printed"])[0],
        "control": _moved_states(i, 120 * lower["joint"])[0],
    }
    return Sides(error, dict.fromkeys(error, jnp.asarray(THIRDS.radius)))


def _unit_direction(i):
    v = i["direction"]
    return dict(i) | {"direction": v / jnp.maximum(jnp.sqrt(v @ v), 1e-12)}


def _shared(key, size):
    return {"delta": jax.random.normal(key, (size["p"],))}


def _sharing(i):
    """Layers reading parameters (0, 1, 2), (2, 3, 0) and (1, 3); the control reads 0 twice."""
    delta = i["delta"]
    layers = ((0, 1, 2), (2, 3, 0), (1, 3))
    longest = lambda layers: jnp.stack(
        [jnp.sqrt((delta[jnp.array(layer)] ** 2).sum()) for layer in layers]
    ).max()
    whole = jnp.sqrt(delta @ delta)
    return Sides(
        {"printed": longest(layers), "control": longest(((0, 0, 1, 2), (3, 3)))},
        {"printed": whole, "control": whole},
        error=1e-14,
    )


_SEARCH = {
    "kind": "inequality",
    "sample": {"all weights": _direction, "corrections only": _in_corrections},
    "project": _unit_direction,
    "sizes": ({"all": 1},),
    "budget": Budget(samples=96, restarts=6, steps=60, batch=64),
    "source": "Appendix D",
}

STATEMENTS = (
    Statement(
        id="smapprox.defd.1",
        label="Definition D.1 for rounding",
        formula="zeta(h + e) = h for h in {0,1}^w and |e_j| <= 1/3",
        kind="identity",
        evaluate=_restored,
        sample={"box": _restoring, "corners": _restoring_corners},
        sizes=({"w": 6},),
        forms=(Form(name="printed", note="sigma_zeta = 1/3 in every coordinate."),),
        control="errors 1.5 times as large",
        tolerance=1e-11,
        source="Appendix D",
    ),
    Statement(
        id="smapprox.condd.3-ties",
        label="Definition D.2 and Condition D.3 for hard-max attention",
        formula="|f(H, theta-hat) - f(H-hat, theta-hat)| <= mu |H - H-hat|",
        kind="inequality",
        evaluate=_tied_layer,
        sample=_tie,
        sizes=({"keys": 2},),
        search="none",
        forms=(
            Form(
                name="printed",
                expected="fails",
                erratum="E11",
                note="At theta-hat the tied keys have values 1 and 1.1; moving H by any epsilon "
                "picks one of them: a jump of 0.05.",
                counterexample={
                    "b": np.array([0.0, 1.0]),
                    "change": np.array([0.1, 0.0]),
                    "epsilon": np.array([1e-6]),
                },
            ),
            Form(
                name="corrected",
                note="|f(H-hat, theta-hat) - f(H, theta)| <= kappa |theta-hat - theta| max(|H|, 1) "
                "+ mu |H - H-hat|: whichever tied key wins, its value was the same at the base "
                "point. Lemma D.8 uses nothing more.",
            ),
        ),
        control="the corrected form without its first term",
        assumptions="two tied keys with equal values at the base point",
        source="Appendix D",
    ),
    Statement(
        id="smapprox.thmd.6",
        label="Theorem D.6",
        formula="the minimum of the nine terms (D.5) <= rho",
        kind="inequality",
        evaluate=_d6,
        cases=margin_cases,
        sizes=({"all": 1},),
        search="none",
        forms=(
            Form(name="printed", note="Constants measured on the ball of the trust radius (E13)."),
            Form(
                name="sharpened",
                note="Without the halvings: kappa_theta lambda r + mu kappa_xi (lambda + "
                "sigma_zeta) r <= sigma_zeta, with |g| <= lambda + sigma_zeta for 2 lambda.",
            ),
            Form(
                name="sharpened joint",
                note="theta_i and xi_{i-1} are parts of one delta, so the two terms add in "
                "squares.",
            ),
        ),
        control="300 times the bound",
        assumptions="an identity chain and a random circuit; rho from above, by attack",
        source="Appendix D",
    ),
    Statement(
        id="smapprox.lemmad.7",
        label="Lemma D.7",
        formula="|g_0 - h_0| <= sigma_zeta whenever (D.6) holds",
        evaluate=_d7,
        forms=(Form(name="printed"),),
        control="120 times the radius",
        assumptions="a random circuit, perturbations of all weights, searched",
        **_SEARCH,
    ),
    Statement(
        id="smapprox.lemmad.8",
        label="Lemma D.8",
        formula="|g_i - h_i| <= sigma_zeta at every layer whenever |delta| is at most the bound",
        evaluate=_d8,
        forms=(
            Form(name="printed"),
            Form(name="sharpened", note="At the bound without halvings."),
            Form(name="sharpened joint", note="At the joint bound."),
        ),
        control="120 times the radius",
        assumptions="a random circuit, perturbations of all weights, searched",
        **_SEARCH,
    ),
    Statement(
        id="smapprox.lemmad.9",
        label="Lemma D.9, shared weights",
        formula="|tau_i(delta)| <= |delta| for every layer i",
        kind="inequality",
        evaluate=_sharing,
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
        source="Appendix D",
    ),
)
