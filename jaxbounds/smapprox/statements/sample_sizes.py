"""Sample sizes of Lemma 2.4, Corollary A.1 and Theorem 3.1, with the O(.) constants set to one."""

import functools
import math

import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox import sample_complexity as samples
from jaxbounds.smapprox.certified import circuit_margin_lower
from jaxbounds.smapprox.circuits import Circuit
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import compile_circuit, l1_norm, parameter_count
from jaxbounds.smapprox.statements.margin_cases import certified_margin
from jaxbounds.smapprox.statements.section3_circuits import (
    OPERATIONS,
    WIRES,
    circuit_of,
    gate_arrays,
)


def _sample_size(i: Instance, size: Size) -> Sides:
    alpha, gamma, epsilon = (float(i[name]) for name in ("alpha", "gamma", "epsilon"))
    scale = (alpha, size["p"], gamma)
    n = samples.sample_complexity(*scale, epsilon)
    root = samples.solve_sample_complexity(*scale, epsilon)
    cover = samples.log_covering_number(*scale, epsilon)
    within = samples.rademacher_bound(*scale, n)
    return Sides.pairs(
        {
            "derived rademacher": (within, epsilon * math.log(n)),
            "derived cover": (n, cover + 1 + 1 / epsilon**2),
            "derived root": (samples.rademacher_bound(*scale, root), epsilon),
            "control": (within, epsilon * math.log(n) / 2),
        }
    )


LEMMA_24 = Statement(
    id="smapprox.lemma2.4",
    label="Lemma 2.4, how its bounds fit together",
    formula="at n = (alpha^2 log p / gamma^2 + 1) / epsilon^2, Rad <= epsilon log n",
    tex=r"n = \frac{1}{\epsilon^2} \left(\frac{\alpha^2 \log p}{\gamma^2} + 1\right) "
    r"\Rightarrow \frac{\alpha \log n \sqrt{\log p}}{\gamma \sqrt{n}} \le \epsilon \log n",
    kind="inequality",
    evaluate=_sample_size,
    judges=(
        samples.sample_complexity,
        samples.rademacher_bound,
        samples.solve_sample_complexity,
        samples.log_covering_number,
    ),
    host=True,
    # For large alpha / gamma, the sides approach each other.
    over={"alpha": Box(0.4, 7), "gamma": Box(0.14, 1), "epsilon": Box(0.05, 1)},
    search="random",
    budget=Budget(samples=16, restarts=3, steps=40),
    sizes=({"p": 1000},),
    forms=(
        Form(
            name="derived rademacher",
            note="The notation O-tilde hides one logarithm of n. The two sides become equal in "
            "the limit alpha / gamma -> infinity.",
        ),
        Form(
            name="derived cover",
            note="Without rounding errors, the sample size satisfies n <= log N(epsilon) + 1 + "
            "1/epsilon^2, for covers of size N(epsilon).",
        ),
        Form(
            name="derived root",
            note="If the sample size n solves the equation of Lemma 2.4 with its factor log n, "
            "then the bound on Rad equals epsilon.",
            equality="always",
        ),
    ),
    control="half of epsilon",
    source="Section 2.1, Appendix A; constants one",
)


def _corollary(i: Instance, size: Size) -> Sides:
    n, alpha, p, delta = size["n"], 3.0, 50, 0.05
    bound = samples.margin_generalization_bound(alpha, p, jnp.asarray(i["margins"]), delta=delta)
    of_all = lambda gamma: samples.rademacher_bound(alpha, p, gamma, n) / math.log(n)
    xi = math.log(n / delta) / math.sqrt(n)
    harmonic = float(np.mean(i["margins"] ** -2.0) ** -0.5)
    return Sides(
        bound,
        {"derived": of_all(harmonic) + xi, "control": of_all(float(i["margins"].mean())) + xi},
    )


COROLLARY_A1 = Statement(
    id="smapprox.cora.1",
    label="Corollary A.1, its value",
    formula="alpha sqrt(log p / n) sqrt(mean 1/rho_i^2) + xi = Rad(gamma) / log n + xi",
    tex=r"\frac{\alpha \sqrt{\log p}}{\sqrt{n}} \sqrt{\frac{1}{n} \sum_{i=1}^{n} "
    r"\frac{1}{\rho(\theta, x_i, y_i)^2}} + \xi = \frac{\alpha \sqrt{\log p}}{\gamma \sqrt{n}} + "
    r"\xi, \quad \frac{1}{\gamma^2} = \frac{1}{n} \sum_{i=1}^{n} "
    r"\frac{1}{\rho(\theta, x_i, y_i)^2}",
    kind="identity",
    evaluate=_corollary,
    judges=(samples.margin_generalization_bound, samples.rademacher_bound),
    host=True,
    over={"margins": Box(0.01, 100, "n")},
    budget=Budget(samples=16),
    sizes=({"n": 8},),
    forms=(
        Form(
            name="derived",
            note="Apart from log n and xi, the corollary's bound is Lemma 2.4's bound on Rad at "
            "gamma = (mean 1/rho_i^2)^(-1/2).",
        ),
    ),
    control="the mean of the margins for gamma",
    source="Appendix A; constants one",
)


def scale_of(circuit: Circuit) -> tuple[tuple[float, int, float], int]:
    """Return (alpha, p, certified margin, w^2 d) of the circuit's corrected network.

    The network has p parameters of l_1 norm alpha, width w and depth d.
    """
    params = compile_circuit(circuit, correction=THIRDS)
    scale = l1_norm(params), parameter_count(params), certified_margin(params, circuit.inputs)
    return scale, len(params["head"]["W"]) ** 2 * 4 * circuit.depth


