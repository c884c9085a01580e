"""The operator: products, several eigenvalues, and for which loss it answers."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import jaxbounds as jb
from jaxbounds.ground.jax_internals import enable_x64


def quadratic(matrix):
    """x^T A x / 2: its Hessian is A by hand, whatever autograd does."""
    return lambda params: 0.5 * params["x"] @ matrix @ params["x"] + 3.0 * jnp.sum(params["x"])


@pytest.fixture(scope="module")
def matrix():
    """A spectrum with a gap, a cluster, a repeated value and negative ones."""
    with enable_x64():
        basis = np.linalg.qr(np.random.default_rng(3).normal(size=(60, 60)))[0]
        values = np.concatenate([[9.0, 7.0, 7.0, 6.99], np.linspace(-1, 2, 54), [-4.0, -6.0]])
        yield jnp.asarray(basis @ np.diag(values) @ basis.T), np.sort(values)


def test_products_with_vectors_and_pytrees(matrix):
    A, _ = matrix
    H = jb.Curvature(quadratic(A), {"x": jnp.ones(60)})
    v = np.random.default_rng(0).normal(size=60)
    np.testing.assert_allclose(H @ v, A @ v, rtol=1e-12)
    np.testing.assert_allclose((H @ {"x": jnp.asarray(v)})["x"], A @ v, rtol=1e-12)
    assert H.size == 60


@pytest.mark.default_cases("greatest-0", "least-1000")
@pytest.mark.parametrize("dense_limit", [1000, 0])
@pytest.mark.parametrize("end", ["greatest", "least"])
def test_several_eigenvalues_against_numpy(matrix, end, dense_limit):
    """NumPy's eigvalsh of the matrix that was written down shares nothing with the products."""
    A, values = matrix
    H = jb.Curvature(quadratic(A), {"x": jnp.ones(60)})
    found = H.top(5, end=end, dense_limit=dense_limit)
    wanted = values[::-1][:5] if end == "greatest" else values[:5]
    assert found.converged.all()
    np.testing.assert_allclose(found.values, wanted, atol=1e-7)
    vectors = np.stack([v["x"] for v in found.vectors])
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(5), atol=1e-6)
    np.testing.assert_allclose(A @ vectors.T, vectors.T * np.asarray(found.values), atol=1e-6)


def test_few_iterations_do_not_converge(matrix):
    A, _ = matrix
    H = jb.Curvature(quadratic(A), {"x": jnp.ones(60)})
    assert not H.top(4, iterations=4, dense_limit=0).converged.all()
    with pytest.raises(ValueError, match="k=61 eigenvalues were asked for, but the matrix has 60"):
        H.top(61)


def test_it_answers_for_the_loss_as_it_was_made():
    """What the loss refers to is changed in place afterwards: another operator's matter."""
    model = nnx.Linear(3, 1, rngs=nnx.Rngs(0))
    held = {"factor": jnp.asarray(1.0)}
    loss = lambda params: held["factor"] * sum(jnp.sum(x**2) for x in jax.tree.leaves(params))
    H = jb.Curvature(loss, nnx.state(model))
    assert float(H.extremes().maximum) == pytest.approx(2.0)
    held["factor"] = jnp.asarray(5.0)
    assert float(H.extremes().maximum) == pytest.approx(2.0)
    assert float((H @ jnp.ones(4)).sum()) == pytest.approx(8.0)
    assert float(jb.Curvature(loss, nnx.state(model)).extremes().maximum) == pytest.approx(10.0)


def test_methods_and_functions_agree(matrix):
    A, values = matrix
    loss, params = quadratic(A), {"x": jnp.ones(60)}
    H = jb.Curvature(loss, params)
    for name, method in (("hessian_extremes", H.extremes), ("trace", H.trace)):
        chex.assert_trees_all_equal(method(), getattr(jb, name)(loss, params))
    assert float(H.trace(products=30).estimate) == pytest.approx(values.sum(), abs=20)
    np.testing.assert_allclose(H.dense(), A, atol=1e-12)
    assert H.memory() > 0


