"""Closed forms against autograd and against numpy loops and differences that share no code."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.curvature import dense_hessian
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


def test_model_against_loops(x64):
    assert head_output(jnp.asarray(U), jnp.asarray(W), jnp.asarray(X)) == pytest.approx(
        by_hand(U, W, X), rel=1e-13
    )


def test_gradient_against_loops_and_autograd(x64):
    outer, inner = calculus.head_gradient(jnp.asarray(U), jnp.asarray(W), jnp.asarray(X))
    np.testing.assert_allclose(outer, difference(lambda u: by_hand(u, W, X), U), atol=1e-8)
    np.testing.assert_allclose(inner, difference(lambda w: by_hand(U, w, X), W), atol=1e-8)
    for closed, argument in ((outer, 0), (inner, 1)):
        exact = jax.grad(head_output, argnums=argument)(
            jnp.asarray(U), jnp.asarray(W), jnp.asarray(X)
        )
        np.testing.assert_allclose(closed, exact, atol=1e-13)


def test_hessian_against_loops_and_autograd(x64):
    arguments = jnp.asarray(U), jnp.asarray(W), jnp.asarray(X)
    closed = calculus.head_hessian(*arguments)
    split = T * D
    exact = jax.hessian(
        lambda flat: head_output(
            flat[:split].reshape(T, D), flat[split:].reshape(D, D), arguments[2]
        )
    )(jnp.concatenate([arguments[0].ravel(), arguments[1].ravel()]))
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
    outputs = [
        sum(by_hand(*(np.asarray(params[k][h]) for k in "UW"), np.asarray(x)) for h in range(H))
        / np.sqrt(H)
        for x in data["X"]
    ]
    np.testing.assert_allclose([model_output(params, x) for x in data["X"]], outputs, rtol=1e-12)
    risk = np.mean(np.log1p(np.exp(-np.asarray(data["y"]) * outputs)))
    assert empirical_risk(params, data) == pytest.approx(risk, rel=1e-12)
    module = MultiHeadAttention(heads=H)
    assert module.apply({"params": params}, data["X"][0]) == pytest.approx(outputs[0])


def test_loss_hessian_against_autograd_and_its_extremes_against_numpy(x64):
    params, data = _problem()
    by_head = [{"U": params["U"][h], "W": params["W"][h]} for h in range(H)]

    def risk(heads):
        return empirical_risk({k: jnp.stack([head[k] for head in heads]) for k in "UW"}, data)

    exact = np.asarray(dense_hessian(risk, by_head))
    np.testing.assert_allclose(calculus.loss_hessian(params, data), exact, atol=1e-13)
    values = np.linalg.eigvalsh(exact)
    ends = calculus.loss_hessian_extremes(params, data)
    assert ends.certified
    np.testing.assert_allclose([ends.minimum, ends.maximum], values[[0, -1]], rtol=1e-9)


def test_logistic_derivatives(x64):
    z = jnp.asarray([-800.0, -3.0, 0.0, 2.0, 40.0, 800.0])
    assert np.all(np.isfinite(logistic(z)))
    np.testing.assert_allclose(logistic_slope(z), -jax.vmap(jax.grad(logistic))(z), atol=1e-15)
    np.testing.assert_allclose(
        logistic_curvature(z), jax.vmap(jax.grad(jax.grad(logistic)))(z), atol=1e-15
    )
    assert logistic(jnp.asarray(45.0)) == pytest.approx(np.exp(-45), rel=1e-12)


@pytest.mark.parametrize("readout, T_factor", [("pooling", 1), ("last", 0)])
def test_readouts_are_special_cases_of_full_projection(readout, T_factor, key, x64):
    tokens = jnp.asarray(X)
    module = MultiHeadAttention(heads=H, readout=readout, scale=1.0)
    variables = module.init(key, tokens)
    params = variables["params"]
    assert params["U"].shape == (H, D)
    full = {"U": expand_readout(params["U"], T, readout), "W": params["W"]}
    assert module.apply(variables, tokens) == pytest.approx(model_output(full, tokens))
    assert np.count_nonzero(full["U"][0, 0]) == T_factor * D
    with pytest.raises(ValueError, match="pooling"):
        expand_readout(params["U"], T, "full")


def test_query_and_key_must_agree_in_their_inner_dimension(unannotated, x64):
    query, key = jnp.ones((3, 2)), jnp.ones((3, 2))
    np.testing.assert_array_equal(combine_query_key(query, key), 2 * np.ones((3, 3)))
    with pytest.raises(ValueError, match="same d_k"):
        combine_query_key(query, jnp.ones((3, 4)))


def test_wrong_shapes_are_refused(unannotated):
    with pytest.raises(AssertionError):
        model_output({"U": jnp.ones((2, 3, 2)), "W": jnp.ones((2, 2, 2))}, jnp.ones((4, 2)))
