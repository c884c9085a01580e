"""Propositions 3 and 21: oracle values, Monte Carlo, random Transformers, and the refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

from jaxbounds.qstr import few_heads, heads, two_heads
from jaxbounds.qstr.data import encode
from jaxbounds.qstr.encodings import coherence, greedy_encodings
from jaxbounds.qstr.transformer import attention


def _prompts(key, **sizes):
    """The prompts of the lower bound, by one program."""
    return jax.jit(lambda key: heads.lower_bound_prompts(key, **sizes))(key)


@pytest.mark.parametrize("k", [0, 2, 5])
def test_hidden_variance_is_that_of_the_best_predictor(k, x64):
    """Independent: Monte Carlo of (|x|^2 - E[|x|^2 | Vx])^2 with E written out by hand."""
    size, rng = 6, np.random.default_rng(k)
    V = np.append(rng.normal(size=(k, size)), np.zeros((1, size)), axis=0)
    x = rng.normal(size=(60_000, size))
    Q = np.linalg.qr(V[:k].T)[0]
    best = np.sum((x @ Q) ** 2, axis=1) + size - k
    errors = (np.sum(x**2, axis=1) - best) ** 2
    exact = heads.hidden_variance(V) if k else 2.0 * size
    assert abs(errors.mean() - exact) < 4 * errors.std() / np.sqrt(60_000)


def test_repeated_images_in_numpy_count_once_without_x64():
    V = np.repeat(np.random.default_rng(0).standard_normal((3, 40)), 20, axis=0)
    assert float(heads.hidden_variance(V)) == pytest.approx(2 * (40 - 3))


def test_square_norm_variance_by_monte_carlo(x64):
    root = np.array([[1.0, 0.0], [0.7, 0.5]])
    mean = np.array([0.3, -1.0])
    draws = np.random.default_rng(0).normal(size=(200_000, 2)) @ root.T + mean
    squares = np.sum(draws**2, axis=1)
    deviation = (squares - squares.mean()) ** 2
    want = heads.square_norm_variance(jnp.asarray(mean), jnp.asarray(root @ root.T))
    assert abs(deviation.mean() - want) < 4 * deviation.std() / np.sqrt(200_000)


def test_bounds_say_when_they_are_vacuous_and_refuse_bad_sizes():
    bound = heads.coupled_head_bound(N=32, q=8, d=8, H=1)
    assert bound.value == pytest.approx(0.75) and not bound.vacuous
    vacuous = heads.coupled_head_bound(N=32, q=8, d=8, H=4)
    assert vacuous.vacuous and vacuous.value == 0.0 and "H=4 heads" in vacuous.reason
    sharp = heads.sharpened_head_bound(N=32, q=8, d=8, H=1)
    assert sharp.value == pytest.approx((7 / 8) ** 2)
    assert heads.sharpened_head_bound(N=32, q=8, d=8, H=8).vacuous
    exact = heads.decoupled_head_bound(N=16, q=4, H=1, exact=True)
    assert exact.value == pytest.approx(1.125 * 0.75)
    one_of_four = heads.oracle_risk(jnp.ones((1, 4)), N=16)
    assert one_of_four == pytest.approx(exact.value, rel=1e-6)
    with pytest.raises(ValueError, match="q <= N/2 - 1"):
        heads.decoupled_head_bound(N=8, q=4, H=1)
    with pytest.raises(ValueError, match="even"):
        heads.coupled_head_bound(N=9, q=2, d=2, H=1)
    with pytest.raises(ValueError, match="N >= 2"):
        heads.coupled_head_bound(N=1, q=1, d=1, H=1)


def test_prompts_of_the_lower_bound(key, x64):
    prompts = jax.tree.map(np.asarray, _prompts(key, shape=(2000,), N=12, q=3, d=2))
    assert np.all(prompts.x[:, 5:] == 0.0)
    relevant = prompts.x[:, :3]
    want = (np.sum(relevant**2, axis=(1, 2)) - 6) / np.sqrt(6)
    for i in range(5, 12):
        np.testing.assert_allclose(prompts.y[:, i], want, rtol=1e-10, atol=1e-12)
    errors = np.mean(prompts.y[:, 5:] ** 2, axis=1)
    assert abs(errors.mean() - 2.0) < 4 * errors.std() / np.sqrt(2000)


@pytest.mark.parametrize("H", [1, 2])
def test_what_heads_output_is_a_function_of_the_revealed_images(H, key, x64):
    """Moving x where all revealed images stay leaves the real attention output unchanged.

    Independent: the dense attention of the paper's model, not the formula of the images.
    """
    N, q, d, de = 12, 3, 8, 6
    De, rng = d + (q + 1) * de, np.random.default_rng(H)
    W = jnp.asarray(rng.normal(size=(H, De, De)))
    omega = jnp.asarray(rng.normal(size=(N, de)) / np.sqrt(de))
    prompts = _prompts(key, shape=(), N=N, q=q, d=d)

    @jax.jit
    def attend(x):
        """The prompt, the images and what each head gives at its end."""
        z = encode(x, prompts.t, omega)
        images = heads.revealed_images(W, z[-1], z[:q], d=d)
        return images, jax.vmap(lambda w: attention(z, w)[-1])(W)

    V, before = attend(prompts.x)
    assert V.shape == (H * (q + d), q * d)
    assert heads.hidden_variance(V) == pytest.approx(2 * (q - H) * (d - H))
    null = np.linalg.svd(V, full_matrices=True)[2][H * (q + d - H) :]
    moved = np.array(prompts.x)
    moved[:q] += (null.T @ rng.normal(size=len(null))).reshape(q, d)
    # Only the token part of the output counts: the label depends on x alone.
    np.testing.assert_allclose(attend(moved)[1], before, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("q", "N", "de"), [(2, 8, 12), (8, 32, 24), (2, 10, 5)])
def test_separating_direction_is_the_shortest(q, N, de, x64):
    """Independent: SciPy's sequential quadratic programs find no shorter direction."""
    omega = np.random.default_rng(N).normal(size=(N, de))
    omega /= np.linalg.norm(omega, axis=1, keepdims=True)
    direction, margin = map(np.asarray, two_heads.separating_direction(jnp.asarray(omega), q))
    slope = lambda rows: {"jac": lambda v: rows}
    limits = [
        {"type": "eq", "fun": lambda v: omega[:q] @ v - 1, **slope(omega[:q])},
        {"type": "ineq", "fun": lambda v: 1 - margin - omega[q:] @ v, **slope(-omega[q:])},
    ]
    found = scipy.optimize.minimize(
        lambda v: v @ v, np.zeros(de), jac=lambda v: 2 * v, constraints=limits, method="SLSQP",
        options={"ftol": 1e-14},
    )  # fmt: skip
    np.testing.assert_allclose(direction, found.x, atol=1e-6)