def test_results_show_themselves_in_few_lines(matrix):
    A, _ = matrix
    H = jb.Curvature(quadratic(A), {"x": jnp.ones(60)})
    shown = [
        (H, "Hessian of 60 parameters in float64"),
        (H.extremes(), "greatest"),
        (H.top(2), "2 eigenvalues"),
        (H.trace(), "trace "),
        (H.spectrum(), "spectrum of 60 eigenvalues: 4 x 60 nodes, -6 to 9"),
        (H.weak_convexity(kappa=1.0), "lambda_min, at most"),
    ]
    for result, words in shown:
        text = repr(result)
        assert words in text and len(text) < 1000 and text.count("\n") < 12, text
        assert words in result._repr_html_()
    traced = jax.jit(lambda x: (print(jb.hessian_extremes(jnp.sum, x)), 0)[1])
    traced(jnp.ones(2))  # a tracer has no number to show, and shows itself


def test_a_spectrum_draws_itself(matrix):
    A, _ = matrix
    figure = jb.Curvature(quadratic(A), {"x": jnp.ones(60)}).spectrum().plot()
    (axes,) = figure.axes
    drawn = axes.lines[0].get_ydata()
    assert np.trapezoid(drawn, axes.lines[0].get_xdata()) == pytest.approx(1, abs=0.02)
    assert axes.get_xlabel() == "eigenvalue" and "60 eigenvalues" in axes.get_title()


WIDE = np.random.default_rng(7).normal(size=(60, 60))
WIDE = (WIDE + WIDE.T) / 2


def test_an_operator_of_scipy(x64):
    from scipy.sparse.linalg import aslinearoperator, cg, eigsh

    spd = WIDE @ WIDE + np.eye(60)
    H = jb.Curvature(quadratic(spd), {"x": jnp.ones(60)})
    found = aslinearoperator(H)
    assert found.shape == (60, 60) and found.dtype == np.float64
    np.testing.assert_allclose(found @ np.eye(60)[:, :2], spd[:, :2], atol=1e-9)
    np.testing.assert_allclose(found.T @ np.ones(60), spd @ np.ones(60), atol=1e-9)
    assert eigsh(found, k=1)[0][0] == pytest.approx(np.linalg.eigvalsh(spd)[-1])
    np.testing.assert_allclose(
        cg(found, np.ones(60), rtol=1e-10)[0], np.linalg.solve(spd, np.ones(60))
    )


def test_functions_of_the_matrix(x64):
    spd = WIDE @ WIDE / 60 + np.eye(60)
    H = jb.Curvature(quadratic(spd), {"x": jnp.ones(60)})
    v = np.arange(60.0)
    solved = H.apply(lambda x: 1 / x, v)
    np.testing.assert_allclose(solved.value, np.linalg.solve(spd, v), atol=1e-9)
    assert solved.products == 60 and "60 products" in repr(solved)
    less = H.apply(jnp.sqrt, {"x": v}, iterations=20)
    values, vectors = np.linalg.eigh(spd)
    truth = vectors @ (values**0.5 * (vectors.T @ v))
    assert np.linalg.norm(less.value["x"] - truth) <= 3 * less.error + 1e-9
    with pytest.raises(ValueError, match="not finite at an eigenvalue"):
        H.apply(lambda x: jnp.log(-x), v)
    keys = [*jax.random.split(jax.random.key(0), 10)]
    truth = np.linalg.slogdet(spd)[1]
    z = [(s[0] - truth) / s[1] for s in (H.spectrum(key=k).trace_of(np.log) for k in keys)]
    assert np.sqrt(np.mean(np.square(z))) < 2.5 and np.abs(np.mean(z)) < 1.5
    with pytest.raises(ValueError, match="not finite at the estimated eigenvalue node="):
        H.spectrum().trace_of(lambda x: np.log(-x))
    z = []
    for k in keys:
        found = H.diagonal(key=k)
        z.append((found.estimate["x"] - np.diag(spd)) / found.standard_error["x"])
    assert 0.8 < np.sqrt(np.mean(np.square(z))) < 1.3 and "30 products" in repr(found)
    with pytest.raises(ValueError, match="products=1"):
        H.diagonal(products=1)
