"""Section 3: Boolean circuits as networks, gate by gate (Lemma 3.2)."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.ground.jax_internals import ensure_compile_time_eval
from jaxbounds.smapprox import circuits
from jaxbounds.smapprox.aiger import from_aiger
from jaxbounds.smapprox.circuits import Circuit, Gate
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import FeedforwardNet, compile_circuit, feedforward

CIRCUITS, LAYERS, GATES, BITS = 40, 8, 10, 6
"""The number of circuits, and their largest numbers of layers, gates per layer and inputs. Larger
numbers check more circuits."""


@functools.cache
def sampled_circuits() -> tuple[Circuit, ...]:
    """Return random circuits of BITS inputs, width GATES and depths 1 to LAYERS.

    Each circuit outputs 1 on a quarter to three quarters of its inputs.
    """
    with ensure_compile_time_eval():
        keys = jax.random.split(jax.random.key(40), CIRCUITS)
        return tuple(
            circuits.random_circuit(key, BITS, GATES, 1 + i % LAYERS) for i, key in enumerate(keys)
        )


OPERATIONS = tuple(circuits.ARITY)
WIRES = ("operation", "left", "right")


def gate_arrays(size: Size) -> Instance:
    """Return random integers for each gate, which `circuit_of` turns into operation and parents."""
    shape = (size["circuits"], size["layers"], size["gates"])
    rng = np.random.default_rng(0)
    ends = {"operation": len(OPERATIONS), "left": 60, "right": 60}
    return {name: rng.integers(0, end, shape) for name, end in ends.items()}


def circuit_of(i: Instance, size: Size) -> Circuit:
    """Build a circuit from the integers of `gate_arrays`.

    The operation is the gate's integer modulo 4. A parent is an integer modulo the width of the
    layer below.
    """
    layers, below = [], size["inputs"]
    for row in zip(*(np.asarray(i[name]) for name in WIRES)):
        gates = []
        for operation, *parents in zip(*(part.tolist() for part in row)):
            op = OPERATIONS[operation % len(OPERATIONS)]
            gates.append(Gate(op, tuple(p % below for p in parents[: circuits.ARITY[op]])))
        layers.append(tuple(gates))
        below = len(gates)
    return Circuit(size["inputs"], tuple(layers))


def _gate_table(circuit: Circuit, x: np.ndarray) -> np.ndarray:
    values = circuit.gate_values(x)
    values += [values[-1]] * (LAYERS - len(values))
    table = np.zeros((LAYERS, len(x), 2 * GATES))
    for i, gates in enumerate(values):
        table[i, :, : gates.shape[1]] = gates
    return table


def _negated(circuit: Circuit) -> Circuit:
    swap = {"AND": "OR", "OR": "AND", "NOT": "ID", "ID": "NOT"}
    last = tuple(gate._replace(op=swap[gate.op]) for gate in circuit.layers[-1])
    return Circuit(circuit.inputs, (*circuit.layers[:-1], last))


@functools.cache
def _all_gates(corrected: int) -> Any:
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


def all_circuits(size: Size) -> Instance:
    """Return the indices of all sampled circuits."""
    return {"circuit": np.arange(CIRCUITS)}


def _simulated_gates(i: Instance, size: Size) -> Sides:
    tables = _all_gates(size["corrected"])
    own = jax.tree.map(lambda leaf: jnp.asarray(leaf)[i["circuit"]], tables)
    x = jnp.asarray(circuits.all_inputs(BITS), float)
    _, states = jax.vmap(feedforward, in_axes=(None, 0))(own["params"], x)
    net = FeedforwardNet(width=states.shape[2], depth=states.shape[1])
    output: Any = jax.vmap(lambda bits: net.apply({"params": own["params"]}, bits))(x)
    per_layer = states.shape[1] // LAYERS
    hidden = states[:, per_layer - 1 :: per_layer].transpose(1, 0, 2)
    both = lambda gates: jnp.append(gates.ravel(), gates[-1, :, 0])
    measured = jnp.append(hidden.ravel(), (output + 1) / 2)
    return Sides(measured, {"printed": both(own["gates"]), "control": both(own["misread"])})


LEMMA_32 = Statement(
    id="smapprox.lemma3.2",
    label="Lemmas 3.2 and B.1",
    formula="two ReLU layers for each circuit layer compute all its gates, on all inputs",
    tex=r"f_i \circ \cdots \circ f_1(x) = g_i \circ \cdots \circ g_1(x) \quad "
    r"(i = 1, \ldots, q - 1, \; x \in \{0, 1\}^m)",
    kind="construction",
    evaluate=_simulated_gates,
    judges=(compile_circuit, feedforward, FeedforwardNet.__call__),
    cases=all_circuits,
    sizes=({"corrected": 0}, {"corrected": 1}),
    forms=(
        Form(
            name="printed", cites="Lemma 3.2; Lemma B.1: f(h~, theta) = G_i~(h), padding included"
        ),
    ),
    control="the output gate swapped for another one",
    assumptions="40 random circuits that output 1 on a quarter to three quarters of all inputs (6 "
    "inputs, width 10, depth 1 to 8), every coordinate on all 64 inputs, with and without "
    "corrections, padded in width and depth; Lemma B.1 for the h that occur (all h in the first "
    "layer only)",
    tolerance=1e-12,
    budget=Budget(batch=10),
    source="Section 3.1, Appendix B",
)


def _literals(size: Size) -> Instance:
    return {"draws": np.random.default_rng(0).integers(0, 2**16, (16, size["ands"], 2))}


def _layered(i: Instance, size: Size) -> Sides:
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
    id="smapprox.sec3.layered",
    label="Section 3, layered circuits",
    formula="identity gates make any acyclic circuit layered, and change no output",
    tex=r"G_{\text{layered}}(x) = G(x) \quad (x \in \{0, 1\}^m)",
    kind="construction",
    evaluate=_layered,
    judges=(circuits.layered, from_aiger, circuits.from_json, circuits.parity_circuit),
    host=True,
    cases=_literals,
    sizes=({"inputs": 3, "ands": 6},),
    forms=(
        Form(
            name="derived",
            note="The check builds circuits of ANDs with negations from AIGER "
            "and JSON text, and a parity circuit.",
        ),
    ),
    control="the output negated",
    source="Section 3",
)

STATEMENTS = (LEMMA_32, LAYERED)
