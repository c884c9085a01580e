"""Theorem 4.1: the size of compiled machines, their margins, and softmax attention."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxbounds.smapprox import execute
from jaxbounds.smapprox.certified_machine import machine_margin_lower
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.feedforward import l1_norm
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.softmax import inverse_temperature, off_mass
from jaxbounds.smapprox.transformer import run
from jaxbounds.statements import Budget, Form, Sides, Statement


def _size_cases(size):
    machine = LIBRARY["palindrome"]().machine
    nz, na = len(machine.states) + 1, len(machine.alphabet)
    rows = []
    for log_T in (3, 5, 8, 12, 16, 20):
        compiled = compile_machine(machine, 2**log_T - 1, adder="ripple", correction=None)
        wp, w, D = compiled.layout.bits, compiled.layout.width, compiled.depth
        norm = l1_norm(compiled.params) + 9 * w * D
        rows.append((log_T, D, norm, wp * (nz * na + wp)))
    names = ("log_T", "depth", "norm", "norm_order")
    return {name: np.array(column, float) for name, column in zip(names, zip(*rows))}


def _size(i):
    return Sides(
        {
            "printed depth": i["depth"],
            "printed norm": i["norm"],
            "control": 2.0 ** i["log_T"],
        },
        {
            "printed depth": i["log_T"],
            "printed norm": i["norm_order"],
            "control": i["log_T"],
        },
    )


def _width_cases(size):
    rows = []
    for make in LIBRARY.values():
        for T in (1, 7, 100):
            layout = compile_machine(make().machine, T).layout
            rows.append((layout.width, len(layout.states), len(layout.symbols), layout.bits))
    return dict(zip(("width", "states", "symbols", "bits"), map(np.array, zip(*rows))))


def _width(i):
    order = (i["states"] * i["symbols"] + i["bits"]).astype(float)
    return Sides(i["width"].astype(float), {"derived": 4 * order, "control": order})


def _norm_cases(size):
    compiled = compile_machine(LIBRARY["equal_blocks"]().machine, 13)
    result = execute.execute(compiled, ["", "ab", "aabb", "abab"], record=True)
    largest = np.linalg.norm(result.record.hidden.astype(float), axis=-1).max(axis=(1, 2))
    return {"norm": largest[:, None], "bits": np.full(len(largest), compiled.layout.bits)}


def _norm(i):
    wp = i["bits"].astype(float)
    return Sides(
        i["norm"][0], {"derived": jnp.sqrt(4 * wp + 5), "control": jnp.sqrt(wp)}, error=1e-6
    )


@functools.cache
def _parity_network():
    compiled = compile_machine(LIBRARY["parity"]().machine, 5, correction=THIRDS)
    inputs = execute.encode(compiled, ["101"])
    return compiled, inputs, machine_margin_lower(compiled)


def _directions(key, size):
    return {"seed": jax.random.randint(key, (), 0, 2**30), "biases": jnp.zeros((), int)}


def _bias_directions(key, size):
    return _directions(key, size) | {"biases": jnp.ones((), int)}


def _restored(i):
    """Perturb all weights by the certified radius; how far are the outputs from the exact ones?"""
    compiled, inputs, radius = _parity_network()
    cast = lambda a: jnp.asarray(a, bool if a.dtype == bool else float)
    exact = jax.tree.map(cast, compiled.params)
    theta, unravel = ravel_pytree(exact)
    noise = jax.random.normal(jax.random.key(i["seed"]), theta.shape)
    zero = jax.tree.map(jnp.zeros_like, exact)
    marked = zero["layers"] | {name: 1 + zero["layers"][name] for name in ("b1", "b3")}
    biases, _ = ravel_pytree(zero | {"layers": marked})
    noise = jnp.where(i["biases"] == 1, noise * biases, noise)
    unit = noise / jnp.sqrt(noise @ noise)
    one = [cast(inputs.tokens[0]), cast(inputs.present[0])]
    one += [cast(inputs.encoder_codes), cast(inputs.decoder_codes)]
    outputs = lambda r: run(unravel(theta + r * unit), *one, segments=compiled.full).outputs
    still, moved, far = jax.lax.map(outputs, radius * jnp.array([0.0, 1.0, 20000.0]))
    off = lambda o: jnp.abs(o - still).max()
    bound = jnp.asarray(THIRDS.radius)
    return Sides(
        {"corrected": off(moved), "control": off(far)},
        {"corrected": bound, "control": bound},
    )


def _gap_sample(key, size):
    return {"extra": jax.random.randint(key, (size["T"],), 0, 3)}


def _no_match(key, size):
    return {"extra": jax.random.randint(key, (size["T"],), 0, 1)}


def _softmax(i):
    gaps = 1.0 + i["extra"].astype(float)
    T = i["extra"].shape[0]
    cold = lambda zeta: inverse_temperature(T, zeta)
    return Sides(
        {
            "derived thirds": off_mass(gaps, cold(THIRDS)),
            "derived dyadic": off_mass(gaps, cold(DYADIC)),
            "control": off_mass(gaps, 0.9 * cold(THIRDS)),
        },
        {
            "derived thirds": jnp.asarray(THIRDS.radius),
            "derived dyadic": jnp.asarray(DYADIC.radius),
            "control": jnp.asarray(THIRDS.radius),
        },
    )


STATEMENTS = (
    Statement(
        id="smapprox.thm4.1-size",
        label="Theorem 4.1, d ~ log T, alpha = poly(k, |A|, log T)",
        formula="depth and l1 norm grow at most as log T and w_pos (k|A| + w_pos)",
        kind="rate",
        evaluate=_size,
        cases=_size_cases,
        sizes=({"all": 1},),
        forms=(
            Form(name="printed depth", sense="at most", note="D = 3 w_pos + 8."),
            Form(
                name="printed norm",
                sense="at most",
                note="Corrections included: 9 w D of it.",
            ),
        ),
        control="unary positions: T against log T",
        assumptions="the palindrome machine, T from 7 to 2^20 - 1",
        source="Section 4",
    ),
    Statement(
        id="smapprox.thm4.1-width",
        label="Theorem 4.1, w ~ k|A| + log T",
        formula="w <= 4 (k|A| + w_pos)",
        kind="inequality",
        evaluate=_width,
        cases=_width_cases,
        sizes=({"all": 1},),
        search="none",
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
    ),
    Statement(
        id="smapprox.thm4.1-norms",
        label="Condition D.4 for Theorem 4.1",
        formula="|h| <= sqrt(4 w_pos + 5) for every state of the network",
        kind="inequality",
        evaluate=_norm,
        cases=_norm_cases,
        sizes=({"all": 1},),
        search="none",
        forms=(Form(name="derived", note="Each one-hot group holds one 1, each position w_pos."),),
        control="sqrt(w_pos)",
        source="Appendix D",
    ),
    Statement(
        id="smapprox.thm4.1-margin",
        label="Theorem 4.1, the margin",
        formula="|delta| at the certified radius moves no output coordinate by more than 1/3",
        kind="inequality",
        evaluate=_restored,
        sample={"all weights": _directions, "biases only": _bias_directions},
        sizes=({"all": 1},),
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
    ),
    Statement(
        id="smapprox.thm4.1-softmax",
        label="Theorem 4.1 with softmax attention (not in the paper)",
        formula="inverse temperature ln(2T+2) keeps the softmax mass off the best key below 1/3",
        kind="inequality",
        evaluate=_softmax,
        sample={"random scores": _gap_sample, "no match, all keys one below": _no_match},
        sizes=({"T": 5}, {"T": 40}),
        search="none",
        forms=(
            Form(name="derived thirds", note="T e^-b/(1 + T e^-b) with e^b = 2(T + 1)."),
            Form(name="derived dyadic", note="e^b = 3(T + 1) for radius 1/4."),
        ),
        control="nine tenths of the inverse temperature",
        source="after Section 4",
    ),
)
