"""Lemmas 36-38: the network passes through its points, its norm stays below (C.16)."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.qstr import interpolator, relu_networks
from jaxbounds.qstr.links import sphere


@pytest.mark.parametrize("optimal", [False, True])
def test_it_is_the_piecewise_linear_interpolant(optimal, x64):
    """Independent: numpy.interp, between the points too, in the caller's order."""
    z, y = np.random.default_rng(0).normal(size=(2, 12))
    network = interpolator.interpolate(jnp.asarray(z), jnp.asarray(y), optimal=optimal)
    between, order = np.linspace(z.min(), z.max(), 301), np.argsort(z)
    found = np.asarray(jax.jit(lambda z: network(z))(np.append(z, between)))
    np.testing.assert_allclose(found[:12], y, atol=1e-9)
    want = np.interp(between, z[order], y[order])
    np.testing.assert_allclose(found[12:], want, atol=1e-9)


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

    measured = jax.jit(jax.vmap(measure))(jax.random.split(key, 2000))
    printed, best, near, bound = map(np.asarray, measured)
    assert np.all(printed <= bound)
    assert np.max(printed / bound) > 0.2
    assert np.all(best <= printed * (1 + 1e-9)) and np.all(best < near)


def test_the_best_balance_of_unequal_weights_by_hand(x64):
    """Weights other than one: |a|^2 = 25, |w|^2 = 68, |b|^2 = 13; 81/25 to the fourth root."""
    raw = interpolator.Interpolator(*map(jnp.array, ([3.0, 4.0], [8.0, -2.0], [-3.0, 2.0])))
    c = float(jax.jit(interpolator.optimal_balance)(raw))
    assert c == pytest.approx(math.sqrt(9 / 5))
    balanced = jax.jit(lambda c: interpolator.balance(raw, c).squared_norm())
    norm = lambda c: float(balanced(np.float64(c)))
    assert norm(c) == pytest.approx(2 * 5 * 9)  # both parts |a| sqrt(|w|^2 + |b|^2)
    assert norm(c) < min(norm(1.001 * c), norm(c / 1.001))


def test_alternating_values_nearly_attain_the_constant_16(x64):
    n = 400
    z, y = np.arange(float(n)), np.resize([1.0, -1.0], n)
    raw = jax.jit(interpolator.unbalanced)(z, y)
    assert 15.5 < np.sum(np.asarray(raw.a) ** 2) / np.sum(y**2) <= 16


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

    share = np.mean(jax.jit(jax.vmap(success))(jax.random.split(key, 2000)))
    assert 0.75 < share < 0.95  # the lemma claims 1/3


@pytest.mark.parametrize("depth", [3, 5])
def test_rnn_embedding_computes_it_at_the_stated_norm(depth, key, x64):
    rng, square = np.random.default_rng(0), lambda x: np.sum(np.asarray(x) ** 2)
    x, v, y = rng.normal(size=(6, 4)), jax.jit(sphere, static_argnums=1)(key, 4), rng.normal(size=6)
    network = interpolator.interpolate(jnp.asarray(x @ v), jnp.asarray(y))
    layers = interpolator.embed_in_rnn(network, v, depth)
    assert len(layers) == depth
    values = np.asarray(jax.jit(relu_networks.evaluate)(layers, x))
    np.testing.assert_allclose(values[:, 0], y, atol=1e-9)
    total = sum(square(W) + square(b) for W, b in layers)
    inner = square(network.w) + square(network.b)
    assert total == pytest.approx(2 * square(network.a) + inner + 2 * (depth - 3) + 2)
    with pytest.raises(ValueError, match="expected at least 3"):
        interpolator.embed_in_rnn(network, v, 2)


def test_coinciding_points_are_refused_and_zero_values_cost_nothing(x64):
    with pytest.raises(ValueError, match="merge equal points"):
        interpolator.interpolate(jnp.array([1.0, 2.0, 1.0]), jnp.ones(3))
    zero = interpolator.interpolate(jnp.arange(3.0), jnp.zeros(3))
    assert all(np.all(np.asarray(part) == 0) for part in zero)  # set, not computed
    single = interpolator.interpolate(jnp.array([2.0]), jnp.array([-3.0]))
    assert single(jnp.array(2.0)) == pytest.approx(-3.0)


def test_points_are_judged_in_the_precision_that_computes(x64):
    """At a gap of 1e-7 float32 has no digits left, float64 interpolates."""
    z, y = np.array([0.0, 1.0, 1.0 + 1e-7, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(interpolator.interpolate(z, y)(jnp.asarray(z)), y, atol=1e-6)
    with enable_x64(False), pytest.raises(ValueError, match="float32 does not resolve"):
        interpolator.interpolate(z, y)
    tiny = 1e-200 * y
    np.testing.assert_allclose(interpolator.interpolate(z, tiny)(jnp.asarray(z)), tiny, rtol=1e-6)


@pytest.mark.parametrize(
    "z, y, words",
    [
        ([0.0, np.nan], [1.0, 2.0], "NaN"),
        ([0.0, 1.0], [np.nan, 2.0], "NaN"),
        ([0.0, 1.0], [1.0], "equal length"),
        ([], [], "equal length"),
    ],
)
def test_points_that_are_none_are_refused(z, y, words):
    with pytest.raises(ValueError, match=words):
        interpolator.interpolate(np.array(z), np.array(y))
