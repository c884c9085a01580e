"""Theorems 3.1 and 4.1 and Section 3's comparison: certified sample sizes of compiled networks."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.smapprox import alternatives
from jaxbounds.smapprox import generalization as general
from jaxbounds.smapprox.certified import circuit_margin_lower
from jaxbounds.smapprox.certified_machine import machine_margin_lower
from jaxbounds.smapprox.circuits import all_inputs
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import compile_circuit, feedforward, l1_norm, parameter_count
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.statements.section3_circuits import circuit_of, gate_arrays
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement

CONFIDENCE = math.log(100.0)
WIDER = 2.0**30
"""How much wider the network is made where all that counts is the norm of its parameters."""

_states = jax.jit(jax.vmap(feedforward, (None, 0)))


def _margin(params: Any, inputs: int) -> float:
    every = jnp.asarray(all_inputs(inputs), float)
    states = _states(jax.tree.map(jnp.asarray, params), every)[1]
    return circuit_margin_lower(params, np.asarray(states), THIRDS)


def _theorem(i: Instance, size: Size) -> Sides:
    circuit, epsilon = circuit_of(i, size), 1.0 / size["inverse_epsilon"]
    params = compile_circuit(circuit, correction=THIRDS)
    w, d = len(params["head"]["W"]), 4 * circuit.depth
    p, alpha, gamma = parameter_count(params), l1_norm(params), _margin(params, size["inputs"])
    single = general.realizable_sample_complexity(alpha, p, gamma, epsilon)
    chained = general.chained_sample_complexity(alpha, p, gamma, epsilon)
    wide = general.realizable_sample_complexity(alpha, p * WIDER**2, gamma, epsilon)
    over, logs = 900 * circuit.size * circuit.width, math.log(4 * w**2 * d)
    per_scale = 600 * (1 + math.log(1 / epsilon)) / epsilon
    cover = ((2 * over) ** 2 * (logs + 2 * math.log(WIDER)) + CONFIDENCE) / epsilon
    counting = (2 * w**2 * d * math.log1p(4 * over) + CONFIDENCE) / epsilon
    return Sides.pairs(
        {
            "derived": (chained, (over * per_scale) ** 2 * logs),
            "sharpened": (wide, cover),
            "sharpened counting": (single, counting),
            "control": (wide, cover / 1000),
        }
    )


ON_CIRCUITS: dict[str, Any] = {
    "kind": "inequality",
    "host": True,
    "cases": gate_arrays,
    "search": "random",
    "budget": Budget(restarts=2, steps=12),
    "sizes": ({"circuits": 12, "inputs": 3, "layers": 3, "gates": 4, "inverse_epsilon": 10},),
    "assumptions": "twelve random circuits, and what a search makes of them",
}

THEOREM_31 = Statement(
    id="smapprox.thm3.1-explicit",
    label="Theorem 3.1, with its constants",
    formula="n <= ((1800 s r)^2 log(4 w^2 d) + log 100) / epsilon for the corrected network of a "
    "circuit",
    tex=r"n \le \frac{(1800 s r)^2 \log(4 w^2 d) + \log 100}{\epsilon}",
    evaluate=_theorem,
    judges=(
        general.realizable_sample_complexity,
        general.chained_sample_complexity,
        circuit_margin_lower,
        compile_circuit,
        l1_norm,
    ),
    forms=(
        Form(
            name="derived",
            note="alpha / gamma <= 900 s r and 2p <= 4 w^2 d as in smapprox.thm3.1; 4 Rad <= "
            "epsilon / 2 once n = A (K/epsilon)^2 has 8 (7.8 + 5.26 log(K/epsilon)) <= K, as K = "
            "600 (1 + log(1/epsilon)) does.",
        ),
        Form(
            name="sharpened",
            note="One gamma/2 cover, (2 alpha/gamma)^2 log 2p, in a network 2^30 times as wide.",
        ),
        Form(name="sharpened counting", note="The same cover by volume: p log(1 + 4 alpha/gamma)."),
    ),
    control="a thousandth of the sharpened bound",
    source="Section 3",
    **ON_CIRCUITS,
)


def _machine_cases(size: Size) -> Instance:
    count = len(LIBRARY)
    return {
        "machine": np.tile(np.arange(count), 2),
        "log_T": np.repeat([4, 19], count),
    }


@functools.cache
def _machine(number: int, log_T: int) -> tuple[float, int, float, int, int]:
    """alpha, p, the certified margin, k|A| + w_pos and w_pos of a compiled machine."""
    machine = [*LIBRARY.values()][number]().machine
    compiled = compile_machine(machine, 2**log_T - 1, correction=THIRDS)
    layout = compiled.layout
    order = len(layout.states) * len(layout.symbols) + layout.bits
    params = compiled.params
    return (
        l1_norm(params), parameter_count(params), machine_margin_lower(compiled), order, layout.bits
    )  # fmt: skip


def _machines(i: Instance, size: Size) -> Sides:
    alpha, p, gamma, order, bits = _machine(int(i["machine"]), int(i["log_T"]))
    epsilon = 1.0 / size["inverse_epsilon"]
    over = 60 * (bits + 10) * order * 20 * order * bits
    cover = ((2 * over) ** 2 * math.log(2 * p * WIDER**2) + CONFIDENCE) / epsilon
    counting = (p * math.log1p(4 * over) + CONFIDENCE) / epsilon
    single = general.realizable_sample_complexity(alpha, p, gamma, epsilon)
    wide = general.realizable_sample_complexity(alpha, p * WIDER**2, gamma, epsilon)
    per_scale = 600 * (1 + math.log(1 / epsilon)) / epsilon
    chained = general.chained_sample_complexity(alpha, p, gamma, epsilon)
    return Sides.pairs(
        {
            "derived": (chained, (over * per_scale) ** 2 * math.log(2 * p)),
            "sharpened": (wide, cover),
            "sharpened counting": (single, counting),
            "control": (single, counting / 100),
        }
    )


THEOREM_41 = Statement(
    id="smapprox.thm4.1-explicit",
    label="Theorem 4.1, with its constants",
    formula="n <= (p log(1 + 4 A) + log 100) / epsilon, A = 1200 (w_pos + 10) w_pos (k|A| + "
    "w_pos)^2 >= alpha / gamma",
    tex=r"n \le \frac{p \log(1 + 4 A) + \log 100}{\epsilon}, \quad \frac{\alpha}{\gamma} \le A = "
    r"1200 (w_{\mathrm{pos}} + 10) w_{\mathrm{pos}} (k |\mathcal{A}| + w_{\mathrm{pos}})^2",
    kind="inequality",
    search="random",
    budget=Budget(samples=1, restarts=1, steps=5),
    evaluate=_machines,
    judges=(
        general.realizable_sample_complexity,
        general.chained_sample_complexity,
        machine_margin_lower,
        l1_norm,
    ),
    host=True,
    cases=_machine_cases,
    sizes=({"inverse_epsilon": 10},),
    forms=(
        Form(name="derived", note="alpha by smapprox.thm4.1-width; the rest as in Theorem 3.1."),
        Form(name="sharpened", note="(2A)^2 log 2p in a network 2^30 times as wide."),
        Form(
            name="sharpened counting",
            note="p is of the order of w^2 log T, so n depends on T through its logarithm.",
        ),
    ),
    control="a hundredth",
    assumptions="the nine machines at T = 15 and 524287, epsilon = 1/10; that 1/gamma <= 20 "
    "(k|A| + w_pos) w_pos is measured, not proved",
    source="Section 4",
)


def _alternatives(i: Instance, size: Size) -> Sides:
    circuit, epsilon = circuit_of(i, size), 1.0 / size["inverse_epsilon"]
    params = compile_circuit(circuit, correction=THIRDS)
    weights = [params["first"]["W"], *params["hidden"]["W"], params["head"]["W"][None]]
    biases = [params["first"]["b"], *params["hidden"]["b"], np.atleast_1d(params["head"]["b"])]
    of_layer = [W.size + b.size for W, b in zip(weights, biases)]
    p, inputs = sum(of_layer), size["inputs"]
    margin = _margin(params, inputs)
    single = general.realizable_sample_complexity(l1_norm(params), p, margin, epsilon)
    counted = alternatives.vc_sample_complexity_explicit(of_layer, [*map(len, biases)], epsilon)
    radius = math.sqrt(inputs + 1.0)
    product = alternatives.norm_product_log_samples(weights, biases, epsilon, radius=radius)
    n = counted
    patterns = alternatives.sign_patterns_log_bound(of_layer, [*map(len, biases)], 2 * n)
    used_up = 0.5 * math.log(2) * epsilon * n - math.log(2) - CONFIDENCE
    return Sides.pairs(
        {
            "derived vc": (p, epsilon * counted / 2),
            "derived vc, used up": (patterns, used_up * (1 + 1e-9)),
            "derived norms": ((len(weights) - 1) * math.log(2), product),
            "sharpened": (single, counted),
            "control": (counted, single),
        }
    )


ALTERNATIVES = Statement(
    id="smapprox.sec3-explicit",
    label="Section 3, other surrogate losses, with constants",
    formula="n by one cover of the margins <= n by VC dimension; p <= epsilon n_VC / 2; "
    "2^(layers - 1) <= n by the product of norms",
    tex=r"n_{\text{cover}} \le n_{\text{VC}}, \quad p \le \frac{\epsilon}{2} n_{\text{VC}}, \quad "
    r"2^{L - 1} \le n_{\text{norms}}",
    evaluate=_alternatives,
    judges=(
        alternatives.vc_sample_complexity_explicit,
        alternatives.sign_patterns_log_bound,
        alternatives.norm_product_log_samples,
        general.realizable_sample_complexity,
    ),
    forms=(
        Form(name="derived vc", note="Polynomial in the width, padding too."),
        Form(
            name="derived vc, used up",
            note="2 Pi(2n) 2^{-epsilon n/2} = delta at that n.",
            equality="always",
        ),
        Form(name="derived norms", note="|[W b; 0 1]|_F^2 >= 2 in every layer but the last."),
        Form(
            name="sharpened", note="p log(1 + 4 alpha/gamma) against a sum over layers of theirs."
        ),
    ),
    control="VC dimension asks for fewer samples",
    source="Section 3; Bartlett et al. 2019, Blumer et al. 1989, Golowich et al. 2018",
    **ON_CIRCUITS,
)

STATEMENTS = (THEOREM_31, THEOREM_41, ALTERNATIVES)
