"""Eigenvalues against prescribed spectra, numpy and scipy; Hessians against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import linalg as sparse

from jaxbounds.networks import curvature
from jaxbounds.networks.curvature import dense_extremes
from jaxbounds.networks.curvature.lanczos import default_tolerance

SPECTRA = {
    "identity with two 3s": np.r_[np.ones(98), 3.0, 3],
    "3I minus rank 2": np.r_[3 * np.ones(98), 1.0, -2],
    "zero": np.zeros(100),
    "2I": 2 * np.ones(100),
    "clustered": np.r_[100.0, 50, 20, 1, np.linspace(0, 0.999, 96)],
    "repeated": np.r_[3.0, 3, -1, -1, 2, np.zeros(95)],
    "rank 3": np.r_[5.0, -2, 1, np.zeros(97)],
    "rank 10": np.r_[np.arange(1.0, 11), np.zeros(90)],
    "rank 190": np.r_[np.arange(-95.0, 95), np.zeros(10)],
}


def _with_spectrum(values, seed=0):
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    return jnp.asarray(basis * values @ basis.T)


@jax.jit
def _ends(matrix, key, iterations, tolerance):
    n = matrix.shape[0]
    return curvature.lanczos_extremes(
        lambda v: matrix @ v, n, key, iterations=iterations, tolerance=tolerance, basis=40
    )


@pytest.mark.parametrize("name", SPECTRA)
def test_lanczos_never_invents_eigenvalues(name, key, x64):
    values = SPECTRA[name]
    matrix = _with_spectrum(values)
    slack = 1e-12 * max(1, np.max(np.abs(values)))
    # Zero: without stopping, past the exhaustion of the Krylov space and through restarts.
    for iterations in (3, 6, 40, 100, 300):
        ends = _ends(matrix, key, iterations, 0.0)
        assert ends.iterations == iterations
        assert ends.minimum >= values.min() - slack
        assert ends.maximum <= values.max() + slack
        # The residual is a certificate: some eigenvalue lies that close.
        for theta, residual in (
            (ends.minimum, ends.residual_minimum),
            (ends.maximum, ends.residual_maximum),
        ):
            assert np.min(np.abs(values - theta)) <= residual + slack
    assert ends.minimum == pytest.approx(values.min(), abs=1e-10)
    assert ends.maximum == pytest.approx(values.max(), abs=1e-10)


@pytest.mark.parametrize("name", SPECTRA)
def test_lanczos_stops_when_it_is_right(name, key, x64):
    values = SPECTRA[name]
    ends = _ends(_with_spectrum(values), key, 1000, 1e-8)
    assert ends.converged and ends.iterations < 250
    radius = max(1, np.max(np.abs(values)))
    assert ends.minimum == pytest.approx(values.min(), abs=1e-12 * radius)
    assert ends.maximum == pytest.approx(values.max(), abs=1e-12 * radius)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_flags_are_true_exactly_where_residuals_are_small(dtype, key, x64):
    # 100 operators of each type: eigenvalues over four decades, some of low rank, some cut short.
    tolerance = default_tolerance(60, dtype)
    rng = np.random.default_rng(0)
    run = jax.jit(
        lambda matrix, key, iterations: curvature.lanczos_extremes(
            lambda v: matrix @ v, 60, key, iterations=iterations, basis=60, dtype=dtype
        )
    )
    seen = set()
    for i in range(100):
        values = rng.normal(size=60) * 10 ** rng.uniform(-2, 2)
        values[: rng.integers(0, 58)] = 0
        basis = np.linalg.qr(rng.normal(size=(60, 60)))[0]
        matrix = (basis * values @ basis.T).astype(dtype)
        exact, scale = np.asarray(matrix, np.float64), np.abs(values).max()
        ends = run(jnp.asarray(matrix), jax.random.fold_in(key, i), int(rng.integers(2, 61)))
        for end, truth in (("minimum", values.min()), ("maximum", values.max())):
            theta = float(getattr(ends, end))
            vector = np.asarray(getattr(ends, f"vector_{end}"), np.float64)
            # Measured here in float64 by numpy; rounding blurs a factor of two around the edge.
            residual = np.linalg.norm(exact @ vector - theta * vector)
            flag = bool(getattr(ends, f"converged_{end}"))
            seen.add(flag)
            assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
            if residual <= 0.5 * tolerance * scale:
                assert flag
            if residual >= 2 * tolerance * scale:
                assert not flag
            if flag:
                assert np.min(np.abs(values - theta)) <= 3 * tolerance * scale
            # Never beyond the ends, whatever the flag.
            assert (theta - truth) * (1 if end == "minimum" else -1) >= -tolerance * scale
    assert seen == {True, False}


@pytest.mark.parametrize("n, dtype", [(5, np.float32), (300, np.float32), (300, np.float64)])
def test_the_dense_flag_means_something(n, dtype, x64):
    matrix = np.random.default_rng(0).normal(size=(n, n)).astype(dtype)
    both = jax.jit(lambda A: (dense_extremes(A), dense_extremes(A, tolerance=1e-30)))
    ends, strict = both(matrix + matrix.T)
    truth = np.linalg.eigvalsh((matrix + matrix.T).astype(float))
    assert ends.converged
    np.testing.assert_allclose([ends.minimum, ends.maximum], truth[[0, -1]], rtol=1e-5)
    assert not strict.converged


def test_what_an_exhausted_space_leaves_is_below_the_tolerance(key):
    # Three eigenvalues in float32: the space is exhausted at once, up to rounding.
    values = np.r_[3 * np.ones(198), 1.0, -2]
    run = jax.jit(
        lambda matrix, key: curvature.lanczos_extremes(
            lambda v: matrix @ v, 200, key, iterations=150, dtype=np.float32
        )
    )
    for seed in range(3):
        matrix = jnp.asarray(_with_spectrum(values, seed), jnp.float32)
        ends = run(matrix, jax.random.fold_in(key, seed))
        assert ends.converged
        np.testing.assert_allclose([ends.minimum, ends.maximum], [-2, 3], rtol=1e-6)


def test_lanczos_refuses_what_it_cannot_do(key):
    with pytest.raises(ValueError, match="positive"):
        curvature.lanczos_extremes(lambda v: v, 0, key)
    with pytest.raises(ValueError, match="at least 8 rows"):
        curvature.lanczos_extremes(lambda v: v, 100, key, basis=3)


def test_each_end_has_its_own_flag(key, x64):
    # The greatest eigenvalue stands far out, the least ends a dense cluster.
    values = np.r_[100.0, np.linspace(0, 1, 399) ** 0.5]
    ends = jax.jit(
        lambda key: curvature.lanczos_extremes(
            lambda v: values * v, 400, key, iterations=12, basis=12
        )
    )(key)
    assert ends.converged_maximum and not ends.converged_minimum and not ends.converged


def _problem():
    rng = np.random.default_rng(0)
    data = jnp.asarray(rng.normal(size=(20, 300)))
    loss = lambda w: jnp.sum(jnp.tanh(data @ w) ** 2)
    return loss, jnp.asarray(0.1 * rng.normal(size=300))


def test_lanczos_agrees_with_arpack_on_a_hessian(x64):
    # ARPACK is a different algorithm in a different language; only the products are shared.
    loss, point = _problem()
    product = jax.jit(curvature.hessian_vector_product(loss, point))
    apply = lambda v: np.asarray(product(jnp.asarray(v.ravel(), jnp.float64)))
    operator = sparse.LinearOperator((300, 300), matvec=apply, dtype=np.float64)
    expected = sparse.eigsh(operator, k=2, which="BE", return_eigenvectors=False)
    ends = curvature.hessian_extremes(loss, point, dense_limit=10, iterations=120)
    assert ends.converged and 20 <= ends.iterations <= 120
    np.testing.assert_allclose([ends.minimum, ends.maximum], expected, rtol=1e-9)
    dense = curvature.hessian_extremes(loss, point)
    np.testing.assert_allclose(dense[:2], ends[:2], rtol=1e-9)
    # The vectors are eigenvectors of the matrix that numpy multiplies.
    matrix = np.asarray(curvature.dense_hessian(loss, point))
    for value, vector in ((ends[0], ends.vector_minimum), (ends[1], ends.vector_maximum)):
        np.testing.assert_allclose(matrix @ vector, value * vector, atol=1e-5)


def test_hessian_against_finite_differences(x64):
    # Central differences of values only: no derivative code is shared.
    loss = lambda p: jnp.sum(jnp.sin(p["a"])) * jnp.sum(p["b"] ** 3) + p["a"][0] * p["b"][1]
    params = {"a": jnp.asarray([0.3, -0.2]), "b": jnp.asarray([0.5, 1.0])}
    flat = np.r_[params["a"], params["b"]]
    value = lambda x: np.sum(np.sin(x[:2])) * np.sum(x[2:] ** 3) + x[0] * x[3]
    h, eye = 1e-4, np.eye(4)
    expected = [
        [
            (value(flat + h * (i + j)) - value(flat + h * (i - j))
             - value(flat - h * (i - j)) + value(flat - h * (i + j))) / (4 * h**2)
            for j in eye
        ]
        for i in eye
    ]  # fmt: skip
    matrix = curvature.dense_hessian(loss, params, columns=3)
    np.testing.assert_allclose(matrix, expected, atol=1e-6)
    direction = {"a": np.array([1.0, 2.0]), "b": np.array([-1.0, 0.5])}
    product = jax.jit(curvature.hessian_vector_product(loss, params))(direction)
    np.testing.assert_allclose(
        np.r_[product["a"], product["b"]], matrix @ np.array([1, 2, -1, 0.5]), rtol=1e-12
    )


def test_memory_is_stated_before_anything_is_allocated():
    square = lambda x: jnp.sum(x**2)
    with pytest.raises(ValueError, match=r"100000 parameters in float32 needs 37.3 GiB"):
        curvature.dense_hessian(square, jnp.zeros(100_000))
    with pytest.raises(ValueError, match=r"needs 122 MiB, more than the limit of 9.54 MiB"):
        curvature.hessian_extremes(square, jnp.zeros(1_000_000), memory_limit=1e7)
    # Rows, half as many again while restarting, and a few vectors.
    need = curvature.extremes_memory(square, jnp.zeros(1_000_000), basis=8)
    assert 8 * 4e6 < need < 20 * 4e6


def test_a_call_may_be_traced_by_its_user(x64):
    loss, point = _problem()
    options = {"dense_limit": 0, "basis": 40}
    ends = jax.jit(lambda p: curvature.hessian_extremes(loss, p, **options))(point)
    least = jax.vmap(lambda p: curvature.hessian_extremes(loss, p, **options).minimum)
    both = jax.jit(least)(jnp.stack([point, 2 * point]))
    alone = curvature.hessian_extremes(loss, 2 * point).minimum
    np.testing.assert_allclose(both, [ends.minimum, alone], rtol=1e-9)
