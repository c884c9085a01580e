"""Explicit sample sizes; the oracles are exact binomial tails, enumeration and other programs."""

import itertools
import math

import numpy as np
import pytest
import scipy

from jaxbounds.smapprox import alternatives
from jaxbounds.smapprox import finite_classes as finite
from jaxbounds.smapprox import generalization as general


@pytest.mark.parametrize("scale", [1.2, 1.9, 2.4, 3.0])
def test_covers_of_the_l1_ball_hold_against_greedy_ones(scale):
    """A greedy cover of a fine grid is one cover more; a packing by it is a lower bound."""
    side = np.linspace(-1.0, 1.0, 61)
    grid = np.array([x for x in itertools.product(side, side) if sum(map(abs, x)) <= 1 + 1e-9])
    kept: list[np.ndarray] = []
    for x in grid:  # points farther than 2 / scale from each other need different balls
        if all(np.linalg.norm(x - y) > 2.0 / scale for y in kept):
            kept.append(x)
    assert len(kept) >= 2 or scale < 2
    assert math.log(len(kept)) <= general.l1_log_covering(scale, 2)


def test_sizes_of_covers_by_hand():
    # K = floor((3 - 1)^2) + 1 = 5 of 2 p = 6 vertices: C(10, 5) = 252.
    assert general.l1_log_covering(3.0, 3) == pytest.approx(math.log(252))
    # By volume: 2 log 41 < log C(17424 + 3, 17424).
    assert general.l1_log_covering(20.0, 2) == pytest.approx(2 * math.log(41))
    assert general.l1_log_covering(0.99, 10**9) == 0
    few = general.l1_log_covering(10.0, 10**12)  # K = 82: about 82 log(2e12) - log 82!
    assert few == pytest.approx(82 * math.log(2e12) - math.lgamma(83), rel=1e-9)
    with pytest.raises(ValueError, match="expected positive numbers"):
        general.l1_log_covering(0.0, 3)


def one_chain(alpha, p, gamma, n, ratio):
    """Massart's lemma link by link, in plain Python; the best depth."""
    found, links, size, scale = 0.5, 0.0, 0.0, 0.5
    for _ in range(60):
        finer = scale / ratio
        more = float(general.l1_log_covering(alpha / (gamma * finer), p))
        links += (scale + finer) * math.sqrt(2 * (size + more) / n)
        size, scale = more, finer
        found = min(found, links + finer)
    return found


def test_chaining_against_chains_by_hand():
    """It takes the best of 24 ratios: near the best of others, and below the closed form's."""
    for scale in ((1.0, 3, 0.25, 1e5), (30.0, 500, 0.1, 1e7), (5.0, 10**6, 0.5, 1e6)):
        by_hand = min(one_chain(*scale, ratio) for ratio in np.geomspace(1.2, 20, 60))
        ours = general.rademacher_by_chaining(*scale)
        assert by_hand * 0.98 <= ours <= by_hand * 1.02
        assert ours <= general.rademacher_explicit(*scale)


def test_rademacher_complexity_of_an_enumerated_class():
    """All sign vectors, models on a grid of the ball of the plane; n is too small for the bound."""
    x = np.random.default_rng(0).normal(size=(10, 2))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    side = np.linspace(-1.0, 1.0, 41)
    models = np.array([t for t in itertools.product(side, side) if sum(map(abs, t)) <= 1 + 1e-9])
    for gamma in (0.5, 30.0):
        losses = np.clip(1 - np.maximum(models @ x.T, 0) / gamma, 0, 1)
        exact = float(finite.empirical_rademacher(losses, np.arange(10)))
        bound = general.rademacher_by_chaining(1.0, 2, gamma, 10)
        assert exact <= bound <= 0.5
    assert bound < 0.12  # at gamma = 30 the losses are nearly constant, and the chain knows


@pytest.mark.parametrize("n, count", [(50, 0), (50, 4), (400, 37)])
def test_chernoff_is_not_exceeded_by_exact_tails(n, count):
    """The exact binomial tail at the bound is at most exp(-(log_size + log(1/delta)))."""
    risk = general.risk_from_cover(count / n, 3.0, n, delta=0.1)
    tail = scipy.stats.binom.cdf(count, n, risk)
    assert tail <= 0.1 * math.exp(-3.0) * (1 + 1e-9)
    assert tail >= 0.1 * math.exp(-3.0) / (10 if count else 1 + 1e-9)
    assert general.risk_from_cover(1.0, 3.0, n, delta=0.1) == 1.0


