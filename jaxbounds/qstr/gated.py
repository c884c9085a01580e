"""Bidirectional GRU and LSTM with PyTorch's weights, biases, gate order and initialisation.

The "RNN" of the paper's figures is a GRU of width 500 with a linear readout. The first axis of an
array is the feature and the last axis the batch, and each gate is a separate array. XLA's products
and loops on CPUs are faster in this layout.
"""

from collections.abc import Callable
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.qstr.layers import TorchMLP, uniform_fan_in

Parts = tuple[Float[Array, "*s"], ...]
Cell = Callable[[Parts, Parts, Parts], Parts]
"""The type of a cell: a function (state, input terms, recurrent products) -> next state."""


def gru_cell(carry: Parts, inputs: Parts, recurrent: Parts, /) -> Parts:
    """Return h' = (1 - z) n + z h with n = tanh(i_n + r h_n); the gates have the order r, z, n."""
    reset = jax.nn.sigmoid(inputs[0] + recurrent[0])
    update = jax.nn.sigmoid(inputs[1] + recurrent[1])
    candidate = jnp.tanh(inputs[2] + reset * recurrent[2])
    return ((1.0 - update) * candidate + update * carry[0],)


def lstm_cell(carry: Parts, inputs: Parts, recurrent: Parts, /) -> Parts:
    """Return the next (h, c) of an LSTM; the gates have the order input, forget, cell, output."""
    write, keep, new, emit = (a + b for a, b in zip(inputs, recurrent, strict=True))
    memory = jax.nn.sigmoid(keep) * carry[1] + jax.nn.sigmoid(write) * jnp.tanh(new)
    return jax.nn.sigmoid(emit) * jnp.tanh(memory), memory


def _scan(
    cell: Cell, start: tuple[Array, ...], inputs: tuple[Array, ...], W: Array, b: Array
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    def step(carry: Parts, now: Parts) -> tuple[Parts, tuple[Parts, Parts]]:
        product = jnp.einsum("kgh,khb->kgb", W, carry[0])
        product = product + jnp.broadcast_to(b[:, :, None], product.shape)
        gates = tuple(jnp.split(product, len(inputs), axis=1))
        after = cell(carry, now, gates)
        return after, (after, gates)

    return jax.lax.scan(step, start, inputs)[1]


def _with_ones(values: Array, /, *, axis: int) -> Array:
    shape = (*values.shape[:axis], 1, *values.shape[axis + 1 :])
    return jnp.concatenate([values, jnp.ones(shape, values.dtype)], axis=axis)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def recur(
    cell: Cell,
    start: tuple[Float[Array, "k h B"], ...],
    inputs: tuple[Float[Array, "N k h B"], ...],
    W: Float[Array, "k g h"],
    b: Float[Array, "k g"],
) -> Float[Array, "N k h B"]:
    """Return the hidden states of k independent recurrences after each token.

    `cell` acts on each entry separately; the first array of its carry is the hidden state. `inputs`
    are the terms W_i x + b_i, with time as the first axis. `W` and `b` stack the recurrent weights
    and biases of all gates.
    """
    return _scan(cell, start, inputs, W, b)[0][0]


def _recur_forward(
    cell: Cell, start: tuple[Array, ...], inputs: tuple[Array, ...], W: Array, b: Array
) -> tuple[Array, tuple]:
    carries, products = _scan(cell, start, inputs, W, b)
    return carries[0], (start, inputs, W, carries, products)


def _recur_backward(
    cell: Cell, saved: tuple, cotangent: Array
) -> tuple[tuple[Array, ...], tuple[Array, ...], Array, Array]:
    start, inputs, W, carries, products = saved
    before = tuple(jnp.concatenate([s[None], c[:-1]]) for s, c in zip(start, carries))
    # One copy here is cheaper than a copy in each product of the loop.
    across = jnp.swapaxes(W, 1, 2)

    def step(after: Parts, now: tuple) -> tuple[Parts, tuple[Parts, Array]]:
        outer, *primals = now
        pull = jax.vjp(cell, *primals)[1]
        direct, d_inputs, d_products = pull((after[0] + outer, *after[1:]))
        d_products = jnp.concatenate(d_products, axis=1)
        through = jnp.einsum("khg,kgb->khb", across, d_products)
        return (direct[0] + through, *direct[1:]), (d_inputs, d_products)

    zeros = tuple(jnp.zeros_like(part) for part in start)
    slopes = cotangent, before, inputs, products
    d_start, (d_inputs, d_products) = jax.lax.scan(step, zeros, slopes, reverse=True)
    # One product over all tokens; a scan would add N outer products of the size of W.
    d_W = jnp.einsum("nkgb,nkhb->kgh", d_products, before[0])
    return d_start, d_inputs, d_W, jnp.sum(d_products, axis=(0, 3))


recur.defvjp(_recur_forward, _recur_backward)

CELLS: dict[str, tuple[Cell, int, int]] = {"gru": (gru_cell, 3, 1), "lstm": (lstm_cell, 4, 2)}
"""A dictionary from each cell's name to its function, its number of gates, and the number of arrays
in its state."""


class BidirectionalGated(nn.Module):
    """A bidirectional GRU or LSTM with a linear readout, as PyTorch builds and initialises it.

    Each direction has two bias vectors, for the input term and for the recurrent product. All
    parameters are drawn from U(-1/sqrt(h), 1/sqrt(h)). The weights have a first axis for the two
    directions, forward and backward. The last two axes of the weights are (out, in) with the gates
    stacked, as in PyTorch.

    Attributes:
        hidden: the number h of hidden units in each direction.
        cell: the kind of cell, "gru" or "lstm".
    """

    hidden: int
    cell: str = "gru"

    @nn.compact
    def __call__(self, z: Float[Array, "*batch N De"]) -> Float[Array, "*batch N"]:
        """Return the predictions at every position of each prompt.

        Raises:
            Refused: if `cell` is not a key of `CELLS`.
        """
        if self.cell not in CELLS:
            raise Refused(
                f"cell={self.cell!r} is unknown, expected one of {', '.join(CELLS)}. Try"
                f" cell={next(iter(CELLS))!r}"
            )
        cell, gates, parts = CELLS[self.cell]
        *batch, N, De = z.shape
        h, g = self.hidden, gates * self.hidden
        start = uniform_fan_in(h)
        W_i = self.param("W_input", start, (2, g, De))
        W_h = self.param("W_hidden", start, (2, g, h))
        b_i = self.param("b_input", start, (2, g))
        b_h = self.param("b_hidden", start, (2, g))
        z = z.reshape(-1, N, De)
        # The backward direction reads the reversed prompt, so both advance in one loop.
        both = jnp.transpose(jnp.stack([z, z[:, ::-1]]), (0, 3, 2, 1))
        affine = jnp.concatenate([W_i, b_i[:, :, None]], axis=2)
        projected = jnp.einsum("kgi,kinb->nkgb", affine, _with_ones(both, axis=1))
        inputs = tuple(jnp.split(projected, gates, axis=2))
        first = (jnp.zeros((2, h, z.shape[0]), z.dtype),) * parts
        states = recur(cell, first, inputs, W_h, b_h)
        features = jnp.concatenate([states[:, 0], states[::-1, 1]], axis=1)
        output = TorchMLP((1,), name="readout")(jnp.transpose(features, (2, 0, 1)))
        return output.reshape(*batch, N)
