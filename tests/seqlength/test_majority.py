"""The sparse majority task and the exact CLS reduction of its network."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.seqlength import majority_model as mm
from jaxbounds.seqlength import sparse_majority as sm


def test_labels_are_the_majority_of_the_hidden_bits(key):
    task = sm.draw_task(key, sm.Embedding(d=8), T=12, sparsity=5)
    bits = sm.draw_bits(jax.random.key(1), n=50, T=12)
    relevant = np.asarray(task.relevant)
    assert len(set(relevant.tolist())) == 5 and relevant.max() < 12
    expected = np.asarray(bits)[:, relevant].sum(axis=1) > 2.5
    np.testing.assert_array_equal(sm.majority_label(bits, task.relevant), expected)


@pytest.mark.parametrize("symbols, order", [("l1", 1), ("l2", 2)])
def test_symbols_are_orthogonal_and_normalised(symbols, order, key):
    with enable_x64(True):
        vectors = np.asarray(sm.draw_symbols(key, sm.Embedding(symbols=symbols)))
    gram = vectors @ vectors.T
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(vectors, ord=order, axis=1), 1, rtol=1e-12)


def test_positional_codes_of_paper_and_code():
    for kind, shift in (("code", 0), ("vaswani", 1)):
        code = np.asarray(sm.positional_code(5, 6, kind=kind))
        for j in range(5):
            for i in range(6):
                odd = i % 2
                angle = j / 10000 ** ((i - shift * odd) / 6)
                expected = math.cos(angle) if odd else math.sin(angle)
                assert code[j, i] == pytest.approx(expected, abs=1e-6)


def test_tokens_are_symbol_plus_position_with_cls_last(key):
    embedding = sm.Embedding(d=8, symbol_scale=3.0, position_scale=0.5)
    task = sm.draw_task(key, embedding, T=6, sparsity=3)
    zero, one, cls = sm.draw_symbols(jax.random.split(key)[0], embedding)
    bits = jnp.array([[True, False, True, True, False, False]])
    tokens = sm.embed(task, bits)
    position = 0.5 * sm.positional_code(7, 8)
    for t in range(6):
        expected = (one if bits[0, t] else zero) + position[t]
        np.testing.assert_allclose(tokens[0, t], expected, atol=1e-6)
    np.testing.assert_allclose(tokens[0, 6], cls + position[6], atol=1e-6)


@pytest.mark.parametrize("hidden", [0, 5])
def test_cls_reduction_is_the_dense_network_with_its_gradient(hidden, key):
    with enable_x64(True):
        task = sm.draw_task(key, sm.Embedding(d=8, symbol_scale=3.0), T=7, sparsity=3)
        bits = sm.draw_bits(jax.random.key(1), n=9, T=7)
        labels = sm.majority_label(bits, task.relevant)
        net = mm.MajorityTransformer(d_k=4, hidden=hidden)
        shapes = jax.eval_shape(net.init, key, jnp.ones((1, 1, 8), jnp.float32))["params"]
        rng = np.random.default_rng(0)
        params = jax.tree.map(lambda s: jnp.asarray(0.3 * rng.normal(size=s.shape)), shapes)
        dense = lambda p: jnp.mean(
            mm.softmax_loss(net.apply({"params": p}, sm.embed(task, bits)), labels)
        )
        reduced = lambda p: jnp.mean(mm.softmax_loss(mm.reduced_logits(p, task, bits), labels))
        plain, plain_slope = jax.jit(jax.value_and_grad(dense))(params)
        short, short_slope = jax.jit(jax.value_and_grad(reduced))(params)
        assert float(short) == pytest.approx(float(plain), rel=1e-12)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), short_slope, plain_slope
        )


def test_public_network_has_the_reported_size_and_limits():
    init = jax.jit(mm.MajorityTransformer().init)
    params = init(jax.random.key(0), jnp.ones((1, 3, 64)))["params"]
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 37506
    assert mm.glorot_limit((64, 2, 64)) == pytest.approx(0.0377, abs=1e-4)
    assert mm.glorot_limit((2, 64, 64)) == pytest.approx(0.1531, abs=1e-4)
    kernel = np.abs(params["attention"]["query"]["kernel"])
    assert 0.99 * mm.glorot_limit((64, 2, 64)) < kernel.max() <= mm.glorot_limit((64, 2, 64))
    total = sum(np.abs(leaf).sum() for leaf in jax.tree.leaves(params))
    assert float(mm.total_l1(params)) == pytest.approx(total, rel=1e-5)


def test_losses_against_their_definitions(key):
    logits, labels = jax.random.normal(key, (6, 2)), jnp.array([0, 1, 1, 0, 1, 0])
    z, y = np.asarray(logits, float), np.asarray(labels)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mm.softmax_loss(logits, labels), -np.log(p[range(6), y]), rtol=1e-5)
    s, target = 1 / (1 + np.exp(-z)), np.eye(2)[y]
    binary = -(target * np.log(s) + (1 - target) * np.log(1 - s)).mean(axis=1)
    np.testing.assert_allclose(mm.sigmoid_loss(logits, labels), binary, rtol=1e-5)


@pytest.mark.parametrize("sparsity, T", [(4, 10), (11, 10), (-1, 10)])
def test_task_refuses_ties_and_long_hidden_sets(sparsity, T):
    with pytest.raises(ValueError, match="an odd sparsity below T"):
        sm.draw_task(jax.random.key(0), sm.Embedding(), T=T, sparsity=sparsity)


def test_options_refuse_unknown_words():
    with pytest.raises(ValueError, match="'code' or 'vaswani'"):
        sm.positional_code(3, 4, kind="learned")
    with pytest.raises(ValueError, match="symbols='linf' is unknown"):
        sm.draw_symbols(jax.random.key(0), sm.Embedding(symbols="linf"))
    with pytest.raises(ValueError, match="expected at least 3"):
        sm.draw_symbols(jax.random.key(0), sm.Embedding(d=2))
