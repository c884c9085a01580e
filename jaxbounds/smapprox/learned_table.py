"""A machine's transitions learned from accept bits, inside the compiled network.

An accept bit tells whether the machine accepts a word. Training changes only the layer of Lemma C.1
that holds the transition table. There the next state of each pair (state, symbol) becomes the
softmax of learned logits. If the machine's writes and moves do not depend on its state, and the
network has no corrections, it computes the acceptance probability of a probabilistic automaton. A
correction would round these probabilities and have zero gradient.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.smapprox import execute, look_up
from jaxbounds.smapprox.compile_machine import Compiled
from jaxbounds.smapprox.machines import TuringMachine
from jaxbounds.smapprox.structure import Structure
from jaxbounds.smapprox.transformer import HARD, Attention, Segment, run

ACT = 1
"""The index of the layer "C.1 act" with the transition table, among all layers from 0. A larger
index is closer to the output."""


class Task(NamedTuple):
    """A network and words as arguments of `transformer.run`, and the right answer for each word.

    Attributes:
        params: the network's weights in float32.
        present: whether each symbol is part of the word and not padding.
        labels: for each word, +1 if the machine accepts it and -1 if it rejects it.
    """

    params: Any
    tokens: Float[Array, "n m na"]
    present: Bool[Array, "n m"]
    encoder_codes: Float[Array, "m w"]
    decoder_codes: Float[Array, "T2 w"]
    labels: Float[Array, "n"]


def task(compiled: Compiled, words: Sequence[str], /) -> Task:
    """Return the task of learning some words, labelled by a simulation of the machine.

    Raises:
        Refused: if the machine does not halt on a word within T steps.
    """
    labels = execute.simulated(compiled, words).decision
    if not labels.all():
        late = [word for word, label in zip(words, labels) if not label]
        raise Refused(
            f"the machine does not halt within T={compiled.T} steps on words={late[:5]}. Try a"
            " larger T"
        )
    cast = lambda a: jnp.asarray(a, bool if a.dtype == bool else jnp.float32)
    inputs = execute.encode(compiled, words)
    return Task(*jax.tree.map(cast, (compiled.params, *inputs, labels)))


def outputs(
    problem: Task,
    params: Any,
    segments: tuple[Segment, ...],
    /,
    *,
    attention: Attention = HARD,
) -> Float[Array, "n"]:
    """Compute the network's output F on every word, with the weights `params`."""
    codes = problem.encoder_codes, problem.decoder_codes
    one = lambda tokens, present: (
        run(params, tokens, present, *codes, segments=segments, attention=attention).output
    )
    return jax.vmap(one)(problem.tokens, problem.present)


def outputs_by_look_up(
    problem: Task, params: Any, structure: Structure | None, /
) -> Float[Array, "n"]:
    """Compute the network's outputs as `outputs` does, but by look-ups.

    Only the transition table and other weights in matrix products may differ from the compiled
    weights. The values equal those of `outputs`; without corrections, so do the derivatives.

    Raises:
        Refused: if `structure` is None.
    """
    if structure is None:
        raise Refused(
            f"structure={structure}, expected the structure that `structure.read` finds in the "
            f"network. Try `outputs`, which needs no structure"
        )
    T = problem.decoder_codes.shape[0] - 2
    return look_up.run(structure, params, problem.tokens, problem.present, T).output


class Places(NamedTuple):
    """The rows and columns of the weight matrix W1 that hold the learned transition table.

    Attributes:
        pairs: the indices of the columns, one for each pair (non-terminal state, symbol).
        states: the indices of the rows, one for each next state.
    """

    pairs: tuple[int, ...]
    states: tuple[int, ...]


def places(compiled: Compiled, /) -> Places:
    """Return the rows and columns of a machine's transition table, without the extra state."""
    layout, machine = compiled.layout, compiled.machine
    pairs = tuple(layout.pair(z, a) for z, a in machine.transitions)
    return Places(pairs, tuple(layout.at("st", z) for z in machine.states))


def soft_table(
    params: Any,
    where: Places,
    logits: Float[Array, "pairs states"],
    /,
    *,
    straight_through: bool | Bool[Array, ""],
) -> Any:
    """Replace each next state in the network's weights by a softmax of logits over the states.

    If `straight_through` is true, each row is one-hot at the largest logit; its surrogate
    derivative is that of softmax.
    """
    rows = jax.nn.softmax(logits, axis=-1)
    hard = jax.nn.one_hot(logits.argmax(axis=-1), logits.shape[-1], dtype=rows.dtype)
    rows = rows + jnp.where(straight_through, jax.lax.stop_gradient(hard - rows), 0.0)
    pairs, states = np.array(where.pairs), np.array(where.states)
    W1 = params["layers"]["W1"].at[ACT, states[:, None], pairs[None, :]].set(rows.T)
    return params | {"layers": params["layers"] | {"W1": W1}}


def read_table(machine: TuringMachine, logits: Float[np.ndarray, "pairs states"], /) -> Any:
    """Return a copy of the machine; each next state is the state with the largest logit."""
    following = [machine.states[i] for i in np.asarray(logits).argmax(axis=-1)]
    learned = {
        pair: (after, write, move)
        for (pair, (_, write, move)), after in zip(machine.transitions.items(), following)
    }
    return replace(machine, transitions=learned, name=f"learned {machine.name}")
