"""Bidirectional GRU and LSTM with PyTorch's weights, biases, gate order and initial law.

What the paper's figures call "RNN" is such a GRU of width 500 with a linear readout. Input
projections of all tokens and both directions are one product outside the recurrence; the two
directions then run as one batched recurrence whose weight gradient is one product after it.
"""

from collections.abc import Callable
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.qstr.initialisers import uniform_fan_in
from jaxbounds.qstr.transformer import TorchMLP

Cell = Callable[[Array, Array, Array], Array]


def gru_cell(
    carry: Float[Array, "*s h"],
    inputs: Float[Array, "*s 3*h"],
    recurrent: Float[Array, "*s 3*h"],
    /,
) -> Float[Array, "*s h"]:
    """The new state h' = (1 - z) n + z h with n = tanh(i_n + r h_n); gates in the order r, z, n.

    Args:
        carry: the state h.
        inputs: W_i x + b_i.
        recurrent: W_h h + b_h.
    """
    input_r, input_z, input_n = jnp.split(inputs, 3, axis=-1)
    hidden_r, hidden_z, hidden_n = jnp.split(recurrent, 3, axis=-1)
    reset = jax.nn.sigmoid(input_r + hidden_r)
    update = jax.nn.sigmoid(input_z + hidden_z)
    candidate = jnp.tanh(input_n + reset * hidden_n)
    return (1.0 - update) * candidate + update * carry


def lstm_cell(
    carry: Float[Array, "*s c"],
    inputs: Float[Array, "*s 2*c"],
    recurrent: Float[Array, "*s 2*c"],
    /,
) -> Float[Array, "*s c"]:
    """(h, c)' of an LSTM; gates in the order input, forget, cell, output."""
    gates = jnp.split(inputs + recurrent, 4, axis=-1)
    write, keep, emit = (jax.nn.sigmoid(gates[k]) for k in (0, 1, 3))
    memory = keep * jnp.split(carry, 2, axis=-1)[1] + write * jnp.tanh(gates[2])
    return jnp.concatenate([emit * jnp.tanh(memory), memory], axis=-1)


def _advance(cell: Cell, carry: Array, inputs: Array, W: Array, b: Array) -> Array:
    hidden = carry[..., : W.shape[1]]
    recurrent = jnp.einsum("kbh,khg->kbg", hidden, W)
    return cell(carry, inputs, recurrent + jnp.broadcast_to(b[:, None, :], recurrent.shape))


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def recur(
    cell: Cell,
    unroll: int,
    start: Float[Array, "k B s"],
    inputs: Float[Array, "N k B g"],
    W: Float[Array, "k h g"],
    b: Float[Array, "k g"],
) -> Float[Array, "N k B s"]:
    """The states after each token of k independent recurrences.

    Args:
        cell: `cell(carry, inputs, recurrent) -> carry`; the first h entries of a carry are what
            the recurrent weights read.
        unroll: tokens per iteration of the compiled loop.
        start: the first carry.
        inputs: projected inputs, time first.
        W: recurrent weights.
        b: recurrent biases.
    """

    def step(carry: Array, now: Array) -> tuple[Array, Array]:
        after = _advance(cell, carry, now, W, b)
        return after, after

    return jax.lax.scan(step, start, inputs, unroll=unroll)[1]


def _recur_forward(cell, unroll, start, inputs, W, b):
    states = recur(cell, unroll, start, inputs, W, b)
    return states, (start, inputs, W, b, states)


def _recur_backward(cell, unroll, saved, cotangent):
    start, inputs, W, b, states = saved
    before = jnp.concatenate([start[None], states[:-1]])
    hidden = before[..., : W.shape[1]]
    # All recurrent products are known once the states are, so they need no loop.
    recurrent = jnp.einsum("nkbh,khg->nkbg", hidden, W)
    recurrent = recurrent + jnp.broadcast_to(b[None, :, None, :], recurrent.shape)

    def step(after: Array, now: tuple) -> tuple[Array, tuple[Array, Array]]:
        carry, token, product, outer = now
        pull = jax.vjp(cell, carry, token, product)[1]
        d_carry, d_token, d_product = pull(after + outer)
        d_hidden = jnp.einsum("kbg,khg->kbh", d_product, W)
        extra = d_carry.shape[-1] - d_hidden.shape[-1]
        d_hidden = jnp.pad(d_hidden, ((0, 0), (0, 0), (0, extra)))
        return d_carry + d_hidden, (d_token, d_product)

    d_start, (d_inputs, d_products) = jax.lax.scan(
        step,
        jnp.zeros_like(start),
        (before, inputs, recurrent, cotangent),
        reverse=True,
        unroll=unroll,
    )
    # A scan would add up N outer products of the size of W; this is one product over all tokens.
    d_W = jnp.einsum("nkbh,nkbg->khg", hidden, d_products)
    return d_start, d_inputs, d_W, jnp.sum(d_products, axis=(0, 2))


recur.defvjp(_recur_forward, _recur_backward)

CELLS: dict[str, tuple[Cell, int, int]] = {"gru": (gru_cell, 3, 1), "lstm": (lstm_cell, 4, 2)}
"""For each cell: the function, its gates, and how many hidden-sized parts its carry has."""


class BidirectionalGated(nn.Module):
    """A bidirectional GRU or LSTM with a linear readout, as PyTorch builds and initialises it.

    Two bias vectors per direction, all parameters U(-1/sqrt(h), 1/sqrt(h)). Axis 0 of each
    recurrent parameter is the direction: forward, then backward.

    Attributes:
        hidden: h, of each direction.
        cell: "gru" or "lstm".
        unroll: tokens per iteration of the compiled loop.
    """

    hidden: int
    cell: str = "gru"
    unroll: int = 1

    @nn.compact
    def __call__(self, z: Float[Array, "*batch N De"]) -> Float[Array, "*batch N"]:
        """Predictions at every position.

        Raises:
            ValueError: if the cell is unknown.
        """
        if self.cell not in CELLS:
            raise ValueError(f"unknown cell {self.cell!r}: choose one of {', '.join(CELLS)}")
        cell, gates, parts = CELLS[self.cell]
        *batch, N, De = z.shape
        h, g = self.hidden, gates * self.hidden
        start = uniform_fan_in(h)
        W_i = self.param("W_input", start, (2, De, g))
        W_h = self.param("W_hidden", start, (2, h, g))
        b_i = self.param("b_input", start, (2, g))
        b_h = self.param("b_hidden", start, (2, g))
        projected = jnp.einsum("bni,kig->nkbg", z.reshape(-1, N, De), W_i)
        projected = projected + jnp.broadcast_to(b_i[None, :, None, :], projected.shape)
        # The backward direction reads the reversed prompt, so both advance in one loop.
        inputs = jnp.stack([projected[:, 0], projected[::-1, 1]], axis=1)
        first = jnp.zeros((2, inputs.shape[2], parts * h), z.dtype)
        states = recur(cell, self.unroll, first, inputs, W_h, b_h)[..., :h]
        features = jnp.concatenate([states[:, 0], states[::-1, 1]], axis=-1)
        output = TorchMLP((1,), name="readout")(jnp.moveaxis(features, 0, 1))
        return output.reshape(*batch, N)
