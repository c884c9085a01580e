"""Deterministic bounds of the appendices on random draws, and the exponents of the rates."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.qstr import bounds
from jaxbounds.qstr.transformer import attention


def test_radii_and_tail():
    r_x = bounds.token_radius(n=10, N=10, d=4)
    assert r_x == pytest.approx(math.sqrt(12 * math.e * math.log(100)))
    assert bounds.encoded_radius(r_x, d=4, q=2) == pytest.approx(math.sqrt(r_x**2 + 6))
    assert bounds.token_tail(r_x, n=10, N=10, d=4) == pytest.approx(100**-0.5)
    with pytest.raises(ValueError, match=r"r\^2 >= C_x e d"):
        bounds.token_tail(0.99, n=1, N=1, d=1)


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


def test_softmax_jacobian_attains_one(x64):
    assert bounds.softmax_jacobian_norm(jnp.array([0.5, 0.5]), jnp.array([1.0, -1.0])) == 1.0


def test_rates_have_the_papers_exponents():
    sizes = {"q": 2, "d": 4, "m_g": 3, "r_a": 1.0, "r_w": 1.0, "r_x": 3.0}
    ratio = bounds.transformer_excess_rate(100, **sizes) / bounds.transformer_excess_rate(
        400, **sizes
    )
    assert ratio == pytest.approx(2.0)
    options = {"r_z": 2.0, "radius": 1.0, "H": 2, "De": 3}
    assert bounds.query_key_log_covering(1.0, **options) == pytest.approx(18 * math.log(5))
    assert bounds.query_key_log_covering_rate(
        1.0, r_z=2.0, radius_21=1.0, H=2, De=3
    ) == pytest.approx(4 * math.log(36))
    common = {"m": 2, "H": 2, "De": 3, "R": 1.0, "r_a": 1.0, "R_w": 1.0, "r_z": 2.0, "r_QK": 1.0}
    coarse = bounds.transformer_log_covering_rate(1.0, **common)
    assert coarse < bounds.transformer_log_covering_rate(0.1, **common)
    assert bounds.rnn_excess_rate(400, parameters=5, N=2, R=1.0) < bounds.rnn_excess_rate(
        100, parameters=5, N=2, R=1.0
    )


def test_network_value_and_perturbation_bounds(key, x64):
    for k in jax.random.split(key, 8):
        keys = jax.random.split(k, 5)
        W = [jax.random.normal(keys[0], (4, 3)), jax.random.normal(keys[1], (2, 4))]
        b = [jax.random.normal(keys[2], (4,)), jax.random.normal(keys[3], (2,))]
        x = jax.random.normal(keys[4], (3,))
        value = W[1] @ np.maximum(W[0] @ x + b[0], 0) + b[1]
        assert np.linalg.norm(value) <= bounds.network_value_bound(W, b, x)
    gap = bounds.recurrent_perturbation_bound(jnp.array(0.1), jnp.array(0.01), N=10, lipschitz=2.0)
    assert gap == pytest.approx(0.1 + 0.2 * math.e)
