"""GRU, LSTM and attention against references written by hand from PyTorch's documented formulas.

Independent: numpy loops over tokens and gates, sharing no code and no layout with the modules.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.qstr.gated import CELLS, BidirectionalGated, recur
from jaxbounds.qstr.transformer import multi_head_attention

B, N, De, h = 3, 5, 4, 6


def sigmoid(v):
    return 1.0 / (1.0 + np.exp(-v))


def numpy_direction(cell, tokens, W_i, W_h, b_i, b_h):
    """One direction; rows of the numpy weights are outputs, as PyTorch stores them."""
    state, memory, states = np.zeros(h), np.zeros(h), []
    part = lambda v, k: v[k * h : (k + 1) * h]
    for token in tokens:
        a, r = W_i @ token + b_i, W_h @ state + b_h
        if cell == "gru":
            reset, update = sigmoid(part(a, 0) + part(r, 0)), sigmoid(part(a, 1) + part(r, 1))
            new = np.tanh(part(a, 2) + reset * part(r, 2))
            state = (1 - update) * new + update * state
        else:
            i, f, o = (sigmoid(part(a, k) + part(r, k)) for k in (0, 1, 3))
            memory = f * memory + i * np.tanh(part(a, 2) + part(r, 2))
            state = o * np.tanh(memory)
        states.append(state)
    return np.stack(states)


@pytest.fixture
def sequences(x64):
    return np.random.default_rng(0).normal(size=(B, N, De))


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_bidirectional_matches_the_documented_formulas(cell, sequences, key, x64):
    model = BidirectionalGated(h, cell)
    params = jax.jit(model.init)(key, sequences)
    got = np.asarray(jax.jit(model.apply)(params, sequences))
    p = jax.tree.map(np.asarray, params["params"])
    for b in range(B):
        tokens, sides = np.asarray(sequences[b]), []
        for k, order in enumerate((slice(None), slice(None, None, -1))):
            weights = (p[name][k] for name in ("W_input", "W_hidden", "b_input", "b_hidden"))
            sides.append(numpy_direction(cell, tokens[order], *weights)[order])
        out = np.concatenate(sides, axis=1) @ p["readout"]["W0"].T + p["readout"]["b0"]
        np.testing.assert_allclose(got[b], out[:, 0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_hand_written_gradient_matches_that_of_a_plain_loop(cell, x64):
    """Independent of the custom rule: autograd through an unrolled Python loop."""
    step, gates, parts = CELLS[cell]
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(0.7 * rng.normal(size=shape))
    N = 3  # the loop below is compiled token by token
    start = tuple(draw(2, h, B) for _ in range(parts))
    inputs = tuple(draw(N, 2, h, B) for _ in range(gates))
    W, b, weights = draw(2, gates * h, h), draw(2, gates * h), draw(N, 2, h, B)

    def plain(start, inputs, W, b):
        carry, states = start, []
        for i in range(N):
            product = jnp.matmul(W, carry[0])
            product = product + jnp.broadcast_to(b[:, :, None], product.shape)
            now = tuple(gate[i] for gate in inputs)
            carry = step(carry, now, tuple(jnp.split(product, gates, axis=1)))
            states.append(carry[0])
        return jnp.stack(states)

    loss = lambda run: lambda *args: jnp.sum(weights * run(*args) ** 2)
    ours = jax.grad(loss(lambda *args: recur(step, *args)), argnums=(0, 1, 2, 3))
    reference = jax.grad(loss(plain), argnums=(0, 1, 2, 3))
    arguments = start, inputs, W, b
    both = jax.jit(lambda *arguments: [f(*arguments) for f in (ours, reference)])(*arguments)
    for got, want in zip(*map(jax.tree.leaves, both), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


def test_parameters_start_in_pytorchs_law(key):
    init = jax.jit(BidirectionalGated(64).init)
    params = jax.tree.map(np.asarray, init(key, np.zeros((1, 2, 3), np.float32))["params"])
    for name in ("W_input", "W_hidden", "b_input", "b_hidden"):
        values = np.asarray(params[name])
        assert np.abs(values).max() <= 1 / 8
        assert np.abs(values).std() == pytest.approx(1 / 8 / np.sqrt(12), rel=0.1)
    assert np.abs(params["readout"]["W0"]).max() <= 1 / np.sqrt(128)
    with pytest.raises(ValueError, match=r"cell='.*' is unknown"):
        BidirectionalGated(4, "elman").init(key, jnp.zeros((1, 2, 3)))


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_matches_a_loop_over_queries(heads, sequences, x64):
    shapes = (3 * De, De), (3 * De,), (De, De), (De,)
    given = [np.random.default_rng(k).normal(size=shape) for k, shape in enumerate(shapes)]
    W_in, b_in, W_out, b_out = given
    attention = jax.jit(multi_head_attention, static_argnames="heads")
    got = np.asarray(attention(sequences, *given, heads=heads))
    W, c = np.asarray(W_in).reshape(3, De, De), np.asarray(b_in).reshape(3, De)
    size = De // heads
    for b in range(B):
        z = np.asarray(sequences[b])
        query, key_, value = (z @ W[k].T + c[k] for k in range(3))
        for i in range(N):
            mixed = []
            for s in (slice(k * size, (k + 1) * size) for k in range(heads)):
                weight = np.exp([query[i, s] @ key_[j, s] / np.sqrt(size) for j in range(N)])
                mixed.append(weight @ value[:, s] / weight.sum())
            want = np.asarray(W_out) @ np.concatenate(mixed) + np.asarray(b_out)
            np.testing.assert_allclose(got[b, i], want, rtol=1e-11, atol=1e-12)
