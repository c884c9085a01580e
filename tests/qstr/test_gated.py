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
def sequences(key, x64):
    return jax.random.normal(key, (B, N, De))


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
def test_hand_written_gradient_matches_that_of_a_plain_loop(cell, sequences, key, x64):
    """Independent of the custom rule: autograd through an unrolled Python loop."""
    step, gates, parts = CELLS[cell]
    keys = jax.random.split(key, 5)
    draw = lambda k, *shape: 0.7 * jax.random.normal(keys[k], shape)
    N = 3  # the loop below is compiled token by token
    start, inputs = tuple(draw(0, parts, 2, h, B)), tuple(draw(1, gates, N, 2, h, B))
    W, b, weights = draw(2, 2, gates * h, h), draw(3, 2, gates * h), draw(4, N, 2, h, B)

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
    both = (jax.tree.leaves(jax.jit(f)(*arguments)) for f in (ours, reference))
    for got, want in zip(*both, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


def test_parameters_start_in_pytorchs_law(key):
    params = BidirectionalGated(64).init(key, jnp.zeros((1, 2, 3)))["params"]
    for name in ("W_input", "W_hidden", "b_input", "b_hidden"):
        values = np.asarray(params[name])
        assert np.abs(values).max() <= 1 / 8
        assert np.abs(values).std() == pytest.approx(1 / 8 / np.sqrt(12), rel=0.1)
    assert np.abs(params["readout"]["W0"]).max() <= 1 / np.sqrt(128)
    with pytest.raises(ValueError, match=r"cell='.*' is unknown"):
        BidirectionalGated(4, "elman").init(key, jnp.zeros((1, 2, 3)))


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_matches_a_loop_over_queries(heads, sequences, key, x64):
    keys = jax.random.split(key, 4)
    W_in, W_out = jax.random.normal(keys[0], (3 * De, De)), jax.random.normal(keys[1], (De, De))
    b_in, b_out = jax.random.normal(keys[2], (3 * De,)), jax.random.normal(keys[3], (De,))
    got = np.asarray(multi_head_attention(sequences, W_in, b_in, W_out, b_out, heads=heads))
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
