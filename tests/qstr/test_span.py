"""Theorem 6: exact risk against Monte Carlo, trained networks, and the off-span identity."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxbounds.qstr import span
from jaxbounds.qstr.links import sphere

N, d, n = 5, 3, 7
RNG = np.random.default_rng(0)


@pytest.fixture
def basis(key, x64):
    return span.span_rows(jax.random.normal(key, (n, N * d)))[0]


def test_exact_risk_is_what_the_best_predictor_measures(basis, key, x64):
    """Independent of the closed form: Monte Carlo over fresh prompts and positions."""
    u, x = jax.jit(sphere, static_argnums=1)(key, d), RNG.normal(size=(40_000, N, d))
    predicted = np.asarray(jax.jit(span.best_prediction)(basis, u, x))
    errors = np.mean((x @ np.asarray(u) - predicted) ** 2, axis=1)
    risk = float(span.direction_risk(basis, u))
    assert abs(np.mean(errors) - risk) < 4 * np.std(errors) / 200


def test_average_over_directions_is_the_rank_formula(basis, x64):
    # The mean of u^T A u over an orthonormal frame is tr(A)/d, that over the sphere too.
    risks = [span.direction_risk(basis, u) for u in jnp.eye(d)]
    assert np.mean(risks) == pytest.approx(1 - n / (N * d), abs=1e-12)


def test_certificate_brackets_every_direction(key, x64):
    x = RNG.normal(size=(n, N, d))
    doubled = np.concatenate([x, x[:3]])
    got = span.feedforward_certificate(doubled, jnp.array([1.0, 0.0, 0.0]))
    assert got.rank == n and not got.vacuous
    assert got.printed == pytest.approx(1 - 10 / 15)
    assert got.average == pytest.approx(1 - 7 / 15)
    basis = span.span_rows(jnp.asarray(x.reshape(n, -1)))[0]
    risk = jax.jit(jax.vmap(lambda u: span.direction_risk(basis, u)))
    risks = np.asarray(risk(jax.jit(lambda key: sphere(key, 400, d))(key)))
    assert got.easiest - 1e-9 <= np.min(risks) and np.max(risks) <= got.worst + 1e-9
    assert got.worst + 1e-12 >= got.average >= got.easiest - 1e-12
    assert got.easiest - 1e-12 <= got.direction <= got.worst + 1e-12


def test_enough_prompts_make_it_vacuous_with_words(key):
    got = span.feedforward_certificate(jax.random.normal(key, (20, N, d)))
    assert got.vacuous and "n >= N d" in got.reason
    assert (got.average, got.printed) == (0.0, 0.0)  # copies of zero
    assert np.isnan(got.direction)
    with pytest.raises(ValueError, match="NaN or infinity"):
        span.feedforward_certificate(jnp.full((2, N, d), jnp.nan))
    with pytest.raises(ValueError, match="rows that split"):
        span.diagonal_block_mean(jnp.ones((1, 7)), d=2)


def test_ranks_are_those_of_float64_without_x64():
    """Independent: NumPy's rank. Outside x64 JAX's SVD would be of the prompts in float32."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.standard_normal((20, 4, 10)), 3, axis=0)
    got = span.feedforward_certificate(x)
    assert got.rank == np.linalg.matrix_rank(x.reshape(60, 40)) == 20
    assert got.average == 0.5 and not got.vacuous  # 1 - 20/40
    assert got.worst >= 0.5 - 1e-12
    x = rng.standard_normal((90, 4, 10))
    x[:, -1] = 0.0
    assert span.feedforward_certificate(x).rank == 30
    assert jnp.zeros(()).dtype == jnp.float32


def test_odd_prompts_are_answered_or_refused():
    signs = np.random.default_rng(0).integers(0, 2, (7, 3, 2)) * 2 - 1
    got = span.feedforward_certificate(signs)
    assert got.rank == np.linalg.matrix_rank(signs.reshape(7, 6))
    for nothing in (np.zeros((3, 4, 2)), np.zeros((0, 4, 2))):
        got = span.feedforward_certificate(nothing)
        assert (got.rank, got.average) == (0, 1.0)
        assert got.worst == pytest.approx(1.0, abs=1e-12)
    full = span.feedforward_certificate(np.random.default_rng(1).standard_normal((30, 3, 2)))
    assert 0 <= full.easiest <= full.worst < 1e-9
    for x, u, words in (
        (np.ones((3, 4)), None, r"\(n, N, d\)"),
        (signs, np.ones(3), r"u=\[1\. 1\. 1\.\], expected a finite vector of R\^d"),
        (signs, np.array([np.nan, 0.0]), "finite"),
    ):
        with pytest.raises(ValueError, match=words):
            span.feedforward_certificate(x, u)
    assert span.off_span_fraction(jnp.zeros((2, 4)), jnp.eye(4)[:2]) == 0.0  # zeros throughout


