"""Upper estimates and certified lower bounds on margins, for several circuit depths and times T."""

from collections.abc import Callable, Sequence
from concurrent.futures import wait
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.smapprox import circuits, execute
from jaxbounds.smapprox.attack import (
    SHRINKINGS,
    UpperEstimate,
    blocks_by_layer,
    margin_upper,
    recertify,
)
from jaxbounds.smapprox.certified import circuit_margin_lower
from jaxbounds.smapprox.certified_machine import machine_margin_lower
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.experiments.at_once import Count, at_once, counted
from jaxbounds.smapprox.feedforward import (
    compile_circuit,
    feedforward,
    straight_through_feedforward,
)
from jaxbounds.smapprox.machines import TuringMachine, halting_time, simulate
from jaxbounds.smapprox.transformer import Attention, Segment, run

KINDS = {"uncorrected": None, "corrected": THIRDS}
"""For each compared network, the correction that rounds its states, or None."""


def chain_margins(
    depths: Sequence[int], refinements: int, /
) -> tuple[Float[np.ndarray, "2 depths"], Float[np.ndarray, "depths"]]:
    """Bound the margins of chains of identity gates, from above and from below, at the input 1.

    The upper bounds are for networks with and without corrections. The search at every depth starts
    from the perturbations found at smaller depths: the last layers of the deepest chain, with their
    states, are those of a shallow chain.

    Args:
        depths: the numbers of gates in the chains, in increasing order.
        refinements: the number of each search's moves along the decision boundary.
    """
    lower = np.zeros(len(depths))
    deepest = circuits.identity_chain(depths[-1])
    attacks = []
    for correction in KINDS.values():
        params = jax.tree.map(jnp.asarray, compile_circuit(deepest, correction=correction))
        data = (jnp.ones(1), jnp.asarray(correction is not None))
        states = np.asarray(jax.jit(feedforward)(params, data[0])[1])
        layers = [len(states) // depths[-1] * depth for depth in depths]
        if correction is not None:
            for column, depth in enumerate(depths):
                own = compile_circuit(circuits.identity_chain(depth), correction=correction)
                lower[column] = circuit_margin_lower(
                    own, states[None, -layers[column] :], correction
                )
        search = partial(margin_upper, _chain_output, _chain_surrogate, params, data=data)
        blocks = [_last_layers(params, count) for count in layers]
        attacks.append([Attack(partial(search, kept), len(kept), refinements) for kept in blocks])
    found = _side_by_side(attacks, "identity chains")
    return np.array([[estimate.radius for estimate in row] for row in found]), lower


class Attack(NamedTuple):
    """A search for an upper estimate of a margin.

    Attributes:
        search: the function `margin_upper` with all arguments fixed except `starts` and
            `refinements`.
        blocks: the number of parameter blocks on which the search runs.
        refinements: the number of moves along the decision boundary.
    """

    search: Callable[..., UpperEstimate]
    blocks: int
    refinements: int

    def rays(self, starts: int, /) -> int:
        """Return the number of directions that the search tries from `starts` starts."""
        return self.blocks + starts + len(SHRINKINGS) * self.refinements


def _side_by_side(attacks: Sequence[Sequence[Attack]], about: str) -> list[list[UpperEstimate]]:
    """Run all attacks in parallel, also from perturbations found before on the same network."""
    found: list[list[Any]] = []
    total = sum(attack.rays(starts) for row in attacks for starts, attack in enumerate(row))

    def one(attack: Attack, before: list, count: Count) -> UpperEstimate:
        wait(before[:1])  # the first attack of a row compiles for the row
        starts = (other.result().perturbation for other in before)
        tried = partial(count, 1, about)
        return attack.search(starts=starts, refinements=attack.refinements, tried=tried)

    with counted(total, "rays") as count, at_once() as submit:
        for row in attacks:
            found.append([])
            for attack in row:
                found[-1].append(submit(one, attack, list(found[-1]), count))
        return [[each.result() for each in row] for row in found]


def _chain_output(params: Any, x: Array, corrected: Array) -> Array:
    del corrected
    return feedforward(params, x)[0]


def _chain_surrogate(params: Any, x: Array, corrected: Array) -> Array:
    return straight_through_feedforward(params, x, corrected=corrected)


def _last_layers(params: Any, count: int) -> list[Any]:
    hidden = params["hidden"]["b"].shape[0]
    last = (np.arange(hidden) >= hidden + 1 - count).astype(float)
    whole = float(count == hidden + 1)
    every = blocks_by_layer(params, lambda path: path[0].key == "hidden")
    of_layer = lambda block: last.reshape((-1,) + (1,) * (block.ndim - 1)) * block
    kept = [
        {
            "first": jax.tree.map(lambda block: whole * block, blocks["first"]),
            "hidden": jax.tree.map(of_layer, blocks["hidden"]),
            "head": blocks["head"],
        }
        for blocks in every
    ]
    return [blocks for blocks in kept if any(leaf.any() for leaf in jax.tree.leaves(blocks))]


def machine_margins(
    machine: TuringMachine,
    words: Sequence[str],
    times: Sequence[int],
    bits: int,
    refinements: int,
    /,
) -> tuple[Float[np.ndarray, "2 T"], Float[np.ndarray, "T"]]:
    """Bound the margins of a compiled machine for several T, from above and from below.

    The upper bounds are for networks with and without corrections. All T share the compiled
    weights, so the function tests a perturbation found at one T at all other T.

    Args:
        machine: the machine.
        words: the input of the network, for each T.
        times: the numbers of steps T, in increasing order, each at least the halting time on the
            word.
        bits: the number w_pos of position bits, equal for all T.
        refinements: the number of each search's moves along the decision boundary.

    Raises:
        Refused: if the machine does not halt within T steps on the word of this T.
    """
    lower = np.zeros(len(times))
    cases = [
        _case(machine, word, T, times[-1], max(map(len, words)), bits)
        for word, T in zip(words, times)
    ]
    attacks, checks = [], []
    for correction in KINDS.values():
        compiled = compile_machine(machine, times[-1], correction=correction, bits=bits)
        params = jax.tree.map(jnp.asarray, compiled.params)
        output = partial(_output_at, segments=compiled.full, straight_through=False)
        surrogate = partial(_output_at, segments=compiled.full, straight_through=True)
        blocks = blocks_by_layer(params, lambda path: path[0].key == "layers")
        if correction is not None:
            lower[:] = machine_margin_lower(compiled)
        search = partial(margin_upper, output, surrogate, params, blocks)
        count = len(blocks)
        attacks.append([Attack(partial(search, data=data), count, refinements) for data in cases])
        checks.append(partial(recertify, output, params))
    found = _side_by_side(attacks, "machine")
    upper = np.array([[estimate.radius for estimate in row] for row in found])
    for best, row, check in zip(upper, found, checks):
        for column, data in enumerate(cases):
            others = [check(later.perturbation, data=data) for later in row[column + 1 :]]
            best[column] = min([best[column], *others])
    return upper, lower


def _case(
    machine: TuringMachine, word: str, T: int, longest_T: int, longest: int, bits: int
) -> tuple[Array, ...]:
    halting_time(machine, word, T)
    sign = 1.0 if simulate(machine, word, T).verdict == "accept" else -1.0
    compiled = compile_machine(machine, longest_T, correction=None, bits=bits)
    inputs = execute.encode(compiled, [word], length=longest)
    arrays = (inputs.tokens[0], inputs.present[0], inputs.encoder_codes, inputs.decoder_codes)
    return *map(jnp.asarray, arrays), jnp.asarray(T), jnp.asarray(sign)


def _output_at(
    params: Any,
    tokens: Array,
    present: Array,
    encoder_codes: Array,
    decoder_codes: Array,
    T: Array,
    sign: Array,
    *,
    segments: tuple[Segment, ...],
    straight_through: bool,
) -> Array:
    """Compute (2y - 1) F from the output after T steps of a run that may contain more steps."""
    attention = Attention(straight_through=straight_through)
    inputs = (tokens, present, encoder_codes, decoder_codes)
    # a loop that gradients pass through needs a number of steps known beforehand
    stop = None if straight_through else T
    outputs = run(params, *inputs, segments=segments, attention=attention, stop=stop).outputs
    return sign * (params["head"] @ outputs[T])
