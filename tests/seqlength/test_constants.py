"""Lemma 3.5, Corollaries D.0.2 and F.0.2, Theorem 5.1 with constants, against plain enumeration."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest
import scipy

from jaxbounds.seqlength.correction_covers import (
    Letter,
    decode_corrections,
    encode_corrections,
    project_rows,
)
from jaxbounds.seqlength.dudley import CERTIFIED
from jaxbounds.seqlength.linear_bounds import (
    lemma_3_4_explicit,
    lemma_3_5_explicit,
    lemma_3_5_sharp,
    packing_of_points,
)
from jaxbounds.seqlength.logarithmic_entropy import (
    LogarithmicEntropy,
    corollary_D_0_2_explicit,
    corollary_F_0_2_explicit,
    entropy_integral,
    log_integral,
    logarithmic_dudley,
)
from jaxbounds.seqlength.multi_layer import NetworkNorms, Terms
from jaxbounds.seqlength.vector_contraction import (
    log_separated,
    scalar_entropy,
    shattered_points,
    terms_word_masking,
    theorem_5_1_infinity,
    theorem_5_1_l2,
)


def test_the_list_of_all_codes_is_a_cover_of_that_size():
    """Every word of the alphabet is decoded; the encoder is not asked."""
    X, x = np.array([[1.0, 0.0], [0.6, 0.8]]), 1.2
    # floor(2 x^2) = 2 letters: one row, two points, two signs, levels 0, 1, 2; or none.
    letters = [Letter(0, *rest) for rest in itertools.product(range(2), (1, -1), range(3))]
    words = [()] + [(a,) for a in letters] + list(itertools.product(letters, repeat=2))
    assert math.log(13**2) == pytest.approx(lemma_3_5_explicit(x, k=1, points=2), rel=1e-14)
    cover = np.array([decode_corrections(w, X, 1.0, 1 / x, 1)[0] for w in words])
    assert np.linalg.norm(cover, axis=1).max() <= 1 + 1e-12
    angles, lengths = np.meshgrid(np.linspace(0, 2 * np.pi, 61), np.linspace(0.0, 1.0, 9))
    W = (lengths * np.array([np.cos(angles), np.sin(angles)])).reshape(2, -1).T
    far = np.abs((W[:, None] - cover[None]) @ X.T).max(axis=-1).min(axis=1)
    assert far.max() < 1 / x


@pytest.mark.parametrize("ratio", [2.0, 1.1])
def test_codes_are_short_and_their_members_near(ratio):
    rng = np.random.default_rng(3)
    for _ in range(20):
        k, d, N = rng.integers(1, 5, size=3)
        W = rng.normal(size=(k, d)) * np.exp(2 * rng.normal(size=(k, 1)))
        W /= np.linalg.norm(W, axis=1).sum() * (1 + 1e-12)
        X = rng.normal(size=(N, d))
        X /= np.linalg.norm(X, axis=1).max()
        x = math.exp(rng.uniform(0.0, 1.5))
        code = encode_corrections(W, X, 1.0, 1 / x, ratio=ratio)
        V = decode_corrections(code, X, 1.0, 1 / x, int(k), ratio=ratio)
        assert np.linalg.norm((W - V) @ X.T, axis=0).max() < 1 / x
        assert np.linalg.norm(V, axis=1).sum() <= 1 + 1e-12
        assert len(code) <= ratio * x**2
        levels = math.ceil(math.log(ratio * x**2) / math.log(ratio) + 1e-9) + 1
        assert all(0 <= letter.level < levels for letter in code)


def test_projection_of_rows_against_an_optimiser():
    rng = np.random.default_rng(0)
    for _ in range(5):
        V, weights = rng.normal(size=(3, 2)), rng.uniform(0.1, 1.0, 3)
        found = project_rows(V, weights, 1.0)
        cost = lambda U, V=V, c=weights: np.sum(((U.reshape(3, 2) - V) ** 2).sum(1) / c)
        room = lambda U: 1.0 - np.linalg.norm(U.reshape(3, 2), axis=1).sum()
        best = scipy.optimize.minimize(
            cost, 0.1 * V.ravel(), constraints={"type": "ineq", "fun": room}, method="SLSQP"
        )
        assert np.linalg.norm(found, axis=1).sum() == pytest.approx(1.0, rel=1e-12)
        inside = best.x * min(1.0, 1.0 / (1.0 - room(best.x)))
        assert cost(found.ravel()) <= cost(inside) * (1 + 1e-9)


def test_refusals():
    with pytest.raises(ValueError, match="expected at most"):
        encode_corrections(np.eye(2), np.eye(2), 1.0, 0.5)
    for wrong in ({"epsilon": 0.0}, {"ratio": 1.0}):
        given = {"epsilon": 0.5, "ratio": 2.0} | wrong
        with pytest.raises(ValueError, match="expected epsilon > 0"):
            encode_corrections(
                0.1 * np.eye(2), np.eye(2), 1.0, given["epsilon"], ratio=given["ratio"]
            )
    with pytest.raises(ValueError, match="expected K >= 2"):
        theorem_5_1_infinity(0.1, 1, 10, 1.0)
    with pytest.raises(ValueError, match="K=1, expected at least 2"):
        terms_word_masking(Terms(("w",), jnp.ones(1), jnp.ones(1)), 1)
    with pytest.raises(ValueError, match="expected m, signs >= 1"):
        logarithmic_dudley(LogarithmicEntropy(1.0, 0.0, 2.0), 10, 1.0)


def test_sizes_of_lemma_3_5_by_hand():
    # q = 1.5, x = 2: floor(6) letters of 2 * 3 * 5 * (ceil(log_1.5 6) + 1 = 6), or none.
    assert lemma_3_5_explicit(2.0, k=3, points=5, ratio=1.5) == pytest.approx(6 * np.log(181))
    assert lemma_3_5_explicit(0.9, k=3, points=5) == 0.0
    assert lemma_3_4_explicit(2.0, k=3, d=5) == lemma_3_5_explicit(2.0, k=3, points=5)
    # Six signed pairs of four points at x^2 / 4 = 2.
    assert packing_of_points(np.sqrt(8.0), points=4) == pytest.approx(np.log(24.0))
    x = np.array([1.0, 3.0, 30.0])
    assert (lemma_3_5_sharp(x, k=8, points=10**6) <= 1.5 * x**2 * np.log(8e6)).all()


def test_the_integral_of_the_logarithms():
    for s in (1.5, 10.0, 1e6):
        by_parts, _ = scipy.integrate.quad(lambda u: np.sqrt(np.log(u)), 1.0, s, limit=200)
        assert log_integral(s) == pytest.approx(by_parts, rel=1e-6)
    entropy = LogarithmicEntropy(8.0, 2.0, 18.0)
    # The midpoint rule in ln(epsilon), from the definition.
    t = np.linspace(math.log(0.01), math.log(1.5), 20_001)
    middle = np.exp((t[1:] + t[:-1]) / 2)
    heights = np.sqrt(8.0 / 50 * np.log(18.0 * (np.log2(8.0 / middle**2) + 2.0) + 1.0))
    assert entropy_integral(entropy, 0.01, 1.5, 50) == pytest.approx(
        float(np.sum(heights * np.diff(t))), rel=1e-7
    )
    assert entropy_integral(entropy, 2.5, 3.0, 50) == 0.0


def test_d_0_2_is_above_dudley_of_the_lemma_and_near():
    """Floors and ceilings as Lemma 3.4 has them, integrated step by step on a fine grid."""
    d, m = 4, 10**9
    x = lambda e: 2.0 / e
    grid = np.exp(np.linspace(math.log(1e-5), 0.0, 200_001))
    heights = np.sqrt((math.log(2 * d) + lemma_3_4_explicit(x(grid), k=d, d=d)) / m)
    pieces = np.diff(grid) * (heights[1:] + heights[:-1]) / 2
    tails = np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]])
    exact = 2.0 * CERTIFIED * float((grid + tails).min())
    found = corollary_D_0_2_explicit(1.0, 1.0, 1.0, m, d)
    assert exact <= found <= 1.15 * exact
    assert corollary_D_0_2_explicit(1.0, 1.0, 1.0, 100, d) == 2.0


def test_f_0_2_decreases_to_zero_and_is_clipped():
    norms = NetworkNorms(2.0, 1.0, 1.0, 0.5, 1.0, 1.0)
    values = [
        corollary_F_0_2_explicit(norms, 1.0, m, 3, 2, 2) for m in (10, 10**10, 10**12, 10**14)
    ]
    assert values[0] == 2.0 and values[1] > values[2] > values[3]
    # As 1 / sqrt m up to logarithms.
    assert 5.0 < values[2] / values[3] < 10.0


def _complexity(F):
    """Plain loops over signs."""
    m = F.shape[1]
    signs = np.array(list(itertools.product((-1, 1), repeat=m)))
    return (signs @ F.T).max(axis=1).mean() / m


def test_maurer_for_the_cross_entropy_by_enumeration():
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(20):
        K, m = 3, 5
        classes = rng.normal(size=(K, 3, m)) * np.exp(rng.normal(size=(K, 1, 1)))
        labels = rng.integers(0, K, m)
        losses = []
        for chosen in itertools.product(range(3), repeat=K):
            f = np.array([classes[s, c] for s, c in enumerate(chosen)])
            losses.append(scipy.special.logsumexp(f, axis=0) - f[labels, np.arange(m)])
        bound = float(theorem_5_1_l2(np.array([_complexity(F) for F in classes])))
        worst = max(worst, _complexity(np.array(losses)) / bound)
    assert 0.2 < worst <= 1.0


def test_separated_families_by_going_through_all_of_them():
    """Two points, three levels: of all 511 families of functions the 2-separated ones."""
    functions = list(itertools.product(range(3), repeat=2))
    largest = {0: 1, 1: 1, 2: 1}
    for bits in range(1, 2 ** len(functions)):
        family = [f for i, f in enumerate(functions) if bits >> i & 1]
        pairs = itertools.combinations(family, 2)
        if not all(max(abs(a - b) for a, b in zip(f, g)) >= 2 for f, g in pairs):
            continue
        # With three levels the level between is 1, and 0, 2 are below and above.
        patterns = lambda at, family=family: {
            tuple(f[i] for i in at) for f in family if all(f[i] != 1 for i in at)
        }
        found = max(
            (len(at) for at in ((0,), (1,), (0, 1)) if len(patterns(at)) == 2 ** len(at)), default=0
        )
        largest[found] = max(largest[found], len(family))
    assert largest == {0: 1, 1: 3, 2: 4}
    for d, size in largest.items():
        assert math.log(size) <= log_separated(2, 3, d)
    # y = 2 + 1 = 3: r = 2 and 2 (2 * 2 * 1)^2 = 32.
    assert log_separated(2, 3, 2) == pytest.approx(math.log(32.0))
    # Many points, in whole numbers: rounding must not shorten the sum, nor lose a doubling.
    for n, b, d in ((10**6, 10, 3), (10**15, 3, 1), (10**15, 100, 9)):
        doublings = sum(math.comb(n, i) * (b - 2) ** i for i in range(1, d + 1)).bit_length()
        size = math.log(2 * (n * (b - 1) * (b - 2)) ** doublings)
        assert log_separated(n, b, d) == pytest.approx(size, rel=1e-14)
    # Many points: the binomial sum and its bound meet within the last doublings.
    at = log_separated(10**5, 9.0, np.array([1000.0, 1001.0]))
    assert 0.0 < at[1] - at[0] < 0.02 * at[0]


def test_constants_of_the_contraction():
    assert shattered_points(0.5, 10, 1.0) == 10.0 and shattered_points(0.5, 10, 0.5) == math.inf
    assert scalar_entropy(0.1, 100, 1.0)(0.4) == math.inf
    # sqrt(K) says more than 2 K only for very large K.
    m, R = 10**12, 1e-6
    for K in (10, 10**4):
        assert theorem_5_1_infinity(R, K, m, 1.0) > 2.0 * K * R
    assert theorem_5_1_infinity(R, 3, m, 1.0) < 2.0
