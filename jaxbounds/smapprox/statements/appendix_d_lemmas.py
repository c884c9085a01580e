"""Lemmas D.7 and D.8: corrections undo perturbations whose sizes satisfy (D.6) to (D.8)."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.sets import Integers, Reals
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.ground.jax_internals import ensure_compile_time_eval
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.smapprox.certified import (
    Radii,
    circuit_constants,
    joint_budget,
    perturbation_radii,
    without_halvings,
)
from jaxbounds.smapprox.circuits import all_inputs
from jaxbounds.smapprox.correction import THIRDS, Correction
from jaxbounds.smapprox.feedforward import feedforward
from jaxbounds.smapprox.statements.margin_cases import INPUTS, case_network, times


def _mixed() -> tuple[Any, Any]:
    network = case_network(1)
    return network["params"], network["lower"]


def _everywhere(key: Array, size: Size) -> Instance:
    return {"direction": jax.random.normal(key, (size["weights"],))}


def _in_corrections(key: Array, size: Size) -> Instance:
    """Draw a direction of the corrections' parameters, to which F is most sensitive."""
    some = ravel_pytree(_mixed()[0])[1](_everywhere(key, size)["direction"])
    inside = jnp.arange(1, len(some["hidden"]["b"]) + 1) % 4 >= 2
    moved = times(some, 0.0) | {"hidden": times(some["hidden"], inside)}
    return {"direction": ravel_pytree(moved)[0]}


TRUST = {"theta_0": 0.12, "the others": 0.05}
"""The radii of the parameter balls on which the constants of Lemmas D.7 and D.8 are measured."""


@functools.cache
def _radii() -> tuple[Radii, float]:
    """Compute the right sides of (D.6) to (D.8), and a state's error min(lambda, sigma_zeta)."""
    with ensure_compile_time_eval():
        params = jax.tree.map(np.asarray, _mixed()[0])
        every = jnp.asarray(all_inputs(INPUTS), float)
        states = jax.vmap(feedforward, (None, 0))(jax.tree.map(jnp.asarray, params), every)[1]
    at = circuit_constants(params, np.asarray(states), THIRDS)
    first, constants = at(TRUST["theta_0"]), at(TRUST["the others"])
    radii = perturbation_radii(constants)._replace(first=perturbation_radii(first).first)
    if radii.first > first.trust or max(radii[1:]) > constants.trust:
        raise AssertionError(
            f"perturbation radii={radii} exceed the radii {TRUST} of the balls on which the"
            " constants were measured. Try smaller radii"
        )
    return radii, min(constants.norm, constants.sigma_zeta)


def _scaled(direction: Any, factor: float, later: float) -> Any:
    """Scale the perturbation of each parameter group to `factor` times its bound in (D.6) to (D.8).

    Hidden layers 4i and 4i + 1 have the parameters theta_i, hidden layers 4i + 2 and 4i + 3 have
    xi_i, and the head has theta_d. The factor `later` multiplies all perturbations except that of
    theta_0.
    """
    radii, _ = _radii()
    first, hidden, head = direction["first"], direction["hidden"], direction["head"]
    each = (hidden["W"] ** 2).sum(axis=(1, 2)) + (hidden["b"] ** 2).sum(axis=1)
    each = jnp.append((first["W"] ** 2).sum() + (first["b"] ** 2).sum(), each)
    norms = jnp.sqrt(jnp.maximum(each.reshape(-1, 2).sum(axis=1), 1e-24))
    parts = len(norms)
    each_part = [radii.first, *([radii.correction, radii.layer] * parts)[: parts - 1]]
    allowed = jnp.array(each_part) * jnp.append(1.0, jnp.full(parts - 1, later))
    scale = jnp.repeat(factor * allowed / norms, 2)
    last = jnp.sqrt(jnp.maximum((head["W"] ** 2).sum() + head["b"] ** 2, 1e-24))
    return {
        "first": times(first, scale[0]),
        "hidden": times(hidden, scale[1:]),
        "head": times(head, later * factor * radii.layer / last),
    }


def _run(i: Instance, factor: float, later: float = 1.0) -> tuple[Array, Array]:
    theta, unravel = ravel_pytree(_mixed()[0])
    moved = _scaled(unravel(i["direction"]), factor, later)
    params = jax.tree.map(jnp.add, unravel(theta), moved)
    output, states = feedforward(params, i["x"].astype(theta.dtype))
    return states[1::4], output


def _off(i: Instance, factor: float, later: float = 1.0) -> Array:
    """Compute the error |g_i - h_i| of the perturbed state g_i at every layer, and |F-hat - F|."""
    (g, F), (h, exact) = _run(i, factor, later), _run(i, 0.0)
    off = ((g - h) ** 2).sum(axis=1)
    return jnp.sqrt(jnp.maximum(jnp.append(off, (F - exact) ** 2), 1e-300))


