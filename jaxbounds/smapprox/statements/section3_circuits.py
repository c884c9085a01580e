"""Lemmas 3.2 and B.1: Boolean circuits as networks, gate by gate, and their norms."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.smapprox import circuits
from jaxbounds.smapprox.aiger import from_aiger
from jaxbounds.smapprox.circuits import Circuit, Gate
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import (
    FeedforwardNet,
    compile_circuit,
    feedforward,
    gate_rows,
    l1_norm,
)
from jaxbounds.statements import Budget, Counterexample, Form, Instance, Sides, Size, Statement

CIRCUITS, LAYERS, GATES, BITS = 40, 8, 10, 6
"""Circuits checked on all inputs, and at most how many layers, gates in a layer and inputs."""


@functools.cache
def sampled_circuits() -> tuple[Circuit, ...]:
    """Balanced random circuits of BITS inputs and GATES wide layers, of depth 1 to LAYERS."""
    with jax.ensure_compile_time_eval():
        keys = jax.random.split(jax.random.key(40), CIRCUITS)
        return tuple(
            circuits.random_circuit(key, BITS, GATES, 1 + i % LAYERS) for i, key in enumerate(keys)
        )


def _gate_table(circuit: Circuit, x: np.ndarray) -> np.ndarray:
    """Gate values in a fixed table; the output is handed on by identity gates, as when padding."""
    values = circuit.gate_values(x)
    values += [values[-1]] * (LAYERS - len(values))
    table = np.zeros((LAYERS, len(x), GATES))
    for i, gates in enumerate(values):
        table[i, :, : gates.shape[1]] = gates
    return table


def _negated(circuit: Circuit) -> Circuit:
    """With AND for OR, OR for AND, ID for NOT and NOT for ID in the last gate."""
    swap = {"AND": "OR", "OR": "AND", "NOT": "ID", "ID": "NOT"}
    last = tuple(gate._replace(op=swap[gate.op]) for gate in circuit.layers[-1])
    return Circuit(circuit.inputs, (*circuit.layers[:-1], last))


@functools.cache
def _all_gates(corrected: int) -> Any:
    """Networks, gate tables and misread gate tables of the sampled circuits, stacked."""
    x = circuits.all_inputs(BITS)
    zeta, depth = (THIRDS, 4 * LAYERS) if corrected else (None, 2 * LAYERS)
    rows = [
        {
            "params": compile_circuit(circuit, correction=zeta, width=2 * GATES, depth=depth),
            "gates": _gate_table(circuit, x),
            "misread": _gate_table(_negated(circuit), x),
        }
        for circuit in sampled_circuits()
    ]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


def _all_circuits(size: Size) -> Instance:
    return {"circuit": np.arange(CIRCUITS)}


def _simulated_gates(i: Instance, size: Size) -> Sides:
    tables = _all_gates(size["corrected"])
    own = jax.tree.map(lambda leaf: jnp.asarray(leaf)[i["circuit"]], tables)
    x = jnp.asarray(circuits.all_inputs(BITS), float)
    _, states = jax.vmap(feedforward, in_axes=(None, 0))(own["params"], x)
    net = FeedforwardNet(width=states.shape[2], depth=states.shape[1])
    output: Any = jax.vmap(lambda bits: net.apply({"params": own["params"]}, bits))(x)
    per_layer = states.shape[1] // LAYERS
    hidden = states[:, per_layer - 1 :: per_layer, :GATES].transpose(1, 0, 2)
    both = lambda gates: jnp.append(gates.ravel(), gates[-1, :, 0])
    measured = jnp.append(hidden.ravel(), (output + 1) / 2)
    return Sides(measured, {"printed": both(own["gates"]), "control": both(own["misread"])})


LEMMA_32 = Statement(
    id="smapprox.lemma3.2",
    label="Lemmas 3.2 and B.1",
    formula="two ReLU layers for each circuit layer compute all its gates, on all inputs",
    kind="construction",
    evaluate=_simulated_gates,
    judges=(compile_circuit, feedforward, FeedforwardNet.__call__),
    cases=_all_circuits,
    sizes=({"corrected": 0}, {"corrected": 1}),
    forms=(Form(name="printed"),),
    control="the output gate swapped for another one",
    assumptions="40 balanced random circuits (6 inputs, width 10, depth 1 to 8), every gate on "
    "all 64 inputs, with and without corrections, padded in width and depth",
    tolerance=1e-12,
    budget=Budget(batch=10),
    source="Section 3.1, Appendix B",
)

ON_PAIRS: dict[str, Any] = {
    "kind": "construction",
    "host": True,
    "cases": lambda size: {"x": circuits.all_inputs(size["inputs"]).astype(int)},
    "sizes": ({"inputs": 2},),
    "source": "Appendix B",
}
"""Settings of the statements about single gates, on all pairs of bits."""


@jax.jit
def _states(params: Any, x: Array) -> Array:
    return feedforward(params, x)[1]


def _computed(x: np.ndarray, *gates: Gate, misplaced: bool = False) -> np.ndarray:
    """The gates of one layer by the compiled network; or with the parents' columns exchanged."""
    params = compile_circuit(Circuit(len(x), (gates,)), correction=None)
    if misplaced:
        params["first"]["W"] = params["first"]["W"][:, ::-1]
    return np.asarray(_states(params, jnp.asarray(x, float)))[-1, : len(gates)]


