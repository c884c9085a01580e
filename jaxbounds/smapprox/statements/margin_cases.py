"""Functions that several statements use: combinations of numbers, small circuits, and attacks."""

import functools
import itertools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from jaxbounds.claims.statements import Instance, Size, Statement
from jaxbounds.ground.jax_internals import ensure_compile_time_eval
from jaxbounds.numerics.arrays import array_module
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

THEOREM_D6 = {"printed": theorem_d6, "sharpened": without_halvings, "sharpened joint": joint_budget}
"""For each version of Theorem D.6, the function that computes its bound."""
INPUTS = 4
"""The number of input bits of the random circuit; a larger number gives more inputs to check."""


run_on_all = jax.jit(jax.vmap(feedforward, in_axes=(None, 0)))
"""Run a circuit's network on many inputs."""


def certified_margin(params: Any, inputs: int) -> float:
    """Compute the certified margin of a circuit's network, from its states on all inputs."""
    states = run_on_all(params, np.asarray(circuits.all_inputs(inputs), float))[1]
    return circuit_margin_lower(params, np.asarray(states), THIRDS)


def every(**ranges: Iterable[Any]) -> dict[str, Any]:
    """Return a dict of arrays, whose i-th entries are the i-th combination of the values."""
    return dict(zip(ranges, np.array(list(itertools.product(*ranges.values()))).T))


def times(tree: Any, c: Any) -> Any:
    """Multiply each leaf of a pytree by a number, which may depend on the first axis."""
    along = lambda leaf: jnp.reshape(c, jnp.shape(c) + (1,) * (leaf.ndim - jnp.ndim(c)))
    return jax.tree.map(lambda leaf: leaf * along(leaf).astype(leaf.dtype), tree)


@functools.cache
def margin_networks() -> Any:
    """Return a chain of identity gates and a random circuit as networks of one shape, stacked.

    The result also holds the truth tables, and a certified bound from each function of
    `THEOREM_D6`.
    """
    rows = []
    with ensure_compile_time_eval():
        mixed = circuits.random_circuit(jax.random.key(3), INPUTS, 5, 5)
        for circuit in (circuits.identity_chain(5), mixed):
            params = compile_circuit(circuit, correction=THIRDS, width=10)
            every = jnp.asarray(circuits.all_inputs(circuit.inputs), float)
            states = np.asarray(run_on_all(params, every)[1])
            lower = {
                name: np.array(circuit_margin_lower(params, states, THIRDS, form=form))
                for name, form in THEOREM_D6.items()
            }
            first = np.zeros((10, INPUTS))
            first[:, : circuit.inputs] = params["first"]["W"]
            truth = circuit(circuits.all_inputs(INPUTS)[:, : circuit.inputs]).astype(int)
            padded = params | {"first": params["first"] | {"W": first}}
            rows.append({"params": padded, "lower": lower, "truth": truth})
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


def margin_cases(size: Size) -> Instance:
    """Return the identity chain and the random circuit, each on all inputs."""
    every = circuits.all_inputs(size["inputs"])
    bits = np.concatenate([every[[0, len(every) // 2]], every])
    return {"circuit": np.repeat([0, 1], [2, len(every)]), "x": bits.astype(int)}


on_cases = functools.partial(
    Statement,
    cases=margin_cases,
    enumerates="both inputs of a chain of identity gates, all sixteen of a random circuit of four "
    "bits",
    host=True,
    sizes=({"inputs": INPUTS},),
)


def case_network(circuit: Any) -> Any:
    """Return the parameters, certified bounds and truth table of the circuit with an index."""
    xp = array_module(circuit)
    return jax.tree.map(lambda leaf: xp.asarray(leaf)[circuit], margin_networks())


@jax.jit
def attacked(i: Instance) -> tuple[Array, Array]:
    """Return the circuit's value G(x), and an upper estimate of its corrected network's margin."""
    network = case_network(i["circuit"])
    value = network["truth"][i["x"] @ 2 ** np.arange(INPUTS)[::-1]]
    theta, unravel = ravel_pytree(network["params"])
    sign, x = 2.0 * value.astype(theta.dtype) - 1.0, i["x"].astype(theta.dtype)
    signed = lambda v: sign * feedforward(unravel(v), x)[0]
    surrogate = lambda v: sign * straight_through_feedforward(unravel(v), x, corrected=True)
    gradient = unravel(-jax.grad(surrogate)(theta))
    zero = jax.tree.map(jnp.zeros_like, gradient)
    rays = [gradient, zero | {"head": gradient["head"]}, zero | {"hidden": gradient["hidden"]}]
    depth = gradient["hidden"]["b"].shape[0]
    for start in range(0, depth, 2):
        kept = (jnp.arange(depth) >= start) & (jnp.arange(depth) < start + 3)
        rays.append(zero | {"hidden": times(gradient["hidden"], kept)})
    flat = jnp.stack([ravel_pytree(ray)[0] for ray in rays])
    return value, try_rays(signed, theta, flat, 2.0)[0]
