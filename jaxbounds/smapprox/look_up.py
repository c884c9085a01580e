"""Run a compiled network by small matrix products, and by look-ups in place of hard attention.

The result equals that of `transformer.run`. Each attention of the network looks for a past step by
the head's cell and leading bits p of the timestep. The run stores only the last visit to each cell.
If the last visit's leading bits equal p, a match exists; if they are smaller, none exists. If they
are larger, or a position code is not binary, `certain` is false, and the dense network must run the
word. The last axis of each array has one entry for each word.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.smapprox.structure import LEAVES, LookUp, Structure, blocks

State = dict[str, Array]
"""A dictionary from the name of each nonzero coordinate group of a state to an array (size, n)."""
LastVisit = Callable[[Array], Array]
"""A function from cells to the last step at which the head was on the cell; 0 means never."""
Recall = Callable[[Array, Array], tuple[Array, Any]]
"""A function that returns a coordinate group's values at earlier steps, and a value to store for
the next step. Its arguments are the group's present value and the numbers of the earlier steps."""

POSITIONS = ("pos1", "pos2", "pos3", "scr3")
"""The groups that hold position codes, or bits of a position code."""

BINARY_WITHIN = 1e-3
"""The distance from 0 or 1, as a share of a bit's value, up to which a coordinate counts as a
binary bit. A larger distance counts more states. Attention scores differ by at least 1, so such
deviations do not change their order."""


class Found(NamedTuple):
    """The network's states and output, computed with look-ups.

    Attributes:
        states: the states o_0 .. o_T, as a dict from each nonzero coordinate group's name.
        output: the network's output theta_cls . o_T.
        certain: whether the result equals the result of the dense network without doubt.
    """

    states: dict[str, Float[Array, "T1 size n"]]
    output: Float[Array, "n"]
    certain: Bool[Array, "n"]


def number(bits: Float[Array, "b *n"], /) -> tuple[Int[Array, "*n"], Bool[Array, "*n"]]:
    """Return the integer that position bits encode (highest first).

    Return also whether all bits are binary.
    """
    powers = 2 ** np.arange(bits.shape[0])[::-1].reshape(-1, *(1,) * (bits.ndim - 1))
    one = bits > 0.5
    code = jnp.where(one, powers, 0).sum(axis=0, dtype=jnp.int32)
    return code, (jnp.abs(bits - one.astype(bits.dtype)) < BINARY_WITHIN).all(axis=0)


def matches(
    look_up: LookUp, bits: int, h: State, last: Int[Array, "*n"], /
) -> tuple[Bool[Array, "*n"], Bool[Array, "*n"]]:
    """Tell whether a past step matches a look-up, and whether `last` suffices for this answer.

    The argument `last` is the step of the last visit to the cell, or 0 without a visit.
    """
    asked, binary = jnp.zeros_like(last), jnp.ones(last.shape, bool)
    if look_up.known:
        asked, binary = number(h[look_up.prefix][: look_up.known])
    asked = 2 * asked + 1 if look_up.asks else asked
    leading = last >> (bits - look_up.known - look_up.asks)
    return (last > 0) & (leading == asked), binary & (leading <= asked)


def input_table(
    structure: Structure, params: Any, tokens: Float[Array, "n m na"], present: Array, /
) -> tuple[Float[Array, "m1 na n"], Bool[Array, "m1 n"]]:
    """Return each cell's embedded symbol, and a mask of the cells that hold a symbol.

    Cell 0 holds no symbol.
    """
    at = structure.layout.groups["sym1"]
    embedded = jnp.moveaxis(tokens @ params["embedding"][at.start : at.stop].T, 0, -1)
    return jnp.pad(embedded, ((1, 0), (0, 0), (0, 0))), jnp.pad(present.T, ((1, 0), (0, 0)))


def in_input(
    embedded: Float[Array, "m1 na n"], present: Bool[Array, "m1 n"], cell: Int[Array, "*t n"], /
) -> tuple[Bool[Array, "*t n"], Float[Array, "na *t n"]]:
    """Return whether a cell of `input_table` holds an input symbol, and the embedded symbol."""
    place = jnp.where(cell < len(embedded), cell, 0)
    word = jnp.broadcast_to(jnp.arange(embedded.shape[-1]), cell.shape)
    return present[place, word], jnp.moveaxis(embedded[place, :, word], -1, 0)


