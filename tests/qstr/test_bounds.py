"""Deterministic bounds of the appendices on random draws, and the exponents of the rates."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.numerics.norms import entrywise_norm, spectral_norm
from jaxbounds.qstr import bounds, data
from jaxbounds.qstr.encodings import greedy_signs
from jaxbounds.qstr.transformer import attention


def test_radii_and_tail():
    r_x = bounds.token_radius(n=10, N=10, d=4)
    assert r_x == pytest.approx(math.sqrt(12 * math.e * math.log(100)))
    assert float(bounds.encoded_radius(3.0, d=4, q=2)) == pytest.approx(math.sqrt(15))
    assert bounds.token_tail(r_x, n=10, N=10, d=4) == pytest.approx(100**-0.5)
    with pytest.raises(ValueError, match=r"r\^2 >= C_x e d"):
        bounds.token_tail(0.99, n=1, N=1, d=1)
    assert bounds.token_tail(0.99, n=1, N=2, d=1) > 1  # true, and says nothing
    unchecked = bounds.token_tail(1.0, n=2, N=3, d=1, checked=False)
    assert unchecked == pytest.approx(6 * 0.831986, rel=1e-6)  # exp(-1/(2e)) = 0.831986


@pytest.mark.parametrize("r", [0.5, 1.2, 2.0, 4.0])
def test_the_largest_tail_is_what_the_moments_allow(r):
    """Independent: a grid of moment orders, then the moments of the two-point law."""
    d, orders = 3, np.linspace(1.0, 11.0, 20_001)
    best = np.exp(np.min(orders * (0.5 * np.log(orders) - np.log(r))))
    got = bounds.largest_tail(r * math.sqrt(d), d=d)
    assert got == pytest.approx(min(1.0, float(best)), rel=1e-6)
    for p in (1.0, 1.7, 3.0, 10.0, 100.0):  # E|x|^p = got r^p for |x| in {0, r}
        assert math.log(got) / p + math.log(r * math.sqrt(d)) <= 0.5 * math.log(d * p) + 1e-12
    if r**2 >= math.e:
        assert got == pytest.approx(bounds.token_tail(r * math.sqrt(d), n=1, N=1, d=d))


def test_networks_apart_by_hand():
    """x = 1, layers 2 x + 1 and 3 h + 0, against 2 x + 0 and 3.5 h + 0: 9 and 7."""
    layers = lambda *pairs: [(np.array([[w]]), np.array([b])) for w, b in pairs]
    first, second = layers((2.0, 1.0), (3.0, 0.0)), layers((2.0, 0.0), (3.5, 0.0))
    moved = bounds.network_perturbation_bound(first, second, jnp.array([1.0]))
    assert float(moved) == pytest.approx(3 * 1 + 0.5 * 2)
    poly = bounds.polynomial_perturbation_bound(depth=2, R=3.0, r=1.0)
    # M_0 = 1, M_1 = 3 + 3: sqrt((3 sqrt 2)^2 + (sqrt 37)^2).
    assert float(poly) == pytest.approx(math.sqrt(18 + 37))
    assert abs(9 - 7) <= float(poly) * math.sqrt(1 + 0.25)


def test_the_printed_step_has_the_operator_norm():
    """By hand: one layer, I against 0 at |x| = 1: moved by 1, which Frobenius would call sqrt 2."""
    first, second = [(np.eye(2), np.zeros(2))], [(np.zeros((2, 2)), np.zeros(2))]
    moved = bounds.network_perturbation_bound(first, second, jnp.array([1.0, 0.0]))
    assert float(moved) == pytest.approx(1.0)


def test_maureys_branch_is_below_the_volume_on_encoded_prompts():
    """E9 by hand: volumes by log-gamma, radii and the printed branch written out.

    Shares no code with the statement. A set of diameter 8/7 has at most the volume of a ball of
    that diameter; the encodings (w_i, w_t) are finitely many, and the witnesses do not use them.
    """
    log_volume = lambda d, r: d / 2 * math.log(math.pi) + d * math.log(r) - math.lgamma(d / 2 + 1)
    columns, rows = [], []
    for d in (100, 400, 1600, 6400):
        De = d + 2 * 40  # N = 12, de = 16 log 12
        for found, log_n, unknown, diameter in (
            (columns, d * math.log(5), d, 8 / 7),
            (rows, 0.0, De, 1.0),
        ):
            r_x = math.sqrt(3 * math.e * d * (log_n + math.log(12)))
            claimed = (r_x**2 + 2 * d) / (r_x / 2) ** 2 * math.log(2 * De**2)
            needed = log_volume(unknown, 1.0) - log_volume(unknown, diameter / 2)
            found.append((needed, claimed, claimed * (log_n + math.log(12))))
    assert columns[0] == pytest.approx((55.96, 44.37, 7251.0), rel=1e-3)
    assert columns[-1] == pytest.approx((3581.5, 73.0, 752_190.0), rel=1e-3)
    assert rows[0][:2] == pytest.approx((124.8, 48.7), rel=1e-3)
    assert rows[-1][:2] == pytest.approx((4491.6, 80.2), rel=1e-3)
    for found in (columns, rows):  # d grows by 4: no constant serves
        quotients = [needed / claimed for needed, claimed, _ in found]
        assert all(b > 2 * a for a, b in itertools.pairwise(quotients))
    # log(nN) repairs the norm over columns, and not the one over rows.
    assert max(needed / more for needed, _, more in columns) < 0.02
    assert rows[-1][0] / rows[-1][2] > 20 > 2 > rows[0][0] / rows[0][2] > 1


def test_the_witnesses_of_e9_on_prompts_that_are_encoded(x64):
    """d = 3: a net of the tokens, its prompts through `data.encode`, and distances of Theta^T z."""
    rng, d, N, de, r_x = np.random.default_rng(0), 3, 12, 40, 7.0
    omega = jnp.asarray(greedy_signs(rng, N, de) / math.sqrt(de))
    points = rng.normal(size=(4000, d))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    net = points[:1]
    for point in points:
        if np.all(np.linalg.norm(net - point, axis=1) > 0.5):
            net = np.vstack([net, point])
    assert len(net) <= 5**d
    prompts = np.tile(r_x * net[:, None, :], (1, N, 1))
    t = rng.integers(0, N, (len(net), N, 1))
    encode = jax.jit(jax.vmap(data.encode, (0, 0, None)))
    z = np.asarray(encode(prompts, t, omega)).reshape(-1, d + 2 * de)
    assert np.linalg.norm(z, axis=1) == pytest.approx(math.sqrt(r_x**2 + 2 * d))
    De = z.shape[1]
    token = np.asarray(encode(r_x * np.eye(d)[:1].repeat(N, 0)[None], t[:1], omega))[0]
    norm = jax.jit(lambda W: entrywise_norm(W, 2, 1))
    for _ in range(50):
        u, v = rng.normal(size=(2, d))
        of = lambda u: np.outer(np.append(u, np.zeros(De - d)), np.eye(De)[0])
        apart = np.max(np.linalg.norm(z @ (of(u) - of(v)), axis=1))
        towards = (u - v) / np.linalg.norm(u - v)
        fineness = np.min(np.linalg.norm(net - towards, axis=1))  # 1/2, up to the points tried
        assert fineness <= 0.6
        assert apart >= (1 - fineness**2 / 2) * r_x * np.linalg.norm(u - v) * (1 - 1e-12)
        assert float(norm(of(u))) == pytest.approx(np.linalg.norm(u))
        w = rng.normal(size=De)
        turned = np.outer(np.eye(De)[0], w)
        moved = np.linalg.norm(token @ turned, axis=1)
        assert moved == pytest.approx(r_x * np.linalg.norm(w))
        assert float(norm(turned.T)) == pytest.approx(np.linalg.norm(w))
        assert float(norm(turned)) > 5 * np.linalg.norm(w)  # over columns


def test_attention_moves_less_than_its_weights(key, x64):
    """The real attention of the paper's model, against the bound with factor one."""

    def ratio(key):
        key_z, key_a, key_b = jax.random.split(key, 3)
        z = jax.random.normal(key_z, (4, 3))
        A, B = jax.random.normal(key_a, (3, 3)), jax.random.normal(key_b, (3, 3))
        moved = jnp.max(jnp.linalg.norm(attention(z, A) - attention(z, B), axis=1))
        return moved / bounds.attention_lipschitz(A - B, z)

    ratios = jax.jit(jax.vmap(ratio))(jax.random.split(key, 2000))
    assert 0.05 < np.max(ratios) <= 1


