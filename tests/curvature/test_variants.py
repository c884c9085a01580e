"""Fisher matrices, Adam's sharpness, noise and SAM's sharpness against dense truth by NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.optimize

import jaxbounds as jb
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.networks import curvature

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 3)), RNG.integers(0, 4, 12)
W = {"w": RNG.normal(size=(3, 4)), "b": RNG.normal(size=4)}


@pytest.fixture(autouse=True)
def wide():
    with enable_x64():
        yield


def logits(params, batch):
    return batch[0] @ params["w"] + params["b"][None]


def entropy(outputs, batch):
    picked = jnp.take_along_axis(jax.nn.log_softmax(outputs), batch[1][:, None], axis=1)
    return -jnp.mean(picked)


def loss(params, batch):
    return entropy(logits(params, batch), batch)


def params():
    return jax.tree.map(jnp.asarray, W)


def data():
    return jnp.asarray(X), jnp.asarray(Y)


def gradients(labels):
    """The gradient of each example by hand, bias first: (p - e_y) times (1, x)."""
    outputs = X @ W["w"] + W["b"]
    p = np.exp(outputs - outputs.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    slope = p - np.eye(4)[labels]
    return np.concatenate([slope, np.einsum("ni,nj->nij", X, slope).reshape(12, -1)], axis=1), p


@pytest.mark.slow_cases("None")
@pytest.mark.parametrize("batch_size", [None, 5])
def test_the_empirical_fisher_matrix_is_the_mean_of_outer_products(batch_size):
    g, _ = gradients(Y)
    more = {} if batch_size is None else {"batch_size": batch_size}
    F = jb.Curvature(curvature.empirical_fisher(loss), params(), data(), of="ggn", **more)
    np.testing.assert_allclose(F.dense(), g.T @ g / 12, atol=1e-12)
    ends = F.extremes(dense_limit=0)
    assert abs(ends.maximum - np.linalg.eigvalsh(g.T @ g / 12)[-1]) < 1e-8 and ends.converged


def test_the_gauss_newton_matrix_of_cross_entropy_is_the_fisher_matrix():
    """The mean over labels that the model itself draws, summed exactly."""
    fisher = 0
    for label in range(4):
        g, p = gradients(np.full(12, label))
        fisher = fisher + np.einsum("n,ni,nj->ij", p[:, label], g, g) / 12
    F = jb.Curvature(curvature.Composite(logits, entropy), params(), data(), of="ggn")
    np.testing.assert_allclose(F.dense(), fisher, atol=1e-12)


@pytest.mark.slow_cases("adam", "adamw", "rmsprop")
@pytest.mark.parametrize("name", ["adam", "adamw", "rmsprop", "chained"])
def test_the_sharpness_that_an_adaptive_optimiser_sees(name):
    rule = {
        "adam": optax.adam(0.1, b2=0.9, eps=1e-3),
        "adamw": optax.adamw(0.1, b2=0.9, eps=1e-3),
        "rmsprop": optax.rmsprop(0.1, decay=0.9, eps=1e-3),
        "chained": optax.chain(
            optax.clip_by_global_norm(9.0), optax.scale_by_adam(b2=0.9, eps=1e-3)
        ),
    }[name]
    now, state, slopes = params(), rule.init(params()), []
    with jax.numpy_dtype_promotion("standard"):
        for _ in range(5):
            slopes.append(jax.grad(loss)(now, data()))
            update, state = rule.update(slopes[-1], state, now)
            now = optax.apply_updates(now, update)
    flat = [np.concatenate([np.ravel(s["b"]), np.ravel(s["w"])]) for s in slopes]
    nu = 0.0
    for slope in flat:
        nu = 0.9 * nu + 0.1 * slope**2
    nu = nu if name == "rmsprop" else nu / (1 - 0.9**5)
    root = 1 / np.sqrt(np.sqrt(nu) + 1e-3)
    H = np.asarray(jb.Curvature(loss, now, data()).dense())
    scaled, origin = curvature.preconditioned(loss, now, state, decay=0.9, epsilon=1e-3)
    found = jb.Curvature(scaled, origin, data()).extremes(dense_limit=0)
    expected = np.linalg.eigvalsh(root[:, None] * H * root)
    assert abs(found.maximum / expected[-1] - 1) < 1e-5 and found.converged


@pytest.mark.parametrize(
    "state, words",
    [
        (optax.sgd(0.1).init(W), "exactly one second moment `nu`, got 0"),
        (
            (optax.adam(0.1).init(W), optax.adam(0.1).init(W)),
            "exactly one second moment `nu`, got 2",
        ),
        (optax.adam(0.1).init(W), "state.count=0"),
        (optax.adam(0.1).init({"w": W["w"]}), "other leaves or shapes than"),
    ],
)
def test_states_without_a_scale_are_refused(state, words):
    with pytest.raises(ValueError, match=words):
        curvature.preconditioned(loss, params(), state)


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_the_noise_of_the_gradient_against_numpy(batch_size):
    g, _ = gradients(Y)
    means = g.reshape(-1, batch_size, g.shape[1]).mean(1)
    found = curvature.gradient_noise(loss, params(), data(), batch_size=batch_size)
    trace = batch_size * np.trace(np.atleast_2d(np.cov(means.T)))
    norm = np.sum(means.mean(0) ** 2) - trace / batch_size / len(means)
    assert np.isclose(found.trace, trace) and np.isclose(found.squared_norm, norm)
    assert np.isclose(found.scale, trace / norm)
    count = len(means)
    rest = [np.delete(means, i, axis=0) for i in range(count)]
    traces = np.array([batch_size * np.trace(np.atleast_2d(np.cov(r.T))) for r in rest])
    error = np.sqrt((count - 1) * np.var(traces))
    assert np.isclose(found.trace_error, error)
    assert (found.batches, found.examples) == (count, batch_size) and "noise scale" in repr(found)


def test_the_errors_of_the_noise_cover_the_truth():
    """40 data sets from a known law: g = x for the loss w x, so tr(S) = 3 and |G|^2 = 3."""
    z = []
    for seed in range(40):
        x = jax.random.normal(jax.random.key(seed), (200, 3)) + 1.0
        linear = lambda w, batch: jnp.mean(batch @ w)
        found = curvature.gradient_noise(linear, jnp.zeros(3), x, batch_size=1)
        z.append([(found.trace - 3) / found.trace_error, (found.scale - 1) / found.scale_error])
    assert np.all(np.abs(np.mean(z, axis=0)) < 0.6) and np.all(np.abs(np.std(z, axis=0) - 1) < 0.4)


@pytest.mark.parametrize("options", [{}, {"batch_size": 6}, {"batch_size": 5}, {"batch_size": 12}])
def test_noise_needs_batches_of_one_size(options):
    with pytest.raises(ValueError, match="Try batch_size=1"):
        curvature.gradient_noise(loss, params(), data(), **options)


def test_the_sharpness_in_a_ball_against_scipy():
    """A saddle, where the gradient leads away from the highest point of the ball."""
    A = np.diag([4.0, 1.0, -3.0])
    slope = np.array([0.0, 0.3, 0.1])
    value = lambda e: 0.5 * e @ A @ e + slope @ e
    ball = {"type": "ineq", "fun": lambda e: 0.25 - e @ e}
    best = max(
        -scipy.optimize.minimize(lambda e: -value(e), s, constraints=[ball]).fun
        for s in RNG.normal(size=(5, 3))
    )
    f = lambda w: 0.5 * w @ jnp.asarray(A) @ w + jnp.asarray(slope) @ w
    found = curvature.sharpness(f, jnp.zeros(3), radius=0.5, steps=60)
    assert np.isclose(found.rise, best, rtol=1e-5) and found.last_gain < 1e-6
    assert np.isclose(found.one_step, value(0.5 * slope / np.linalg.norm(slope)))
    assert found.rise > 1.5 * found.one_step
    e = np.asarray(found.direction)
    assert np.linalg.norm(e) <= 0.5 * (1 + 1e-12) and np.isclose(value(e), found.rise)


def test_the_sharpness_at_a_minimum_and_refusals():
    flat = curvature.sharpness(lambda w: jnp.sum(w["a"] ** 2), {"a": jnp.zeros(4)}, radius=0.1)
    assert np.isclose(flat.rise, 0.01) and flat.one_step == 0 and "at least" in repr(flat)
    with pytest.raises(ValueError, match="radius=0"):
        curvature.sharpness(loss, params(), data(), radius=0)
    with pytest.raises(ValueError, match="steps=0"):
        curvature.sharpness(loss, params(), data(), steps=0)
    with pytest.raises(ValueError, match="does not depend on"):
        curvature.sharpness(lambda w: jnp.float64(1.0), jnp.zeros(3))
