"""Curvature of losses whose Hessians stand in a comment, with more than one head.

Eigenvalues of two by two matrices and of diagonal ones need no program; where the word is about a
threshold, it is asked just below and just above.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.networks import curvature

BEND = np.array([5.0, 1.0, 0.5, -3.0])


def _saddle(w):
    """2 at the origin, where the Hessian is diag(5, 1, .5, -3)."""
    return 2.0 + jnp.sum(jnp.asarray(BEND, w.dtype) * w**2) / 2


@pytest.mark.parametrize("heads", [1, 4, 9])
@pytest.mark.parametrize("options", [{}, {"dense_limit": 0}], ids=["dense", "Lanczos"])
def test_weak_convexity_is_about_the_root_of_the_number_of_heads(heads, options, x64):
    # -lambda_min = 3 <= kappa L / sqrt(H) = 2 kappa / sqrt(H): kappa must be 1.5 sqrt(H), that is
    # 1.5, 3 and 4.5.
    least = {1: 1.5, 4: 3.0, 9: 4.5}[heads]
    ask = lambda kappa: curvature.weak_convexity(
        _saddle, jnp.zeros(4), heads=heads, kappa=kappa, **options
    )
    below, above = ask(0.999 * least), ask(1.001 * least)
    assert below.violated is True and below.verdict == "violated"
    assert above.violated is False and "no direction found" in above.verdict
    assert below.heads == heads and float(below.loss) == 2.0
    assert float(below.minimum) == pytest.approx(-3.0, rel=1e-12)
    assert float(below.ratio_at_least) == pytest.approx(1.5, rel=1e-12)
    assert float(below.kappa_at_least) == pytest.approx(least, rel=1e-12)
    np.testing.assert_allclose(np.abs(below.direction), [0, 0, 0, 1], atol=1e-6)


def test_the_axis_of_the_heads_says_how_many_there_are(x64):
    # The same loss with its four parameters as two heads of two: kappa is 1.5 sqrt(2), and the
    # direction of -3 lies in the second head.
    loss = lambda params: _saddle(params["w"].ravel())
    params = {"w": jnp.zeros((2, 2))}
    least = 1.5 * math.sqrt(2)
    for kappa, violated in ((0.999 * least, True), (1.001 * least, False)):
        found = curvature.weak_convexity(loss, params, heads={"w": 0}, kappa=kappa)
        assert found.heads == 2 and found.violated is violated
    assert float(found.kappa_at_least) == pytest.approx(least, rel=1e-12)
    np.testing.assert_allclose(found.by_head, [0, 1], atol=1e-12)


def test_a_convex_loss_satisfies_the_least_kappa(x64):
    loss = lambda w: 1.0 + w[0] ** 2 + 3 * w[1] ** 2
    found = curvature.weak_convexity(loss, jnp.zeros(2), heads=4, kappa=1e-12)
    assert float(found.minimum) == pytest.approx(2.0, rel=1e-12)
    assert float(found.ratio_at_least) == float(found.kappa_at_least) == 0.0
    assert found.violated is False


@pytest.mark.parametrize("options", [{}, {"dense_limit": 0}], ids=["dense", "Lanczos"])
def test_the_ends_of_a_spectrum_by_hand(options, x64):
    # x^2 y at (1, 2): [[2y, 2x], [2x, 0]] = [[4, 2], [2, 0]], eigenvalues 2 +- sqrt 8.
    loss, point = lambda w: w[0] ** 2 * w[1], jnp.array([1.0, 2.0])
    found = curvature.hessian_extremes(loss, point, **options)
    assert float(found.maximum) == pytest.approx(2 + math.sqrt(8), rel=1e-12)
    assert float(found.minimum) == pytest.approx(2 - math.sqrt(8), rel=1e-12)
    assert bool(found.converged_maximum) and bool(found.converged_minimum)
    np.testing.assert_allclose(curvature.dense_hessian(loss, point), [[4, 2], [2, 0]], atol=1e-14)


def test_the_certificate_is_the_sum_of_slopes_times_norms(x64):
    # z = (x y, 3 x^2 - y^2), with Hessians of norms 1 and 6; at x = 1, y = 2 it is (2, -1). The
    # outer z_1^2 + exp(z_2) has slopes 2 z_1 = 4 and 1/e: 4 + 6/e.
    loss = curvature.Composite(
        lambda w: jnp.stack([w[0] * w[1], 3 * w[0] ** 2 - w[1] ** 2]),
        lambda z: z[0] ** 2 + jnp.exp(z[1]),
    )
    found = curvature.convexity_certificate(loss, jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(found.norms, [1, 6], rtol=1e-12)
    np.testing.assert_allclose(found.slopes, [4, math.exp(-1)], rtol=1e-12)
    assert float(found.bound) == pytest.approx(4 + 6 / math.e, rel=1e-12)
    assert float(found.ratio) == pytest.approx((4 + 6 / math.e) / (4 + 1 / math.e), rel=1e-12)
    assert found.converged


def _quadratic(scale):
    return lambda w: 0.5 * scale * jnp.sum(jnp.array([1.0, 2.0, 4.0]) * w**2)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_the_noise_of_an_operator_is_that_of_its_largest_value(scale):
    """The largest eigenvalue is four times the scale, and a float32 has 2^-23 of it."""
    found = curvature.hessian_extremes(_quadratic(scale), jnp.ones(3, jnp.float32))
    assert float(found.noise) == pytest.approx(2.0**-23 * 4 * scale, rel=1e-3)
    assert "dense" in str(found)


def test_extremes_of_products_say_how_many():
    loss = lambda w: 0.5 * jnp.sum(jnp.linspace(1.0, 2.0, 300) * w**2)
    found = curvature.hessian_extremes(loss, jnp.ones(300), dense_limit=0)
    assert int(found.iterations) > 0 and f"{int(found.iterations)} products" in str(found)


def test_a_spectrum_of_one_step_is_allowed_and_one_of_nan_is_not():
    """After one step the node is the Rayleigh quotient, which lies between 1 and 4."""
    found = curvature.spectrum(_quadratic(1.0), jnp.ones(3), iterations=1)
    assert found.nodes.shape[1] == 1
    assert float(found.nodes.min()) >= 1.0 and float(found.nodes.max()) <= 4.0
    with pytest.raises(ValueError, match="the loss is nan"):
        curvature.spectrum(lambda w: jnp.sum(jnp.log(-1 - w**2)), jnp.ones(3))


def test_a_spectrum_with_an_eigenvalue_zero_is_one():
    found = curvature.spectrum(lambda w: 0.0 * jnp.sum(w**2), jnp.ones(3))
    assert float(jnp.max(jnp.abs(found.nodes))) == 0.0
