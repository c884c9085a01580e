"""Appendix B: single gates (Lemma B.1, Proposition B.2) and the norms of compiled circuits."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.smapprox import circuits
from jaxbounds.smapprox.circuits import Circuit, Gate
from jaxbounds.smapprox.feedforward import compile_circuit, feedforward, gate_rows, l1_norm
from jaxbounds.smapprox.statements.section3_circuits import OPERATIONS, circuit_of, gate_arrays

on_pairs = functools.partial(
    Statement,
    kind="construction",
    host=True,
    cases=lambda size: {"x": circuits.all_inputs(size["inputs"]).astype(int)},
    sizes=({"inputs": 2},),
    source="Appendix B",
    enumerates="all pairs of bits",
)
"""Declare a statement about one kind of gate, checked on all pairs of bits."""


@jax.jit
def _states(params: Any, x: Array) -> Array:
    return feedforward(params, x)[1]


def _computed(x: np.ndarray, *gates: Gate, misplaced: bool = False) -> np.ndarray:
    """Compute the gates of one circuit layer with the network that `compile_circuit` makes.

    `misplaced` shifts each column of W1 by one place to the left, which makes the weights wrong.
    """
    params = compile_circuit(Circuit(len(x), (gates,)), correction=None)
    if misplaced:
        params["first"]["W"] = np.roll(params["first"]["W"], -1, axis=1)
    return np.asarray(_states(params, jnp.asarray(x, float)))[-1, : len(gates)]


OWN, OTHER = Gate("NOT", (0,)), Gate("NOT", (1,))
"""Circuit layers whose gate 0 negates the value at coordinate 0 (`OWN`) or at coordinate 1
(`OTHER`)."""


def _not(i: Instance, size: Size) -> Sides:
    negate = lambda gate: (gate, 1.0 - i["x"][list(gate.parents)])
    (own, right), (other, elsewhere) = negate(OWN), negate(OTHER)
    return Sides.pairs(
        {
            "printed": (_computed(i["x"], own), right),
            "printed diagonal": (_computed(i["x"], other, misplaced=True), elsewhere),
            "corrected": (_computed(i["x"], other), elsewhere),
            "control": (_computed(i["x"], other._replace(op="ID")), elsewhere),
        }
    )


def _bits(i: Instance, size: Size) -> dict[str, Any]:
    return {
        "h in {0, 1}^r (Lemma B.1)": np.isin(i["x"], (0, 1)).all(),
        "NOT has one parent, in the layer below (Section 3)": len(OTHER.parents) == 1
        and OTHER.parents[0] < size["inputs"],
    }


NOT = on_pairs(
    id="smapprox.lemmab.1.not",
    label="Lemma B.1, the NOT gate",
    formula="NOT(h_j) = relu(1 - h_j), with the -1 in the parent's column j",
    tex=r"\mathrm{NOT}(h_j) = \phi(1 - h_j)",
    evaluate=_not,
    judges=(compile_circuit, gate_rows),
    forms=(
        Form(
            name="printed",
            cites="Appendix B, proof of Lemma B.1",
            note="The check uses only NOT gates j whose parent also has the coordinate j.",
        ),
        Form(
            name="printed diagonal",
            cites='Appendix B, proof of Lemma B.1: "-1 on the diagonal and 0 everywhere else"',
            erratum="E24",
            reading="the gate's parent may have another coordinate",
            note="If a gate and its parent have different coordinates, the printed -1 on the "
            "diagonal of W1 multiplies the gate's own coordinate, not the parent's.",
            counterexample=Counterexample(instance={"x": [0, 1]}, ratio=1.0, meets=_bits),
        ),
        Form(
            name="corrected",
            note="In the corrected weights, the entry -1 is in the column of the gate's parent.",
        ),
    ),
    control="ID instead of NOT",
    sizes=({"inputs": 2}, {"inputs": 3}),
    enumerates="all words of two and three bits",
)


def _and_or(i: Instance, size: Size) -> Sides:
    gates = _computed(i["x"], Gate("AND", (0, 1)), Gate("OR", (0, 1)))
    logic = np.array([i["x"].min(), i["x"].max()])
    return Sides(gates, {"printed": logic, "control": logic[::-1]})


AND_OR = on_pairs(
    id="smapprox.propb.2",
    label="Proposition B.2",
    formula="AND = relu(x1 + x2 - 1), OR = 1 - relu(1 - x1 - x2)",
    tex=r"F_{\mathrm{AND}}(x) = \phi(x_1 + x_2 - 1), \quad "
    r"F_{\mathrm{OR}}(x) = 1 - \phi(1 - x_1 - x_2)",
    evaluate=_and_or,
    judges=(compile_circuit, gate_rows),
    forms=(Form(name="printed", cites="Proposition B.2"),),
    control="AND and OR exchanged",
)


def _with_an_or_layer(size: Size) -> Instance:
    gates = gate_arrays(size)
    gates["operation"][0, 0] = OPERATIONS.index("OR")
    return gates


def _norm(i: Instance, size: Size) -> Sides:
    circuit = circuit_of(i, size)
    params, s = compile_circuit(circuit, correction=None), circuit.size
    content, rounded = l1_norm(params) - 3, l1_norm(compile_circuit(circuit))
    each = [l1_norm(params["first"]), *(l1_norm(dict(zip("Wb", p))) for p in _hidden(params))]
    layers = [each[2 * k] + each[2 * k + 1] for k in range(circuit.depth)]
    return Sides.pairs(
        {
            "printed": (content, s),
            "printed layer": (max(n / len(g) for n, g in zip(layers, circuit.layers)), 5.0),
            "derived": (content, 5 * s),
            "derived rounding": (rounded, 14 * s + 3),
            "control": (content, 0.5 * s),
        }
    )


def _hidden(params: Any) -> Any:
    return zip(params["hidden"]["W"], params["hidden"]["b"])


def _as_in_section_3(i: Instance, size: Size) -> dict[str, Any]:
    circuit = circuit_of(i, size)
    known = all(gate.op in circuits.ARITY for layer in circuit.layers for gate in layer)
    widths = [circuit.inputs, *map(len, circuit.layers)]
    rows = [(p, below) for below, g in zip(widths, circuit.layers) for _, ps in g for p in ps]
    return {
        "gates AND, OR, NOT, ID of 2, 2, 1, 1 parents (Section 3)": known,
        "layered: parents in the layer below (Section 3)": all(0 <= p < below for p, below in rows),
        "s counts all gates, the input gates included (Section 3)": circuit.size
        == circuit.inputs + sum(map(len, circuit.layers)),
    }


NORM = Statement(
    id="smapprox.lemmab.1.norm",
    label="Lemma B.1 and the proof of Theorem 3.1, norms",
    formula="|theta|_1 of the uncorrected network <= s, of each layer = O(r_i)",
    tex=r"\|\theta\|_1 \le s, \quad \|\theta_i\|_1 = O(r_i)",
    kind="inequality",
    evaluate=_norm,
    judges=(compile_circuit, l1_norm),
    host=True,
    cases=_with_an_or_layer,
    search="random",
    budget=Budget(restarts=2, steps=20),
    sizes=({"circuits": 40, "inputs": 6, "layers": 8, "gates": 10},),
    forms=(
        Form(
            name="printed",
            cites='Appendix B, proof of Theorem 3.1: "The total ||.||_1-norm of the parameters so '
            'far is at most s"',
            erratum="E7",
            note="The network of a single OR gate has parameters of l_1 norm 5, but the circuit's "
            "size s is 3: two inputs and one gate.",
            counterexample=Counterexample(
                instance={"operation": [[1]], "left": [[0]], "right": [[1]]},
                size={"inputs": 2},
                ratio=1.6666666666666667,
                meets=_as_in_section_3,
            ),
        ),
        Form(
            name="printed layer",
            cites="Lemma B.1: |theta|_1 = O(r_i)",
            note=(
                "The hidden constant in O(r_i) is 5. An OR gate needs 5, because it has two "
                "weights in W1, one in W2, and two biases."
            ),
            equality="a layer of OR gates",
        ),
        Form(
            name="derived",
            note="Each gate has a norm of at most 5, so the total norm is O(s), "
            "as Lemma B.1 states.",
        ),
        Form(
            name="derived rounding",
            note="The layers that round values add 9 to the parameter norm for each gate, and the "
            "output layer adds 3 once.",
        ),
    ),
    control="half of s",
    source="Appendix B",
)

STATEMENTS = (NOT, NORM, AND_OR)
