"""Closed forms against autograd and against numpy loops and differences that share no code."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.multihead import calculus
from jaxbounds.multihead.loss import (
    empirical_risk,
    logistic,
    logistic_curvature,
    logistic_slope,
)
from jaxbounds.multihead.model import (
    MultiHeadAttention,
    combine_query_key,
    expand_readout,
    head_output,
    model_output,
)

T, D, H, N = 4, 3, 2, 5
RNG = np.random.default_rng(0)
X, U, W = RNG.normal(size=(T, D)), RNG.normal(size=(T, D)), RNG.normal(size=(D, D))


def by_hand(projection, weights, tokens):
    """Phi with explicit loops over queries and keys."""
    total = 0.0
    for t in range(len(tokens)):
        scores = [float(tokens[t] @ weights @ tokens[s]) for s in range(len(tokens))]
        mass = np.exp(np.array(scores) - max(scores))
        total += projection[t] @ (mass @ tokens / mass.sum())
    return total


def difference(function, point, step=1e-6):
    """Central differences, entry by entry."""
    slope = np.zeros_like(point)
    for index in np.ndindex(point.shape):
        bump = np.zeros_like(point)
        bump[index] = step
        slope[index] = (function(point + bump) - function(point - bump)) / (2 * step)
    return slope


@pytest.fixture
def one_head(x64):
    return jnp.asarray(U), jnp.asarray(W), jnp.asarray(X)


def test_model_against_loops(one_head):
    found = float(jax.jit(head_output)(*one_head))
    assert found == pytest.approx(by_hand(U, W, X), rel=1e-13)


def test_gradient_against_loops_and_autograd(one_head):
    outer, inner = jax.jit(calculus.head_gradient)(*one_head)
    np.testing.assert_allclose(outer, difference(lambda u: by_hand(u, W, X), U), atol=1e-8)
    np.testing.assert_allclose(inner, difference(lambda w: by_hand(U, w, X), W), atol=1e-8)
    exact = jax.jit(jax.grad(head_output, argnums=(0, 1)))(*one_head)
    np.testing.assert_allclose(outer, exact[0], atol=1e-13)
    np.testing.assert_allclose(inner, exact[1], atol=1e-13)


def test_hessian_against_loops_and_autograd(one_head):
    closed = jax.jit(calculus.head_hessian)(*one_head)
    split = T * D
    of_flat = lambda flat: head_output(
        flat[:split].reshape(T, D), flat[split:].reshape(D, D), one_head[2]
    )
    exact = jax.jit(jax.hessian(of_flat))(np.append(U, W))
    np.testing.assert_allclose(closed, exact, atol=1e-12)
    # Second differences of the hand-written model along random directions.
    for seed in range(5):
        direction = np.random.default_rng(seed).normal(size=split + D * D)
        along = lambda s, d=direction: by_hand(
            U + s * d[:split].reshape(T, D), W + s * d[split:].reshape(D, D), X
        )
        h = 1e-4
        second = (along(h) - 2 * along(0.0) + along(-h)) / h**2
        assert direction @ np.asarray(closed) @ direction == pytest.approx(second, abs=2e-5)


def _problem(heads=H, n=N):
    rng = np.random.default_rng(1)
    params = {
        "U": jnp.asarray(rng.normal(size=(heads, T, D))),
        "W": jnp.asarray(rng.normal(size=(heads, D, D))),
    }
    data = {
        "X": jnp.asarray(rng.normal(size=(n, T, D))),
        "y": jnp.asarray(rng.choice([-1, 1], size=n)),
    }
    return params, data


def test_multihead_model_and_risk_against_loops(x64):
    params, data = _problem()
    plain = jax.tree.map(np.asarray, params)
    tokens, labels = np.asarray(data["X"]), np.asarray(data["y"])
    outputs = [
        sum(by_hand(plain["U"][h], plain["W"][h], x) for h in range(H)) / np.sqrt(H) for x in tokens
    ]
    found = jax.jit(jax.vmap(model_output, (None, 0)))(params, data["X"])
    np.testing.assert_allclose(found, outputs, rtol=1e-12)
    risk = np.mean(np.log1p(np.exp(-labels * outputs)))
    assert float(jax.jit(empirical_risk)(params, data)) == pytest.approx(risk, rel=1e-12)
    module = jax.jit(MultiHeadAttention(heads=H).apply)
    assert float(module({"params": params}, tokens[0])) == pytest.approx(outputs[0])


def test_loss_hessian_against_autograd_and_its_extremes_against_numpy(x64):
    params, data = _problem()
    plain = jax.tree.map(np.asarray, params)
    flat = np.concatenate([plain[k][h].ravel() for h in range(H) for k in "UW"])

    def risk(flat):
        rows = flat.reshape(H, -1)
        heads = {"U": rows[:, : T * D].reshape(H, T, D), "W": rows[:, T * D :].reshape(H, D, D)}
        return empirical_risk(heads, data)

    exact = np.asarray(jax.jit(jax.hessian(risk))(flat))
    found = jax.jit(calculus.loss_hessian)(params, data)
    np.testing.assert_allclose(found, exact, atol=1e-13)
    values = np.linalg.eigvalsh(exact)
    ends = calculus.loss_hessian_extremes(params, data)
    assert ends.certified
    np.testing.assert_allclose([ends.minimum, ends.maximum], values[[0, -1]], rtol=1e-9)


def test_logistic_derivatives(x64):
    z, slope = np.asarray([-800.0, -3.0, 0.0, 2.0, 45.0, 800.0]), jax.grad(logistic)
    closed = lambda z: (logistic(z), logistic_slope(z), logistic_curvature(z))
    both = jax.jit(jax.vmap(lambda z: (*closed(z), slope(z), jax.grad(slope)(z))))
    value, first, second, *exact = map(np.asarray, both(z))
    assert np.all(np.isfinite(value)) and value[4] == pytest.approx(np.exp(-45), rel=1e-12)
    np.testing.assert_allclose(first, -exact[0], atol=1e-15)
    np.testing.assert_allclose(second, exact[1], atol=1e-15)


@pytest.mark.parametrize("readout, T_factor", [("pooling", 1), ("last", 0)])
def test_readouts_are_special_cases_of_full_projection(readout, T_factor, key, x64):
    tokens = jnp.asarray(X)
    module = MultiHeadAttention(heads=H, readout=readout, scale=1.0)
    variables = jax.jit(module.init)(key, tokens)
    params = variables["params"]
    assert params["U"].shape == (H, D)

    @jax.jit
    def both(variables):
        full = {"U": expand_readout(params["U"], T, readout), "W": params["W"]}
        return full, module.apply(variables, tokens), model_output(full, tokens)

    full, special, general = jax.tree.map(np.asarray, both(variables))
    assert special == pytest.approx(general)
    assert np.count_nonzero(full["U"][0, 0]) == T_factor * D
    with pytest.raises(ValueError, match="pooling"):
        expand_readout(params["U"], T, "full")


def test_query_and_key_must_agree_in_their_inner_dimension(unannotated, x64):
    query, key = jnp.ones((3, 2)), jnp.ones((3, 2))
    np.testing.assert_array_equal(combine_query_key(query, key), 2 * np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"equal shapes \(d, d_k\)"):
        combine_query_key(query, jnp.ones((3, 4)))


def test_wrong_shapes_are_refused(unannotated):
    with pytest.raises(AssertionError):
        model_output({"U": jnp.ones((2, 3, 2)), "W": jnp.ones((2, 2, 2))}, jnp.ones((4, 2)))
