"""Theorem 4.1: the size of compiled machines, their margins, and softmax attention."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from jaxbounds.smapprox import execute, softmax
from jaxbounds.smapprox.certified_machine import machine_margin_lower, state_norm
from jaxbounds.smapprox.compile_machine import compile_machine, position_bits
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.encoder_decoder import EncoderDecoder
from jaxbounds.smapprox.feedforward import l1_norm
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.readout import TIES_SHOWN
from jaxbounds.smapprox.straight_through import hard_attention, soft_max
from jaxbounds.smapprox.transformer import run
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement


def _growing(size: Size) -> Instance:
    return {"log_T": np.array([k for k in (3, 5, 8, 12, 16, 20) if k <= size["log_T"]])}


def _size(i: Instance, size: Size) -> Sides:
    log_T = float(i["log_T"])
    machine = LIBRARY["palindrome"]().machine
    compiled = compile_machine(machine, 2 ** int(log_T) - 1, adder="ripple", correction=THIRDS)
    wp, pairs = compiled.layout.bits, len(compiled.layout.states) * len(machine.alphabet)
    return Sides.pairs(
        {
            "printed depth": (compiled.depth, log_T),
            "printed norm": (l1_norm(compiled.params), wp * (pairs + wp)),
            "control": (2.0**log_T, log_T),
        }
    )


SIZE = Statement(
    id="smapprox.thm4.1-size",
    label="Theorem 4.1, d ~ log T, alpha = poly(k, |A|, log T)",
    formula="depth and l1 norm grow at most as log T and w_pos (k|A| + w_pos)",
    kind="rate",
    evaluate=_size,
    judges=(compile_machine, l1_norm),
    host=True,
    cases=_growing,
    sizes=({"log_T": 20},),
    forms=(
        Form(name="printed depth", sense="at most", note="D = 3 w_pos + 8."),
        Form(name="printed norm", sense="at most", note="Corrections included: 9 w D of it."),
    ),
    control="unary positions: T against log T",
    assumptions="the palindrome machine, T from 7 to 2^20 - 1",
    source="Section 4",
)


def _width(i: Instance, size: Size) -> Sides:
    machine = [*LIBRARY.values()][i["machine"]]().machine
    layout = compile_machine(machine, size["T"]).layout
    order = len(layout.states) * len(layout.symbols) + layout.bits
    return Sides(layout.width, {"derived": 4 * order, "control": order})


WIDTH = Statement(
    id="smapprox.thm4.1-width",
    label="Theorem 4.1, w ~ k|A| + log T",
    formula="w <= 4 (k|A| + w_pos)",
    kind="inequality",
    evaluate=_width,
    judges=(compile_machine, position_bits),
    host=True,
    cases=lambda size: {"machine": np.arange(len(LIBRARY))},
    sizes=({"T": 1}, {"T": 7}, {"T": 100}),
    forms=(
        Form(
            name="derived",
            note="w = k|A| + k + 4|A| + 4 w_pos + 3, with k >= 3 and |A| >= 2 counting the "
            "state of timestep 0.",
        ),
    ),
    control="without the 4",
    assumptions="the nine machines, T = 1, 7, 100",
    source="Section 4",
)

WORDS = ("aabb", "abab", "aaaa")


def _norm(i: Instance, size: Size) -> Sides:
    compiled = compile_machine(LIBRARY["equal_blocks"]().machine, size["T"])
    result = execute.execute(compiled, [WORDS[i["word"]]], record=True, attention=TIES_SHOWN)
    largest = np.linalg.norm(result.record.hidden.astype(float), axis=-1).max()
    bits = compiled.layout.bits
    return Sides(largest, {"derived": state_norm(bits), "control": bits**0.5}, error=1e-6)


NORMS = Statement(
    id="smapprox.thm4.1-norms",
    label="Condition D.4 for Theorem 4.1",
    formula="|h| <= sqrt(4 w_pos + 5) for every state of the network",
    kind="inequality",
    evaluate=_norm,
    judges=(state_norm, execute.execute),
    host=True,
    cases=lambda size: {"word": np.arange(len(WORDS))},
    sizes=({"T": 13},),
    forms=(Form(name="derived", note="Each one-hot group holds one 1, each position w_pos."),),
    control="sqrt(w_pos)",
    assumptions=f"the machine for a^n b^n on {', '.join(WORDS)}",
    source="Appendix D",
)


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
    search="none",
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

STATEMENTS = (SIZE, WIDTH, NORMS, MARGIN, SOFTMAX)