def _d7(i: Instance, size: Size) -> Sides:
    allowed = _radii()[1]
    g, h = _run(i, 1.0, later=0.0)[0][0], _run(i, 0.0)[0][0]
    restored = jnp.abs(THIRDS(g) - h).max()
    return Sides.pairs(
        {
            "printed": (_off(i, 1.0)[0], allowed),
            "printed restored": (1 + restored, jnp.ones(())),
            "control": (_off(i, 20.0)[0], allowed),
        },
        error=1e-12,
    )


def _d8(i: Instance, size: Size) -> Sides:
    allowed = _radii()[1]
    g, h = _run(i, 1.0)[0], _run(i, 0.0)[0]
    restored = jnp.abs(THIRDS(g[1:]) - h[1:]).max()
    params, lower = _mixed()

    def total(radius: ArrayLike) -> Array:
        theta, unravel = ravel_pytree(params)
        moved = unravel(theta + radius * i["direction"] / vector_norm(i["direction"]))
        states = feedforward(moved, i["x"].astype(theta.dtype))[1][1::4]
        return jnp.sqrt(jnp.maximum(((states - h) ** 2).sum(axis=1).max(), 1e-300))

    return Sides.pairs(
        {
            "printed": (_off(i, 1.0)[1:].max(), allowed),
            "printed restored": (1 + restored, jnp.ones(())),
            "sharpened": (total(lower["sharpened"]), THIRDS.radius),
            "sharpened joint": (total(lower["sharpened joint"]), THIRDS.radius),
            "control": (_off(i, 20.0)[1:].max(), allowed),
        },
        error=1e-12,
    )


on_moved_circuits = functools.partial(
    Statement,
    kind="inequality",
    source="Appendix D",
    over={"x": Integers(0, 1, "inputs"), "direction": Reals("weights")},
    hypotheses=lambda i, size: {"direction != 0": jnp.any(i["direction"] != 0)},
    sample={"all weights": _everywhere, "corrections only": _in_corrections},
    sizes=({"inputs": INPUTS, "weights": 2151},),
    control="20 times the radii",
    assumptions="a random circuit; every part of the parameters moved as far as allowed, in "
    "directions that are searched",
    budget=Budget(samples=96, restarts=4, steps=40, batch=64),
)

LEMMA_D7 = on_moved_circuits(
    id="smapprox.lemmad.7",
    label="Lemma D.7",
    formula="|g_0 - h_0| <= min(lambda, sigma_zeta) and h~_0 = h_0 whenever (D.6) holds",
    tex=r"\tilde h_0(x, \hat\theta, \xi) = h_0(x, \theta), \quad "
    r"\|g_0(x, \hat\theta, \hat\xi) - h_0(x, \theta)\|_2 \le \min\{\lambda, \sigma_\zeta\}",
    evaluate=_d7,
    judges=(perturbation_radii, feedforward, Correction.__call__),
    forms=(
        Form(name="printed", cites="Lemma D.7, second display, at the radius of (D.6)"),
        Form(
            name="printed restored",
            cites="Lemma D.7, first display, at the radius of (D.6)",
            equality="always: 1 + |h~_0 - h_0| = 1",
        ),
    ),
)

LEMMA_D8 = on_moved_circuits(
    id="smapprox.lemmad.8",
    label="Lemma D.8",
    formula="|g_i - h_i| <= min(lambda, sigma_zeta) and h~_i = h_i for i >= 1, |F-hat - F| <= "
    "sigma_zeta, whenever (D.6) to (D.8) hold",
    tex=r"\|g_i(x, \hat\theta, \hat\xi) - h_i(x, \theta)\|_2 \le \min\{\lambda, \sigma_\zeta\}, "
    r"\quad \tilde h_i(x, \hat\theta, \hat\xi_{i-1}) = h_i(x, \theta) \quad (1 \le i)",
    evaluate=_d8,
    judges=(
        perturbation_radii,
        circuit_constants,
        without_halvings,
        joint_budget,
        feedforward,
        Correction.__call__,
    ),
    forms=(
        Form(
            name="printed",
            cites="Lemma D.8, second display; proof of Theorem D.6 for F",
            note="The perturbations of each theta_i and each xi_i have the largest norms that "
            "(D.6), (D.7) and (D.8) allow. The bound does not depend on the number of layers.",
        ),
        Form(
            name="printed restored",
            cites="Lemma D.8, third display",
            equality="always: 1 + |h~_i - h_i| = 1",
        ),
        Form(
            name="sharpened",
            note="The perturbation delta has exactly the largest norm that the proof of Theorem "
            "D.6 allows without the proof's factors 1/2.",
        ),
        Form(
            name="sharpened joint",
            note="The perturbation delta has exactly the norm that the joint bound on theta_i and "
            "xi_{i-1} allows.",
        ),
    ),
)


STATEMENTS = (LEMMA_D7, LEMMA_D8)
