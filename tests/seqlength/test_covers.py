"""Sparsification, counts and built covers: enumeration is the oracle throughout."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.seqlength import linear_bounds as bounds
from jaxbounds.seqlength import linear_covers as covers
from jaxbounds.seqlength.counting import (
    count_nonnegative,
    count_signed,
    log_counts_signed,
    nonnegative_vectors,
    signed_vectors,
)
from jaxbounds.seqlength.covering_numbers import (
    covering_number,
    covering_staircase,
    sup_distances,
)
from jaxbounds.seqlength.sparsification import (
    best_squared_error,
    maurey,
    maurey_corrected,
    shrinkage,
    sparsify,
    sparsify_radius,
)


def _brute_count(n, K, *, signed):
    low = -K if signed else 0
    grid = itertools.product(range(low, K + 1), repeat=n)
    return sum(1 for z in grid if sum(map(abs, z)) <= K)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("K", [0, 1, 2, 3, 4])
def test_counts_and_lists_against_brute_force(n, K):
    assert count_nonnegative(n, K) == len(nonnegative_vectors(n, K))
    assert count_nonnegative(n, K) == _brute_count(n, K, signed=False)
    vectors = signed_vectors(n, K)
    assert count_signed(n, K) == len(vectors) == _brute_count(n, K, signed=True)
    assert len(np.unique(vectors, axis=0)) == len(vectors)
    assert np.abs(vectors).sum(axis=1).max() <= K
    assert count_signed(n, K) <= (2 * n + 1) ** K


@pytest.mark.parametrize("n, K", [(3, 5), (32, 64), (512, 4), (7, 400)])
def test_log_count_against_exact_integers(n, K):
    # Python integers share nothing with the floating-point sum.
    exact = math.log(count_signed(n, K))
    assert log_counts_signed(n, np.float64(K)) == pytest.approx(exact, rel=1e-13)


def test_log_count_of_huge_sparsity_is_parameter_counting():
    n, K = 16, 1e15
    expected = n * math.log(2.0 * K) - math.lgamma(n + 1)
    assert log_counts_signed(n, np.float64(K)) == pytest.approx(expected, rel=1e-9)


def test_sparsification_refuses_weights_outside_the_simplex():
    with pytest.raises(ValueError, match=r"sum of the weights, is 1\.5"):
        sparsify(jnp.eye(2), jnp.array([1.0, 0.5]), 1)
    with pytest.raises(ValueError, match=r"negative weight is 0\.5"):
        sparsify(jnp.eye(2), jnp.array([0.1, -0.5]), 1)
    with pytest.raises(ValueError, match="k=0, expected at least 1"):
        sparsify(jnp.eye(2), jnp.array([0.1, 0.5]), 0)


@pytest.mark.parametrize(
    "cover, norm",
    [
        (lambda W: covers.cover_columns(W, 1.0, 2), r"\|\|W\|\|_\{1,infinity\} is 3"),
        (lambda W: covers.cover_entries(W, 1.0, 2), r"\|\|W\|\|_\{1,1\} is 6"),
        (lambda W: covers.cover_each_row(W, 1.0, 2), "l_1 norm of a row is 4"),
        (lambda W: covers.cover_by_truncation(W, 1.0, 0.5), "expected at most 1"),
        (lambda W: covers.cover_l1_ball(W[0], 1.0, 2), r"\|\|v\|\|_1 is 2"),
    ],
)
def test_covers_refuse_matrices_outside_the_ball(cover, norm):
    with pytest.raises(ValueError, match=norm):
        cover(jnp.array([[1.0, 1.0], [2.0, -2.0]]))


def test_log_counts_of_an_array_are_those_of_its_entries_in_any_order():
    K = np.array([[5.0, 0.0, 300.0], [5.0, 1.0, 40.0]])
    found = log_counts_signed(6, K)
    for k, value in zip(K.ravel(), found.ravel()):
        assert value == pytest.approx(math.log(count_signed(6, int(k))), rel=1e-13)


def test_counts_refuse_impossible_sizes():
    with pytest.raises(ValueError, match="n >= 1"):
        count_signed(0, 3)
    with pytest.raises(ValueError, match="expected at most 200000"):
        signed_vectors(40, 8)
    with pytest.raises(ValueError, match="expected at most 200000"):
        covers.columns_cover(4, 8, 1.0, 3)


def _instances(rng, count, n, dim):
    vectors = rng.normal(size=(count, n, dim))
    weights = rng.dirichlet(np.ones(n), size=count) * rng.uniform(size=(count, 1))
    return vectors, weights, np.linalg.norm(vectors, axis=2).max(axis=1)


@pytest.mark.parametrize("n, dim, k", [(2, 1, 1), (4, 3, 3)])
def test_maurey_corrected_by_enumeration_and_printed_false(n, dim, k):
    vectors, weights, bs = _instances(np.random.default_rng(k), 60, n, dim)
    with enable_x64(True):

        @jax.jit
        @jax.vmap
        def measured(V, a, b):
            """The least error, the one reached, and the corrected and the printed bound."""
            bounds = [bound(jnp.sum(a), b, a @ V, k) for bound in (maurey_corrected, maurey)]
            return best_squared_error(V, a, k), sparsify(V, a, k).squared_error, *bounds

        best, error, corrected, printed = map(np.asarray, measured(vectors, weights, bs))
    assert (best <= error + 1e-12).all() and (error <= corrected + 1e-12).all()
    assert (best > printed + 1e-12).any()


@pytest.mark.parametrize("k", [1, 3])
def test_rescaled_and_shrunk_sparsification_meet_their_bounds(k):
    vectors, weights, bs = _instances(np.random.default_rng(1), 40, 4, 3)
    s = shrinkage(k)
    with enable_x64(True):

        @jax.jit
        @jax.vmap
        def measured(V, a, b):
            bound = maurey_corrected(jnp.sum(a), b, a @ V, k, scale=s)
            return sparsify(V, a, k, use_all=True), sparsify(V, a, k, scale=s).squared_error, bound

        rescaled, shrunk, bound = jax.tree.map(np.asarray, measured(vectors, weights, bs))
    f = np.einsum("in,ind->id", weights, vectors)
    size, gamma = np.sum(f**2, axis=1), weights.sum(axis=1)
    counts = rescaled.multiplicities
    assert (counts.sum(axis=1) == k).all()
    # A multiple of the V_i by counts is what it claims to be.
    combined = np.einsum("in,ind->id", counts, vectors) * gamma[:, None] / k
    np.testing.assert_allclose(rescaled.approximation, combined, atol=1e-12)
    assert (rescaled.squared_error <= (gamma**2 * bs**2 - size) / k + 1e-12).all()
    assert (shrunk <= bound + 1e-12).all()
    with enable_x64(True):
        for b, bounded in zip(bs, bound):
            assert bounded <= float(sparsify_radius(b, k)) ** 2 + 1e-12


@pytest.mark.parametrize("n, K", [(3, 2), (5, 4)])
def test_l1_ball_cover_radius_is_attained_at_a_vertex(n, K):
    B = 2.0
    cover = covers.l1_ball_cover(n, B, K)
    assert np.abs(cover).sum(axis=1).max() < B
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.full(n, 0.5), size=400) * rng.choice([-B, B], size=(400, n))
    points = np.concatenate([points, B * np.eye(n)])
    nearest = np.linalg.norm(points[:, None] - cover[None], axis=2).min(axis=1)
    assert nearest.max() == pytest.approx(B / (1 + math.sqrt(K)), rel=1e-12)
    assert nearest[-1] == pytest.approx(B / (1 + math.sqrt(K)), rel=1e-12)
    with enable_x64(True):
        found = np.asarray(jax.jit(jax.vmap(lambda v: covers.cover_l1_ball(v, B, K)))(points))
    # The greedy member is in the list, and within the radius.
    member = np.abs(found[:, None] - cover[None]).max(axis=2).min(axis=1)
    assert member.max() < 1e-12
    assert np.linalg.norm(points - found, axis=1).max() <= B / (1 + math.sqrt(K)) + 1e-12


@pytest.mark.parametrize("k, d, x", [(2, 2, 1.5), (3, 2, 1.9)])
def test_whole_covers_of_lemmas_3_3_and_3_6(k, d, x):
    B, rng = 1.0, np.random.default_rng(0)
    K = int(bounds.sparsity_needed(x))
    columns, entries = covers.columns_cover(k, d, B, K), covers.entries_cover(k, d, B, K)
    assert math.log(len(columns)) == pytest.approx(bounds.lemma_3_3_sharp(x, k=k, d=d), rel=1e-12)
    assert math.log(len(entries)) == pytest.approx(bounds.lemma_3_6_sharp(x, k=k, d=d), rel=1e-12)
    assert math.log(len(columns)) <= bounds.lemma_3_3(x, k=k, d=d)
    assert math.log(len(entries)) <= bounds.lemma_3_6(x, k=k, d=d)
    for _ in range(50):
        W = rng.normal(size=(k, d))
        tight = B * W / np.abs(W).sum(axis=0)
        error = np.linalg.norm(tight - columns, axis=1).max(axis=1).min()
        assert error < B / x
        flat = B * W / np.abs(W).sum()
        assert np.linalg.norm(flat - entries, ord=2, axis=(1, 2)).min() < B / x


@pytest.mark.parametrize("k, d", [(1, 4), (5, 3)])
def test_truncation_cover_of_lemma_3_4(k, d):
    rng = np.random.default_rng(2)
    x = np.exp(rng.uniform(0, 2, size=300))
    W = rng.normal(size=(300, k, d)) * np.exp(2 * rng.normal(size=(300, k, 1)))
    W /= np.linalg.norm(W, axis=2).sum(axis=1)[:, None, None]
    with enable_x64(True):
        cover = jax.vmap(lambda W, radius: covers.cover_by_truncation(W, 1.0, radius))
        What, code = map(np.asarray, jax.jit(cover)(W, 1.0 / x))
    assert (np.linalg.norm(W - What, axis=1).max(axis=1) < 1.0 / x).all()
    assert (np.abs(code).sum(axis=(1, 2)) <= np.floor(2 * x**2)).all()
    assert (np.linalg.norm(What, axis=2) <= np.linalg.norm(W, axis=2) + 1e-15).all()


def test_printed_lemma_3_4_is_below_a_packing_bound():
    # Volume: any cover of a k-ball of radius B at B/2 has at least 2^k members.
    assert bounds.volumetric_lower_column(2.0, k=100) == pytest.approx(100 * math.log(2))
    assert bounds.lemma_3_4_leading(2.0, k=100, d=2) < 22 < 69 < 100 * math.log(2)


def test_sharp_sizes_never_exceed_the_printed_ones():
    x = np.geomspace(0.1, 1e4, 60)
    for sharp, printed in (
        (bounds.lemma_3_3_sharp, bounds.lemma_3_3),
        (bounds.lemma_3_6_sharp, bounds.lemma_3_6),
    ):
        values = sharp(x, k=5, d=7)
        assert (values <= printed(x, k=5, d=7)).all()
        assert (np.diff(values) >= 0).all()
    reported = bounds.lemma_3_6_sharp(np.array([1.5, 2, 3, 5, 10]), k=16, d=16)
    np.testing.assert_allclose(reported, [6.2, 11.8, 26.4, 72.6, 229.9], atol=0.05)


@pytest.mark.parametrize("x", [-1.0, math.nan, math.inf])
def test_bounds_refuse_bad_scales(x):
    with pytest.raises(ValueError, match="not negative"):
        bounds.lemma_3_6(x, k=2, d=2)
    with pytest.raises(ValueError, match="not negative"):
        bounds.sparsity_needed(x)


@pytest.mark.parametrize("q", [1.0, 2.0, 4.0, math.inf])
def test_lemma_3_2_as_an_identity_of_integers(q):
    rng = np.random.default_rng(3)
    for _ in range(15):
        W = rng.normal(size=(6, 2, 3))
        basis = np.swapaxes(W, 1, 2)
        x = rng.dirichlet(np.ones(3), size=5) * rng.choice([-1, 1], size=(5, 3))
        inside = np.einsum("fkd,nd->fnk", W, x)
        both = np.concatenate([basis, inside], axis=1)
        distances = sup_distances(basis, q)
        epsilon = float(np.quantile(distances[distances > 0], rng.uniform()))
        on_basis = covering_number(distances, epsilon)
        assert covering_number(sup_distances(both, q), epsilon) == on_basis
        assert covering_number(sup_distances(inside, q), epsilon) <= on_basis


def test_covering_staircase_against_single_numbers():
    rng = np.random.default_rng(4)
    distances = sup_distances(rng.normal(size=(7, 3, 2)), 2.0)
    steps = covering_staircase(distances)
    assert steps.counts[0] == 7 and steps.counts[-1] == 1
    for low, high, count in zip(steps.radii[:-1], steps.radii[1:], steps.counts[:-1]):
        assert covering_number(distances, (low + high) / 2) == count
        assert covering_number(distances, high) == count


def test_covering_numbers_refuse_what_they_cannot_do():
    with pytest.raises(ValueError, match="at most 16"):
        covering_number(np.zeros((17, 17)), 1.0)
    with pytest.raises(ValueError, match="positive"):
        covering_number(np.zeros((2, 2)), 0.0)
    with pytest.raises(ValueError, match="at least 1"):
        sup_distances(np.zeros((2, 1, 1)), 0.5)
