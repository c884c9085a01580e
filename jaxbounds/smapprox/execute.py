"""Run a compiled machine on inputs, and decode the network's states to a machine's trace."""

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.ground.memory import LIMIT, refuse_over
from jaxbounds.smapprox import look_up
from jaxbounds.smapprox.compile_machine import Compiled
from jaxbounds.smapprox.machines import TuringMachine, simulate
from jaxbounds.smapprox.structure import LEAVES, Structure
from jaxbounds.smapprox.transformer import HARD, Attention, Run, Segment, run

CHUNK = 64
"""The number of inputs that run at once; a larger number needs more memory and fewer passes."""


class Inputs(NamedTuple):
    """The array arguments of `transformer.run`, each with a leading axis for the words."""

    tokens: Float[np.ndarray, "n m na"]
    present: Bool[np.ndarray, "n m"]
    encoder_codes: Float[np.ndarray, "m w"]
    decoder_codes: Float[np.ndarray, "T2 w"]


class Decoded(NamedTuple):
    """The outputs o_0 .. o_T of a network, decoded to the states of a machine and its tape.

    Attributes:
        states: the index of the state z_i in the machine's states, from 0; -1 is the start state
            that the compiler adds.
        heads: the number l_i of the head's cell, modulo 2^w_pos.
        symbols: the index of a_i, the symbol under the head.
        error: the largest distance, over coordinates, of the network's output from the exact binary
            state.
        decision: the output theta_cls . o_T: near 1 (accept), -1 (reject) or 0 (undecided).
    """

    states: Int[np.ndarray, "n T1"]
    heads: Int[np.ndarray, "n T1"]
    symbols: Int[np.ndarray, "n T1"]
    error: Float[np.ndarray, "n"]
    decision: Float[np.ndarray, "n"]


def encode(
    compiled: Compiled, words: Sequence[Sequence[str]], /, *, length: int | None = None
) -> Inputs:
    """Encode words as inputs of the network, padded to the longest word (or to `length`).

    The arrays are float64 NumPy arrays.

    Raises:
        Refused: if a word has an unknown symbol, if a word is longer than T or `length`, or if the
            machine leaves a one-way tape.
    """
    machine, layout, T = compiled.machine, compiled.layout, compiled.T
    longest = max((len(word) for word in words), default=0)
    m = longest if length is None else length
    if longest > m or longest > T:
        raise Refused(
            f"a word has {longest} symbols, but length={m} and T={T}. Try length and T of at least"
            f" {longest}"
        )
    tokens = np.zeros((len(words), m, compiled.params["embedding"].shape[1]))
    present = np.zeros((len(words), m), dtype=bool)
    for n, word in enumerate(words):
        machine.check_word(word)
        for i, a in enumerate(word):
            tokens[n, i, layout.symbols.index(a)] = 1.0
            present[n, i] = True
        if compiled.tape == "one_way":
            _keep_on_tape(machine, word, T)
    codes = np.zeros((T + 2, layout.width))
    for i in range(T + 2):
        codes[i, list(layout.groups["pos1"])] = layout.binary(i)
    encoder = np.zeros((m, layout.width))
    for i in range(m):
        encoder[i, list(layout.groups["pos1"])] = layout.binary(i + 1)
    return Inputs(tokens, present, encoder, codes)


def _keep_on_tape(machine: TuringMachine, word: Sequence[str], T: int) -> None:
    heads = simulate(machine, word, T).heads
    if heads.min() < 1:
        raise Refused(
            f"machine={machine.name!r} goes to cell {heads.min()} on the word {''.join(word)!r}"
            f" at step {int(heads.argmax() if heads.max() < 1 else (heads < 1).argmax())}, left of"
            " cell 1, where a one-way tape begins. Try compiling with tape='two_way'"
        )


@cache
def _runner(segments: tuple[Segment, ...], attention: Attention, record: bool) -> Any:
    def batch(
        params: Any, tokens: Array, present: Array, enc: Array, dec: Array, tau: Array
    ) -> Run:
        how: Any = {"attention": attention, "inverse_temperature": tau, "record": record}
        each = lambda word: run(params, word[0], word[1], enc, dec, segments=segments, **how)
        if len(tokens) <= CHUNK:
            return jax.vmap(each)((tokens, present))
        return jax.lax.map(each, (tokens, present), batch_size=CHUNK)

    # Level 1 compiles faster than the default level 3, to an equally fast program; level 0 is slow.
    return jax.jit(batch, compiler_options={"xla_backend_optimization_level": 1})


@cache
def _finder(structure: Structure, T: int) -> Any:
    run_words = lambda params, tokens, present: look_up.run(structure, params, tokens, present, T)
    return jax.jit(run_words)


def memory_needed(compiled: Compiled, count: int, /, *, precision: str = "float32") -> int:
    """Compute the memory (bytes) that `look_up.run` and its outputs need for `count` words."""
    layout, size = compiled.layout, np.dtype(precision).itemsize
    weights = sum(leaf.size for leaf in jax.tree.leaves(compiled.params))
    leaving = sum(len(layout.groups[group]) for group in LEAVES)
    of_step = layout.width + 2 * leaving + len(layout.symbols)
    of_word = of_step * (compiled.T + 1) + 4 * layout.width  # a few intermediate states
    return size * (weights + count * of_word) + 4 * count * 2**layout.bits


