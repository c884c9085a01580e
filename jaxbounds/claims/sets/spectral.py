"""Functions of eigenvalues or singular values, differentiable where the values coincide."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

Pair = tuple[jax.Array, jax.Array]
"""A pair: a matrix and the parameter of a function of its eigenvalues, or the tangents of both."""

Scalar = Callable[[jax.Array, jax.Array], jax.Array]
"""A function f(eigenvalue, parameter) that maps arrays entry by entry."""


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def on_spectrum(function: Scalar, matrix: jax.Array, parameter: jax.Array) -> jax.Array:
    """Return V diag(f(values, parameter)) V^T for a symmetric matrix V diag(values) V^T.

    The derivative is Daleckii and Krein's formula with divided differences of f. The slope of f
    replaces the divided difference of two equal eigenvalues, so nothing is divided by zero.

    The function f acts entry by entry, and only the symmetric part of `matrix` counts.
    """
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * function(values, parameter)[None, :]) @ vectors.T


@on_spectrum.defjvp
def _slopes(
    function: Callable[..., jax.Array], primals: Pair, tangents: Pair
) -> tuple[jax.Array, jax.Array]:
    (matrix, parameter), (moved, shifted) = primals, tangents
    values, vectors = jnp.linalg.eigh(matrix)
    image, by_parameter = jax.jvp(
        lambda p: function(values, p), (parameter,), (jnp.ones_like(parameter),)
    )
    _, slope = jax.jvp(lambda v: function(v, parameter), (values,), (jnp.ones_like(values),))
    gap = values[:, None] - values[None, :]
    close = jnp.abs(gap) <= 1e-7 * jnp.max(jnp.abs(values), initial=0.0)
    quotient = (image[:, None] - image[None, :]) / jnp.where(close, 1.0, gap)
    rate = jnp.where(close, (slope[:, None] + slope[None, :]) / 2, quotient)
    turned = vectors.T @ ((moved + moved.T) / 2) @ vectors
    change = rate * turned + jnp.diag(by_parameter * shifted)
    out = (vectors * image[None, :]) @ vectors.T
    return out, vectors @ change @ vectors.T


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def on_singular_values(function: Scalar, matrix: jax.Array, parameter: jax.Array) -> jax.Array:
    """Return U diag(f(s, parameter)) V^T for a matrix U diag(s) V^T of shape (m, n).

    The derivative is the formula with divided differences that `on_spectrum` describes. The formula
    needs f(0) = 0, or positive singular values.
    """
    left, values, right = jnp.linalg.svd(matrix, full_matrices=False)
    return (left * function(values, parameter)[None, :]) @ right


@on_singular_values.defjvp
def _turns(
    function: Callable[..., jax.Array], primals: Pair, tangents: Pair
) -> tuple[jax.Array, jax.Array]:
    (matrix, parameter), (moved, shifted) = primals, tangents
    left, values, right = jnp.linalg.svd(matrix, full_matrices=False)
    image, by_parameter = jax.jvp(
        lambda p: function(values, p), (parameter,), (jnp.ones_like(parameter),)
    )
    _, slope = jax.jvp(lambda v: function(v, parameter), (values,), (jnp.ones_like(values),))
    inner = left.T @ moved @ right.T
    even, odd = (inner + inner.T) / 2, (inner - inner.T) / 2
    small = 1e-7 * jnp.max(values, initial=0.0)
    gap, total = values[:, None] - values[None, :], values[:, None] + values[None, :]
    mean = (slope[:, None] + slope[None, :]) / 2
    quotient = (image[:, None] - image[None, :]) / jnp.where(jnp.abs(gap) <= small, 1.0, gap)
    first = jnp.where(jnp.abs(gap) <= small, mean, quotient)
    second = (image[:, None] + image[None, :]) / jnp.where(total <= small, 1.0, total)
    core = first * even + jnp.where(total <= small, mean, second) * odd
    core = core + jnp.diag(by_parameter * shifted)
    share = jnp.where(values <= small, slope, image / jnp.where(values <= small, 1.0, values))
    off_left = (moved - left @ (left.T @ moved)) @ right.T  # zero if m <= n
    off_right = left.T @ (moved - (moved @ right.T) @ right)  # zero if n <= m
    change = left @ core @ right + (off_left * share[None, :]) @ right
    change = change + left @ (share[:, None] * off_right)
    return (left * image[None, :]) @ right, change