def _theorem(i: Instance, size: Size) -> Sides:
    circuit, inverse = circuit_of(i, size), size["inverse_epsilon"]
    scale, pairs = scale_of(circuit)
    n, order = samples.sample_complexity(*scale, 1 / inverse), circuit.size * circuit.width
    of = lambda constant: (constant * order * inverse) ** 2 * math.log(2 * pairs)
    return Sides(n, {"derived": of(900), "control": of(90)})


on_circuits = functools.partial(
    Statement,
    kind="inequality",
    host=True,
    cases=gate_arrays,
    search="random",
    sizes=({"circuits": 12, "inputs": 3, "layers": 3, "gates": 4, "inverse_epsilon": 10},),
    assumptions="twelve random circuits, and the circuits that a search makes from them",
)

THEOREM_31 = on_circuits(
    id="smapprox.thm3.1",
    label="Theorem 3.1",
    formula="n <= (900 s r)^2 log(2 w^2 d) / epsilon^2 for the corrected network of a circuit",
    tex=r"\frac{1}{\epsilon^2} \left(\frac{\alpha^2 \log p}{\gamma^2} + 1\right) \le "
    r"\frac{(900 s r)^2 \log(2 w^2 d)}{\epsilon^2}",
    evaluate=_theorem,
    judges=(
        samples.sample_complexity,
        circuit_margin_lower,
        compile_circuit,
        l1_norm,
        parameter_count,
    ),
    forms=(
        Form(
            name="derived",
            note="Lemma B.1 bounds the parameter norm by alpha <= 14 s + 3 <= 15 s. In Theorem "
            "D.6, |W1| <= 2 sqrt r, lambda <= sqrt r and kappa_xi < 6.5, so gamma >= sigma_zeta / "
            "(20 r) = 1/(60 r). The number of parameters is p <= 2 w^2 d.",
        ),
    ),
    control="90 for 900",
    source="Section 3; Lemma 2.4 with constants one",
    budget=Budget(restarts=2, steps=5),
)


def _of_all_shapes(size: Size) -> Instance:
    gates, layers = gate_arrays(size), 1 + np.arange(5, 5 + size["circuits"]) % size["layers"]
    gates["operation"][0] = OPERATIONS.index("ID")
    gates["left"][0] = np.arange(size["gates"])
    gates["operation"][0, 0, 0] = OPERATIONS.index("AND")
    gates["left"][0, 0, 1:] += 1
    gates["right"][0, 0, 0] = 1
    return {**gates, "layers": layers, "gates": size["gates"] + 1 - layers}


def _alternatives(i: Instance, size: Size) -> Sides:
    there = np.s_[: int(i["layers"]), : int(i["gates"])]
    gates = {name: i[name][there] for name in WIRES}
    circuit, epsilon = circuit_of(gates, size), size["inverse_epsilon"] ** -1.0
    params = compile_circuit(circuit, correction=None)
    weights = [params["first"]["W"], *params["hidden"]["W"]]
    w, depth, p = len(params["head"]["W"]), len(weights), parameter_count(params)
    norms = [float(np.linalg.norm(weight, 2)) for weight in weights]
    by_norms = samples.norm_product_sample_complexity(norms, epsilon)
    growing = sum(any(len(gate.parents) == 2 for gate in layer) for layer in circuit.layers)
    by_vc = samples.vc_sample_complexity(p, depth, epsilon)
    return Sides.pairs(
        {
            "derived vc": (w**2 * (depth - 1) * depth * math.log(p) / epsilon**2, by_vc),
            "derived norms": (growing * math.log(2) - 2 * math.log(epsilon), by_norms),
            "control": (w**2 * (depth - 1) * depth * math.log(p) / epsilon**2, by_vc / 2),
        }
    )


ALTERNATIVES = on_circuits(
    id="smapprox.sec3.alternatives",
    label="Section 3, other surrogate losses",
    formula="VC dimension asks for w^2 d^2 samples, norm products for 2^(layers with AND or OR)",
    tex=r"w^2 (d - 1) d \log p \le p d \log p, \quad 2^{\#\text{layers with AND or OR}} \le "
    r"\prod_{i} \|W_i\|_{\mathrm{op}}^2",
    evaluate=_alternatives,
    judges=(samples.vc_sample_complexity, samples.norm_product_sample_complexity),
    forms=(
        Form(
            name="derived vc",
            note="The VC bound grows polynomially with the width, even if the weights of added "
            "neurons are zero, because p >= w^2 (d - 1). The ratio of p to w^2 (d - 1) tends to "
            "one as the width w and the depth d grow.",
        ),
        Form(
            name="derived norms",
            note="A row of AND or OR has norm at least sqrt 2, so each layer with such a gate at "
            "least doubles the squared product of the spectral norms.",
            equality="an AND of two inputs, beside and above it identities of distinct parents",
        ),
    ),
    control="half of the samples that VC dimension asks for",
    source="Section 3; constants one",
    budget=Budget(restarts=2, steps=50),
    cases=_of_all_shapes,
    sizes=({"circuits": 12, "inputs": 6, "layers": 8, "gates": 10, "inverse_epsilon": 10},),
)

STATEMENTS = (LEMMA_24, COROLLARY_A1, THEOREM_31, ALTERNATIVES)
