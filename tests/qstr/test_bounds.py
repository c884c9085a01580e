"""Deterministic bounds of the appendices on random draws, and the exponents of the rates."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.norms import spectral_norm
from jaxbounds.qstr import bounds
from jaxbounds.qstr.transformer import attention


def test_radii_and_tail():
    r_x = bounds.token_radius(n=10, N=10, d=4)
    assert r_x == pytest.approx(math.sqrt(12 * math.e * math.log(100)))
    assert float(bounds.encoded_radius(3.0, d=4, q=2)) == pytest.approx(math.sqrt(15))
    assert bounds.token_tail(r_x, n=10, N=10, d=4) == pytest.approx(100**-0.5)
    with pytest.raises(ValueError, match=r"r\^2 >= C_x e d"):
        bounds.token_tail(0.99, n=1, N=1, d=1)
    unchecked = bounds.token_tail(1.0, n=2, N=3, d=1, checked=False)
    assert unchecked == pytest.approx(6 * 0.831986, rel=1e-6)  # exp(-1/(2e)) = 0.831986


def test_attention_moves_less_than_its_weights(key, x64):
    """The real attention of the paper's model, against the bound with factor one."""

    def ratio(key):
        key_z, key_a, key_b = jax.random.split(key, 3)
        z = jax.random.normal(key_z, (4, 3))
        A, B = jax.random.normal(key_a, (3, 3)), jax.random.normal(key_b, (3, 3))
        moved = jnp.max(jnp.linalg.norm(attention(z, A) - attention(z, B), axis=1))
        return moved / bounds.attention_lipschitz(A - B, z)

    ratios = jax.vmap(ratio)(jax.random.split(key, 2000))
    assert 0.05 < jnp.max(ratios) <= 1


def test_covering_numbers_and_rates_by_hand():
    """Every value is worked out by hand from the printed formula."""
    volume = bounds.query_key_log_covering(0.5, r_z=3.0, radius=2.0, H=2, De=3)
    assert volume == pytest.approx(18 * math.log(1 + 2 * 2 * 3 / 0.5))
    maurey = bounds.query_key_log_covering_rate(0.5, r_z=3.0, radius_21=2.0, H=2, De=3)
    assert maurey == pytest.approx(12**2 * math.log(36))
    # slope = r_a R_w H r_QK = 2 * 3 * 4 * 0.5 = 12; H De^2 = 36.
    sizes = {"m": 5, "H": 4, "De": 3, "R": 7.0, "r_a": 2.0, "R_w": 3.0, "r_QK": 0.5}
    two_layer = 5 * 4 * 3 * math.log(1 + 7 / 0.1)
    small = bounds.transformer_log_covering_rate(0.1, r_z=0.1, **sizes)
    assert small == pytest.approx(two_layer + 1e-6 * 144 * math.log(36) / 0.01)
    large = bounds.transformer_log_covering_rate(0.1, r_z=2.0, **sizes)
    assert large == pytest.approx(two_layer + 36 * math.log(1 + 12 / 2 * 8 / 0.1))
    # C_1 = q (r_a r_w r_x)^2 = 2 * 36 * 4; m_g q (d + q) = 3 * 2 * 6; q^4/d^2 = 1, q(q^2+d^2) = 40.
    sizes = {"q": 2, "d": 4, "m_g": 3, "r_a": 2.0, "r_w": 3.0}
    volume = bounds.transformer_excess_rate(100, r_x=2.0, **sizes)
    assert volume == pytest.approx(288 * math.sqrt((36 + 40) / 100))
    maurey = bounds.transformer_excess_rate(100, r_x=0.5, **sizes)
    assert maurey == pytest.approx(18 * math.sqrt((36 + 36 * 0.5**6) / 100))
    rate = bounds.rnn_excess_rate(100, parameters=4, N=3, R=2.0, tau=5.0)
    assert rate == pytest.approx(5 * math.sqrt(4 * math.log(2 * 3 * 100 * 5) / 100))


def test_network_value_and_perturbation_bounds(key, x64):
    for k in jax.random.split(key, 8):
        keys = jax.random.split(k, 5)
        W = [jax.random.normal(keys[0], (4, 3)), jax.random.normal(keys[1], (2, 4))]
        b = [jax.random.normal(keys[2], (4,)), jax.random.normal(keys[3], (2,))]
        x = jax.random.normal(keys[4], (3,))
        value = W[1] @ np.maximum(W[0] @ x + b[0], 0) + b[1]
        assert np.linalg.norm(value) <= bounds.network_value_bound(W, b, x)
    gap = bounds.recurrent_perturbation_bound(jnp.array(0.1), jnp.array(0.01), N=10, lipschitz=2.0)
    assert float(gap) == pytest.approx(0.1 + 0.2 * math.e)
    sharp = bounds.recurrent_perturbation_bound(
        jnp.array(0.0), jnp.array(3.0), N=2, lipschitz=5.0, sharp=True
    )
    assert float(sharp) == pytest.approx(5 * 2 * (1.5**2 - 1) * 3)
    # |W_2| (|W_1| |x| + |b_1|) + |b_2| = 3 (2 * 5 + 1) + 4.
    by_hand = bounds.network_value_bound(
        [2 * jnp.eye(2), 3 * jnp.eye(2)], [jnp.array([1.0, 0.0]), jnp.array([0.0, 4.0])],
        jnp.array([3.0, 4.0]),
    )  # fmt: skip
    assert float(by_hand) == pytest.approx(37.0)


def test_lipschitz_and_prediction_bounds_by_hand(x64):
    a, W, b = jnp.array([3.0, 4.0]), jnp.diag(jnp.array([1.0, 2.0])), jnp.array([0.0, 2.0])
    z = jnp.array([[0.0, 1.0], [3.0, 0.0]])
    assert float(bounds.two_layer_lipschitz(a, W)) == pytest.approx(5 * math.sqrt(5))
    assert float(bounds.two_layer_lipschitz(a, W, norm=spectral_norm)) == pytest.approx(10)
    assert float(bounds.prediction_bound(a, W, b, z, heads=4, norm=spectral_norm)) == pytest.approx(
        5 * (2 * 2 * 3 + 2)
    )
    moved = bounds.attention_lipschitz(jnp.array([[2.0, 0.0], [0.0, 0.0]]), z, factor=2.0)
    assert float(moved) == pytest.approx(2 * 9 * 6)
