"""Run a compiled network by small matrix products, and by look-ups in place of hard attention.

The result of `run` equals the result of `transformer.run` with the dense weights. The look-ups omit
only products with zero weights. Each attention head finds a position by comparing its binary code
with the codes of all positions. All search layers look for the last visit to a cell, so the run
stores a single table of last visits. The table holds, for each cell, the last step at which the
head was on the cell. If the last visit's timestep has the leading bits p, a key with these leading
timestep bits exists. If the last visit's leading bits are smaller than p, no key with the leading
bits p exists. If the last visit's leading bits are larger than p, the table cannot decide whether
the key exists. If the table cannot decide or a position code is not binary, `certain` is false in
the result. The dense network must then run the word. The last axis of each array of the look-ups
has one entry for each word.
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
"""A function with two arguments that returns the values of a coordinate group at earlier steps.

The two arguments of the function are the present value of the coordinate group, and the numbers of
the earlier steps. The second result of the function is a value that the run stores for the next
step.
"""

POSITIONS = ("pos1", "pos2", "pos3", "scr3")
"""The groups that hold position codes, or bits of a position code."""

BINARY_WITHIN = 1e-3
"""A coordinate counts as a binary position bit if its distance from 0 or 1 is at most this number.

A larger distance lets more states count as binary.

The distance is measured in units of a bit's value. Distinct attention scores differ by at least 1.
Deviations of the bits below this distance therefore do not change the order of scores.
"""


class Found(NamedTuple):
    """The network's states and output, computed with look-ups.

    Attributes:
        states: the nonzero coordinates of the states o_0 .. o_T, as a dict from each group's name.
        output: the network's output theta_cls . o_T.
        certain: whether the look-ups found every key without doubt; the result then equals the
            result of the dense network.
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

    The argument `last` is the step of the last visit to the wanted cell, or 0 without a visit.
    Timesteps have the binary codes of `bits` bits.
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
        weights: the blocks of the network's weights, from `structure.blocks`.
        h: the state before the first layer, one coordinate per row, with any number of trailing
            axes.
        inputs: the result of `input_table` for the words; the last axis of each array h has one
            entry for each word.
        last: a function from a cell to the last step at which the head was on the cell.
        recall: a function that returns a coordinate group's values at earlier steps, from the
            group's present value and these steps; see `Recall`.

    Returns:
        Three results: the state after the last layer; whether every look-up certainly found its
        position; and the value that `recall` stores for the next step.
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
        last: the last step at which the head was on each cell; 0 if the head was never on the cell.
        copied: for each past step, the values that a look-up copies if it finds this step.
        certain: whether every look-up so far certainly found its position.
    """

    last: Int[Array, "cells n"]
    copied: Float[Array, "T1 size n"]
    certain: Bool[Array, "n"]


def run(
    structure: Structure, params: Any, tokens: Float[Array, "n m na"], present: Array, T: int, /
) -> Found:
    """Run T + 1 steps on a batch of words; time and memory grow linearly with T.

    Args:
        structure: what `structure.read` found in the network's weights.
        params: weights of the dense network. Weights that take no part in computing positions may
            differ from the compiled weights. Only the argument `structure` decides which keys the
            attentions choose.
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
