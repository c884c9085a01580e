"""Margins: closed forms against constrained optimisation by SciPy, attacks against exact cases."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxbounds.smapprox import all_layer_margin as margins
from jaxbounds.smapprox.attack import blocks_by_layer, margin_upper, recertify


def smallest(constraint, size, starts=12):
    """The least-norm delta with constraint(delta) <= 0, by SLSQP from several starts."""
    rng, best = np.random.default_rng(0), np.inf
    for _ in range(starts):
        result = minimize(
            lambda d: d @ d,
            rng.normal(size=size) * 0.5,
            constraints={"type": "ineq", "fun": lambda d: -constraint(d)},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        if result.success and constraint(result.x) <= 1e-9:
            best = min(best, np.sqrt(result.fun))
    return best


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_naive_chain(x64, d):
    by_scipy = smallest(lambda delta: np.prod(1 + delta) - 0.5, d)
    assert margins.naive_chain_margin(d) == pytest.approx(by_scipy, rel=1e-6)
    assert margins.naive_chain_margin(d) <= np.log(2) / np.sqrt(d)


def test_linear_model_and_head(x64):
    rng, margin = np.random.default_rng(2), jax.jit(margins.linear_margin)
    for _ in range(5):
        w, b, x = rng.normal(size=3), rng.normal(), rng.normal(size=3)
        y = float(w @ x + b > 0)
        signed = lambda d, w=w, b=b, x=x, y=y: (2 * y - 1) * ((w + d[:3]) @ x + b + d[3])
        b = np.asarray(b)
        assert float(margin(w, b, x, y)) == pytest.approx(smallest(signed, 4), rel=1e-6)
        assert margin(w, b, x, 1 - y) == 0
    head = jax.jit(margins.head_margin)
    assert float(head(np.array([1.0, 0, 0]), 1.0)) == pytest.approx(1 / np.sqrt(2))
    assert head(np.zeros(3), 0.0) == 1.0


def test_losses(x64):
    gamma = 0.4
    rho = jnp.array([-1.0, 0.0, 0.2, 0.4, 0.8])
    np.testing.assert_allclose(margins.ramp_loss(rho, gamma), [1, 1, 0.5, 0, 0], atol=1e-12)
    y = jnp.array([0.0, 1.0, 0.0, 1.0])
    z = jnp.array([0.0, 0.0, -2.0, 3.0])
    np.testing.assert_array_equal(margins.zero_one_loss(z, y), [1, 1, 0, 0])
    with pytest.raises(ValueError, match="gamma"):
        margins.ramp_loss(rho, 0.0)


def test_attack_finds_the_exact_margin_of_a_linear_model(x64):
    x = jnp.array([1.0, -2.0, 0.5])
    params = {"w": jnp.array([0.3, -0.4, 1.0]), "b": jnp.array(0.2)}
    output = lambda p: p["w"] @ x + p["b"]
    blocks = blocks_by_layer(params, lambda path: False)
    found = margin_upper(output, output, params, blocks, refinements=3)
    exact = margins.linear_margin(params["w"], params["b"], x, jnp.array(1.0))
    assert found.radius == pytest.approx(float(exact), rel=1e-6)
    assert found.signed_output <= 0
    norm = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(found.perturbation)))
    assert found.radius == pytest.approx(float(norm), rel=1e-9)


def test_attack_on_the_naive_chain_never_beats_the_closed_form(x64):
    d = 6
    params = {"w": jnp.ones(d)}
    output = lambda p: jnp.prod(p["w"]) - 0.5
    blocks = blocks_by_layer(params, lambda path: True)
    found = margin_upper(output, output, params, blocks, refinements=4)
    exact = float(margins.naive_chain_margin(d))
    assert exact * (1 - 1e-9) <= found.radius <= exact * 1.001
    one_factor = {"w": jnp.zeros(d).at[2].set(-0.5)}
    assert recertify(output, params, one_factor) == pytest.approx(0.5, rel=1e-5)
    started = margin_upper(output, output, params, blocks[:1], starts=[one_factor], refinements=0)
    assert started.radius <= 0.5


def test_attacks_on_other_data_share_their_programs(x64):
    # F = w.x + b at several x: each radius is the closed form, and nothing is compiled again.
    params = {"w": jnp.array([0.3, -0.4]), "b": jnp.array(0.2)}
    traced = []

    def output(p, x):
        traced.append(x.shape)
        return p["w"] @ x + p["b"]

    blocks = blocks_by_layer(params, lambda path: False)
    compiled = []
    for x in (jnp.array([1.0, 0.5]), jnp.array([2.0, -3.0])):
        found = margin_upper(output, output, params, blocks, data=(x,), refinements=2)
        exact = margins.linear_margin(params["w"], params["b"], x, jnp.array(1.0))
        assert found.radius == pytest.approx(float(exact), rel=1e-5)
        again = recertify(output, params, found.perturbation, data=(x,))
        assert again == pytest.approx(float(exact), rel=1e-5)
        compiled.append(len(traced))
    assert compiled[0] == compiled[1]


def test_attack_on_a_wrong_network():
    params = {"w": jnp.array([-1.0])}
    with pytest.raises(ValueError, match="the network errs on this input"):
        margin_upper(lambda p: p["w"][0], lambda p: p["w"][0], params, [params])