def test_sample_sizes_by_hand():
    # log N = 2 log 41 (above); (7.427 + log 100) / log(1/0.9).
    n = general.realizable_sample_complexity(10.0, 2, 1.0, 0.1)
    assert n == pytest.approx((2 * math.log(41) + math.log(100)) / math.log(1 / 0.9))
    # A = 100 log 4; sqrt(A/n) = 1/100 at n = 1e4 A, two factors of 16 and a bit.
    A = 100 * math.log(4)
    want = 0.01 * (0.5 + 5 * math.sqrt(2 * 17 / 16) * (1 + math.log(1e4) / math.log(16)))
    assert general.rademacher_explicit(10.0, 2, 1.0, 1e4 * A) == pytest.approx(want)
    assert general.rademacher_explicit(10.0, 2, 1.0, 0.9 * A) == 0.5
    assert general.erm_risk(0.1, 200, delta=0.02) == pytest.approx(
        0.2 + math.sqrt(2 * math.log(100) / 200)
    )
    chained = general.chained_sample_complexity(10.0, 2, 1.0, 0.1)
    assert finite.erm_bound(
        0.0, general.rademacher_explicit(10.0, 2, 1.0, chained), chained, 0.01
    ) == pytest.approx(0.1)
    sharp = general.chained_sample_complexity(
        10.0, 2, 1.0, 0.1, rademacher=general.rademacher_by_chaining, sharp=True
    )
    assert n < sharp < chained


def test_corollary_a1_by_hand_and_by_its_scale():
    n, margins = 10_000, np.full(10_000, 0.5)
    # B = 4 log 4 / n, M = 4; alpha^2 / gamma^2 = sqrt(M / (2 B)) = 60.06: k = 6.
    B, l = 4 * math.log(4) / n, (math.log((math.pi**2 / 3 - 1) / 0.01) + 2 * math.log(7)) / n
    want = (1 + 1.5 * math.sqrt(2)) * math.sqrt(8 * B) + math.sqrt(2 * l) + 2 * l
    found = general.corollary_a1_explicit(1.0, 2, margins)
    assert found == pytest.approx(want) and found < 0.6
    assert general.corollary_a1_explicit(7.0, 2, 7 * margins) == pytest.approx(want)
    profile = general.margin_profile_bound(1.0, 2, margins)
    # No margin is below gamma_2 = alpha / 2: the cover has 2 log(1 + 2 * 4), delta a ninth.
    log_size = 2 * math.log(9)
    part = math.log((math.pi**2 / 3 - 1) * 9 / 0.01)
    assert profile == pytest.approx(-math.expm1(-(log_size + part) / n))
    some = np.where(np.arange(n) < 100, 0.0, 0.5)  # one percent errors
    assert profile + 0.01 < general.margin_profile_bound(1.0, 2, some) < 0.03
    with pytest.raises(ValueError, match="smallest_margin"):
        general.corollary_a1_explicit(1.0, 2, some)


def test_sign_patterns_against_counts():
    """One linear unit: Cover's count 2 sum_k C(n-1, k) is exact. A hidden layer: patterns drawn."""
    for d, n in ((3, 10), (5, 40)):
        exact = math.log(2 * sum(math.comb(n - 1, k) for k in range(d)))
        bound = alternatives.sign_patterns_log_bound([d], [1], n)
        assert exact <= bound <= math.log(2) + d * math.log(2 * math.e * n / d) + 1e-12
    rng, n = np.random.default_rng(0), 6
    x = rng.normal(size=n)
    W, b, a, c = (rng.normal(size=(20_000, 2)) for _ in range(4))
    outputs = (np.maximum(W[:, :, None] * x + b[:, :, None], 0) * a[:, :, None]).sum(axis=1)
    seen = len(np.unique(outputs + c[:, :1] > 0, axis=0))
    assert seen > 20 and math.log(seen) <= alternatives.sign_patterns_log_bound([4, 3], [2, 1], n)
    with pytest.raises(ValueError, match="one entry for each layer"):
        alternatives.sign_patterns_log_bound([4], [2, 1], 6)


def test_products_of_norms_against_the_complexity_of_linear_units():
    """One layer: Rad = M E |sum sigma_i x_i| / n exactly, over all signs; the bound is above it."""
    x = np.concatenate([np.random.default_rng(1).normal(size=(8, 2)), np.ones((8, 1))], axis=1)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    signs = np.array(list(itertools.product((-1, 1), repeat=8)))
    exact = 3.0 * np.linalg.norm(signs @ x, axis=1).mean() / 8
    W, b = np.array([[2.0, 1.0]]), np.array([2.0])  # of norm 3
    # log n = 2 log((2 Rad sqrt n + sqrt(2 log 200)) / epsilon): solved for Rad at epsilon = 1.
    log_n = alternatives.norm_product_log_samples([W], [b], 1.0, radius=1.0)
    bound = (math.exp(log_n / 2) - math.sqrt(2 * math.log(200))) / 2 / math.sqrt(8)
    assert bound == pytest.approx(3.0 * (math.sqrt(2 * math.log(2)) + 1) / math.sqrt(8))
    assert exact <= bound <= 4 * exact


def test_vc_samples_use_up_the_confidence():
    n = alternatives.vc_sample_complexity_explicit([40, 21], [10, 1], 0.1)
    left = alternatives.sign_patterns_log_bound([40, 21], [10, 1], 2 * n) + math.log(2)
    assert left - 0.05 * n * math.log(2) == pytest.approx(math.log(0.01), rel=1e-6)
    wider = alternatives.vc_sample_complexity_explicit([400, 201], [100, 1], 0.1)
    assert wider > 5 * n