@pytest.mark.parametrize(("q", "N"), [(8, 32)])
def test_two_heads_beat_the_bound_for_decoupled_ones(q, N, key, x64):
    """The paper's own distribution and a full W_QK, evaluated by the paper's dense attention."""
    omega = greedy_encodings(key, N, 24)
    assert coherence(omega, signed=False) <= 0.5 + 1e-9
    direction, margin = two_heads.separating_direction(omega, q)
    along = np.asarray(omega) @ np.asarray(direction)
    np.testing.assert_allclose(along[:q], 1.0, atol=1e-9)
    assert np.all(along[q:] <= 1 - margin + 1e-9)
    beta, A = 1e-3, 45.0 / margin
    prompts = _prompts(key, shape=(64,), N=N, q=q, d=1)
    options = {"beta": beta, "selectivity": A}

    @jax.jit
    def both(prompts):
        x = prompts.x[..., 0]
        agreement = (omega @ omega[0])[prompts.t[..., 0]]
        averages = []
        for tilt in (beta, -beta):
            keys = tilt * x + A * jnp.broadcast_to(omega @ direction, x.shape)
            weights = jax.nn.softmax(agreement[..., :, None] * keys[..., None, :], axis=-1)
            averages.append(jnp.einsum("...ij,...j->...i", weights, x))
        structured = two_heads.decode_sum_of_squares(*averages, q=q, beta=beta)
        dense = two_heads.two_head_prediction(prompts.x, prompts.t, omega, direction, **options)
        return structured, dense

    structured, dense = map(np.asarray, both(prompts))
    late = slice(N // 2 - 1, None)
    np.testing.assert_allclose(structured[:, late], dense[:, late], rtol=1e-6, atol=1e-8)
    risk = np.mean((dense[:, late] - np.asarray(prompts.y)[:, late]) ** 2)
    assert risk < 1e-6 * heads.decoupled_head_bound(N=N, q=q, H=2).value


def _tokens_by_numpy(x, omega, direction, q, beta, selectivity):
    """Independent: loops over heads and keys, weights and logarithms written out, no JAX."""
    d, N = x.shape[1], len(x)
    scale = np.sqrt(d / q)
    found = np.zeros((q, d))
    for k in range(d):
        logits = np.array([selectivity * omega[j] @ direction + beta * x[j, k] for j in range(N)])
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        mean, seen = weights @ x[:, k], weights @ (scale * omega)
        alpha = np.linalg.lstsq(omega[:q].T, seen / scale, rcond=None)[0]
        level = np.log(alpha) / beta
        found[:, k] = mean + level - alpha @ level
    return found


@pytest.mark.parametrize(("N", "de", "q", "d"), [(8, 12, 3, 1), (8, 12, 3, 2), (32, 24, 8, 3)])
def test_d_heads_show_every_token(N, de, q, d, key, x64):
    """Any link is learned by d < q heads: E1. Against a computation that shares no code."""
    omega = greedy_encodings(key, N, de)
    direction, margin = few_heads.least_direction(omega, q)
    if margin < 0.1:
        direction, margin = two_heads.separating_direction(omega, q)
    along = np.asarray(omega) @ np.asarray(direction)
    np.testing.assert_allclose(along[:q], 1.0, atol=1e-9)
    prompts = _prompts(key, shape=(4,), N=N, q=q, d=d)
    tilt = {"beta": 0.5, "selectivity": 45.0 / float(margin)}
    reveal = jax.jit(lambda x, t: few_heads.revealed_tokens(x, t, omega, direction, **tilt))
    for x, t in zip(np.asarray(prompts.x), np.asarray(prompts.t)):
        got = reveal(x, t)
        np.testing.assert_allclose(got, x[:q], atol=1e-9)
        plain = _tokens_by_numpy(x, np.asarray(omega), np.asarray(direction), q, **tilt)
        np.testing.assert_allclose(got, plain, atol=1e-9)
    # Off the block diagonal: the query's position meets the key's token.
    weights = lambda omega: few_heads.revealing_weights(omega, direction, q=q, d=d, **tilt)
    W = np.asarray(jax.jit(weights)(omega))
    assert W.shape == (d, d + (q + 1) * de, d + (q + 1) * de) and np.any(W[:, d:, :d] != 0)


def test_fewer_than_min_q_d_heads_never_do():
    """The other half of the count, by hand: what H heads leave hidden is (d - H)(q - H) > 0."""
    for q, d in ((3, 2), (2, 3), (4, 4)):
        for H in range(1, min(q, d)):
            bound = heads.sharpened_head_bound(N=2 * q + 2, q=q, d=d, H=H).value
            assert bound == pytest.approx((d - H) * (q - H) / (q * d)) and bound > 0
        assert heads.sharpened_head_bound(N=2 * q + 2, q=q, d=d, H=min(q, d)).vacuous


def test_one_head_averages(x64):
    """Independent: softmax by hand on three orthonormal encodings, t = (1, 3)."""
    x, t = jnp.array([[1.0], [5.0], [3.0]]), jnp.array([[0, 2]] * 3)
    weights = few_heads.averaging_weights(4.0, q=2, d=1, de=3)
    got = jax.jit(lambda x: attention(encode(x, t, jnp.eye(3)), weights)[:, 0])(x)
    e = np.exp(2.0)  # alpha d / q = 2
    np.testing.assert_allclose(got, (4 * e + 5) / (2 * e + 1))
    bound = few_heads.averaging_error_bound(x, 4.0, q=2)
    assert float(bound) == pytest.approx(2 * 5 * 0.5 / e)


def test_inseparable_encodings_and_vectors_are_refused(key):
    with pytest.raises(ValueError, match="no direction separates"):
        two_heads.separating_direction(jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), 2)
    prompts = _prompts(key, shape=(), N=8, q=2, d=2)
    options = {"beta": 0.1, "selectivity": 1.0}
    with pytest.raises(ValueError, match="few_heads"):
        two_heads.two_head_prediction(prompts.x, prompts.t, jnp.eye(8), jnp.ones(8), **options)


def test_two_heads_values_by_hand(x64):
    """Averages 2 +- beta: mean 2 and variance 1."""
    got = two_heads.decode_sum_of_squares(jnp.array(2.25), jnp.array(1.75), q=4, beta=0.25)
    assert float(got) == pytest.approx(2 * (1.0 + 4.0 - 1.0))
