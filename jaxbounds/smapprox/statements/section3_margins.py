"""Lemma 3.3: the margin of compiled, corrected circuits, and its decay with the circuits' size."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox.all_layer_margin import head_margin, zero_one_loss
from jaxbounds.smapprox.attack import try_rays
from jaxbounds.smapprox.certified import circuit_margin_lower, joint_budget
from jaxbounds.smapprox.circuits import ARITY, Circuit, all_inputs, identity_chain, random_circuit
from jaxbounds.smapprox.feedforward import compile_circuit, feedforward, l1_norm
from jaxbounds.smapprox.statements.margin_cases import (
    INPUTS,
    attacked,
    case_network,
    certified_margin,
    on_cases,
    run_on_all,
)


@jax.jit
def _without_head(params: Any, x: Array) -> tuple[Array, Array]:
    """Return Lemma 3.3's F' = f_{q-1} o zeta_{q-2} o ... o f_1, and an upper bound on its margin.

    The margin is 0 if F' errs. Else it is at most the norm of the output's weights and bias,
    because zeros there give F' = 0, an error.
    """
    output = feedforward(params, x.astype(float))[1][-3, 0]
    row, bias = params["hidden"]["W"][-3, 0], params["hidden"]["b"][-3, 0]
    return output, jnp.sqrt(row @ row + bias**2)


@jax.jit
def _from_above(params: Any, x: Array, value: Array) -> tuple[Array, Array]:
    (output, reach), value = _without_head(params, x), value.astype(float)
    last = jnp.zeros(1).at[0].set(value)
    printed = jnp.where(zero_one_loss(output, value) == 1, 0.0, reach)
    return printed, head_margin(last, value) * (1 + 1e-4)


def _lemma33(i: Instance, size: Size) -> Sides:
    (value, upper), network = attacked(dict(i)), case_network(i["circuit"])
    lower = network["lower"]["sharpened joint"]
    printed, head = _from_above(network["params"], i["x"], value)
    return Sides.pairs(
        {
            "printed": (lower, printed),
            "corrected": (lower, upper),
            "derived head": (upper, head),
            "control": (lower, upper / 10),
        }
    )


def _simulates(i: Instance, size: Size) -> dict[str, Any]:
    value = jnp.asarray(attacked(i)[0], float)
    params = case_network(i["circuit"])["params"]
    output, _ = _without_head(params, jnp.asarray(i["x"]))
    circuit = Circuit(INPUTS, identity_chain(5).layers)
    below = [circuit.inputs, *map(len, circuit.layers)]
    flipped = jax.tree.map(jnp.negative, params)
    every = np.asarray(all_inputs(INPUTS), float)
    outputs = np.stack([run_on_all(p, every)[1][:, -3, 0] for p in (params, flipped)])
    gates = [(gate, n) for n, layer in zip(below, circuit.layers) for gate in layer]
    layers = len(params["hidden"]["b"]) + 1
    return {
        "layered circuit of the allowed gates (Section 3)": all(
            len(gate.parents) == ARITY[gate.op] and max(gate.parents) < n for gate, n in gates
        )
        and bool(circuit(np.asarray(i["x"], bool)[None])[0]) == bool(value),
        "w >= r, |theta|_1 <= 15 s, d = 4 (q - 1) (Theorem 3.1)": (
            params["hidden"]["b"].shape[1] >= circuit.width
        )
        and l1_norm(params) <= 15 * circuit.size
        and layers == 4 * circuit.depth,
        "F' ends with a ReLU, so F' >= 0 (Lemma 3.2)": float(outputs.min()) >= 0.0,
        "x in {0, 1}^m (Lemma 3.3)": jnp.isin(i["x"], jnp.array([0, 1])).all(),
        "F' computes G, as the F of Lemma 3.2 does (Lemma 3.3)": jnp.abs(output - value) < 1e-9,
        "y = G(x) in {0, 1} (Section 2.1)": (value == 0) | (value == 1),
        "f_i and zeta_i are two ReLU layers each (Lemma 3.3)": layers == 4 * 5,
    }


LEMMA_33 = on_cases(
    id="smapprox.lemma3.3",
    label="Lemma 3.3",
    formula="rho(theta, x, G(x)) >= a certified lower bound > 0 for every x",
    tex=r"\rho_{F'}(\theta', x, G(x)) \ge \frac{1}{\mathrm{poly}(s)} \quad (x \in \{0, 1\}^m)",
    kind="inequality",
    evaluate=_lemma33,
    judges=(circuit_margin_lower, joint_budget, try_rays, head_margin, zero_one_loss),
    forms=(
        Form(
            name="printed",
            cites="Lemma 3.3",
            erratum="E2",
            note="The network F' = f_{q-1} o ... o f_1 ends with a ReLU, so F' >= 0 for all "
            "correction functions. If G(x) = 0, then (y - 0.5) F' <= 0. The margin is therefore 0, "
            "which is smaller than 1/poly(s) for every polynomial.",
            counterexample=Counterexample(
                instance={"circuit": 0, "x": [0, 0, 0, 0]}, ratio=2.0, meets=_simulates
            ),
        ),
        Form(
            name="corrected",
            note="Theorem D.6 applies to the network with the last layer z -> 2z - 1, which the "
            "proof of Theorem 3.1 adds. The right side is the result of an attack, which "
            "estimates the margin rho from above.",
        ),
        Form(
            name="derived head",
            note="A perturbation of the head (the last layer) alone shows that the margin rho is "
            "at most 1/sqrt 2 if G(x) = 1, and at most 1 if G(x) = 0.",
        ),
    ),
    control="the attack's radius divided by 10",
    assumptions="the circuits are a chain of identity gates and a random circuit; attacks give "
    "upper estimates of the margin; smapprox.lemma3.3.rate checks how the bound falls with s",
    source="Section 3.1",
)


def _growing(size: Size) -> Instance:
    return {
        "depth": np.array([2, 3, 4, 6, 8, 16, 4, 4, 4, 4]),
        "width": np.array([8] * 6 + [4, 12, 16, 32]),
    }


def _margin_rate(i: Instance, size: Size) -> Sides:
    key, inputs = jax.random.key(7), size["inputs"]
    circuit = random_circuit(key, inputs, int(i["width"]), int(i["depth"]), balance=0.0)
    params = compile_circuit(circuit)
    inverse = 1 / certified_margin(params, inputs)
    s, r = circuit.size, circuit.width
    return Sides.pairs({"printed": (inverse, s), "derived": (inverse, r), "control": (s**2.0, s)})


LEMMA_33_RATE = Statement(
    id="smapprox.lemma3.3.rate",
    label="Lemma 3.3 and Theorem 3.1, 1/poly(s) and 1/poly(r, q)",
    formula="1/rho grows at most as s; the certified 1/rho at most as the width r",
    tex=r"\rho \ge \frac{c}{s}, \quad \rho \ge \frac{c}{r}",
    kind="rate",
    evaluate=_margin_rate,
    judges=(circuit_margin_lower, compile_circuit),
    host=True,
    cases=_growing,
    sizes=({"inputs": 4},),
    forms=(
        Form(
            name="printed",
            cites="Lemma 3.3: 1/poly(s)",
            sense="at most",
            exponent=(0.25, 0.4),
            note="The check uses a polynomial poly(s) of degree one.",
        ),
        Form(
            name="derived",
            sense="at most",
            exponent=(0.25, 0.4),
            note="The reciprocal 1/rho of the certified margin grows at most linearly in the width "
            "r, at every depth. So rho >= 1/poly(r, q), as the proof of Theorem 3.1 says.",
        ),
    ),
    control="s^2 against s",
    assumptions="random circuits of depth 2 to 16 and width 4 to 32, with the head 2z - 1",
    source="Section 3.1",
)

STATEMENTS = (LEMMA_33, LEMMA_33_RATE)
