"""Compute all steps of a run at once, each from the state that a given trace has at this step.

If every step turns the trace's state into the trace's next state, then by induction the network's
own run equals the trace. At timestep 0, the computation starts from the network's own start state.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.smapprox import execute, look_up
from jaxbounds.smapprox.compile_machine import Compiled
from jaxbounds.smapprox.structure import LEAVES, Structure, blocks
from jaxbounds.smapprox.transformer import HARD, Attention, attend, feed_forward, keys_and_values


def every_step(
    params: Any,
    tokens: Float[Array, "m na"],
    present: Bool[Array, "m"],
    encoder_codes: Float[Array, "m w"],
    decoder_codes: Float[Array, "T2 w"],
    outputs: Float[Array, "T1 w"],
    /,
    *,
    attention: Attention = HARD,
) -> Float[Array, "T1 w"]:
    """Compute the outputs o_0 .. o_T of all steps, each from given outputs o_0 .. o_(T-1).

    The outputs of `transformer.run` are a fixed point of this map. After k applications to any
    outputs, the first k outputs equal those of `transformer.run`.
    """
    T = outputs.shape[0] - 1
    encoded = tokens @ params["embedding"].T + encoder_codes
    h = jnp.concatenate([params["start"][None], outputs[:T] + decoder_codes[1 : T + 1]])
    step = jnp.arange(T + 1)
    past = (step >= 1)[None] & (step[None] <= step[:, None])
    memory_of = jax.vmap(keys_and_values, (None, 0))

    def layer(h: Array, p: Any) -> Any:
        steps, words = memory_of(p["dec"], h), memory_of(p["enc"], encoded)

        def one(h: Array, past: Array) -> Array:
            h, _ = attend(p["dec"], h, steps, past, attention=attention)
            h, _ = attend(p["enc"], h, words, present, attention=attention)
            return feed_forward(p, h, straight_through=attention.straight_through)

        return jax.vmap(one)(h, past), None

    return jax.lax.scan(layer, h, params["layers"])[0]


def last_visits(here: Array, asked: Array, cells: int, /) -> Array:
    """For each step i, return the last step up to i at which the head was on the cell asked[i].

    The result is 0 if there is no such step. Arrays have the shape (T1, n) for n words.
    """
    word = jnp.arange(here.shape[1])

    def step(table: Array, xs: Any) -> Any:
        i, here, asked = xs
        table = table.at[here, word].set(i)
        return table, table[asked, word]

    table = jnp.zeros((cells, here.shape[1]), jnp.int32)
    steps = jnp.arange(here.shape[0], dtype=jnp.int32)
    return jax.lax.scan(step, table, (steps, here, asked))[1]


def every_step_by_look_up(
    structure: Structure,
    params: Any,
    tokens: Float[Array, "n m na"],
    present: Bool[Array, "n m"],
    states: dict[str, Float[Array, "T1 size n"]],
    /,
) -> look_up.Found:
    """Compute `every_step` for a batch of words, by the look-ups of the module `look_up`."""
    layout, weights = structure.layout, blocks(structure, params)
    groups, (steps, _, n) = layout.groups, states["st"].shape
    start = {g: params["start"][groups[g].start : groups[g].stop] for g in LEAVES}
    begin = {g: jnp.broadcast_to(s[:, None], (1, len(s), n)) for g, s in start.items()}
    entering = {g: jnp.concatenate([begin[g], states[g][:-1]]) for g in LEAVES}
    codes = layout.binary(np.arange(steps)[:, None]).astype(params["start"].dtype)
    entering["pos1"] = jnp.broadcast_to(codes[:, :, None], (*codes.shape, n))
    h = {g: jnp.moveaxis(a, 1, 0) for g, a in entering.items()}
    here, _ = look_up.number(h["pos2"])
    word = jnp.broadcast_to(jnp.arange(n), here.shape)
    h, certain, _ = look_up.through(
        structure,
        weights,
        h,
        look_up.input_table(structure, params, tokens, present),
        lambda cell: last_visits(here, cell, 2**layout.bits),
        lambda now, visit: (now[:, visit, word], None),
    )
    after = {g: jnp.moveaxis(h[g], 1, 0) for g in LEAVES}
    head = lambda g: params["head"][groups[g].start : groups[g].stop]
    output = sum(head(g) @ after[g][-1] for g in LEAVES)
    return look_up.Found(after, output, certain.all(axis=0))


COLUMNS = 2**14
"""The number of states that go through the layers at once; a larger number may exceed the
processor's cache."""


