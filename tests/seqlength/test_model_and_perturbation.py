"""The Transformer of Section 2.6, perturbation bounds, and the masked-word loss."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.seqlength import masking, model, perturbation
from jaxbounds.seqlength.attention_search import attention_rademacher_lower
from jaxbounds.seqlength.linear_bounds import at_scale, lemma_3_6_sharp
from jaxbounds.seqlength.single_layer import attention_bound

SHAPES = {"W_QK": (2, 3, 3), "W_v": (2, 3, 4), "W_c": (2, 4, 3)}


def _numpy_softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _weights(key, scale):
    keys = jax.random.split(key, len(SHAPES))
    return {
        name: scale * jax.random.normal(k, shape) for k, (name, shape) in zip(keys, SHAPES.items())
    }


def test_single_layer_against_numpy_loops(key):
    X = jax.random.normal(key, (2, 5, 3))
    net = model.SingleLayer(hidden=4, heads=2, cls=-1)
    variables = jax.jit(net.init)(jax.random.key(1), X)
    p = {name: np.asarray(leaf, float) for name, leaf in variables["params"].items()}
    expected = np.zeros(2)
    for n, h in itertools.product(range(2), range(2)):
        Z = np.asarray(X[n], float)
        mixed = Z.T @ _numpy_softmax(Z @ p["W_QK"][h].T @ Z[-1])
        expected[n] += p["w"][:, 0] @ p["W_c"][h].T @ np.maximum(p["W_v"][h].T @ mixed, 0)
    np.testing.assert_allclose(jax.jit(net.apply)(variables, X), expected, rtol=2e-5)


def test_cls_row_is_the_row_of_dense_attention():
    rng, rows = np.random.default_rng(0), (0, 3, -1)
    with enable_x64(True):
        X, W = jnp.asarray(rng.normal(size=(3, 6, 4))), jnp.asarray(rng.normal(size=(4, 4)))
        every = lambda X, W: (model.attend(X, W), [model.attend_from(X, W, t) for t in rows])
        dense, from_rows = jax.jit(every)(X, W)
        for t, row in zip(rows, from_rows):
            np.testing.assert_allclose(row, np.asarray(dense)[:, t], rtol=1e-12)


def test_blocks_project_and_commute_with_permutations(key):
    with enable_x64(True):
        X = 5.0 * np.random.default_rng(0).normal(size=(6, 3))
        layers = jax.jit(_weights)(key, 3.0)
        run = jax.jit(model.blocks)
        states = np.asarray(run(X, layers))
        assert states.shape == (3, 6, 3)
        lengths = np.linalg.norm(states[1:], axis=-1)
        assert lengths.max() <= 1 + 1e-12 and lengths.max() > 0.999
        order = np.array([3, 0, 5, 1, 2, 4])
        moved = np.asarray(run(X[order], layers))
        np.testing.assert_allclose(moved[-1], states[-1][order], atol=1e-12)


def test_multi_layer_module_is_its_pure_functions(key):
    X = jax.random.normal(key, (2, 5, 3))
    net = model.MultiLayer(hidden=4, layers=2)
    variables = jax.jit(net.init)(jax.random.key(1), X)
    p = variables["params"]
    layers = {name: p[name] for name in SHAPES}
    states = np.asarray(jax.jit(jax.vmap(model.blocks, (0, None)))(X, layers))
    expected = states[:, -1, 0] @ np.asarray(p["w"])[:, 0]
    np.testing.assert_allclose(jax.jit(net.apply)(variables, X), expected, rtol=1e-5)


@pytest.mark.parametrize("module", [model.SingleLayer(hidden=2, cls=5), model.MultiLayer(2, 1, -6)])
def test_models_refuse_a_cls_index_outside(module):
    with pytest.raises(ValueError, match="is outside a sequence of length T=5"):
        module.init(jax.random.key(0), jnp.ones((1, 5, 3)))


def test_softmax_distance_is_sharp_at_two_points():
    with enable_x64(True):
        half = 0.37
        theta = np.array([half / 2, -half / 2])
        moved = np.sum(np.abs(_numpy_softmax(theta) - _numpy_softmax(-theta)))
        bound = float(perturbation.softmax_distance(half))
    assert moved == pytest.approx(bound, rel=1e-14)
    assert bound <= half


def _adversarial(B_x, delta=1e-3):
    """Two opposite tokens, between which the attention's derivative is largest."""
    layer = {"W_QK": np.diag([delta / 2, 0.0]), "W_v": np.eye(2) / B_x, "W_c": np.eye(2)}
    X = np.array([[B_x, 0.0], [-B_x, 0.0]])
    return X, layer, {**layer, "W_QK": -layer["W_QK"]}