def through(
    structure: Structure, weights: list, h: State, inputs: Any, last: LastVisit, recall: Recall, /
) -> tuple[State, Bool[Array, "*n"], Any]:
    """Apply all layers to one state, or to many states as columns.

    Args:
        structure: the network.
        weights: the result of `structure.blocks`.
        h: the state before the first layer, one coordinate per row, with any number of trailing
            axes.
        inputs: the result of `input_table` for the words.
        last: a function from a cell to the last step at which the head was on the cell.
        recall: a function of the type `Recall`.

    Returns:
        The state after the last layer; whether every look-up is certain; and the value that
        `recall` stores for the next step.
    """
    zeta, layout, memory = structure.correction, structure.layout, None
    relu = lambda a: jnp.maximum(a, 0.0)
    rounded = lambda a: relu(a) if zeta is None else relu(zeta(relu(a)))
    # rounding with a slope that is a power of two is exact at 0 and 1, so it may be left out
    exact = zeta is None or math.frexp(zeta.slope)[0] == 0.5
    copied = lambda group, a: a if exact and group in POSITIONS else rounded(a)
    product = lambda W, a, b: jnp.tensordot(W, a, 1) + b.reshape(-1, *(1,) * (a.ndim - 1))
    certain = number(h["pos2"])[1]
    where: Any = (None, None, None)  # a position, its number and the last visit of that cell
    for layer, (W, b) in zip(structure.layers, weights):
        for look_up in layer.look_ups:
            if where[0] is not h[look_up.cell]:
                cell, binary = number(h[look_up.cell])
                where, certain = (h[look_up.cell], cell, last(cell)), certain & binary
            _, cell, visit = where
            if look_up.past:
                found, decided = matches(look_up, layout.bits, h, visit)
                certain = certain & decided
            else:
                found, value = in_input(inputs[0], inputs[1], cell)
            if look_up.past and look_up.copied:
                value, memory = recall(h[look_up.copied], visit)
            h = dict(h)
            if look_up.copied:
                h[look_up.target] = h.get(look_up.target, 0.0) + jnp.where(found[None], value, 0.0)
            if look_up.flag >= 0:
                flag = np.arange(3).reshape(-1, *(1,) * found.ndim) == look_up.flag
                h["scr4"] = h.get("scr4", 0.0) + jnp.where(flag & found[None], 1.0, 0.0)
        after = {group: copied(group, h[group]) for group in layer.copies}
        if layer.computed:
            new = rounded(product(W, jnp.concatenate([h[g] for g in layer.sources]), b))
            ends = np.cumsum([len(layout.groups[g]) for g in layer.computed])[:-1]
            after |= zip(layer.computed, jnp.split(new, ends))
        h = after
    return h, certain, memory


class Memory(NamedTuple):
    """The data about past steps that a run by look-ups passes from each step to the next.

    Attributes:
        last: the last step at which the head was on each cell; 0 means never.
        copied: for each past step, the values that a look-up of this step would copy.
        certain: whether every look-up so far is certain.
    """

    last: Int[Array, "cells n"]
    copied: Float[Array, "T1 size n"]
    certain: Bool[Array, "n"]


def run(
    structure: Structure, params: Any, tokens: Float[Array, "n m na"], present: Array, T: int, /
) -> Found:
    """Run T + 1 steps on a batch of words; time and memory grow linearly with T.

    Args:
        structure: the result of `structure.read`, which alone decides the keys that attention
            chooses.
        params: weights of the dense network. Weights that compute no positions may differ from the
            compiled weights.
        tokens: one-hot input symbols, padded to one length.
        present: whether each symbol is part of the word and not padding.
        T: the number of steps.
    """
    layout, weights = structure.layout, blocks(structure, params)
    n, dtype, groups = tokens.shape[0], params["start"].dtype, layout.groups
    word = jnp.arange(n)
    # zeros made from the weights keep the weights' device axes (under shard_map)
    zero = jnp.zeros_like(params["start"][0])
    zeros = lambda *shape, of=dtype: zero.astype(of) + jnp.zeros(shape, of)
    inputs = input_table(structure, params, tokens, present)

    def step(carry: Any, xs: Any) -> Any:
        h, (table, copied, certain) = carry
        i, code = xs
        # no step attends to timestep 0, so it leaves the table at 0
        table = table.at[number(h["pos2"])[0], word].set(i)

        def recall(now: Array, visit: Array) -> tuple[Array, Array]:
            then = copied.at[i].set(now)
            return jnp.moveaxis(then[visit, :, word], -1, 0), then

        h = {**h, "pos1": zeros(layout.bits, n) + code[:, None]}
        h, decided, copied = through(
            structure, weights, h, inputs, lambda cell: table[cell, word], recall
        )
        kept = {group: h[group] for group in LEAVES}
        return (kept, Memory(table, copied, certain & decided)), kept

    start = {
        g: params["start"][groups[g].start : groups[g].stop, None] + zeros(1, n) for g in LEAVES
    }
    memory = Memory(
        zeros(2**layout.bits, n, of=jnp.int32),
        zeros(T + 1, len(groups["sym1"]), n),
        zeros(n) == 0,
    )
    codes = layout.binary(np.arange(T + 1)[:, None]).astype(dtype)
    (end, memory), states = jax.lax.scan(
        step, (start, memory), (jnp.arange(T + 1, dtype=jnp.int32), codes)
    )
    head = lambda group: params["head"][groups[group].start : groups[group].stop]
    return Found(states, sum(head(g) @ end[g] for g in LEAVES), memory.certain)
