"""Theorem 9 with its constants: least variation in closed form, rate-distortion by quadrature."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

from jaxbounds.qstr import code_rnn, memorisers, relu_networks, rnn_bounds
from jaxbounds.qstr.links import TwoLayer


def through(found, x):
    """Independent: predictions by a loop over units."""
    a, W, b = (np.asarray(v) for v in found.network)
    return [sum(a[j] * max(W[j] @ row + b[j], 0.0) for j in range(len(a))) for row in x]


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_least_variation_of_orthogonal_points(n, x64):
    """In closed form: rows (x_i, 1) orthogonal, of norm sqrt n (a simplex).

    One unit serves all labels of a sign, at |y_+|/sqrt n; the dual y_i/(n |y_+|/sqrt n), and alike
    for the other sign, shows that nothing is cheaper.
    """
    values, vectors = np.linalg.eigh(np.eye(n) * n - np.ones((n, n)))
    x = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, 1:] if n > 1 else np.zeros((1, 1))
    y = np.random.default_rng(n).standard_normal(n)
    found = memorisers.least_variation(x, y)
    want = sum(np.linalg.norm(np.maximum(sign * y, 0.0)) for sign in (1, -1)) / math.sqrt(n)
    assert float(memorisers.variation(found.network)) == pytest.approx(want, rel=1e-9)
    np.testing.assert_allclose(through(found, x), y, atol=1e-12)


def test_least_variation_on_a_line_by_a_dense_dictionary(x64):
    """Independent: neurons (cos s, sin s) on a fine grid and another solver, no dual, no ascent.

    Those that vanish at a point are on the grid too: between them the cost is smooth.
    """
    x, y = np.array([-1.3, -0.2, 0.4, 1.9]), np.array([0.5, -1.0, 0.7, 0.1])
    kinks = np.arctan2(-x, 1.0)
    angles = np.concatenate([np.linspace(-np.pi, np.pi, 4000), kinks, kinks + np.pi])
    units = np.maximum(np.outer(x, np.cos(angles)) + np.sin(angles), 0.0)
    best = scipy.optimize.linprog(
        np.ones(2 * len(angles)), A_eq=np.hstack([units, -units]), b_eq=y, method="highs-ipm"
    ).fun
    found = memorisers.least_variation(x[:, None], y, rounds=10)
    V = float(memorisers.variation(found.network))
    assert best * (1 - 1e-5) <= V <= 1.001 * best
    assert 1 <= found.price < 1.001
    np.testing.assert_allclose(through(found, x[:, None]), y, atol=1e-12)


def test_more_rounds_cost_no_more(x64):
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    costs = [
        float(memorisers.variation(memorisers.least_variation(x, y, rounds=k).network))
        for k in (1, 2, 4, 8)
    ]
    assert all(b <= a * (1 + 1e-7) for a, b in itertools.pairwise(costs))
    found = memorisers.least_variation(x, y, rounds=8)
    assert found.price < 1.05 and len(found.network.a) == 9


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_deep_networks_cost_what_is_stated(depth, x64):
    """Independent: a loop over the layers, and the cost of unbalanced copies."""
    rng = np.random.default_rng(depth)
    network = TwoLayer(*(jnp.asarray(rng.standard_normal(s)) for s in (6, (6, 3), 6)))
    deep = jax.jit(memorisers.deep_readout, static_argnums=1)(network, depth)
    layers = [(np.asarray(W), np.asarray(b)) for W, b in deep]
    x = rng.standard_normal((5, 3))
    values = x
    for k, (W, b) in enumerate(layers):
        values = (values if k == 0 else np.maximum(values, 0.0)) @ W.T + b
    a, V, c = (np.asarray(v) for v in network)
    np.testing.assert_allclose(values[:, 0], np.maximum(x @ V.T + c, 0.0) @ a, atol=1e-12)
    squares = [float(np.sum(W**2) + np.sum(b**2)) for W, b in layers]
    variation = sum(abs(a[j]) * math.hypot(*V[j], c[j]) for j in range(6))
    assert memorisers.variation(network) == pytest.approx(variation)
    product = memorisers.memorising_product(variation, depth)
    assert math.prod(squares) == pytest.approx(product) and len(layers) == depth
    assert sum(squares) == pytest.approx(depth * product ** (1 / depth))
    np.testing.assert_allclose(squares, squares[0])


def test_a_dead_unit_and_the_zero_network_are_kept(x64):
    network = TwoLayer(np.array([1.0, 2.0]), np.zeros((2, 1)), np.array([0.0, 1.0]))
    zero = TwoLayer(*(np.zeros_like(leaf) for leaf in network))
    read = jax.jit(lambda net, x: relu_networks.evaluate(memorisers.deep_readout(net, 3), x))
    for given, want in ((network, 2.0), (zero, 0.0)):
        value = read(given, np.ones((1, 1)))
        assert float(value[0, 0]) == pytest.approx(want)


def test_the_least_risk_by_maximising_over_the_net():
    """Independent: the best s on a grid in (N - 1) s^2 log(1/(sqrt(r') + s)) / S <= L^2 |U|_F^2."""
    S, s = 4 * math.pi * math.log(2), np.linspace(1e-4, 1, 40_000)
    for N, risk in itertools.product((2, 5, 4096), (0.01, 0.1, 0.3)):
        root = math.sqrt(risk * N / (N - 1))
        if root < 1:
            product = (N - 1) * np.max(-(s**2) * np.log(root + s)) / S
            assert rnn_bounds.unlearned_risk(product, N=N) == pytest.approx(risk, rel=1e-5)
    assert rnn_bounds.unlearned_risk(0.0, N=8) == 7 / 8
    assert rnn_bounds.unlearned_risk(1e9, N=8) == 0.0
    limit = math.exp(-1) / (2 * S)  # of L^2 |U|_F^2/(N - 1), above which any risk may be reached
    assert rnn_bounds.unlearned_risk(99 * 1.001 * limit, N=100) == 0.0
    assert 0 < rnn_bounds.unlearned_risk(99 * 0.999 * limit, N=100) < 1e-6


def test_the_constant_of_sudakov_s_inequality():
    """E max of M normals is at least sqrt(log M/(pi log 2)): by quadrature, equal at M = 2.

    M points at mutual distance 1, e_i/sqrt(2), have the width E max/sqrt(2) = sqrt(2) |U|_F.
    """
    for M in (2, 3, 10, 10**3, 10**6):
        above = lambda v, M=M: -np.expm1(M * scipy.special.log_ndtr(v))
        below = lambda v, M=M: np.exp(M * scipy.special.log_ndtr(v))
        mean = scipy.integrate.quad(above, 0, 12)[0] - scipy.integrate.quad(below, -12, 0)[0]
        bound = rnn_bounds.sudakov_log_packing(mean / 2, 1.0)
        assert math.log(M) <= bound * (1 + 1e-9)
        assert M > 2 or math.log(M) == pytest.approx(bound)


def test_levels_obey_the_rate_distortion_function():
    """What the bound rests on: k levels of a normal token err by at least 1/k^2."""
    for bits in (1, 2, 3, 4):
        assert code_rnn.lloyd_max(bits).error >= 4.0**-bits


def test_the_shortest_length_is_the_first():
    for product in (0.0, 0.3, 12.0):
        N = rnn_bounds.shortest_length(product, risk=0.2)
        assert rnn_bounds.unlearned_risk(product, N=N) >= 0.2
        assert N == 2 or rnn_bounds.unlearned_risk(product, N=N - 1) < 0.2
    assert rnn_bounds.shortest_length(0.0, risk=0.5) == 2


def test_the_risk_without_states_by_drawing_prompts():
    """Independent: whole prompts, t_j drawn with them."""
    rng, N, m = np.random.default_rng(0), 4, 200_000
    tokens, t = rng.standard_normal((m, N)), rng.integers(0, N, m)
    values = np.tanh(tokens[:, 0])
    plain = np.mean((values - tokens[np.arange(m), t]) ** 2)
    averaged = np.mean(memorisers.stateless_risk(values, tokens[:, 0], N=N))
    assert averaged == pytest.approx(plain, rel=0.02)
    best = memorisers.stateless_risk(tokens[:, 0] / N, tokens[:, 0], N=N)
    assert np.mean(best) == pytest.approx(1 - 1 / N**2, rel=0.01)


def test_bad_input_is_refused():
    x, y = np.zeros((2, 1)), np.array([0.0, 1.0])
    with pytest.raises(ValueError, match="merge points with equal inputs"):
        memorisers.least_variation(x, y)
    with pytest.raises(ValueError, match=r"shapes \(n, d\) and \(n,\)"):
        memorisers.least_variation(y, y)
    with pytest.raises(ValueError, match="finite numbers"):
        memorisers.least_variation(np.array([[0.0], [np.nan]]), y)
    zero = memorisers.least_variation(np.array([[0.0], [1.0]]), np.zeros(2))
    assert memorisers.variation(zero.network) == 0.0
    with pytest.raises(ValueError, match="depth=1, expected at least 2"):
        memorisers.memorising_product(1.0, 1)
    with pytest.raises(ValueError, match="N >= 2"):
        rnn_bounds.unlearned_risk(1.0, N=1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        rnn_bounds.shortest_length(1.0, risk=1.0)