@jax.jit
def _sides_of_e_2(X, layer, moved):
    """What moves, the printed bound and the corrected one."""
    parts = perturbation.block_perturbation(X, X, layer, moved, activation=lambda z: z)
    norms = perturbation.spectral_norms(layer, moved)
    corrected = perturbation.lemma_e_2(parts, norms, 1.0, radius=parts.radius)
    return parts.output, perturbation.lemma_e_2(parts, norms, 1.0), corrected


@pytest.mark.parametrize("B_x", [1.0, 2.0, 4.0, 10.0])
def test_lemma_e_2_fails_on_the_first_layer_as_printed(B_x):
    with enable_x64(True):
        output, printed, corrected = map(float, _sides_of_e_2(*_adversarial(B_x)))
    assert output / printed == pytest.approx(B_x**2 / 2, rel=1e-2)
    assert output / corrected == pytest.approx(0.5, rel=1e-2)


def test_lemma_e_2_holds_inside_the_unit_ball():
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.uniform(-1.0, 1.0, (300, 1, 1))
    draw = lambda shape: rng.normal(size=(300, *shape[1:]))
    layer = {name: scales * draw(shape) for name, shape in SHAPES.items()}
    moved = {name: layer[name] + 0.1 * draw(shape) for name, shape in SHAPES.items()}
    tokens = rng.normal(size=(2, 300, 4, 3))
    tokens /= np.maximum(1.0, np.linalg.norm(tokens, axis=-1, keepdims=True))

    def ratios(g, ghat, layer, moved):
        parts = perturbation.block_perturbation(g, ghat, layer, moved, activation=jnp.tanh)
        norms = perturbation.spectral_norms(layer, moved)
        sharp = perturbation.lemma_e_2(parts, norms, 1.0, softmax_constant=1.0)
        return parts.output / perturbation.lemma_e_2(parts, norms, 1.0), parts.output / sharp

    with enable_x64(True):
        printed, sharp = map(np.asarray, jax.jit(jax.vmap(ratios))(*tokens, layer, moved))
    assert 0.05 < printed.max() <= 1 and sharp.max() <= 1


def test_chain_is_below_its_corrected_bound():
    rng = np.random.default_rng(0)
    draw = lambda scale, *shape: scale * rng.normal(size=(100, *shape))
    layers = {name: draw(0.7, *shape) for name, shape in SHAPES.items()}
    moved = {name: leaf + draw(0.05, *leaf.shape[1:]) for name, leaf in layers.items()}
    given = draw(4.0, 5, 3), layers, moved, draw(1.0, 3), draw(1.0, 3)
    chain = functools.partial(perturbation.chain_perturbation, activation=jax.nn.relu, L_sigma=1.0)
    with enable_x64(True):
        found = jax.jit(jax.vmap(lambda *given: chain(*given, 0)))(*given)
    found = jax.tree.map(np.asarray, found)
    assert (found.output <= found.sharpened).all()
    assert (found.sharpened <= found.corrected).all()
    assert (found.printed < found.corrected).all()


def test_cross_entropy_gradient_against_autograd():
    with enable_x64(True):
        grad = jax.jit(jax.grad(masking.cross_entropy))
        gradient_l1 = jax.jit(masking.gradient_l1)
        for logits in 3.0 * np.random.default_rng(0).normal(size=(10, 4)):
            slope = np.asarray(grad(logits, 2))
            closed = float(gradient_l1(logits, 2))
            assert closed == pytest.approx(np.sum(np.abs(slope)), rel=1e-12)
            p = _numpy_softmax(logits)
            assert closed == pytest.approx(2 * (1 - p[2]), rel=1e-12)
        extreme = float(masking.gradient_l1(jnp.array([-10.0, 10.0]), 0))
    assert extreme < 2 and extreme == pytest.approx(2, abs=1e-8)


