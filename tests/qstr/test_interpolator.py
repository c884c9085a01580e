"""Lemmas 36-38: the network passes through its points, its norm stays below (C.16)."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.qstr import interpolator, relu_networks
from jaxbounds.qstr.links import sphere


@pytest.mark.parametrize("optimal", [False, True])
def test_it_is_the_piecewise_linear_interpolant(optimal, key, x64):
    """Independent: numpy.interp, between the points too, in the caller's order."""
    z, y = jax.random.normal(key, (2, 12))
    network = interpolator.interpolate(z, y, optimal=optimal)
    np.testing.assert_allclose(network(z), y, atol=1e-9)
    between = np.linspace(float(z.min()), float(z.max()), 301)
    order = np.argsort(z)
    want = np.interp(between, np.asarray(z)[order], np.asarray(y)[order])
    np.testing.assert_allclose(network(jnp.asarray(between)), want, atol=1e-9)


def test_norm_is_below_the_bound_and_the_best_balance_is_best(key, x64):
    def measure(key):
        key_z, key_y = jax.random.split(key)
        z, y = jnp.sort(jax.random.normal(key_z, (6,))), jax.random.normal(key_y, (6,))
        raw = interpolator.unbalanced(z, y)
        eps = jnp.minimum(1.0, jnp.min(jnp.diff(z)))
        printed = interpolator.balance(raw, interpolator.printed_balance(z, y, eps))
        best = interpolator.balance(raw, interpolator.optimal_balance(raw))
        bound = interpolator.norm_bound(z, y)
        near = interpolator.balance(raw, 1.1 * interpolator.optimal_balance(raw))
        return [printed.squared_norm(), best.squared_norm(), near.squared_norm(), bound]

    printed, best, near, bound = jax.vmap(measure)(jax.random.split(key, 2000))
    assert jnp.all(printed <= bound)
    assert jnp.max(printed / bound) > 0.2
    assert jnp.all(best <= printed * (1 + 1e-9)) and jnp.all(best < near)


def test_the_best_balance_of_unequal_weights_by_hand(x64):
    """Weights other than one: |a|^2 = 25, |w|^2 = 68, |b|^2 = 13; 81/25 to the fourth root."""
    raw = interpolator.Interpolator(*map(jnp.array, ([3.0, 4.0], [8.0, -2.0], [-3.0, 2.0])))
    c = float(interpolator.optimal_balance(raw))
    assert c == pytest.approx(math.sqrt(9 / 5))
    norm = lambda c: float(interpolator.balance(raw, jnp.array(c)).squared_norm())
    assert norm(c) == pytest.approx(2 * 5 * 9)  # both parts |a| sqrt(|w|^2 + |b|^2)
    assert norm(c) < min(norm(1.001 * c), norm(c / 1.001))


def test_alternating_values_nearly_attain_the_constant_16(x64):
    n = 400
    z, y = jnp.arange(float(n)), jnp.resize(jnp.array([1.0, -1.0]), n)
    raw = interpolator.unbalanced(z, y)
    assert 15.5 < jnp.sum(raw.a**2) / jnp.sum(y**2) <= 16


def test_printed_bound_on_the_biases_is_wrong(x64):
    z = jnp.array([-10.0, 0.0])
    b = interpolator.unbalanced(z, jnp.ones(2)).b
    assert jnp.sum(b**2) == 221.0  # 11^2 + 10^2, integers
    assert interpolator.bias_bound(z, printed=True) == 101.0
    assert interpolator.bias_bound(z) == 302.0


def test_bounds_and_balance_by_hand(x64):
    """|y| = 5, n + |z|^2 = 9.875, smallest gap 1/4."""
    z, y = jnp.array([1.0, 1.25, 1.75, -0.5]), jnp.array([3.0, 0.0, 4.0, 0.0])
    assert float(interpolator.smallest_gap(z)) == pytest.approx(0.25)
    bound = float(interpolator.norm_bound(z, y, constant=2.0))
    assert bound == pytest.approx(2 * 5 * np.sqrt(9.875) * 4)
    c = interpolator.printed_balance(z, y, jnp.array(0.25))
    assert float(c) == pytest.approx((9.875 / 16 / 25) ** 0.25)
    assert interpolator.separation(3) == pytest.approx(np.sqrt(np.pi) / 27)


def test_gaussian_points_separate_often(key, x64):
    n, d = 12, 3

    def success(key):
        key_x, key_v = jax.random.split(key)
        gap, square = interpolator.separated(jax.random.normal(key_x, (n, d)), sphere(key_v, d))
        return (gap >= interpolator.separation(n)) & (square <= 3 * n)

    share = jnp.mean(jax.vmap(success)(jax.random.split(key, 2000)))
    assert 0.75 < share < 0.95  # the lemma claims 1/3


@pytest.mark.parametrize("depth", [3, 5])
def test_rnn_embedding_computes_it_at_the_stated_norm(depth, key, x64):
    key_x, key_v, key_y = jax.random.split(key, 3)
    x, v, y = jax.random.normal(key_x, (6, 4)), sphere(key_v, 4), jax.random.normal(key_y, (6,))
    network = interpolator.interpolate(x @ v, y)
    layers = interpolator.embed_in_rnn(network, v, depth)
    assert len(layers) == depth
    np.testing.assert_allclose(relu_networks.evaluate(layers, x)[:, 0], y, atol=1e-9)
    total = sum(float(jnp.sum(W**2) + jnp.sum(b**2)) for W, b in layers)
    inner = jnp.sum(network.w**2) + jnp.sum(network.b**2)
    want = 2 * jnp.sum(network.a**2) + inner + 2 * (depth - 3) + 2
    assert total == pytest.approx(float(want))
    with pytest.raises(ValueError, match="depth >= 3"):
        interpolator.embed_in_rnn(network, v, 2)


def test_coinciding_points_are_refused_and_zero_values_cost_nothing(x64):
    with pytest.raises(ValueError, match="merge coinciding points"):
        interpolator.interpolate(jnp.array([1.0, 2.0, 1.0]), jnp.ones(3))
    zero = interpolator.interpolate(jnp.arange(3.0), jnp.zeros(3))
    assert all(np.all(np.asarray(part) == 0) for part in zero)  # set, not computed
    single = interpolator.interpolate(jnp.array([2.0]), jnp.array([-3.0]))
    assert single(jnp.array(2.0)) == pytest.approx(-3.0)


def test_points_are_judged_in_the_precision_that_computes(x64):
    """At a gap of 1e-7 float32 has no digits left, float64 interpolates."""
    z, y = np.array([0.0, 1.0, 1.0 + 1e-7, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(interpolator.interpolate(z, y)(jnp.asarray(z)), y, atol=1e-6)
    with jax.enable_x64(False), pytest.raises(ValueError, match="float32 does not resolve"):
        interpolator.interpolate(z, y)
    tiny = 1e-200 * y
    np.testing.assert_allclose(interpolator.interpolate(z, tiny)(jnp.asarray(z)), tiny, rtol=1e-6)


@pytest.mark.parametrize(
    "z, y, words",
    [
        ([0.0, np.nan], [1.0, 2.0], "NaN"),
        ([0.0, 1.0], [np.nan, 2.0], "NaN"),
        ([0.0, 1.0], [1.0], "one length"),
        ([], [], "one length"),
    ],
)
def test_points_that_are_none_are_refused(z, y, words):
    with pytest.raises(ValueError, match=words):
        interpolator.interpolate(np.array(z), np.array(y))