@cache
def _by_look_up(structure: Structure, chunk: int) -> Any:
    groups = structure.layout.groups

    def errors(params: Any, tokens: Array, present: Array, trace: Any) -> Any:
        dtype, states = params["start"].dtype, {}
        for group, code in zip(("st", "sym1"), trace[:2]):
            names = np.arange(len(groups[group]), dtype=np.int32)[:, None]
            states[group] = (code.T[:, None] == names[None]).astype(dtype)
        places = np.arange(structure.layout.bits, dtype=np.int32)[::-1, None]
        states["pos2"] = (trace[2].T[:, None] >> places[None] & 1).astype(dtype)
        found = every_step_by_look_up(structure, params, tokens, present, states)
        far = [jnp.abs(found.states[g] - states[g]).max(axis=1) for g in LEAVES]
        return jnp.stack(far).max(axis=0).T, found.certain

    def batch(params: Any, *words: Any) -> Any:
        parts = jax.tree.map(lambda a: a.reshape(-1, chunk, *a.shape[1:]), words)
        found = jax.lax.map(lambda part: errors(params, *part), parts)
        return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), found)

    return jax.jit(batch)


@jax.jit
def _dense(params: Any, tokens: Array, present: Array, codes: Any, states: Array) -> Array:
    def error(word: Any) -> Array:
        found = every_step(params, word[0], word[1], codes[0], codes[1], word[2])
        return jnp.abs(found - word[2]).max(axis=-1)

    return jax.lax.map(error, (tokens, present, states), batch_size=execute.CHUNK)


def verify(
    compiled: Compiled,
    words: Sequence[Sequence[str]],
    trace: execute.Decoded,
    /,
    *,
    precision: str = "float32",
    params: Any = None,
) -> Float[np.ndarray, "n T1"]:
    """Run every step from the trace's state; return the distances from the trace's next states.

    If all distances of a word are 0, the network's own run on this word equals the trace.

    Args:
        compiled: the machine, compiled to a network.
        words: the input words, each with at most T symbols.
        trace: the trace to check, for example `execute.simulated(compiled, words)`.
        precision: "float32" or "float64".
        params: weights that replace the compiled weights; the function then uses the dense network
            instead of look-ups.

    Raises:
        Refused: if the trace does not have T + 1 steps on each word.
    """
    n, T = len(words), compiled.T
    if np.shape(trace.states) != (n, T + 1):
        raise Refused(
            f"trace.states.shape={np.shape(trace.states)}, expected {n} words with T + 1 ="
            f" {T + 1} steps each. Try simulating the words with the T of the network"
        )
    inputs = execute.encode(compiled, words)
    structure = compiled.structure if params is None else None
    with enable_x64(precision == "float64"):
        cast = lambda a: jnp.asarray(a, bool if a.dtype == bool else precision)
        weights = jax.tree.map(cast, compiled.params if params is None else params)
        if structure is not None:
            chunk = min(n, max(1, COLUMNS // (T + 1)))
            padded = lambda a: np.pad(a, ((0, -n % chunk), *((0, 0),) * (a.ndim - 1)))
            claimed = (trace.states + 1, trace.symbols, trace.heads)
            steps = tuple(jnp.asarray(padded(a), jnp.int32) for a in claimed)
            tokens, present = (cast(padded(a)) for a in inputs[:2])
            errors, certain = _by_look_up(structure, chunk)(weights, tokens, present, steps)
            if bool(certain[:n].all()):
                return np.asarray(errors)[:n]
        states = cast(execute.exact_states(compiled, trace.states, trace.heads, trace.symbols))
        codes = (cast(inputs.encoder_codes), cast(inputs.decoder_codes))
        return np.asarray(_dense(weights, cast(inputs.tokens), cast(inputs.present), codes, states))
