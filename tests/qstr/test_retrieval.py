"""Construction (A.2): structured against dense, its norms, and its error against both tails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.qstr import data, retrieval
from jaxbounds.qstr.encodings import coherence, greedy_encodings, rademacher_encodings
from jaxbounds.qstr.links import find_link
from jaxbounds.qstr.transformer import SparseTransformer

N, d, q = 16, 5, 2


@pytest.fixture(scope="module")
def omega():
    with enable_x64(True):
        return greedy_encodings(jax.random.key(1), N, 14)


def draw(key):
    key_x, key_t = jax.random.split(key)
    return jax.random.normal(key_x, (N, d)), data.sample_positions(key_t, (), N, q)


def test_dense_weights_have_the_papers_norms(x64):
    de, alpha = 14, 1.7
    W = retrieval.retrieval_weights(alpha, q=q, d=d, de=de)
    norms = np.linalg.norm(np.asarray(W), axis=1).sum(axis=1)
    np.testing.assert_allclose(norms, de * alpha)
    assert float(jnp.sum(W**2)) == pytest.approx(q * de * alpha**2)


def test_the_papers_transformer_with_these_weights_is_the_shortcut(omega, key, x64):
    link = find_link("two_layer")
    alpha, de = 2.0, omega.shape[1]

    @jax.jit
    def both(key):
        network = link.two_layer(link.init(key, q, d))
        x, t = draw(key)
        params = retrieval.transformer_parameters(network, alpha, q=q, d=d, de=de)
        model = SparseTransformer(heads=q, width=network.a.shape[0])
        got = model.apply(params, data.encode(x, t, omega))
        return got, network(retrieval.retrieve(x, t, omega, alpha))

    got, want = both(key)
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("L", [2.0, 10.0])
def test_error_stays_below_every_tail_on_every_draw(L, omega, key, x64):
    alpha, mu = 2 * q * L / d, coherence(omega)

    def measure(key):
        x, t = draw(key)
        return (
            retrieval.retrieval_error(x, t, omega, alpha),
            retrieval.retrieval_error_bound_by_row(x, t, omega, alpha),
            retrieval.retrieval_error_bound(x, omega, alpha, q=q, coherence=mu),
            retrieval.retrieval_error_bound(x, omega, alpha, q=q, coherence=0.5),
        )

    measured = jax.jit(jax.vmap(measure))(jax.random.split(key, 200))
    error, row, ours, paper = map(np.asarray, measured)
    assert float(mu) <= 0.5 + 1e-9
    assert np.all(error <= row * (1 + 1e-9) + 1e-12)
    assert np.all(row <= ours * (1 + 1e-9))
    assert np.all(ours <= paper * (1 + 1e-9))
    assert np.max(error / ours) > 1e-4  # not off by so much that it could not fail


def test_coherent_encodings_need_the_measured_coherence(x64):
    t = np.arange(12, dtype=np.int32)[:, None]

    @jax.jit
    def asked(key, x, t):
        omega = rademacher_encodings(key, 12, 12).astype(jnp.float64)
        bound = lambda mu: retrieval.retrieval_error_bound(x, omega, 8.0, q=1, coherence=mu)
        mu = coherence(omega)
        return mu, retrieval.retrieval_error(x, t, omega, 8.0), bound(mu), bound(0.5)

    x = np.random.default_rng(0).normal(size=(12, d))
    mu, error, measured, half = map(float, asked(jax.random.key(5), x, t))
    assert 0.5 < mu < 1 and half < error <= measured


def test_alpha_of_lemma_11_buys_the_accuracy(omega, key, x64):
    link, eps = find_link("linear"), 1e-6
    x, t = jax.jit(jax.vmap(draw))(jax.random.split(key, 50))
    r_x = float(np.max(np.linalg.norm(x, axis=-1)))
    alpha = retrieval.inverse_temperature(N=N, q=q, d=d, r_a=2.0, r_w=1.0, r_x=r_x, eps=eps)

    @jax.jit
    def both(key, x, t):
        parameters = link.init(key, q, d)
        network = link.two_layer(parameters)
        got = jax.vmap(lambda x, t: network(retrieval.retrieve(x, t, omega, alpha)))(x, t)
        return got, link.apply(parameters, data.relevant_tokens(x, t))

    got, want = map(np.asarray, both(key, x, t))
    assert 0 < np.max(np.abs(got - want)) <= np.sqrt(eps)


def test_coinciding_encodings_and_no_accuracy_are_refused():
    sizes = {"N": 4, "q": 1, "d": 2, "r_a": 1.0, "r_w": 1.0, "r_x": 1.0}
    with pytest.raises(ValueError, match="two encodings coincide"):
        retrieval.inverse_temperature(**sizes, eps=0.1, coherence=1.0)
    with pytest.raises(ValueError, match="expected a positive number"):
        retrieval.inverse_temperature(**sizes, eps=0.0)


def test_the_measured_bound_holds_for_encodings_of_any_norm(key, x64):
    @jax.jit
    def measure(key, scale):
        omega = scale * rademacher_encodings(key, 12, 40).astype(float)
        key_x, key_t = jax.random.split(key)
        x = jax.random.normal(key_x, (12, 6))
        t = jax.random.randint(key_t, (12, 2), 0, 12)
        error = retrieval.retrieval_error(x, t, omega, 10.0)
        row = retrieval.retrieval_error_bound_by_row(x, t, omega, 10.0)
        return error, row, retrieval.retrieval_error_bound(x, omega, 10.0, q=2)

    for scale in (0.5, 1.0, 3.0):
        error, row, bound = map(float, measure(key, scale))
        assert error <= row * (1 + 1e-12) <= bound


def test_coinciding_encodings_are_refused_in_float32_too(key):
    """Their computed coherence may be 1 - 6e-8."""
    omega = rademacher_encodings(key, 6, 8)
    mu = float(coherence(omega.at[1].set(omega[0])))
    asked = {"N": 6, "q": 1, "d": 4, "r_a": 1.0, "r_w": 1.0, "r_x": 1.0}
    with pytest.raises(ValueError, match="coincide"):
        retrieval.inverse_temperature(**asked, eps=0.1, coherence=min(mu, 1 - 6e-8))
    assert retrieval.inverse_temperature(**asked, eps=1e9) == 0.0  # set, not computed


def test_values_by_hand(x64):
    """Two tokens 1 and 4 with orthonormal encodings, q = d = 1: weights 3/4 and 1/4."""
    t, twice = (np.array(rows, np.int32) for rows in ([[0], [1]], [[0, 0], [1, 1]]))

    @jax.jit
    def asked(x, t, twice, omega, alpha):
        by_row, bound = retrieval.retrieval_error_bound_by_row, retrieval.retrieval_error_bound
        tokens = retrieval.retrieve(x, t, omega, alpha)
        return tokens[:, 0, 0], retrieval.retrieval_error(x, t, omega, alpha), (
            by_row(x, t, omega, alpha), bound(x, omega, alpha, q=1, coherence=0.5),
            bound(x, omega, alpha, q=1), by_row(x, twice, 2 * omega, alpha),
        )  # fmt: skip

    got, error, bounds = asked(np.array([[1.0], [4.0]]), t, twice, np.eye(2), np.log(3.0))
    np.testing.assert_allclose(got, [1.75, 3.25])
    assert float(error) == pytest.approx(0.75)
    # |x_1 - x_0| e^{-log 3}; two bounds at coherence 1/2 and as measured. Last encodings of norm 2:
    # <w_t, w_j> - |w_t|^2 = -4; d/q = 1/2; two slots add up in the square.
    by_hand = [3 / 3, 2 * 4 / np.sqrt(3), 2 * 4 / 3, np.sqrt(2) * 3 / 9]
    np.testing.assert_allclose(bounds, by_hand, rtol=1e-6)
    sizes = {"N": 2, "q": 4, "d": 2, "r_a": 1.0, "r_w": 0.5, "r_x": 2.0, "eps": 0.04}
    assert float(retrieval.inverse_temperature(**sizes)) == pytest.approx(4 * np.log(40))