def test_covering_numbers_and_rates_by_hand():
    """Every value is worked out by hand from the printed formula."""
    volume = bounds.query_key_log_covering(0.5, r_z=3.0, radius=2.0, H=2, De=3)
    assert volume == pytest.approx(18 * math.log(1 + 2 * 2 * 3 / 0.5))
    maurey = bounds.query_key_log_covering_rate(0.5, r_z=3.0, radius_21=2.0, H=2, De=3)
    assert maurey == pytest.approx(12**2 * math.log(36))
    over = bounds.column_log_covering_rate(0.5, r_z=3.0, radius_21=2.0, H=2, De=3, positions=10)
    assert over == pytest.approx(12**2 * math.log(36) * math.log(10))
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
    # C_1 = 3 * 1 * 4; m_g q (d + q) = 2 * 3 * 4; r_x^6 q^4/d^2 = 64 * 81 > q(q^2 + d^2) = 3 * 10.
    three = bounds.transformer_excess_rate(54, q=3, d=1, m_g=2, r_a=1.0, r_w=1.0, r_x=2.0)
    assert three == pytest.approx(12.0)  # 12 sqrt((24 + 30) / 54)
    rate = bounds.rnn_excess_rate(100, parameters=4, N=3, R=2.0, tau=5.0)
    assert rate == pytest.approx(5 * math.sqrt(4 * math.log(2 * 3 * 100 * 5) / 100))


def test_network_value_and_perturbation_bounds(x64):
    rng, bound = np.random.default_rng(0), jax.jit(bounds.network_value_bound)
    for _ in range(8):
        W = [rng.normal(size=(4, 3)), rng.normal(size=(2, 4))]
        b = [rng.normal(size=4), rng.normal(size=2)]
        x = rng.normal(size=3)
        value = W[1] @ np.maximum(W[0] @ x + b[0], 0) + b[1]
        assert np.linalg.norm(value) <= bound(W, b, x)
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
