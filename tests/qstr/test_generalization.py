"""Explicit covers and risks; the oracles are exact tails, quadrature, and sums written out."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

from jaxbounds.qstr import bounds, covers, excess, link_networks, packing
from jaxbounds.qstr.links import LINKS, TwoLayer
from jaxbounds.qstr.rnn_construction import exact_transition, readout
from jaxbounds.qstr.transformer import SparseTransformer

SMALL = covers.TransformerClass(m=1, H=1, De=1, r_a=2.0, R_w=3.0, r_QK=5.0, r_z=1.0)


def test_sizes_of_covers_by_hand():
    assert SMALL.parameters == (1, 2, 1)
    assert SMALL.largest_prediction == pytest.approx(6 * math.sqrt(2))
    # eps = 3 in thirds: a gets 1, (W, b) gets 2.
    L = 6 * math.sqrt(2)
    assert covers.two_layer_log_covering(3.0, SMALL) == pytest.approx(
        math.log(1 + 2 * L) + 2 * math.log(1 + L)
    )
    # eps = 4 in quarters: the head may move by 1 / (2 * 3 * 1), and has radius 5.
    assert covers.transformer_log_covering(4.0, SMALL) == pytest.approx(
        math.log(1 + 2 * L) + 2 * math.log(1 + L) + math.log(1 + 2 * 5 * 6)
    )
    one = covers.ball_log_covering(0.5, parameters=3, radius=2.0, lipschitz=7.0)
    assert one == pytest.approx(3 * math.log(57))
    assert covers.transformer_lipschitz(2.0, H=1, r_z=1.0) == pytest.approx(math.sqrt(8 + 4))


def test_a_class_of_transformers_needs_no_more_than_its_cover(x64):
    """The least cover of sixteen members, found by trying all subsets."""
    rng, size = np.random.default_rng(0), {"H": 1, "De": 2, "m": 1}
    z = rng.normal(size=(3, 2))
    z /= np.linalg.norm(z, axis=1).max()
    f = covers.TransformerClass(**size, r_a=1.0, R_w=1.0, r_QK=1.0, r_z=1.0)
    unit = lambda *shape: (lambda v: v / np.linalg.norm(v))(rng.normal(size=shape))
    members = []
    for _ in range(16):
        inner = unit(3)
        params = {"W_QK": unit(1, 2, 2), "W": inner[None, :2], "b": inner[2:], "a": unit(1)}
        members.append(params)
    run, z = SparseTransformer(heads=1, width=1).apply, jnp.asarray(z)
    every = jax.tree.map(lambda *leaves: np.stack(leaves), *members)
    values = np.asarray(jax.jit(jax.vmap(lambda params: run({"params": params}, z)))(every))
    apart = np.abs(values[:, None] - values[None]).max(axis=-1)
    for eps in (0.05, 0.2, 0.5):
        least = math.log(packing.covering_number(apart, eps))
        assert 0 < least <= covers.transformer_log_covering(eps, f)


def test_recurrent_polynomials_by_hand(x64):
    # Depth 1: sqrt(r^2 + 1) each; N ((1 + 1/N)^N - 1) = 2 (9/4 - 1) = 5/2 at N = 2.
    found = covers.recurrent_lipschitz(3.0, N=2, r_z=1.0, r_h=2.0, depth_y=1, depth_h=1)
    want = math.sqrt(10 + 2 * (3 * 2.5) ** 2 * 6)
    assert float(found) == pytest.approx(want)


def test_gaps_against_another_minimiser():
    covering = lambda eps: 40 * np.log1p(6.0 / eps)
    n, tau, delta = 1e6, 2.0, 0.05
    tail = math.log(2 / delta)
    least = lambda f: scipy.optimize.minimize_scalar(f, bounds=(-30, 0), method="bounded").fun
    sharp = least(lambda t: 4 * tau**0.5 * math.exp(t)
                  + tau * ((covering(math.exp(t)) + tail) / (2 * n)) ** 0.5)  # fmt: skip
    found = excess.truncated_gap(covering, n, tau=tau, delta=delta)
    assert found == pytest.approx(sharp, rel=1e-2) and found >= sharp * (1 - 1e-9)
    rad = least(
        lambda t: 2 * tau**0.5 * math.exp(t) + tau * (covering(math.exp(t)) / (2 * n)) ** 0.5
    )
    slow = excess.truncated_gap(covering, n, tau=tau, delta=delta, sharp=False)
    assert slow == pytest.approx(2 * rad + tau * (tail / (2 * n)) ** 0.5, rel=1e-2) and slow > found
    root = least(lambda t: 2 * math.exp(t)
                 + (2 * tau * (covering(math.exp(t)) - math.log(delta)) / n) ** 0.5)  # fmt: skip
    risk = excess.truncated_risk(covering, n, tau=tau, delta=delta, empirical=0.01)
    assert risk == pytest.approx((0.1 + root) ** 2, rel=1e-2)
    assert excess.truncated_risk(covering, 1.0, tau=tau, delta=delta) == tau


@pytest.mark.parametrize("mean", [0.003, 0.05, 0.4])
def test_roots_of_risks_against_binomial_tails(mean):
    """One function with losses 0 or tau: how often the bound fails, summed exactly."""
    n, tau, delta = 300, 2.0, 0.1
    nothing = lambda eps: 0.0
    counts = np.arange(n + 1)
    bound = [
        excess.truncated_risk(nothing, n, tau=tau, delta=delta, empirical=tau * k / n)
        for k in counts
    ]
    fails = scipy.stats.binom.pmf(counts, n, mean)[np.array(bound) < tau * mean].sum()
    assert fails <= delta


def test_radii_meet_the_paper_s_tail():
    for tail, d in ((3.0, 2), (12.0, 5)):
        radius = excess.moment_radius(tail + math.log(60), C=float(d))
        assert bounds.token_tail(radius, n=10, N=6, d=d) == pytest.approx(math.exp(-tail))
    assert excess.Setting(N=6, d=5, q=1).token_radius(3.0) == pytest.approx(
        math.sqrt(2 * math.e * 5 * (3 + math.log(6)))
    )
    # s = 2, tail 4: r = 4 and B^2 = 3 (4 e)^2.
    assert excess.moment_radius(4.0, C=3.0, s=2.0) == pytest.approx(4 * math.e * math.sqrt(3))
    with pytest.raises(ValueError, match="at least 1"):
        excess.moment_radius(0.4, C=1.0)


@pytest.mark.parametrize("N, d", [(4, 1), (50, 3), (3000, 10)])
def test_largest_tokens_by_quadrature(N, d):
    """E max |x|^4 = int_0^inf P(max |x|^4 > v) dv, chi-squared tails."""
    survive = lambda v: 1.0 - scipy.stats.chi2.cdf(math.sqrt(v), d) ** N
    exact = scipy.integrate.quad(survive, 0, 1e5, limit=500, points=[1, 10, 100, 1e3, 1e4])[0]
    bound = excess.largest_token_moment(N=N, d=d)
    assert math.sqrt(exact) <= bound <= 20 * math.sqrt(exact)


def test_risks_by_hand(x64):
    setting = excess.Setting(N=4, d=2, q=1, C_y=2.0)
    # |y|_4 = sqrt(8), |yhat|_4 = 3: (sqrt 8 + 3)^2 sqrt 2 e^{-3}.
    assert excess.truncation_error(setting, tail=6.0, fourth=3.0) == pytest.approx(
        (math.sqrt(8) + 3) ** 2 * math.sqrt(2) * math.exp(-3)
    )
    covering = lambda eps: 5 * np.log1p(1 / eps)
    given = {"setting": setting, "largest": 7.0, "fourth": 3.0, "fitted": 0.04, "tail": 20.0}
    B = math.sqrt(2 * 2 * math.e * 20)
    for form, tau, fourth in (("covered", (B + 7) ** 2, 3.0), ("clipped", 4 * B**2, B)):
        want = excess.truncated_risk(covering, 1e5, tau=tau, delta=0.01, empirical=0.04)
        want += tau * math.exp(-20) + (math.sqrt(8) + fourth) ** 2 * math.sqrt(2) * math.exp(-10)
        assert excess.minimiser_risk(covering, 1e5, form=form, **given) == pytest.approx(want)
    gap = excess.truncated_gap(covering, 1e5, tau=(B + 7) ** 2, delta=0.01, sharp=False)
    slow = excess.minimiser_risk(covering, 1e5, **given)
    rest = (math.sqrt(8) + 3) ** 2 * math.sqrt(2) * math.exp(-10) + (B + 7) ** 2 * math.exp(-20)
    assert slow == pytest.approx(0.04 + gap + rest)
    with pytest.raises(ValueError, match="symmetrised, covered, clipped"):
        excess.minimiser_risk(covering, 1e5, form="other", **given)


def test_risks_of_both_architectures_fall(x64):
    setting = excess.Setting(N=8, d=1, q=1)
    link = LINKS["linear"]
    network = link.two_layer(link.init(jax.random.key(0), 1, 1))
    of_transformer = lambda n, form, eps=1e-9: excess.transformer_risk(
        n, setting, de=6, m=2, r_a=2.0, r_w=1.0, eps=eps, form=form
    )
    rnns = excess.recurrent_class(setting, network, de=6)
    of_rnn = lambda n, form: excess.recurrent_risk(n, setting, rnns, form=form)
    for risk in (of_transformer, of_rnn):
        assert risk(1e14, "clipped") < 0.1 * risk(1e11, "clipped")
        assert risk(1e12, "clipped") < risk(1e12, "covered") < risk(1e12, "symmetrised")
    # Attention's own error remains.
    assert of_transformer(1e16, "clipped", 1e-3) == pytest.approx(1e-3, rel=0.1)


def test_what_the_risks_are_put_together_from(monkeypatch, x64):
    """Every number that goes into `minimiser_risk`, by hand: N = 8, d = 3, q = 2, n = 16."""
    seen = []

    def kept(covering, n, **given):
        seen.append((covering, given))
        return 0.0

    monkeypatch.setattr(excess, "minimiser_risk", kept)
    setting = excess.Setting(N=8, d=3, q=2, C_x=1.5)
    tail = 4 * math.log(16)
    r_x = math.sqrt(1.5 * 3 * math.e * 2 * (tail + math.log(8)))
    r = 2 * math.log(8)
    tokens = 8 ** (2 / r) * 1.5 * 3 * r  # 4.16 > 4
    known = {"de": 5, "m": 4, "r_a": 3.0, "r_w": 0.5, "eps": 1e-4, "eps_2nn": 0.04}
    excess.transformer_risk(16.0, setting, **known)
    covering, given = seen.pop()
    # r_a r_w (2 r_x), attended (h, 1) within sqrt(2 (r_x^2 + 4.5) + 1).
    assert given["largest"] == pytest.approx(1.5 * math.sqrt(2 * (r_x**2 + 4.5) + 1))
    assert given["fourth"] == pytest.approx(1.5 * math.sqrt(2 * (tokens + 4.5) + 1))
    assert given["fitted"] == pytest.approx((0.2 + 0.01) ** 2)
    assert given["tail"] == pytest.approx(tail)
    # 2 (q/d) log(2 r_a r_w r_x N sqrt(q/eps)) sqrt(de) for each head of 18 x 18.
    r_QK = 4 / 3 * math.log(3 * r_x * 8 * math.sqrt(2e4)) * math.sqrt(5)
    L, two, attention = given["largest"], 4 * (2 * 18 + 1), 2 * 18**2
    total, eps = 4 + two + attention, 0.7
    left = eps * (4 + two) / total
    want = sum(p * math.log(1 + 2 * L * (4 + two) / (p * left)) for p in (4, two))
    moved = eps * attention / total / (1.5 * (r_x**2 + 4.5))
    want += attention * math.log(1 + 2 * math.sqrt(2 * (r_x**2 + 4.5)) * r_QK / moved)
    assert covering(eps) == pytest.approx(want)

    f = excess.RecurrentClass(parameters=7, constant=2.0, slope=0.25, depth_y=2, depth_h=1)
    excess.recurrent_risk(16.0, setting, f)
    covering, given = seen.pop()
    R, square = math.sqrt(2 + 0.25 * r_x**2), 2 * 2 * r_x**2 + r_x**2 + 3
    assert given["largest"] == pytest.approx(R**2 * math.sqrt(square) + R)
    assert given["fourth"] == pytest.approx(R**2 * math.sqrt(4 * r_x**2 + tokens + 3) + R)
    assert given["fitted"] == 0.0
    moved = covers.recurrent_lipschitz(
        R, N=8, r_z=math.sqrt(r_x**2 + 3), r_h=math.sqrt(2) * r_x, depth_y=2, depth_h=1
    )
    assert covering(eps) == pytest.approx(7 * math.log(1 + 2 * R * float(moved) / eps))


def test_the_norm_of_the_constructed_rnn_at_any_radius(x64):
    setting, link = excess.Setting(N=5, d=2, q=3), LINKS["linear"]
    network = link.two_layer(link.init(jax.random.key(1), 3, 2))
    f = excess.recurrent_class(setting, network, de=4)
    transition = exact_transition(q=3, d=2, de=4, radius=7.5)
    leaves = jax.tree.leaves((transition, transition, readout(network, transition)))
    assert f.parameters == sum(v.size for v in leaves)
    square = sum(float(np.sum(np.square(v))) for v in leaves)
    assert f.constant + f.slope * 7.5**2 == pytest.approx(square)
    assert (f.depth_y, f.depth_h) == (5, 4)


def test_least_sample_sizes():
    assert excess.samples_needed(lambda n: 7.0 / n, 0.5) == pytest.approx(14.0, rel=2e-3)
    assert excess.samples_needed(lambda n: 1.0, 0.5) == math.inf


def test_networks_of_links_on_fine_grids(x64):
    """Errors on grids, links written out; the squares' bound is attained."""
    u = jnp.array([0.6, 0.8])
    side = np.linspace(-1.5, 1.5, 101)  # the squares' worst points are on it
    x = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 1, 2)
    squares = np.sum(x**2, axis=(1, 2))
    inside, of = squares <= 1.5**2, lambda net: np.asarray(jax.jit(lambda x: net.network(x))(x))
    sine = link_networks.sine_network(u, q=1, radius=1.5, knots=7)
    apart = np.abs(np.sin(x[:, 0] @ np.asarray(u)) - of(sine))[inside]
    assert 0.8 * sine.eps_2nn**0.5 <= float(apart.max()) <= sine.eps_2nn**0.5
    square = link_networks.quadratic_network(q=1, d=2, radius=1.5, knots=5)
    apart = np.abs((squares - 2) / math.sqrt(2) - of(square))[inside]
    assert float(apart.max()) == pytest.approx(square.eps_2nn**0.5, rel=1e-9)
    assert square.eps_2nn == pytest.approx(2 * 0.3**4 / 64)
    mean = link_networks.mean_network(u, q=3)
    tokens = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3, 2)))
    assert np.allclose(mean.network(tokens), tokens.mean(axis=1) @ u, atol=1e-14)
    assert isinstance(mean.network, TwoLayer) and mean.eps_2nn == 0
    with pytest.raises(ValueError, match="at least one knot"):
        link_networks.quadratic_network(q=1, d=1, radius=1.0, knots=0)
