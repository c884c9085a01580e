"""The random-code RNN, packing numbers, and the chain of Theorem 9."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.qstr import code_rnn, packing, rnn_bounds
from jaxbounds.qstr.relu_networks import layer


def test_lloyd_max_levels_are_the_textbook_ones():
    quantiser = code_rnn.lloyd_max(2)
    np.testing.assert_allclose(quantiser.levels, [-1.5104, -0.4528, 0.4528, 1.5104], atol=1e-4)
    assert quantiser.error == pytest.approx(0.1175, abs=1e-4)
    with pytest.raises(ValueError, match="between 1 and 6"):
        code_rnn.lloyd_max(0)


def test_states_decode_and_their_distance_is_as_stated(key):
    """Independent: all pairs of states of a tiny code, encoded one by one."""
    rnn = code_rnn.code_rnn(key, 3, bits=1)
    levels = rnn.quantiser.levels
    states = {
        v: code_rnn.encode_tokens(rnn, np.array(v)) for v in itertools.product(levels, repeat=3)
    }
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(states.values(), 2)]
    assert min(distances) == pytest.approx(rnn.distance)
    for values, state in states.items():
        assert np.linalg.norm(state) == pytest.approx(1.0)
        assert [code_rnn.read_token(rnn, state, k) for k in range(3)] == pytest.approx(values)
    # The readout moves by no more than L times the distance of the states.
    for (u, a), (v, b) in itertools.combinations(states.items(), 2):
        assert np.abs(np.subtract(u, v)).max() <= rnn.lipschitz * np.linalg.norm(a - b) + 1e-9


def test_operator_norm_bound_diverges_from_what_the_code_needs():
    needs, claims, repaired = [], [], []
    for N in (2, 4, 8):
        rnn = code_rnn.code_rnn(jax.random.key(3), N, bits=2)
        needs.append(rnn.operator_norm**2 * rnn.lipschitz**2)
        claims.append(N / math.log1p(rnn.width))
        repaired.append(rnn.frobenius_norm**2 * rnn.lipschitz**2 / N)
    assert max(needs) < 25 and claims[-1] > 2 * claims[0]
    assert min(repaired) > 100  # |U|_F^2 does grow like N
    with pytest.raises(ValueError, match="too many to enumerate"):
        code_rnn.code_rnn(jax.random.key(0), 11)
    with pytest.raises(ValueError, match="N >= 2"):
        code_rnn.code_rnn(jax.random.key(0), 1)


def test_packing_branches():
    points = packing.golay_points()
    assert points.shape == (4096, 24)
    distance = packing.smallest_distance(points)
    assert distance == pytest.approx(math.sqrt(4 * 8 / 24))
    log_size = math.log(4096)
    assert log_size > packing.maurey_printed(24, distance)
    assert log_size <= packing.volume_upper(24, distance)
    cross = packing.cross_polytope(100)
    assert packing.smallest_distance(cross) == pytest.approx(math.sqrt(2))
    assert math.log(200) > packing.maurey_printed(100, math.sqrt(2))
    assert packing.volume_lower(1000, 0.5) > packing.maurey_printed(1000, 0.5)
    assert packing.volume_lower(1000, 0.5) < packing.volume_upper(1000, 0.5)
    line = np.linspace(-1, 1, 5)[:, None]
    assert math.log(5) <= packing.volume_upper(1, packing.smallest_distance(line))


def test_sudakov_holds_for_the_states_of_a_code(key):
    rnn = code_rnn.code_rnn(key, 4, bits=2)
    bound = rnn_bounds.sudakov_log_packing(rnn.frobenius_norm, rnn.distance)
    assert math.log(4**4) <= bound


def test_weights_cost_at_least_the_am_gm_bound(key, x64):
    for k in jax.random.split(key, 10):
        keys = jax.random.split(k, 4)
        U = jax.random.normal(keys[0], (5, 3))
        layers = [
            layer(np.asarray(jax.random.normal(kk, s)))
            for kk, s in zip(keys[1:], [(5, 5), (4, 5), (1, 4)])
        ]
        L, total = rnn_bounds.lipschitz_and_norm(U, layers)
        assert rnn_bounds.weight_norm_lower_bound(L**2 * jnp.sum(U**2), 4) <= total
    layers = [layer(np.diag([2.0, 1.0]), np.array([0.0, 3.0])), layer(np.array([[5.0, 0.0]]))]
    L, total = rnn_bounds.lipschitz_and_norm(jnp.array([[1.0, 2.0]]), layers)
    assert float(L) == pytest.approx(10.0)
    assert float(total) == pytest.approx(5 + 5 + 9 + 25)
    assert rnn_bounds.weight_norm_lower_bound(64.0, 3) == pytest.approx(12.0)


def test_constants_of_proposition_8_and_theorem_9_by_hand():
    width = rnn_bounds.width_lower_bound(N=10, lipschitz=3.0, operator_norm=2.0)
    assert width == pytest.approx(10 / math.log(37))
    printed = rnn_bounds.printed_norm_lower_bound(N=10, lipschitz=2.0, width=4)
    assert printed == pytest.approx(2.5 / math.log(5))
    assert rnn_bounds.repaired_norm_lower_bound(N=10, lipschitz=2.0) == 2.5
    assert rnn_bounds.sudakov_log_packing(3.0, 0.5) == pytest.approx(144 * math.pi * math.log(2))
    assert rnn_bounds.sample_exponent(depth=2) == pytest.approx(1 / 6)
    exponent = rnn_bounds.sample_exponent(depth=2, width_exponent=0.5, repaired=False)
    assert exponent == pytest.approx(1 / 12)
    with pytest.raises(ValueError, match="depth >= 2"):
        rnn_bounds.sample_exponent(depth=1)


def test_packing_bounds_by_hand():
    assert packing.volume_upper(3, 0.5) == pytest.approx(3 * math.log(5))
    assert packing.volume_lower(3, 0.25) == pytest.approx(3 * math.log(4))
    assert packing.volume_lower(3, 2.0) == 0.0
    assert packing.maurey_printed(100, math.sqrt(2)) == pytest.approx((1 + math.log(401)) / 2)
