"""One step, one restart and the flags of Lanczos, on matrices whose spectra stand in the test.

Eigenvalues of diagonal matrices need no program; of random ones NumPy's eigh is the oracle.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.networks.curvature.lanczos import (
    Extremes,
    _flagged,
    _Krylov,
    _ritz,
    _step,
    default_tolerance,
    dense_extremes,
    lanczos_extremes,
    rounded,
)

pytestmark = pytest.mark.usefixtures("x64")
EPS = 2.0**-52


@pytest.mark.parametrize(
    "size, dtype, tolerance",
    [
        (1, np.float32, 32 * 2.0**-23), (1024, np.float32, 32 * 2.0**-23),
        (10**6, np.float32, 1000 * 2.0**-23), (1, np.float64, 1e-8),
        (10**18, np.float64, 1e9 * EPS),
    ],
)  # fmt: skip
def test_the_tolerance_is_what_the_type_allows(size, dtype, tolerance):
    assert default_tolerance(size, dtype) == pytest.approx(tolerance, rel=1e-12)


def test_flags_are_about_residuals_beside_the_scale():
    # Of diag(1, -4): unit vectors with images that are off by 0.39 and 0.41 across.
    vectors, values = jnp.eye(2), jnp.array([1.0, -4.0])
    images = jnp.array([[1.0, 0.39], [0.41, -4.0]])
    found = _flagged(values, vectors, images, jnp.int32(7), 0.1)
    assert (bool(found.converged_minimum), bool(found.converged_maximum)) == (True, False)
    np.testing.assert_allclose([found.residual_minimum, found.residual_maximum], [0.39, 0.41])
    assert (float(found.minimum), float(found.maximum), int(found.iterations)) == (1, -4, 7)
    assert float(found.noise) == 4 * EPS
    np.testing.assert_array_equal(found.vector_maximum, [0, 1])
    edge = _flagged(values, vectors, images.at[0, 1].set(0.4), jnp.int32(0), 0.1)
    assert bool(edge.converged_minimum)
    lost = _flagged(jnp.array([jnp.inf, 1.0]), vectors, images, jnp.int32(0), 1.0)
    assert not bool(lost.converged_minimum)


def ends(low, high, converged=True):
    one, flag = jnp.asarray(1.0), jnp.asarray(converged)
    return Extremes(jnp.asarray(low), jnp.asarray(high), one, one, one, flag, flag, one, one, one)


@pytest.mark.parametrize("unit, fine", [(0.95e-3, True), (1e-3, True), (1.05e-3, False)])
def test_coarser_products_than_the_tolerance_never_converge(unit, fine):
    found = rounded(ends(-8.0, 2.0), unit, 1e-3)
    assert bool(found.converged_minimum) == bool(found.converged_maximum) == fine
    assert float(found.noise) == pytest.approx(8 * unit)
    assert float(rounded(ends(-2.0, 8.0), unit, 1e-3).noise) == pytest.approx(8 * unit)
    assert not rounded(ends(1.0, 2.0, False), 1e-9, 1e-3).converged
    # The rounding of the type itself is none too coarse, even where no residual is allowed.
    assert bool(rounded(ends(1.0, 2.0), EPS, 0.0).converged)
    assert not rounded(ends(1.0, 2.0), 2 * EPS, 0.0).converged


def test_both_ends_of_a_matrix():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(5, 5))
    matrix = matrix + matrix.T
    values, vectors = np.linalg.eigh(matrix)
    found = dense_extremes(jnp.asarray(matrix))
    np.testing.assert_allclose([found.minimum, found.maximum], values[[0, -1]], rtol=1e-12)
    np.testing.assert_allclose(np.abs(found.vector_minimum), np.abs(vectors[:, 0]), atol=1e-12)
    assert bool(found.converged) and int(found.iterations) == 0
    assert not dense_extremes(jnp.asarray(matrix), tolerance=0.0).converged


def test_the_table_says_which_end_has_converged():
    one = jnp.asarray(1.0)
    found = Extremes(one, 2 * one, one, one, jnp.int32(0), jnp.asarray(True), jnp.asarray(False),
                     one, one, one)  # fmt: skip
    table = found._table()
    assert [row[0] for row in table.rows] == ["least", "greatest"] and "dense" in table.title
    assert table.rows[0][1] == "1" and table.rows[1][1] == "2"
    assert table.rows[0][3] != table.rows[1][3]


def krylov(rows, filled, vector, coupling=0.0, projected=None, used=0, scale=0.0):
    m = len(rows)
    projected = jnp.zeros((m, m)) if projected is None else jnp.asarray(projected, float)
    rows, vector = jnp.asarray(rows, float), jnp.asarray(vector, float)
    coupling, scale = jnp.asarray(coupling), jnp.asarray(scale)
    return _Krylov(rows, projected, vector, coupling, jnp.int32(filled), jnp.int32(used), scale)


A = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 4.0], [0.0, 4.0, 5.0]])


def test_a_step_of_the_recurrence():
    # From e_1: A e_1 = 2 e_1 + e_2; then A e_2 = e_1 + 3 e_2 + 4 e_3: coupling 1, then 4.
    product, key = lambda v: jnp.asarray(A) @ v, jax.random.key(0)
    first = _step(product, key, krylov(np.zeros((3, 3)), 0, [1, 0, 0]))
    assert first.vector.tolist() == [0, 1, 0] and float(first.coupling) == 1
    assert first.projected[:, 0].tolist() == [2, 0, 0] and first.basis[0].tolist() == [1, 0, 0]
    assert (int(first.filled), int(first.used)) == (1, 1)
    assert float(first.scale) == pytest.approx(5**0.5)
    second = _step(product, key, first)
    assert second.projected[:, 1].tolist() == [1, 3, 0] and float(second.coupling) == 4
    assert second.vector.tolist() == [0, 0, 1] and float(second.scale) == pytest.approx(26**0.5)
    # The largest image is kept.
    assert float(_step(product, key, first._replace(scale=jnp.asarray(99.0))).scale) == 99


def test_an_exhausted_space_goes_on_from_a_fresh_direction():
    # e_1 is an eigenvector of the diagonal: nothing is left, and the next is across, of norm one.
    product = lambda v: jnp.array([2.0, 3.0, 5.0]) * v
    state = _step(product, jax.random.key(0), krylov(np.zeros((3, 3)), 0, [1, 0, 0]))
    assert float(state.coupling) == 0 and abs(float(state.vector[0])) < 1e-15
    assert float(jnp.linalg.norm(state.vector)) == pytest.approx(1) and state.vector[1] != 0
    again = _step(product, jax.random.key(0), krylov(np.zeros((3, 3)), 0, [1, 0, 0], used=1))
    assert not np.allclose(again.vector, state.vector)  # another one at each step


def test_a_second_pass_where_the_first_cancels():
    # After a restart an image has a part in every kept row, here nearly all of it: what is left
    # after one pass is orthogonal to a few digits alone.
    rng = np.random.default_rng(1)
    q, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    image = q[:4].sum(axis=0) + 1e-9 * q[5]
    state = krylov(np.vstack([q[:4], np.zeros((2, 6))]), 4, q[4])
    after = _step(lambda v: jnp.asarray(image), jax.random.key(0), state)
    assert np.max(np.abs(q[:5] @ np.asarray(after.vector))) < 1e-14
    np.testing.assert_allclose(after.projected[:5, 4], [1, 1, 1, 1, 0], atol=1e-12)


def test_ritz_values_of_the_filled_part():
    # The upper triangle of ((1, 2), (2, 1)) with rubbish below and beyond: -1 and 3.
    rubbish = np.array([[1.0, 2, 50], [70, 1.0, 60], [80, 90, 100]])
    values, vectors, estimates = _ritz(krylov(np.zeros((3, 3)), 2, [1, 0, 0], 0.5, rubbish))
    np.testing.assert_allclose(values[:2], [-1, 3], atol=1e-14)
    assert values[2] > 3
    np.testing.assert_allclose(np.abs(vectors[:2, :2]), np.full((2, 2), 0.5**0.5))
    # The residual is the coupling times the last component.
    np.testing.assert_allclose(estimates[:2], [0.5 * 0.5**0.5] * 2)
    zero, _, _ = _ritz(krylov(np.zeros((3, 3)), 2, [1, 0, 0]))
    assert zero[:2].tolist() == [0, 0] and zero[2] > 0


@functools.cache
def program(size, basis):
    """One program for each size and basis; iterations and tolerance are its arguments."""

    def run(values, iterations, tolerance):
        product = lambda v: values * v
        return lanczos_extremes(product, size, jax.random.key(3), iterations=iterations,
                                tolerance=tolerance, basis=basis)  # fmt: skip

    return jax.jit(run)


def found_of(values, iterations=50, basis=None, tolerance=1e-8):
    values = jnp.asarray(values, float)
    run = program(len(values), basis or len(values))
    return run(values, jnp.int32(iterations), jnp.asarray(tolerance))


def test_the_whole_space_is_exact_and_costs_as_many_products():
    values = [3.0, -2.0, 0.5, 7.0, *np.linspace(1, 2, 8)]
    found = found_of(values, tolerance=0.0)
    np.testing.assert_allclose([found.minimum, found.maximum], [-2, 7], rtol=1e-12)
    assert int(found.iterations) == 12
    np.testing.assert_allclose(np.abs(found.vector_maximum), np.array(values) == 7, atol=1e-10)
    assert int(found_of(values, iterations=5, tolerance=0.0).iterations) == 5


def test_equal_eigenvalues_and_zero():
    found = found_of(np.append(np.zeros(11), 1.0))
    np.testing.assert_allclose([found.minimum, found.maximum], [0, 1], atol=1e-12)
    nothing = found_of(np.zeros(12))
    assert float(nothing.minimum) == float(nothing.maximum) == 0


def test_what_is_not_finite_ends_it():
    found = found_of(np.full(12, np.nan))
    assert int(found.iterations) <= 10 and not bool(found.converged_minimum)


def test_a_small_basis_restarts_until_both_ends_are_there():
    values = np.concatenate([[-50.0], np.linspace(0, 1, 98), [80.0]])
    found = found_of(values, 80, 8)
    assert bool(found.converged) and 10 < int(found.iterations) < 80
    np.testing.assert_allclose([found.minimum, found.maximum], [-50, 80], rtol=1e-10)
    # It stops at no look where nothing may be left over.
    assert int(found_of(values, 30, 8, 0.0).iterations) == 30


@pytest.mark.parametrize(
    "options, words",
    [
        ({"iterations": 0}, "must both be positive"), ({"basis": 7}, "at least 8 rows"),
        ({"size": 0}, "must both be positive"), ({"size": 5, "basis": 4}, "at least 8 rows"),
    ],
)  # fmt: skip
def test_what_makes_no_sense(options, words):
    options = {"size": 20, **options}
    with pytest.raises(ValueError, match=words):
        lanczos_extremes(lambda v: v, options.pop("size"), jax.random.key(0), **options)
