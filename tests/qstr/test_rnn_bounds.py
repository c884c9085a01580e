"""The random-code RNN, packing numbers, and the chain of Theorem 9."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln

from jaxbounds.qstr import code_rnn, packing, rnn_bounds
from jaxbounds.qstr.relu_networks import layer


def test_lloyd_max_levels_are_the_textbook_ones():
    quantiser = code_rnn.lloyd_max(2)
    np.testing.assert_allclose(quantiser.levels, [-1.5104, -0.4528, 0.4528, 1.5104], atol=1e-4)
    assert quantiser.error == pytest.approx(0.1175, abs=1e-4)
    with pytest.raises(ValueError, match="from 1 to 6"):
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
    with pytest.raises(ValueError, match="N=1, expected at least 2 tokens, so that"):
        code_rnn.code_rnn(jax.random.key(0), 1)


def test_codes_of_more_bits_meet_any_risk_and_stay_bounded():
    """Independent: every word as a Python integer, its risk by a quadrature of the normal law."""
    for bits, limit in ((3, 0.035), (4, 0.0096)):
        products = []
        for N in (2, 3, 4):
            rnn = code_rnn.code_rnn(jax.random.key(1), N, bits=bits)
            rows = [int("".join(map(str, row)), 2) for row in rnn.generator]
            words = [0]
            for row in rows:
                words += [word ^ row for word in words]
            least = min(word.bit_count() for word in words[1:])
            assert rnn.distance == pytest.approx(2 * math.sqrt(least / (8 * bits * N)))
            products.append((rnn.lipschitz * rnn.operator_norm) ** 2)
        levels = rnn.quantiser.levels
        v = np.linspace(-9, 9, 200_001)
        square = np.min((v[:, None] - levels[None, :]) ** 2, axis=1)
        risk = np.sum(square * np.exp(-(v**2) / 2)) * (v[1] - v[0]) / math.sqrt(2 * math.pi)
        assert risk == pytest.approx(rnn.quantiser.error, rel=1e-4) and risk < limit
        assert max(products) < (45 if bits == 3 else 80)


def test_all_bits_in_one_number():
    """Independent: the states of two tokens listed, one number each."""
    levels = code_rnn.lloyd_max(2).levels
    states = np.linspace(-1, 1, 4**2)
    values = np.array(list(itertools.product(levels, repeat=2)))
    slopes = np.abs(np.diff(values, axis=0)).max(axis=1) / np.diff(states)
    L = code_rnn.number_rnn_lipschitz(2, bits=2)
    assert slopes.max() <= L * (1 + 1e-12)
    assert pytest.approx((levels[-1] - levels[0]) * 15 / 2) == L


def test_states_have_a_width_without_the_number_of_units(key):
    """Why Theorem 9 needs no bound on dh: the Gaussian width, by Monte Carlo, no Sudakov."""
    rng = np.random.default_rng(0)
    for dh in (2, 50, 400):
        U, V = rng.standard_normal((2, dh, dh)) * np.exp(rng.standard_normal(dh))
        g = rng.standard_normal((2, 400, dh))
        # sup over unit h, h' of <g, U h> + <g', V h'>
        width = np.mean(np.linalg.norm(g[0] @ U, axis=1) + np.linalg.norm(g[1] @ V, axis=1))
        assert width <= 1.02 * math.sqrt(2 * (np.sum(U**2) + np.sum(V**2)))
    assert rnn_bounds.sample_exponent(depth=3) == pytest.approx(1 / 9)


def test_the_second_branch_fails_as_an_order_of_growth():
    """Independent: volumes by log-gamma. A maximal packing's balls of radius 1/2 cover the ball."""
    quotients = []
    for d in (60, 240, 960, 3840):
        unit = d / 2 * math.log(math.pi) - gammaln(d / 2 + 1)
        points = unit - (unit + d * math.log(0.5))
        assert points == pytest.approx(packing.volume_lower(d, 0.5))
        quotients.append(points / packing.maurey(d, 0.5))
    assert quotients[0] == pytest.approx(2.3448889743935233)
    assert all(b > 3 * a for a, b in itertools.pairwise(quotients))


def test_covering_numbers_by_trying_all_subsets():
    rng = np.random.default_rng(3)
    points = rng.standard_normal((7, 2))
    distances = np.linalg.norm(points[:, None] - points[None, :], axis=-1)
    for eps in (0.0, 0.5, 1.0, 2.0, 9.0):
        want = next(
            k
            for k in range(1, 8)
            for centres in itertools.combinations(range(7), k)
            if (distances[:, centres] <= eps).any(axis=1).all()
        )
        assert packing.covering_number(distances, eps) == want
    with pytest.raises(ValueError, match="at most 16"):
        packing.covering_number(np.zeros((17, 17)), 1.0)


def test_packing_branches():
    points = packing.golay_points()
    assert points.shape == (4096, 24)
    distance = packing.smallest_distance(points)
    assert distance == pytest.approx(math.sqrt(4 * 8 / 24))
    log_size = math.log(4096)
    assert log_size > packing.maurey(24, distance)
    assert log_size <= packing.volume_upper(24, distance)
    cross = np.concatenate([np.eye(100), -np.eye(100)])
    assert packing.smallest_distance(cross) == pytest.approx(math.sqrt(2))
    assert math.log(200) > packing.maurey(100, math.sqrt(2))
    assert packing.volume_lower(1000, 0.5) > packing.maurey(1000, 0.5)
    assert packing.volume_lower(1000, 0.5) < packing.volume_upper(1000, 0.5)
    line = np.linspace(-1, 1, 5)[:, None]
    assert math.log(5) <= packing.volume_upper(1, packing.smallest_distance(line))


def test_sudakov_holds_for_the_states_of_a_code(key):
    rnn = code_rnn.code_rnn(key, 4, bits=2)
    bound = rnn_bounds.sudakov_log_packing(rnn.frobenius_norm, rnn.distance)
    assert math.log(4**4) <= bound


def test_weights_cost_at_least_the_am_gm_bound(x64):
    rng, asked = np.random.default_rng(0), jax.jit(rnn_bounds.lipschitz_and_norm)
    for _ in range(10):
        U = rng.normal(size=(5, 3))
        layers = [layer(rng.normal(size=s)) for s in [(5, 5), (4, 5), (1, 4)]]
        L, total = map(float, asked(U, layers))
        assert rnn_bounds.weight_norm_lower_bound(L**2 * np.sum(U**2), 4) <= total
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
    assert packing.maurey(100, math.sqrt(2)) == pytest.approx((1 + math.log(401)) / 2)
