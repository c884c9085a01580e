"""Lemmas 24, 25 and 42: the gates' formula by hand, norms counted unit by unit, brute force."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.qstr import data, gates, relu_networks, rnn_construction
from jaxbounds.qstr.encodings import greedy_encodings


def by_hand(network, inputs):
    """Independent: a loop over units in Python numbers, no matrix product."""
    (W, b), (A, _) = [(np.asarray(W), np.asarray(b)) for W, b in network]
    units = [max(sum(w * v for w, v in zip(row, inputs)) + c, 0.0) for row, c in zip(W, b)]
    return [math.fsum(a * u for a, u in zip(row, units)) for row in A]


@pytest.mark.parametrize("state", [0.0, 1.5])
@pytest.mark.parametrize("radius, eps", [(2.0, 0.3), (0.7, 0.6), (5.0, 0.11)])
def test_the_gate_errs_by_eps_at_its_edge_and_by_no_more(radius, eps, state, x64):
    network = gates.gate_network(radius=radius, eps=eps, state_radius=state)
    rng = np.random.default_rng(0)
    worst = 0.0
    for x, z in itertools.chain(
        rng.uniform([-radius, -1], [radius, 1], (300, 2)),
        rng.uniform([-radius, 0.5], [radius, min(1.0, 0.5 + 2 * eps / radius)], (100, 2)),
        [(radius, 0.5), (-radius, 0.5)],
    ):
        h = state * rng.uniform(-1, 1)
        (value,) = by_hand(network, [h, x, z] if state else [x, z])
        worst = max(worst, abs(value - (h + 2 * x * max(z - 0.5, 0.0))))
    assert worst == pytest.approx(eps, rel=1e-12)


@pytest.mark.parametrize("state", [0.0, 2.0])
def test_the_norms_are_those_stated(state, x64):
    """Independent: entries listed and summed; (C.8), (C.9) repeat them q d times."""
    for radius, eps in [(2.0, 0.3), (1.0, 0.9), (6.0, 0.2)]:
        network = gates.gate_network(radius=radius, eps=eps, state_radius=state)
        W, b, a = (np.asarray(v) for v in (*network[0], network[1].W[0]))
        square = math.fsum(v * v for v in a.tolist())
        rows = [math.fsum(abs(v) for v in row) for row in W.tolist()]
        stated = gates.gate_norms(radius=radius, eps=eps, state_radius=state)
        listed = (len(b), math.sqrt(square), max(rows), max(abs(v) for v in b.tolist()))
        assert stated == pytest.approx(listed, rel=1e-12)
        assert gates.network_norms(network) == pytest.approx(listed, rel=1e-12)
        assert min(rows) == pytest.approx(1 / math.sqrt(1 + 4 * radius**2 + state**2))
    block = gates.block_network(q=2, d=3, radius=6.0, eps=0.2)
    one = gates.gate_norms(radius=6.0, eps=0.2)
    assert gates.network_norms(block) == pytest.approx((6 * one.width, *one[1:]), rel=1e-12)


def test_norms_by_hand():
    """r_x = 2, eps = 0.3: knots 0.3 apart up to 1/2 + 0.15, so 3; R^2 = 17, e = 0.3/4."""
    norms = gates.gate_norms(radius=2.0, eps=0.3)
    assert norms.width == 6 and norms.rows == pytest.approx(17**-0.5)
    assert norms.outer**2 == pytest.approx(2 * 17 * 1.075**2 * 4 * 9)
    assert norms.bias == pytest.approx(1.1 / 17**0.5 / 1.075)
    limit = gates.printed_norms(R=4.0, eps=0.5, dimension=3)
    unit = 16 * math.log(8.0) / 0.5
    assert limit == pytest.approx((unit**3, 16 * unit**2, 0.25, 1.0))
    limit = gates.lipschitz_norms(lipschitz=3.0, radius=2.0, eps=1.5)
    assert limit == pytest.approx((18.0, 6 * 18 / math.sqrt(5), 0.5, 1.0))


def test_the_block_opens_each_slot(x64):
    network = gates.block_network(q=2, d=2, radius=2.0, eps=0.1)
    for *x, s, t in itertools.product([-2.0, 0.5, 2.0], [-1.0, 2.0], [-1.0, 0.5, 1.0], [0.6, 1.0]):
        want = [2 * v * max(gate - 0.5, 0.0) for gate in (s, t) for v in x]
        np.testing.assert_allclose(by_hand(network, [*x, s, t]), want, atol=0.1 + 1e-12)


def test_the_printed_transition_is_zero_where_closed(key, x64):
    """Independent: a double loop over positions and slots, for all t."""
    N, q, d, de, eps = 5, 2, 2, 16, 1.5
    omega = greedy_encodings(key, N, de)
    x = np.random.default_rng(1).uniform(-3, 3, (N, d))
    network = gates.printed_transition(q=q, d=d, de=de, radius=3.0, eps=eps)
    assert len(network) == 4

    @jax.jit
    def through(x, t, omega):
        z = data.encode(x, t, omega, scale=False)
        return relu_networks.evaluate(network, z).reshape(N, q, d)

    for slot in itertools.product(range(N), repeat=q):
        out = np.asarray(through(x, np.tile(np.array(slot, np.int32), (N, 1)), omega))
        for i, l in itertools.product(range(N), range(q)):
            if slot[l] == i:
                assert np.abs(out[i, l] - x[i]).max() <= eps
            else:
                assert np.all(out[i, l] == 0.0)


def test_lemma_23_reads_the_token_and_the_products(key, x64):
    omega = np.asarray(greedy_encodings(key, 3, 8))
    first, A = rnn_construction.inner_products(q=2, d=2, de=8, knots=20)
    z = np.concatenate([[1.5, -2.0], omega[0], omega[1], omega[0]])
    out = A @ np.maximum(np.asarray(first.W) @ z + np.asarray(first.b), 0.0)
    np.testing.assert_allclose(out[:2], [1.5, -2.0], atol=1e-14)
    assert abs(out[2] - omega[0] @ omega[1]) <= 8 * relu_networks.product_error(2.0, 20)
    assert abs(out[3] - 1.0) <= 8 * relu_networks.product_error(2.0, 20)


def test_one_dimension_is_linear_interpolation(x64):
    """Independent: numpy.interp."""
    values = np.array([0.3, -1.0, 2.0, 1.5, 1.5])
    network = gates.lipschitz_network(jnp.asarray(values), radius=2.0)
    at = np.linspace(-2, 2, 101)
    want = np.interp(at, np.linspace(-2, 2, 5), values)
    np.testing.assert_allclose([by_hand(network, [t])[0] for t in at], want, atol=1e-13)
    norms = gates.network_norms(network)
    assert norms.rows == 0.5 and norms.bias == 1.0 and norms.width == 5


def test_sizes_that_need_no_network_are_refused():
    for eps in (0.0, 2.0):
        with pytest.raises(ValueError, match="zero network suffices"):
            gates.gate_network(radius=2.0, eps=eps)
    with pytest.raises(ValueError, match="at most L R"):
        gates.lipschitz_norms(lipschitz=1.0, radius=2.0, eps=3.0)
