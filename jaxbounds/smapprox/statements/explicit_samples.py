"""Theorem 3.1 and the comparison in Section 3: certified sample sizes of compiled circuits."""

import functools
import math
from typing import Any

import numpy as np

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox import alternatives
from jaxbounds.smapprox import generalization as general
from jaxbounds.smapprox.certified import circuit_margin_lower
from jaxbounds.smapprox.circuits import Circuit
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import compile_circuit, l1_norm
from jaxbounds.smapprox.statements.margin_cases import certified_margin
from jaxbounds.smapprox.statements.sample_sizes import on_circuits, scale_of
from jaxbounds.smapprox.statements.section3_circuits import WIRES, circuit_of

CONFIDENCE = math.log(100.0)
WIDER = 2.0**30
"""The factor by which zero weights make the network wider; a larger factor adds more zero
parameters, and leaves their norm unchanged."""


def _theorem(i: Instance, size: Size) -> Sides:
    circuit, epsilon = circuit_of(i, size), 1.0 / size["inverse_epsilon"]
    (alpha, p, gamma), pairs = scale_of(circuit)
    single = general.realizable_sample_complexity(alpha, p, gamma, epsilon)
    chained = general.chained_sample_complexity(alpha, p, gamma, epsilon)
    wide = general.realizable_sample_complexity(alpha, p * WIDER**2, gamma, epsilon)
    over, logs = 900 * circuit.size * circuit.width, math.log(4 * pairs)
    per_scale = 600 * (1 + math.log(1 / epsilon)) / epsilon
    cover = ((2 * over) ** 2 * (logs + 2 * math.log(WIDER)) + CONFIDENCE) / epsilon
    counting = (2 * pairs * math.log1p(4 * over) + CONFIDENCE) / epsilon
    return Sides.pairs(
        {
            "derived": (chained, (over * per_scale) ** 2 * logs),
            "sharpened": (wide, cover),
            "sharpened counting": (single, counting),
            "control": (wide, cover / 1000),
        }
    )


THEOREM_31 = on_circuits(
    id="smapprox.thm3.1.explicit",
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
            note="As in smapprox.thm3.1, alpha / gamma <= 900 s r and 2p <= 4 w^2 d. Let A = "
            "(alpha/gamma)^2 log 2p. A sample of size n = A (K/epsilon)^2 has 4 Rad <= epsilon / 2 "
            "if 8 (7.8 + 5.26 log(K/epsilon)) <= K. The choice K = 600 (1 + log(1/epsilon)) "
            "satisfies this condition.",
        ),
        Form(
            name="sharpened",
            note="The bound on the risk uses one gamma/2 cover of log size (2 alpha/gamma)^2 log "
            "2p, for p parameters of l_1 norm alpha and margin gamma. The check makes the network "
            "2^30 times as wide.",
        ),
        Form(
            name="sharpened counting",
            note="A comparison of volumes bounds the log size of the gamma/2 cover by p log(1 + 4 "
            "alpha/gamma), for p parameters of l_1 norm alpha and margin gamma.",
        ),
    ),
    control="a thousandth of the sharpened bound",
    source="Section 3",
    budget=Budget(restarts=2, steps=12),
)


@functools.lru_cache
def _corrected(circuit: Circuit) -> tuple[Any, float]:
    params = compile_circuit(circuit, correction=THIRDS)
    return params, certified_margin(params, circuit.inputs)


def _alternatives(i: Instance, size: Size) -> Sides:
    params, margin = _corrected(circuit_of(dict(zip(WIRES, i["wires"])), size))
    epsilon, delta = float(i["epsilon"]), float(i["delta"])
    weights = [params["first"]["W"], *params["hidden"]["W"], params["head"]["W"][None]]
    biases = [params["first"]["b"], *params["hidden"]["b"], np.atleast_1d(params["head"]["b"])]
    of_layer = [W.size + b.size for W, b in zip(weights, biases)]
    p, units = sum(of_layer), [*map(len, biases)]
    single = general.realizable_sample_complexity(l1_norm(params), p, margin, epsilon, delta=delta)
    n = alternatives.vc_sample_complexity_explicit(of_layer, units, epsilon, delta=delta)
    radius = math.sqrt(size["inputs"] + 1.0)
    product = alternatives.norm_product_log_samples(
        weights, biases, epsilon, radius=radius, delta=delta
    )
    patterns = alternatives.sign_patterns_log_bound(of_layer, units, 2 * n)
    used_up = 0.5 * math.log(2) * epsilon * n - math.log(2) + math.log(delta)
    return Sides.pairs(
        {
            "derived vc": (p, epsilon * n / 2),
            "derived vc, used up": (patterns, used_up * (1 + 1e-9)),
            "derived norms": ((len(weights) - 1) * math.log(2), product),
            "sharpened": (single, n),
            "control": (n, single),
        }
    )


ALTERNATIVES = Statement(
    id="smapprox.sec3.explicit",
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
        Form(
            name="derived vc",
            note="The VC bound grows polynomially with the width, even if the weights of added "
            "neurons are zero.",
        ),
        Form(
            name="derived vc, used up",
            note=(
                "The sample size n that the library returns satisfies 2 Pi(2n) 2^{-epsilon n/2} = "
                "delta, where Pi(2n) is the number of sign patterns on 2n inputs."
            ),
            equality="always",
        ),
        Form(
            name="derived norms",
            note="In every layer but the last, |[W b; 0 1]|_F^2 >= 2, so the product of these "
            "norms grows with the depth.",
        ),
        Form(
            name="sharpened",
            note="The log size p log(1 + 4 alpha/gamma) of a cover replaces the sum over layers in "
            "the VC bound. Fewer samples are then enough.",
        ),
    ),
    control="VC dimension asks for fewer samples",
    source="Section 3; Bartlett et al. 2019, Blumer et al. 1989, Golowich et al. 2018",
    kind="inequality",
    host=True,
    # A circuit is one array, so a search moves the circuit no more often than n.
    over={"wires": Integers(0, 59, (3, "layers", "gates"))}
    | {"epsilon": Box(1e-3, 0.5), "delta": Box(1e-4, 0.5)},
    search="random",
    budget=Budget(samples=12, restarts=2, steps=20),
    assumptions="twelve random circuits, and what a search makes of them; epsilon from 1/1000 to "
    "1/2, delta from 1/10^4",
    sizes=({"inputs": 3, "layers": 3, "gates": 4},),
)

STATEMENTS = (THEOREM_31, ALTERNATIVES)