def _not(i: Instance, size: Size) -> Sides:
    """Gate 0 is the negation of parent 1."""
    gate, right = Gate("NOT", (1,)), 1.0 - i["x"][1:]
    return Sides.pairs(
        {
            "printed": (_computed(i["x"], gate, misplaced=True), right),
            "corrected": (_computed(i["x"], gate), right),
            "control": (_computed(i["x"], gate._replace(op="ID")), right),
        }
    )


NOT = Statement(
    id="smapprox.lemmab.1-not",
    label="Lemma B.1, the NOT gate",
    formula="NOT(h_j) = relu(1 - h_j), with the -1 in the parent's column j",
    evaluate=_not,
    judges=(compile_circuit, gate_rows),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E7",
            note="-1 on the diagonal of W1 reads the gate's own index, not its parent.",
            counterexample=Counterexample(instance={"x": [0, 1]}, size={"inputs": 2}, ratio=1.0),
        ),
        Form(name="corrected"),
    ),
    control="ID instead of NOT",
    **ON_PAIRS,
)


def _and_or(i: Instance, size: Size) -> Sides:
    gates = _computed(i["x"], Gate("AND", (0, 1)), Gate("OR", (0, 1)))
    logic = np.array([i["x"].min(), i["x"].max()])
    return Sides(gates, {"printed": logic, "control": logic[::-1]})


AND_OR = Statement(
    id="smapprox.propb.2",
    label="Proposition B.2",
    formula="AND = relu(x1 + x2 - 1), OR = 1 - relu(1 - x1 - x2)",
    evaluate=_and_or,
    judges=(compile_circuit, gate_rows),
    forms=(Form(name="printed"),),
    control="AND and OR exchanged",
    **ON_PAIRS,
)


def _norm(i: Instance, size: Size) -> Sides:
    """The index CIRCUITS stands for a single OR gate."""
    single = Circuit(2, ((Gate("OR", (0, 1)),),))
    circuit = (*sampled_circuits(), single)[i["circuit"]]
    content = l1_norm(compile_circuit(circuit, correction=None)) - 3
    rounded, s = l1_norm(compile_circuit(circuit)), circuit.size
    return Sides.pairs(
        {
            "printed": (content, s),
            "corrected": (content, 5 * s),
            "corrected with rounding": (rounded, 14 * s + 3),
            "control": (content, 0.5 * s),
        }
    )


NORM = Statement(
    id="smapprox.lemmab.1-norm",
    label="Theorem 3.1, alpha ~ s (Appendix B)",
    formula="|theta|_1 of the uncorrected network <= s",
    kind="inequality",
    evaluate=_norm,
    judges=(compile_circuit, l1_norm),
    host=True,
    cases=_all_circuits,
    sizes=({"inputs": BITS},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E7",
            note="An OR gate alone has norm 5 and size 3.",
            counterexample=Counterexample(
                instance={"circuit": CIRCUITS}, size={"inputs": 2}, ratio=1.6666666666666667
            ),
        ),
        Form(name="corrected", note="At most 5 for each gate: O(s), as Lemma B.1 states."),
        Form(name="corrected with rounding", note="9 more for each gate, and 3 for the head."),
    ),
    control="half of s",
    source="Appendix B",
)


def _literals(size: Size) -> Instance:
    return {"draws": np.random.default_rng(0).integers(0, 2**16, (16, size["ands"], 2))}


def _layered(i: Instance, size: Size) -> Sides:
    """A random graph of ANDs, whose inputs may be negated or constant, as an AIGER file."""
    m, ands = size["inputs"], size["ands"]
    rows = [(2 * (m + 1 + k), *(i["draws"][k] % (2 * (m + 1 + k)))) for k in range(ands)]
    head = [f"aag {m + ands} {m} 0 1 {ands}", *(str(2 * v) for v in range(1, m + 1))]
    last = rows[-1][0] + 1
    text = "\n".join([*head, str(last), *(" ".join(map(str, row)) for row in rows)])
    x = circuits.all_inputs(m)
    known = {0: np.zeros(len(x), bool)} | {2 * v: x[:, v - 1] for v in range(1, m + 1)}
    value = lambda literal: known[literal - literal % 2] ^ bool(literal % 2)
    for result, left, right in rows:
        known[result] = value(left) & value(right)
    circuit = from_aiger(text)
    again = circuits.from_json(circuit.to_json())
    measured = np.stack([circuit(x), again(x), circuits.parity_circuit(m)(x)]).astype(float)
    want = np.stack([value(last), value(last), x.sum(axis=1) % 2]).astype(float)
    return Sides(measured, {"derived": want, "control": 1 - want})


LAYERED = Statement(
    id="smapprox.sec3-layered",
    label="Section 3, layered circuits",
    formula="identity gates make any acyclic circuit layered, and change no output",
    kind="construction",
    evaluate=_layered,
    judges=(circuits.layered, from_aiger, circuits.from_json, circuits.parity_circuit),
    host=True,
    cases=_literals,
    sizes=({"inputs": 3, "ands": 6},),
    forms=(Form(name="derived", note="ANDs with negations, from AIGER and JSON; a parity."),),
    control="the output negated",
    source="Section 3",
)

STATEMENTS = (LEMMA_32, NOT, NORM, AND_OR, LAYERED)