def test_bounded_logits_have_a_smaller_lipschitz_constant():
    for K, M in ((2, 0.5), (5, 1.0)):
        corner = np.full(K, M)
        corner[0] = -M
        attained = 2 * (1 - _numpy_softmax(corner)[0])
        with enable_x64(True):
            found = float(masking.lipschitz_constant(K, M))
        assert found == pytest.approx(attained, rel=1e-12)
    assert float(masking.lipschitz_constant(7)) == 2.0
    with pytest.raises(ValueError, match="K >= 2"):
        masking.lipschitz_constant(1)


def test_binary_loss_is_cross_entropy_of_two_words():
    logits = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
    losses = jax.jit(jax.vmap(masking.cross_entropy, (0, None)))
    binary_loss = jax.jit(masking.binary_loss)
    for label in (0, 1):
        whole = losses(logits, label)
        binary = binary_loss(logits[:, 1] - logits[:, 0], np.full(6, label, np.int32))
        np.testing.assert_allclose(binary, whole, rtol=1e-5)
    clip = masking.clipped(masking.cross_entropy, 0.5)
    assert float(clip(jnp.array([-9.0, 9.0]), 0)) == 0.5
    with pytest.raises(ValueError, match="positive"):
        masking.clipped(masking.cross_entropy, 0.0)
    assert float(masking.theorem_5_1_leading(0.5, 9)) == pytest.approx(3.0)


def test_search_from_below_meets_the_certified_bound_from_above():
    with enable_x64(True):
        X = np.random.default_rng(0).normal(size=(16, 5, 2))
        X = jnp.asarray(X / np.linalg.norm(X, axis=-1, keepdims=True))
        found = attention_rademacher_lower(jax.random.key(1), X, 2.0, draws=8, restarts=2, steps=60)
        uniform = attention_rademacher_lower(
            jax.random.key(1), X, 1e-9, draws=8, restarts=1, steps=2
        )
        sigma = jax.random.rademacher(jax.random.split(jax.random.key(1))[0], (8, 16), float)
    covering = at_scale(lemma_3_6_sharp, 2.0, k=2, d=2)
    bound = attention_bound(covering, 16, 2, B_x=1.0)
    assert float(uniform.mean) < float(found.mean) <= bound
    # Uniform attention is a finite class of means: no search needed.
    means, sigma = np.asarray(X).mean(axis=1), np.asarray(sigma)
    exact = np.abs(sigma @ means).max(axis=1).mean() / 16
    assert float(uniform.mean) == pytest.approx(exact, rel=1e-6)


def test_search_reaches_a_grid_search_in_one_dimension():
    with enable_x64(True):
        X = jnp.asarray(np.random.default_rng(4).normal(size=(6, 4, 1)))
        found = attention_rademacher_lower(
            jax.random.key(5), X, 3.0, draws=6, restarts=3, steps=150
        )
        sigma = jax.random.rademacher(jax.random.split(jax.random.key(5))[0], (6, 6), float)
    Z, signs = np.asarray(X)[:, :, 0], np.asarray(sigma)
    grid = np.linspace(-3, 3, 4001)
    values = np.stack([(_numpy_softmax(W * Z * Z[:, :1]) * Z).sum(axis=1) for W in grid])
    best = np.abs(values @ signs.T).max(axis=0).mean() / 6
    assert float(found.mean) == pytest.approx(best, rel=1e-2)
    assert float(found.mean) <= best * (1 + 1e-6)


@pytest.mark.parametrize("draws, B", [(1, 1.0), (4, 0.0), (4, math.nan)])
def test_search_refuses_bad_input(draws, B):
    with pytest.raises(ValueError, match="expected m >= 1"):
        attention_rademacher_lower(jax.random.key(0), jnp.ones((2, 2, 2)), B, draws=draws)