def test_certificate_by_hand():
    """Two prompts of two tokens: P is 1 on both coordinates of token 1 and on none of token 2."""
    x = np.array([[[2.0, 0.0], [0.0, 0.0]], [[0.0, 4.0], [0.0, 0.0]]])
    got = span.feedforward_certificate(x, np.array([3.0, 4.0]))
    assert (got.rank, got.average, got.printed) == (2, 0.5, 0.5)
    np.testing.assert_allclose([got.worst, got.easiest, got.direction], [0.5, 0.5, 12.5])
    # One coordinate of one token seen: (1/N) sum_k P_kk = diag(1/2, 0).
    got = span.feedforward_certificate(x[:1], np.array([1.0, 0.0]))
    np.testing.assert_allclose([got.worst, got.easiest, got.direction], [1.0, 0.5, 0.5])
    assert got.rank == 1 and got.average == 0.75
    outside = span.off_span_fraction(jnp.array([[3.0, 4.0]]), jnp.array([[1.0, 0.0]]))
    assert float(outside) == pytest.approx(0.64)


def test_ridge_on_span_features_cannot_beat_the_certificate(basis, x64):
    """A trained predictor sharing no code: ridge on position-gated projections, fresh risk."""
    u, seen_by = RNG.normal(size=d), np.asarray(basis).T
    u /= np.linalg.norm(u)

    def features(count):
        x, t = RNG.normal(size=(count, N, d)), RNG.integers(0, N, count)
        gated = np.eye(N)[t][:, :, None] * (x.reshape(count, -1) @ seen_by)[:, None, :]
        return gated.reshape(count, -1), x[np.arange(count), t] @ u

    A, y = features(4000)
    ridge = np.linalg.solve(A.T @ A + 1e-3 * np.eye(A.shape[1]), A.T @ y)
    B, fresh = features(20_000)
    errors = (B @ ridge - fresh) ** 2
    risk = float(span.direction_risk(basis, jnp.asarray(u)))
    assert np.mean(errors) + 4 * np.std(errors) / np.sqrt(20_000) >= risk
    assert np.mean(errors) < 1.3 * risk  # and it comes close, so the floor is not slack


def _train(optimiser, params, data, steps):
    x, y = data

    def loss(p):
        return jnp.mean((jax.nn.relu(x @ p["W"].T) @ p["a"] - y) ** 2)

    def step(carry, _):
        params, state = carry
        updates, state = optimiser.update(jax.grad(loss)(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    return jax.lax.scan(step, (params, optimiser.init(params)), length=steps)[0][0]


def test_coupled_decay_shrinks_the_off_span_part_exactly_and_adamw_does_not(basis, x64):
    """W's gradient lies in the span, so off it GD with l2 only multiplies by 1 - eta lambda."""
    plain = np.asarray(basis)
    data = RNG.normal(size=(n, n)) @ plain, RNG.normal(size=n)  # prompts in the span of `basis`
    W = 0.3 * RNG.normal(size=(10, N * d))
    params = {"W": W, "a": np.linspace(-1.0, 1.0, 10)}
    eta, decay, steps = 0.01, 0.05, 300
    coupled = optax.chain(optax.add_decayed_weights(decay), optax.sgd(eta))
    outside = lambda W: W - (W @ plain.T) @ plain
    trained = jax.jit(lambda p: _train(coupled, p, data, steps))(params)
    shrunk = (1 - eta * decay) ** steps * outside(W)
    np.testing.assert_allclose(outside(np.asarray(trained["W"])), shrunk, atol=1e-12)
    assert not np.allclose(trained["W"], (1 - eta * decay) ** steps * W, atol=1e-3)
    with jax.numpy_dtype_promotion("standard"):  # optax raises a float to an integer power
        decoupled = optax.adamw(eta, weight_decay=decay)
        adamw = jax.jit(lambda p: _train(decoupled, p, data, steps))(params)
    moved = np.asarray(adamw["W"])
    assert np.max(np.abs(outside(moved) - shrunk)) > 1e-2
    fraction = span.off_span_fraction(adamw["W"], basis)
    kept = np.sum(outside(moved) ** 2) / np.sum(moved**2)
    assert fraction == pytest.approx(float(kept))
