"""The sparse majority task and the exact CLS reduction of its network."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.seqlength import majority_model as mm
from jaxbounds.seqlength import sparse_majority as sm


@pytest.fixture(scope="module")
def drawn():
    """A task of 12 bits with 5 hidden ones, 50 samples, and the parts that its tokens are made of.

    Drawn by one program.
    """
    embedding = sm.Embedding(d=8, symbol_scale=3.0, position_scale=0.5)

    @jax.jit
    def draw(key):
        task = sm.draw_task(key, embedding, T=12, sparsity=5)
        bits = sm.draw_bits(jax.random.key(1), n=50, T=12)
        symbols = sm.draw_symbols(jax.random.split(key)[0], embedding)
        positions = 0.5 * sm.positional_code(13, 8)
        labels, tokens = sm.majority_label(bits, task.relevant), sm.embed(task, bits)
        return task.relevant, bits, labels, tokens, symbols, positions

    return jax.tree.map(np.asarray, draw(jax.random.key(0)))


def test_labels_are_the_majority_of_the_hidden_bits(drawn):
    relevant, bits, labels, *_ = drawn
    assert len(set(relevant.tolist())) == 5 and relevant.max() < 12
    np.testing.assert_array_equal(labels, bits[:, relevant].sum(axis=1) > 2.5)


@pytest.mark.parametrize("symbols, order", [("l1", 1), ("l2", 2)])
def test_symbols_are_orthogonal_and_normalised(symbols, order, key):
    with enable_x64(True):
        draw = jax.jit(sm.draw_symbols, static_argnums=1)
        vectors = np.asarray(draw(key, sm.Embedding(symbols=symbols)))
    gram = vectors @ vectors.T
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(vectors, ord=order, axis=1), 1, rtol=1e-12)


def test_positional_codes_of_paper_and_code():
    for kind, shift in (("code", 0), ("vaswani", 1)):
        code = np.asarray(jax.jit(lambda kind=kind: sm.positional_code(5, 6, kind=kind))())
        for j in range(5):
            for i in range(6):
                odd = i % 2
                angle = j / 10000 ** ((i - shift * odd) / 6)
                expected = math.cos(angle) if odd else math.sin(angle)
                assert code[j, i] == pytest.approx(expected, abs=1e-6)


def test_tokens_are_symbol_plus_position_with_cls_last(drawn):
    _, bits, _, tokens, (zero, one, cls), position = drawn
    for row, sample in zip(tokens[:3], bits):
        for t in range(12):
            expected = (one if sample[t] else zero) + position[t]
            np.testing.assert_allclose(row[t], expected, atol=1e-6)
        np.testing.assert_allclose(row[12], cls + position[12], atol=1e-6)


def test_cls_reduction_is_the_dense_network_with_its_gradient(key):
    """Without a hidden layer; test_fast_path trains a network that has one."""

    @jax.jit
    def draw(key):
        task = sm.draw_task(key, sm.Embedding(d=8, symbol_scale=3.0), T=7, sparsity=3)
        bits = sm.draw_bits(jax.random.key(1), n=9, T=7)
        return task, bits, sm.majority_label(bits, task.relevant)

    with enable_x64(True):
        task, bits, labels = draw(key)
        net = mm.MajorityTransformer(d_k=4, hidden=0)
        shapes = jax.eval_shape(net.init, key, jnp.ones((1, 1, 8), jnp.float32))["params"]
        rng = np.random.default_rng(0)
        params = jax.tree.map(lambda s: 0.3 * rng.normal(size=s.shape), shapes)
        dense = lambda p: jnp.mean(
            mm.softmax_loss(net.apply({"params": p}, sm.embed(task, bits)), labels)
        )
        reduced = lambda p: jnp.mean(mm.softmax_loss(mm.reduced_logits(p, task, bits), labels))
        both = jax.jit(lambda p: [jax.value_and_grad(loss)(p) for loss in (dense, reduced)])
        (plain, plain_slope), (short, short_slope) = both(params)
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
    assert float(jax.jit(mm.total_l1)(params)) == pytest.approx(total, rel=1e-5)


def test_losses_against_their_definitions():
    z, y = np.random.default_rng(0).normal(size=(6, 2)), np.array([0, 1, 1, 0, 1, 0])
    both = jax.jit(lambda z, y: (mm.softmax_loss(z, y), mm.sigmoid_loss(z, y)))
    softmax, sigmoid = both(z.astype(np.float32), y.astype(np.int32))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(softmax, -np.log(p[range(6), y]), rtol=1e-5)
    s, target = 1 / (1 + np.exp(-z)), np.eye(2)[y]
    binary = -(target * np.log(s) + (1 - target) * np.log(1 - s)).mean(axis=1)
    np.testing.assert_allclose(sigmoid, binary, rtol=1e-5)


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
