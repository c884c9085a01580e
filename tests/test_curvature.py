"""Eigenvalues against prescribed spectra, numpy and scipy; Hessians against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import linalg as sparse

from jaxbounds import curvature

SPECTRA = {
    "rank deficient": np.r_[1.0, 2.0, np.zeros(98)],
    "clustered": np.r_[100.0, 50, 20, 1, np.linspace(0, 0.999, 96)],
    "repeated": np.r_[3.0, 3, -1, -1, 2, np.zeros(95)],
    "rank 5": np.r_[5.0, 4, 3, -2, 1, np.zeros(95)],
    "zero": np.zeros(100),
}


def _with_spectrum(values, seed=0):
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    return jnp.asarray(basis * values @ basis.T)


@pytest.mark.parametrize("name", SPECTRA)
def test_lanczos_never_invents_eigenvalues(name, key, x64):
    values = SPECTRA[name]
    matrix = _with_spectrum(values)
    for iterations in (3, 6, 40, 100):
        ends = curvature.lanczos_extremes(lambda v: matrix @ v, 100, key, iterations=iterations)
        slack = 1e-12 * max(1, np.max(np.abs(values)))
        assert ends.minimum >= values.min() - slack
        assert ends.maximum <= values.max() + slack
        # The residual is a certificate: some eigenvalue lies that close.
        for theta, residual in (
            (ends.minimum, ends.residual_minimum),
            (ends.maximum, ends.residual_maximum),
        ):
            assert np.min(np.abs(values - theta)) <= residual + slack
    assert ends.converged
    assert ends.minimum == pytest.approx(values.min(), abs=1e-11)
    assert ends.maximum == pytest.approx(values.max(), abs=1e-11)


def test_lanczos_says_when_it_has_not_converged(key, x64):
    values = jnp.asarray(SPECTRA["clustered"])
    assert not curvature.lanczos_extremes(lambda v: values * v, 100, key, iterations=4).converged
    with pytest.raises(ValueError, match="positive"):
        curvature.lanczos_extremes(lambda v: v, 0, key)


def test_lanczos_agrees_with_arpack_on_a_hessian(key, x64):
    # ARPACK is a different algorithm in a different language; only the products are shared.
    data = jax.random.normal(key, (20, 300))
    loss = lambda w: jnp.sum(jnp.tanh(data @ w) ** 2)
    point = 0.1 * jax.random.normal(jax.random.key(1), (300,))
    product = jax.jit(curvature.hessian_vector_product(loss, point))
    apply = lambda v: np.asarray(product(jnp.asarray(v.ravel(), jnp.float64)))
    operator = sparse.LinearOperator((300, 300), matvec=apply, dtype=np.float64)
    expected = sparse.eigsh(operator, k=2, which="BE", return_eigenvectors=False)
    ends = curvature.hessian_extremes(loss, point, dense_limit=10, iterations=120)
    assert ends.converged and ends.iterations == 120
    np.testing.assert_allclose([ends.minimum, ends.maximum], expected, rtol=1e-9)
    dense = curvature.hessian_extremes(loss, point)
    np.testing.assert_allclose(dense[:2], ends[:2], rtol=1e-9)


def test_hessian_against_finite_differences(x64):
    # Central differences of values only: no derivative code is shared.
    loss = lambda p: jnp.sum(jnp.sin(p["a"])) * jnp.sum(p["b"] ** 3) + p["a"][0] * p["b"][1]
    params = {"a": jnp.asarray([0.3, -0.2]), "b": jnp.asarray([0.5, 1.0])}
    flat = np.r_[params["a"], params["b"]]
    value = lambda x: float(loss({"a": jnp.asarray(x[:2]), "b": jnp.asarray(x[2:])}))
    h, eye = 1e-4, np.eye(4)
    expected = [
        [
            (value(flat + h * (i + j)) - value(flat + h * (i - j))
             - value(flat - h * (i - j)) + value(flat - h * (i + j))) / (4 * h**2)
            for j in eye
        ]
        for i in eye
    ]  # fmt: skip
    matrix = curvature.dense_hessian(loss, params, batch_size=3)
    np.testing.assert_allclose(matrix, expected, atol=1e-6)
    direction = {"a": jnp.asarray([1.0, 2.0]), "b": jnp.asarray([-1.0, 0.5])}
    product = curvature.hessian_vector_product(loss, params)(direction)
    np.testing.assert_allclose(
        np.r_[product["a"], product["b"]], matrix @ np.array([1, 2, -1, 0.5]), rtol=1e-12
    )


def test_dense_hessian_states_the_memory_before_allocating():
    with pytest.raises(ValueError, match=r"100000 parameters in float32 needs 37.3 GiB"):
        curvature.dense_hessian(lambda x: jnp.sum(x**2), jnp.zeros(100_000))


@pytest.mark.parametrize("heads, p, n", [(1, 6, 10), (5, 4, 3), (3, 7, 1), (16, 6, 12)])
@pytest.mark.parametrize("scale", [0.0, 0.1, 10.0])
def test_structured_extremes_against_numpy(heads, p, n, scale, x64):
    rng = np.random.default_rng(heads)
    blocks = rng.normal(size=(heads, p, p))
    blocks = blocks + blocks.transpose(0, 2, 1)
    blocks[0, :2] = blocks[0, :, :2] = 0  # repeated zero eigenvalues
    factor = scale * rng.normal(size=(heads, p, n))
    matrix = np.zeros((heads * p, heads * p))
    for h in range(heads):
        matrix[h * p : h * p + p, h * p : h * p + p] = blocks[h]
    matrix += factor.reshape(heads * p, n) @ factor.reshape(heads * p, n).T
    values = np.linalg.eigvalsh(matrix)
    ends = curvature.structured_extremes(jnp.asarray(blocks), jnp.asarray(factor))
    assert ends.certified
    norm = np.max(np.abs(values))
    assert abs(ends.minimum - values[0]) <= 1e-9 * abs(values[0]) + 1e-12 * norm
    assert abs(ends.maximum - values[-1]) <= 1e-9 * abs(values[-1]) + 1e-12 * norm
    slack = 1e-13 * norm
    assert ends.bracket_minimum[0] - slack <= values[0] <= ends.bracket_minimum[1] + slack
    assert ends.bracket_maximum[0] - slack <= values[-1] <= ends.bracket_maximum[1] + slack


def test_structured_extremes_bisects_when_lanczos_is_cut_short(x64):
    rng = np.random.default_rng(0)
    blocks = np.stack([np.diag(rng.normal(size=8)) for _ in range(6)])
    factor = rng.normal(size=(6, 8, 4))
    flat = factor.reshape(48, 4)
    poles = np.concatenate([np.diag(block) for block in blocks])
    values = np.linalg.eigvalsh(np.diag(poles) + flat @ flat.T)
    ends = curvature.structured_extremes(jnp.asarray(blocks), jnp.asarray(factor), iterations=2)
    assert ends.certified and ends.bisections > 0
    np.testing.assert_allclose([ends.minimum, ends.maximum], values[[0, -1]], rtol=1e-8)


def test_count_below_is_the_inertia(x64):
    from jaxbounds.curvature.structured import count_below

    rng = np.random.default_rng(3)
    poles, factor = rng.normal(size=10), rng.normal(size=(10, 3))
    values = np.linalg.eigvalsh(np.diag(poles) + factor @ factor.T)
    for shift in np.linspace(-3, 12, 40):
        count = count_below(jnp.asarray(poles), jnp.asarray(factor), jnp.asarray(shift))
        assert count == np.sum(values < shift)


def test_structured_extremes_names_the_shapes(unannotated):
    with pytest.raises(ValueError, match=r"blocks must have shape"):
        curvature.structured_extremes(jnp.zeros((2, 3, 3)), jnp.zeros((2, 4, 1)))
