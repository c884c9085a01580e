"""Theorem 4.1: the margins of compiled machines, and softmax attention."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from jaxbounds.smapprox import execute, softmax
from jaxbounds.smapprox.certified_machine import machine_margin_lower
from jaxbounds.smapprox.compile_machine import (
    compile_machine,
)
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.encoder_decoder import EncoderDecoder
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import Action, TuringMachine
from jaxbounds.smapprox.straight_through import hard_attention, soft_max
from jaxbounds.smapprox.transformer import run
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement


@functools.cache
def _parity_network(T: int) -> tuple[Any, Any, float]:
    compiled = compile_machine(LIBRARY["parity"]().machine, T, correction=THIRDS)
    return compiled, execute.encode(compiled, ["101"]), machine_margin_lower(compiled)


def _directions(key: Array, size: Size) -> Instance:
    return {"seed": jax.random.randint(key, (), 0, 2**30), "biases": jnp.zeros((), int)}


def _bias_directions(key: Array, size: Size) -> Instance:
    return {**_directions(key, size), "biases": jnp.ones((), int)}


def _restored(i: Instance, size: Size) -> Sides:
    """Perturb all weights by the certified radius; how far are the outputs from the exact ones?"""
    compiled, inputs, radius = _parity_network(size["T"])
    cast = lambda a: jnp.asarray(a, bool if a.dtype == bool else float)
    exact = jax.tree.map(cast, compiled.params)
    theta, unravel = ravel_pytree(exact)
    noise = jax.random.normal(jax.random.key(i["seed"]), theta.shape)
    zero = jax.tree.map(jnp.zeros_like, exact)
    marked = zero["layers"] | {name: 1 + zero["layers"][name] for name in ("b1", "b3")}
    biases, _ = ravel_pytree(zero | {"layers": marked})
    noise = jnp.where(i["biases"] == 1, noise * biases, noise)
    unit = noise / jnp.sqrt(noise @ noise)
    one = (cast(inputs.tokens[0]), cast(inputs.present[0]))
    codes = (cast(inputs.encoder_codes), cast(inputs.decoder_codes))
    net = EncoderDecoder(compiled.layout.width, compiled.depth, 2 * compiled.layout.bits + 1)
    theta_at = lambda r: {"params": {"theta": unravel(theta + r * unit)}}
    passes: Any = lambda r: net.apply(theta_at(r), *one, *codes, method="passes")
    outputs = lambda r: passes(r).outputs
    still, moved, far = jax.lax.map(outputs, radius * jnp.array([0.0, 1.0, 20000.0]))
    off = lambda o: jnp.abs(o - still).max()
    pairs = {"corrected": (off(moved), THIRDS.radius), "control": (off(far), THIRDS.radius)}
    return Sides.pairs(pairs)


MARGIN = Statement(
    id="smapprox.thm4.1-margin",
    label="Theorem 4.1, the margin",
    formula="|delta| at the certified radius moves no output coordinate by more than 1/3",
    tex=r"\|\delta\|_2 \le \gamma \Rightarrow \|o_i(\theta + \delta) - o_i(\theta)\|_\infty \le "
    r"\frac{1}{3} \quad (0 \le i \le T)",
    kind="inequality",
    evaluate=_restored,
    judges=(machine_margin_lower, EncoderDecoder.passes, run),
    sample={"all weights": _directions, "biases only": _bias_directions},
    sizes=({"T": 5},),
    search="none",
    forms=(
        Form(
            name="corrected",
            note="The base-point version of Condition D.3 (E11), with measured norms.",
        ),
    ),
    control="20000 times the radius",
    assumptions="parity on 101, T = 5, random directions in all weights and in biases",
    budget=Budget(samples=12, restarts=0, batch=4),
    source="Section 4, Appendix D",
)


def _lengths(size: Size) -> Instance:
    """Growing T, then growing machines: the states of the cycle, besides the three others."""
    return {
        "log_T": np.array([3, 5, 8, 12, 16, 20, 5, 5, 5]),
        "cycle": np.array([1, 1, 1, 1, 1, 1, 8, 24, 72]),
    }


def _cycle(states: int) -> TuringMachine:
    """Goes right through a cycle of states; rejects at a 1, accepts where the input ends."""
    names = (*(f"z{n}" for n in range(states)), "accept", "reject")
    given: dict[tuple[str, str], Action] = {}
    for n in range(states):
        given[f"z{n}", "0"] = (f"z{(n + 1) % states}", "0", 1)
        given[f"z{n}", "1"] = ("reject", "1", 1)
        given[f"z{n}", "_"] = ("accept", "_", 1)
    return TuringMachine(states=names, alphabet="01_", blank="_", transitions=given, start="z0")


def _margin_rate(i: Instance, size: Size) -> Sides:
    compiled = compile_machine(_cycle(int(i["cycle"])), 2 ** int(i["log_T"]) - 1, correction=THIRDS)
    wp, pairs = compiled.layout.bits, len(compiled.layout.states) * len(compiled.layout.symbols)
    inverse = 1 / machine_margin_lower(compiled)
    return Sides.pairs(
        {
            "printed": (inverse, pairs * wp**1.5),
            "printed log T": (inverse, wp**1.5),
            "printed k|A|": (inverse, pairs),
            "control": (inverse * wp**1.5, wp**1.5),
        }
    )


MARGIN_RATE = Statement(
    id="smapprox.thm4.1-margin-rate",
    label="Theorem 4.1, margin 1/poly(k, |A|, log T)",
    formula="the certified 1/rho grows at most as k|A| w_pos^1.5",
    tex=r"\rho \ge \frac{c}{k |\mathcal{A}| w_{\mathrm{pos}}^{3/2}}",
    kind="rate",
    evaluate=_margin_rate,
    judges=(machine_margin_lower, compile_machine),
    host=True,
    cases=_lengths,
    sizes=({"symbols": 3},),
    forms=(
        Form(
            name="printed",
            cites="Appendix C.2, proof of Theorem 4.1: margin lower bound 1/poly(k, |A|, log T)",
            sense="at most",
            note="One polynomial that is enough.",
        ),
        Form(
            name="printed log T",
            cites="the same, in log T alone",
            sense="at most",
            hypotheses=lambda i, size: {"the smallest machine": i["cycle"] == 1},
        ),
        Form(
            name="printed k|A|",
            cites="the same, in k|A| alone",
            sense="at most",
            hypotheses=lambda i, size: {"T = 31": i["log_T"] == 5},
        ),
    ),
    control="the exponent of log T one and a half less than it is",
    assumptions="machines of 4 to 75 states and three symbols, T from 7 to 2^20 - 1; certified "
    "margins, which hold for every input",
    source="Section 4, Appendix C.2",
)


def _random_scores(key: Array, size: Size) -> Instance:
    extra, values = jax.random.split(key)
    return {
        "extra": jax.random.randint(extra, (size["T"],), 0, 3),
        "values": jax.random.randint(values, (size["T"],), 0, 2),
    }


def _no_match(size: Size) -> Instance:
    """No match, all keys one below."""
    return {"extra": np.zeros((1, size["T"]), int), "values": np.ones((1, size["T"]), int)}


def _softmax(i: Instance, size: Size) -> Sides:
    """The null key scores 0 and holds 0; the others score -1 - extra."""
    T, gaps = size["T"], 1.0 + i["extra"].astype(float)
    cold, dyadic = softmax.inverse_temperature(T, THIRDS), softmax.inverse_temperature(T, DYADIC)
    warm = softmax.least_inverse_temperature(T, THIRDS)
    matched = jnp.concatenate([jnp.ones(1), gaps + 1])
    scores, values = jnp.append(0.0, -gaps), jnp.append(0.0, i["values"].astype(float))
    return Sides.pairs(
        {
            "derived thirds": (softmax.off_mass(gaps, cold), THIRDS.radius),
            "derived dyadic": (softmax.off_mass(gaps, dyadic), DYADIC.radius),
            "derived least": (softmax.off_mass(gaps, warm), THIRDS.radius),
            "derived no match": (
                softmax.off_mass(gaps, warm),
                softmax.off_mass_bound(T, warm, match=False),
            ),
            "derived match": (
                softmax.off_mass(matched, warm),
                softmax.off_mass_bound(T, warm, match=True),
            ),
            "derived values": (
                softmax.attention_error(scores, values[:, None], warm),
                softmax.off_mass(gaps, warm),
            ),
            "control": (softmax.off_mass(gaps, 0.9 * cold), THIRDS.radius),
        }
    )


ALL_ONE_BELOW = "no match, all keys one below, with values one"

SOFTMAX = Statement(
    id="smapprox.thm4.1-softmax",
    label="Theorem 4.1 with softmax attention (not in the paper)",
    formula="inverse temperature ln(2T+2) keeps the softmax mass off the best key below 1/3",
    tex=r"\frac{T e^{-\beta}}{1 + T e^{-\beta}} \le \frac{1}{3} \quad \text{at } "
    r"\beta = \ln(2 T + 2)",
    kind="inequality",
    evaluate=_softmax,
    judges=(
        softmax.inverse_temperature,
        softmax.least_inverse_temperature,
        softmax.off_mass,
        softmax.off_mass_bound,
        softmax.attention_error,
        soft_max,
        hard_attention,
    ),
    sample={"random scores": _random_scores},
    cases=_no_match,
    sizes=({"T": 5}, {"T": 40}),
    search="random",
    budget=Budget(restarts=2, steps=30),
    forms=(
        Form(name="derived thirds", note="T e^-b/(1 + T e^-b) with e^b = 2(T + 1)."),
        Form(name="derived dyadic", note="e^b = 3(T + 1) for radius 1/4."),
        Form(name="derived least", note="e^b = 2T is the least.", equality=ALL_ONE_BELOW),
        Form(name="derived no match", note="T e^-b/(1 + T e^-b).", equality=ALL_ONE_BELOW),
        Form(
            name="derived match",
            note="e^-b + T e^-2b for its unit.",
            equality="the null key one below, all others two",
        ),
        Form(
            name="derived values",
            note="Values in {0, 1} err by the mass off the best key at most.",
            equality=ALL_ONE_BELOW,
        ),
    ),
    control="nine tenths of the inverse temperature",
    source="after Section 4",
)

STATEMENTS = (MARGIN, MARGIN_RATE, SOFTMAX)
