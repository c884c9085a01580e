"""Theorem 4.1: the margins of compiled machines, and softmax attention."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox import execute, softmax
from jaxbounds.smapprox.certified_machine import machine_margin_lower
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.encoder_decoder import EncoderDecoder
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import Action, TuringMachine
from jaxbounds.smapprox.straight_through import hard_attention, soft_max
from jaxbounds.smapprox.transformer import run


@functools.cache
def _parity_network(T: int) -> tuple[Any, Any, float]:
    compiled = compile_machine(LIBRARY["parity"]().machine, T, correction=THIRDS)
    return compiled, execute.encode(compiled, ["101"]), machine_margin_lower(compiled)


PARTS = ("inputs", "attention", "W1", "b1", "W2", "b2", "W3", "b3")
"""The groups of the network's weights; "inputs" contains the embedding, the start state and the
head."""


def _one_kind(size: Size) -> Instance:
    return {"seed": np.zeros(len(PARTS), int), "share": np.eye(len(PARTS))}


@functools.cache
def _kinds(T: int) -> np.ndarray:
    params = _parity_network(T)[0].params
    attention = dict.fromkeys(("dec", "enc"), "attention")
    kind = lambda path: "inputs" if len(path) == 1 else attention.get(path[1].key, path[1].key)
    of_leaf = [(PARTS.index(kind(p)), v.size) for p, v in jax.tree.leaves_with_path(params)]
    return np.repeat(*np.array(of_leaf).T)


# The programs run for hundreds of directions, so the compiler optimises them at every setting.
_optimised = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 2})


@functools.lru_cache(maxsize=16)
def _noise(T: int, seed: int) -> np.ndarray:
    return np.asarray(_normal(np.asarray(seed), len(_kinds(T))))


@functools.partial(_optimised, static_argnums=1)
def _normal(seed: Array, count: int) -> Array:
    return jax.random.normal(jax.random.key(seed), (count,))


@functools.cache
def _mover(T: int) -> Any:
    compiled, inputs, _ = _parity_network(T)
    one = (inputs.tokens[0], inputs.present[0], inputs.encoder_codes, inputs.decoder_codes)
    net = EncoderDecoder(compiled.layout.width, compiled.depth, 2 * compiled.layout.bits + 1)

    @_optimised
    def moved(exact: Any, unit: Array, radii: Array) -> Array:
        theta, unravel = ravel_pytree(exact)
        theta_at = lambda r: {"params": {"theta": unravel(theta + r * unit)}}
        passes: Any = lambda r: net.apply(theta_at(r), *one, method="passes")
        return jax.lax.map(lambda r: passes(r).outputs, radii)

    return lambda unit, radii: np.asarray(moved(compiled.params, unit, radii))


@functools.cache
def _still(T: int) -> np.ndarray:
    return _mover(T)(np.zeros(len(_kinds(T))), np.zeros(2))[0]


def _restored(i: Instance, size: Size) -> Sides:
    T = size["T"]
    noise = i["share"][_kinds(T)] * _noise(T, int(i["seed"]))
    unit = noise / math.sqrt(max(float(np.sum(noise**2)), 1e-300))
    outputs = _mover(T)(unit, _parity_network(T)[2] * np.array([1.0, 3000.0]))
    moved, far = np.abs(outputs - _still(T)).max(axis=(1, 2))
    return Sides.pairs({"corrected": (moved, THIRDS.radius), "control": (far, THIRDS.radius)})


MARGIN = Statement(
    id="smapprox.thm4.1.margin",
    label="Theorem 4.1, the margin",
    formula="|delta| at the certified radius moves no output coordinate by more than 1/3",
    tex=r"\|\delta\|_2 \le \gamma \Rightarrow \|o_i(\theta + \delta) - o_i(\theta)\|_\infty \le "
    r"\frac{1}{3} \quad (0 \le i \le T)",
    kind="inequality",
    evaluate=_restored,
    judges=(machine_margin_lower, EncoderDecoder.passes, run),
    host=True,
    # A random direction, and the factor of each kind of weights in the direction.
    over={"seed": Integers(0, 2**30), "share": Box(0, 1, len(PARTS))},
    cases=_one_kind,
    sizes=({"T": 5},),
    search="random",
    forms=(
        Form(
            name="corrected",
            note="The lower bound on the margin needs Condition D.3 only at the unperturbed "
            "parameters (erratum E11), and uses the measured norms of the layers.",
        ),
    ),
    control="3000 times the radius",
    assumptions="the parity machine on the word 101, T = 5; random directions, and a search over "
    "the kinds of weights that they move",
    budget=Budget(samples=64, restarts=4, steps=25),
    source="Section 4, Appendix D",
)


def _lengths(size: Size) -> Instance:
    lengths, cycles = [3, 4, 5, 6, 7, 8, 10, 12, 16, 20], [2, 3, 4, 6, 8, 12, 16, 24, 72]
    return {
        "log_T": np.array([*lengths, *(5 for _ in cycles)]),
        "cycle": np.array([*(1 for _ in lengths), *cycles]),
    }


def _cycle(states: int) -> TuringMachine:
    """Return a machine that moves right in every step and runs through its states in a cycle.

    The machine rejects if it reads a 1, and accepts at the end of the input.
    """
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
    id="smapprox.thm4.1.margin.rate",
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
            exponent=(0.3, 0.4),
            note="The check replaces poly(k, |A|, log T) by an explicit polynomial.",
        ),
        Form(
            name="printed log T",
            cites="the same, in log T alone",
            sense="at most",
            exponent=(0.8, 0.9),
            hypotheses=lambda i, size: {"the smallest machine": i["cycle"] == 1},
        ),
        Form(
            name="printed k|A|",
            cites="the same, in k|A| alone",
            sense="at most",
            exponent=(0.12, 0.22),
            hypotheses=lambda i, size: {"T = 31": i["log_T"] == 5},
        ),
    ),
    control="the exponent of log T one and a half less than it is",
    assumptions="machines of 4 to 75 states and three symbols, T from 7 to 2^20 - 1; certified "
    "margins, which hold for every input",
    source="Section 4, Appendix C.2",
)


def _memories(size: Size) -> Instance:
    """Return the scores and values of T keys; a key's score is 1 + `extra` below the best score.

    Keys with equal scores have equal values.
    """
    T, below = size["T"], np.arange(3)
    counts = [(a, b, T - a - b) for a in range(T + 1) for b in range(T + 1 - a)]
    extra = np.array([np.repeat(below, count) for count in counts])
    values = np.array(list(np.ndindex(2, 2, 2)))
    return {
        "extra": np.repeat(extra, len(values), axis=0),
        "values": values[:, extra].swapaxes(0, 1).reshape(-1, T),
    }


def _softmax(i: Instance, size: Size) -> Sides:
    """Compute the softmax weight of all keys except the best, and the error of softmax attention.

    The null key has the score 0, and every key except the matching key the score -1 - `extra`.
    """
    T, gaps = size["T"], 1.0 + i["extra"].astype(float)
    cold, dyadic = softmax.inverse_temperature(T, THIRDS), softmax.inverse_temperature(T, DYADIC)
    warm = softmax.least_inverse_temperature(T, THIRDS)
    matched = jnp.concatenate([jnp.ones(1), gaps + 1])
    scores, values = jnp.append(0.0, -gaps), jnp.append(0.0, i["values"].astype(float))
    error = lambda held: softmax.attention_error(scores, held[:, None], warm)
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
                jnp.maximum(error(values), error(1.0 - values)),
                softmax.off_mass(gaps, warm),
            ),
            "control": (softmax.off_mass(gaps, 0.9 * cold), THIRDS.radius),
        }
    )


ALL_ONE_BELOW = "no match, all keys one below, with values one"

SOFTMAX = Statement(
    id="smapprox.thm4.1.softmax",
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
    cases=_memories,
    enumerates="all T keys that score one to three below the best, those of one score with one "
    "value of 0 and 1, in any order",
    search="none",
    sizes=({"T": 5}, {"T": 40}),
    budget=Budget(batch=2048),
    forms=(
        Form(
            name="derived thirds",
            note=(
                "For T + 1 keys, the softmax weight on all keys but the best is at most T e^-b/(1 "
                "+ T e^-b), where b is the inverse temperature and e^b = 2(T + 1)."
            ),
        ),
        Form(
            name="derived dyadic",
            note="If the corrections repair errors up to 1/4, the compiled machine with softmax "
            "attention is exact at an inverse temperature b with e^b = 3(T + 1).",
        ),
        Form(
            name="derived least",
            note="With softmax attention, the compiled machine makes errors at each inverse "
            "temperature b with e^b < 2T.",
            equality=ALL_ONE_BELOW,
        ),
        Form(
            name="derived no match",
            note=(
                "If no key matches the query, attention must select the null key, and the softmax "
                "weight on all other keys is at most T e^-b/(1 + T e^-b) at inverse temperature b."
            ),
            equality=ALL_ONE_BELOW,
        ),
        Form(
            name="derived match",
            note="If a key matches the query, the other keys together have at most e^-b + T e^-2b "
            "times this key's weight, at inverse temperature b.",
            equality="the null key one below, all others two",
        ),
        Form(
            name="derived values",
            note="If the values lie in {0, 1}, the error of the output is at most the softmax "
            "weight on all keys but the best.",
            equality=ALL_ONE_BELOW,
        ),
    ),
    control="nine tenths of the inverse temperature",
    source="after Section 4",
)

STATEMENTS = (MARGIN, MARGIN_RATE, SOFTMAX)
