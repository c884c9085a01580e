"""Prompts, links and encodings against enumeration, numpy loops and closed-form moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi

from jaxbounds.qstr import data, encodings
from jaxbounds.qstr.links import LINKS, find_link

N, d, q, de = 8, 3, 2, 12


@pytest.mark.parametrize("name", sorted(LINKS))
def test_labels_are_the_link_of_the_relevant_tokens(name, key, x64):
    """Independent: a numpy loop over positions gathers the tokens by hand."""
    link = find_link(name)

    @jax.jit
    def drawn(key):
        parameters = link.init(key, q, d)
        return parameters, data.sample_prompts(key, link, parameters, shape=(4,), N=N, d=d, q=q)

    @jax.jit
    def values(parameters, tokens):
        found = [link.apply(parameters, tokens)]
        return found + ([link.two_layer(parameters)(tokens)] if link.two_layer else [])

    parameters, prompts = drawn(key)
    x, t, y = map(np.asarray, (prompts.x, prompts.t, prompts.y))
    for b in range(4):
        for i in range(N):
            tokens = np.stack([x[b, j] for j in t[b, i]])
            for value in values(parameters, tokens):
                np.testing.assert_allclose(value, y[b, i], atol=1e-12)


def test_linear_link_has_the_radii_of_assumption_2(key, x64):
    link = find_link("linear")
    r_a, r_w = link.two_layer(link.init(key, q, d)).radii()
    np.testing.assert_allclose([r_a, r_w], [2.0, 1.0], rtol=1e-12)


def test_unknown_names_and_bad_sizes_are_refused(key):
    with pytest.raises(ValueError, match="name='cubic' is unknown"):
        find_link("cubic")
    with pytest.raises(ValueError, match="at least 1"):
        data.sample_prompts(key, LINKS["linear"], {}, shape=(), N=0, d=1)
    with pytest.raises(ValueError, match="expected q distinct positions"):
        data.sample_positions(key, (), 2, 3, distinct=True)
    with pytest.raises(ValueError, match="for each of N=8 tokens"):
        data.encode(jnp.zeros((N, d)), jnp.zeros((N, q), jnp.int32), jnp.zeros((N + 1, de)))


def test_simple_prompts_share_their_positions(key):
    t = data.sample_positions(key, (5,), N, q, simple=True)
    assert jnp.all(t == t[:, :1])
    t = data.sample_positions(key, (500,), N, q, distinct=True)
    assert jnp.all(t[..., 0] != t[..., 1])
    # Uniform over positions: each of the N values has mass 1/N (5 sigma).
    share = np.bincount(np.asarray(t[:, :, 0]).ravel(), minlength=N) / t[:, :, 0].size
    assert np.abs(share - 1 / N).max() < 5 * np.sqrt(1 / N / t[:, :, 0].size)


def test_encoding_layout_and_norm(key, x64):

    @jax.jit
    def drawn(key):
        key_x, key_t, key_w = jax.random.split(key, 3)
        x = jax.random.normal(key_x, (N, d))
        t = data.sample_positions(key_t, (), N, q)
        omega = encodings.rademacher_encodings(key_w, N, de).astype(jnp.float64)
        return x, t, omega, data.encode(x, t, omega), data.encode(x, t, omega, scale=False)

    x, t, omega, z, plain = map(np.asarray, drawn(key))
    assert z.shape == (N, d + (q + 1) * de)
    np.testing.assert_allclose(np.sum(z[:, d:] ** 2, axis=1), d * (1 + 1 / q), rtol=1e-6)
    for i in range(N):
        parts = [x[i], omega[i], *(omega[j] for j in t[i])]
        np.testing.assert_array_equal(plain[i], np.concatenate(parts))
    np.testing.assert_allclose(z[:, d:], np.sqrt(d / q) * plain[:, d:], rtol=1e-12)


@pytest.mark.parametrize("r", [1.0, 2.0, 5.5])
def test_gaussian_moments_match_scipys_chi_law(r):
    """Independent: numerical integration of the chi density by scipy."""
    moment = chi(3).expect(lambda v: v**r)
    assert data.gaussian_moment_ratio(3, r) == pytest.approx(moment ** (2 / r) / (3 * r), rel=1e-8)
    assert max(data.gaussian_moment_ratio(10, s) for s in np.arange(1, 40, 0.5)) < 1


def test_coherence_by_double_loop(key, x64):
    omega = np.asarray(encodings.rademacher_encodings(key, 6, 5).astype(jnp.float64))
    pairs = [omega[i] @ omega[j] for i in range(6) for j in range(6) if i != j]
    assert encodings.coherence(jnp.asarray(omega)) == pytest.approx(max(pairs))
    signed_free = encodings.coherence(jnp.asarray(omega), signed=False)
    assert signed_free == pytest.approx(np.abs(pairs).max())
    with pytest.raises(ValueError, match="N=1 encodings, expected at least 2, because"):
        encodings.coherence(jnp.ones((1, 3)))


def test_greedy_encodings_meet_assumption_3_where_rademacher_ones_do_not(key):
    omega = encodings.greedy_encodings(key, 16, 14)
    assert encodings.satisfies_assumption_3(omega)

    @jax.jit
    @jax.vmap
    def meets(key):
        return encodings.satisfies_assumption_3(encodings.rademacher_encodings(key, 12, 12))

    assert np.mean(np.asarray(meets(jax.random.split(key, 500)))) < 0.2
    with pytest.raises(ValueError, match="larger de, target or patience"):
        encodings.greedy_encodings(key, 40, 3, patience=500)
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        encodings.greedy_encodings(key, 4, 3, target=1.0)


def test_published_dimension_is_floor_of_five_log_N():
    assert [encodings.published_encoding_dimension(n) for n in (2, 4, 12, 33, 100)] == [
        3,
        6,
        12,
        17,
        23,
    ]
    with pytest.raises(ValueError, match="N=1, expected at least 2 for the paper's"):
        encodings.published_encoding_dimension(1)


def test_empirical_risks_by_hand():
    predicted, y = jnp.array([[1.0, 2.0], [0.0, 4.0]]), jnp.array([[0.0, 2.0], [3.0, 0.0]])
    assert float(data.averaged_risk(predicted, y)) == pytest.approx((1 + 0 + 9 + 16) / 4)
    positions = jnp.array([0, 1])
    assert float(data.pointwise_risk(predicted, y, positions)) == pytest.approx((1 + 16) / 2)


def test_published_encodings_and_assumption_3():
    """The numbers of the remark, by NumPy alone; exact at N = 2, where de = 3: 6/8 and 1/8."""
    rng = np.random.default_rng(1)
    for N, meet, coincide in ((2, 0.75, 0.125), (4, 0.21, 0.09), (8, 0.03, 0.03), (12, 0.07, 0.02)):
        de = encodings.published_encoding_dimension(N)
        s = 2.0 * rng.integers(0, 2, size=(8000, N, de)) - 1
        upper = np.triu_indices(N, 1)
        inner = (s @ s.swapaxes(1, 2))[:, upper[0], upper[1]]
        assert np.mean(np.all(np.abs(inner) <= de / 2, axis=1)) == pytest.approx(meet, abs=0.02)
        assert np.mean(np.any(inner == de, axis=1)) == pytest.approx(coincide, abs=0.015)
