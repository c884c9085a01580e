"""Lemmas 3.2 and B.1: Boolean circuits as networks, gate by gate, and their norms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.smapprox import circuits
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import compile_circuit, feedforward, l1_norm
from jaxbounds.statements import Budget, Form, Sides, Statement

LAYERS, GATES, BITS = 8, 10, 6
"""The circuits checked on all inputs have at most so many layers, gates in a layer, and inputs."""


@functools.cache
def sampled_circuits() -> tuple[circuits.Circuit, ...]:
    """Forty balanced random circuits of BITS inputs and GATES wide layers, of depth 1 to LAYERS."""
    with jax.ensure_compile_time_eval():
        keys = jax.random.split(jax.random.key(40), 40)
        return tuple(
            circuits.random_circuit(key, BITS, GATES, 1 + i % LAYERS) for i, key in enumerate(keys)
        )


def _gate_table(circuit, x):
    """Gate values in a fixed table; the output is handed on by identity gates, as when padding."""
    values = circuit.gate_values(x)
    values += [values[-1]] * (LAYERS - len(values))
    table = np.zeros((LAYERS, len(x), GATES))
    for i, gates in enumerate(values):
        table[i, :, : gates.shape[1]] = gates
    return table


@functools.cache
def _all_gates(corrected: bool) -> dict:
    """Networks, gate tables and misread gate tables of the sampled circuits, stacked."""
    x = circuits.all_inputs(BITS)
    rows = []
    for circuit in sampled_circuits():
        params = compile_circuit(
            circuit,
            correction=THIRDS if corrected else None,
            width=2 * GATES,
            depth=(4 if corrected else 2) * LAYERS,
        )
        swapped = (*circuit.layers[:-1], _negated(circuit.layers[-1]))
        misread = circuits.Circuit(circuit.inputs, swapped)
        rows.append(
            {
                "params": params,
                "gates": _gate_table(circuit, x),
                "misread": _gate_table(misread, x),
            }
        )
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


def _gate_cases(size):
    count = len(sampled_circuits())
    return {
        "circuit": np.arange(count),
        "corrected": np.zeros((count, size["corrected"]), int),
    }


def _negated(layer):
    """The last gate with AND for OR, OR for AND, ID for NOT and NOT for ID."""
    swap = {"AND": "OR", "OR": "AND", "NOT": "ID", "ID": "NOT"}
    return tuple(gate._replace(op=swap[gate.op]) for gate in layer)


def _simulated_gates(i):
    tables = _all_gates(i["corrected"].shape[0] > 0)
    own = jax.tree.map(lambda leaf: jnp.asarray(leaf)[i["circuit"]], tables)
    x = jnp.asarray(circuits.all_inputs(BITS), float)
    output, states = jax.vmap(feedforward, in_axes=(None, 0))(own["params"], x)
    per_layer = states.shape[1] // LAYERS
    hidden = states[:, per_layer - 1 :: per_layer, :GATES].transpose(1, 0, 2)
    both = lambda gates: jnp.append(gates.ravel(), gates[-1, :, 0])
    measured = jnp.append(hidden.ravel(), (output + 1) / 2)
    return Sides(measured, {"printed": both(own["gates"]), "control": both(own["misread"])})


def _b2_cases(size):
    x = circuits.all_inputs(2).astype(float)
    return {"x": x, "logic": np.stack([x.min(axis=1), x.max(axis=1)], axis=1)}


def _b2(i):
    x1, x2 = i["x"][0], i["x"][1]
    relu = lambda z: jnp.maximum(z, 0.0)
    measured = jnp.stack([relu(x1 + x2 - 1), 1 - relu(1 - x1 - x2)])
    return Sides(measured, {"printed": i["logic"], "control": i["logic"][::-1]})


def _not_cases(size):
    return {"h": circuits.all_inputs(2).astype(float)}


def _not(i):
    """Gate 0 is the negation of parent 1."""
    relu = lambda z: jnp.maximum(z, 0.0)
    return Sides(
        {
            "printed": relu(1 - i["h"][0]),
            "corrected": relu(1 - i["h"][1]),
            "control": relu(i["h"][1]),
        },
        dict.fromkeys(("printed", "corrected", "control"), 1 - i["h"][1]),
    )


def _norm_cases(size):
    rows = [
        (l1_norm(compile_circuit(c, correction=None)) - 3.0, l1_norm(compile_circuit(c)), c.size)
        for c in sampled_circuits()
    ]
    bare, full, s = map(np.array, zip(*rows))
    return {
        "content": np.rint(bare).astype(int),
        "with_correction": np.rint(full).astype(int),
        "s": s,
    }


def _norm(i):
    i = {name: value.astype(float) for name, value in i.items()}
    s = i["s"]
    return Sides(
        {
            "printed": i["content"],
            "corrected": i["content"],
            "corrected with rounding": i["with_correction"],
            "control": i["content"],
        },
        {
            "printed": s,
            "corrected": 5 * s,
            "corrected with rounding": 14 * s + 3,
            "control": 0.5 * s,
        },
    )


STATEMENTS = (
    Statement(
        id="smapprox.lemma3.2",
        label="Lemmas 3.2 and B.1",
        formula="two ReLU layers for each circuit layer compute all its gates, on all inputs",
        kind="construction",
        evaluate=_simulated_gates,
        cases=_gate_cases,
        sizes=({"corrected": 0}, {"corrected": 1}),
        forms=(Form(name="printed"),),
        control="the output gate swapped for another one",
        assumptions="40 balanced random circuits (6 inputs, width 10, depth 1 to 8), every gate on "
        "all 64 inputs, with and without corrections, padded in width and depth",
        tolerance=1e-12,
        budget=Budget(batch=10),
        source="Section 3.1, Appendix B",
    ),
    Statement(
        id="smapprox.lemmab.1-not",
        label="Lemma B.1, the NOT gate",
        formula="NOT(h_j) = relu(1 - h_j), with the -1 in the parent's column j",
        kind="construction",
        evaluate=_not,
        cases=_not_cases,
        sizes=({"all": 1},),
        forms=(
            Form(
                name="printed",
                expected="fails",
                erratum="E7",
                note="-1 on the diagonal of W1 reads the gate's own index, not its parent.",
                counterexample={"h": np.array([0.0, 1.0])},
            ),
            Form(name="corrected"),
        ),
        control="ID instead of NOT",
        source="Appendix B",
    ),
    Statement(
        id="smapprox.lemmab.1-norm",
        label="Theorem 3.1, alpha ~ s (Appendix B)",
        formula="|theta|_1 of the uncorrected network <= s",
        kind="inequality",
        evaluate=_norm,
        cases=_norm_cases,
        sizes=({"all": 1},),
        search="none",
        forms=(
            Form(
                name="printed",
                expected="fails",
                erratum="E7",
                note="An OR gate alone has norm 5 and size 3.",
                counterexample={
                    "content": np.array(5),
                    "with_correction": np.array(17),
                    "s": np.array(3),
                },
            ),
            Form(name="corrected", note="At most 5 for each gate: O(s), as Lemma B.1 states."),
            Form(name="corrected with rounding", note="9 more for each gate, and 3 for the head."),
        ),
        control="half of s",
        source="Appendix B",
    ),
    Statement(
        id="smapprox.propb.2",
        label="Proposition B.2",
        formula="AND = relu(x1 + x2 - 1), OR = 1 - relu(1 - x1 - x2)",
        kind="construction",
        evaluate=_b2,
        cases=_b2_cases,
        sizes=({"all": 1},),
        forms=(Form(name="printed"),),
        control="AND and OR exchanged",
        source="Appendix B",
    ),
)
