"""Small corrected circuits with certified bounds, and an attack on them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxbounds.smapprox import circuits
from jaxbounds.smapprox.attack import try_rays
from jaxbounds.smapprox.certified import (
    circuit_margin_lower,
    joint_budget,
    theorem_d6,
    without_halvings,
)
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import (
    compile_circuit,
    feedforward,
    straight_through_feedforward,
)


def _mixed() -> circuits.Circuit:
    with jax.ensure_compile_time_eval():
        return circuits.random_circuit(jax.random.key(3), 4, 5, 5)


@functools.cache
def margin_networks() -> dict:
    """An identity chain and a random circuit as networks of one shape, with certified bounds."""
    rows = []
    for circuit in (circuits.identity_chain(5), _mixed()):
        params = compile_circuit(circuit, correction=THIRDS, width=10)
        every = circuits.all_inputs(circuit.inputs)
        with jax.ensure_compile_time_eval():
            states = jax.vmap(feedforward, in_axes=(None, 0))(
                jax.tree.map(jnp.asarray, params), jnp.asarray(every, float)
            )[1]
        first = np.zeros((10, 4))
        first[:, : circuit.inputs] = params["first"]["W"]
        forms = {"printed": theorem_d6, "halvings": without_halvings, "joint": joint_budget}
        lower = {
            name: np.array(circuit_margin_lower(params, np.asarray(states), THIRDS, form=form))
            for name, form in forms.items()
        }
        padded = params | {"first": params["first"] | {"W": first}}
        rows.append({"params": padded, "lower": lower})
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


def margin_cases(size) -> dict:
    """The chain on both inputs and the random circuit on six, with their outputs."""
    bits = circuits.all_inputs(4)[[0, 8, 0, 3, 6, 9, 12, 15]]
    value = np.append([0, 1], _mixed()(bits[2:])).astype(int)
    return {"circuit": np.array([0, 0, 1, 1, 1, 1, 1, 1]), "x": bits.astype(int), "value": value}


def case_network(i) -> dict:
    """Parameters and certified bounds of a case."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[i["circuit"]], margin_networks())


def attack_radius(i):
    """An upper estimate of the margin of the corrected circuit with the head z -> 2z - 1."""
    theta, unravel = ravel_pytree(case_network(i)["params"])
    sign, x = 2.0 * i["value"].astype(theta.dtype) - 1.0, i["x"].astype(theta.dtype)
    signed = lambda v: sign * feedforward(unravel(v), x)[0]
    surrogate = lambda v: sign * straight_through_feedforward(unravel(v), x, corrected=True)
    gradient = unravel(-jax.grad(surrogate)(theta))
    zero = jax.tree.map(jnp.zeros_like, gradient)
    rays = [gradient, zero | {"head": gradient["head"]}, zero | {"hidden": gradient["hidden"]}]
    depth = gradient["hidden"]["b"].shape[0]
    for start in range(0, depth, 2):
        kept = (jnp.arange(depth) >= start) & (jnp.arange(depth) < start + 3)
        keep = lambda g, kept=kept: jnp.where(kept.reshape((-1,) + (1,) * (g.ndim - 1)), g, 0.0)
        rays.append(zero | {"hidden": jax.tree.map(keep, gradient["hidden"])})
    flat = jnp.stack([ravel_pytree(ray)[0] for ray in rays])
    return try_rays(signed, theta, flat, 2.0)[0]