def execute(
    compiled: Compiled,
    words: Sequence[Sequence[str]],
    /,
    *,
    precision: str = "float32",
    attention: Attention = HARD,
    inverse_temperature: float = 1.0,
    record: bool = False,
    params: Any = None,
    length: int | None = None,
    memory_limit: float = LIMIT,
) -> Run:
    """Run the compiled machine on words, by look-ups if possible, else by the dense network.

    A look-up finds the key that hard attention chooses, without scores of all keys, in a time
    linear in T. The dense network runs words on which a look-up cannot decide, weights that the
    compiler did not set, soft attention, and runs with `record`.

    Args:
        compiled: the machine, compiled to a network.
        words: the input words, each with at most T symbols.
        precision: "float32" or "float64".
        attention: the attention rule, hard-max (the paper's) or softmax.
        inverse_temperature: the factor of the scores in softmax attention.
        record: whether to return also the hidden states, the scores and the attention weights.
        params: weights that replace the compiled weights, for example perturbed weights.
        length: the length to which words are padded, so that batches share one compilation.
        memory_limit: the largest number of bytes that a run may need.

    Raises:
        Refused: if the run would need more memory than `memory_limit`; the error comes before the
            run starts.
    """
    inputs = encode(compiled, words, length=length)
    whole = record or params is not None
    segments = compiled.full if whole else compiled.used
    structure = None if whole or attention != HARD or compiled.together else compiled.structure
    need = memory_needed(compiled, len(words), precision=precision)
    if structure is not None:
        what = f"{len(words)} words for T = {compiled.T} steps need"
        refuse_over(need, memory_limit, what, "run fewer words at once or ")
    with enable_x64(precision == "float64"):
        cast = lambda a: np.asarray(a, bool if a.dtype == bool else precision)
        weights = jax.tree.map(cast, compiled.params if params is None else params)
        if structure is not None:
            tokens, present = cast(inputs.tokens), cast(inputs.present)
            found = _finder(structure, compiled.T)(weights, tokens, present)
            if bool(found.certain.all()):
                outputs: Any = np.zeros(
                    (len(words), compiled.T + 1, compiled.layout.width), precision
                )
                for group, values in found.states.items():
                    at = compiled.layout.groups[group]
                    outputs[..., at.start : at.stop] = np.asarray(values).transpose(2, 0, 1)
                output: Any = np.asarray(found.output)
                return Run(output, outputs, None)
        tau = np.asarray(inverse_temperature, precision)
        result = _runner(segments, attention, record)(weights, *map(cast, inputs), tau)
        return jax.tree.map(np.asarray, result)


def decode(compiled: Compiled, result: Run, /) -> Decoded:
    """Decode the outputs o_0 .. o_T to states, head positions and symbols."""
    layout, outputs = compiled.layout, np.asarray(result.outputs)
    part = lambda group: outputs[..., layout.groups[group].start : layout.groups[group].stop]
    states, symbols = part("st").argmax(-1), part("sym1").argmax(-1)
    bits = np.rint(part("pos2")).astype(int)
    heads = (bits * 2 ** np.arange(layout.bits)[::-1]).sum(-1)
    error = np.abs(outputs - exact_states(compiled, states - 1, heads, symbols)).max(axis=(-1, -2))
    return Decoded(states - 1, heads, symbols, error, np.asarray(result.output))


def exact_states(
    compiled: Compiled,
    states: Int[np.ndarray, "n T1"],
    heads: Int[np.ndarray, "n T1"],
    symbols: Int[np.ndarray, "n T1"],
    /,
) -> Float[np.ndarray, "n T1 w"]:
    """Return the exact outputs o_0 .. o_T that encode the given states, heads and symbols."""
    layout, groups = compiled.layout, compiled.layout.groups
    exact = np.zeros((*states.shape, layout.width), np.float32)
    np.put_along_axis(exact, groups["st"].start + states[..., None] + 1, 1.0, axis=-1)
    np.put_along_axis(exact, groups["sym1"].start + symbols[..., None], 1.0, axis=-1)
    exact[..., groups["pos2"].start : groups["pos2"].stop] = layout.binary(heads[..., None])
    return exact


def simulated(compiled: Compiled, words: Sequence[Sequence[str]], /) -> Decoded:
    """Simulate the machine on the words, and return the output that the network should have."""
    traces = [simulate(compiled.machine, word, compiled.T) for word in words]
    verdicts = {"accept": 1.0, "reject": -1.0, "undecided": 0.0}
    stack = lambda name: np.stack([getattr(trace, name) for trace in traces])
    return Decoded(
        stack("states"),
        stack("heads") % 2**compiled.layout.bits,
        stack("symbols"),
        np.zeros(len(words)),
        np.array([verdicts[trace.verdict] for trace in traces]),
    )


def decide(
    compiled: Compiled,
    words: Sequence[Sequence[str]],
    /,
    *,
    precision: str = "float32",
    attention: Attention = HARD,
    inverse_temperature: float = 1.0,
    params: Any = None,
    length: int | None = None,
    memory_limit: float = LIMIT,
) -> list[str]:
    """Decide each word by the network: "accept", "reject" or "undecided".

    A word is undecided if the machine did not halt within T steps; a warning names these words. The
    arguments and errors are those of `execute`.
    """
    outputs = execute(
        compiled,
        words,
        precision=precision,
        attention=attention,
        inverse_temperature=inverse_temperature,
        params=params,
        length=length,
        memory_limit=memory_limit,
    ).output
    verdicts = ["undecided" if abs(F) < 0.5 else "accept" if F > 0 else "reject" for F in outputs]
    late = ["".join(word) for word, verdict in zip(words, verdicts) if verdict == "undecided"]
    if late:
        warnings.warn(
            f"machine {compiled.machine.name!r} has not halted after T = {compiled.T} steps on "
            f"{late[:5]}. Try compiling with a larger T",
            stacklevel=2,
        )
    return verdicts
