"""Maurey's sparsification (Lemma 3.1), made deterministic so that it always succeeds.

The module approximates f = sum_i a_i V_i by (scale/k) sum_i k_i V_i with whole numbers k_i. Here
a_i >= 0 and gamma = sum a_i <= 1. Draw k times: V_i with probability a_i, and zero with probability
1 - gamma. The average has mean f and variance (sum_i a_i ||V_i||^2 - ||f||^2) / k <= (gamma b^2 -
||f||^2) / k. The module replaces each draw by the choice with the least conditional expectation of
the error, so the final error is at most the average error.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.renamed import renamed
from jaxbounds.seqlength.counting import nonnegative_vectors
from jaxbounds.seqlength.norms import require_norm

Scalar = Float[Array, ""]


class Sparsification(NamedTuple):
    """The result of `sparsify`: multiplicities k_i, the approximation, and its squared error."""

    multiplicities: Int[Array, "n"]
    approximation: Float[Array, "dim"]
    squared_error: Scalar


def shrinkage(k: int, /) -> float:
    """Compute 1 / (1 + k^(-1/2)), the `scale` for which ||f|| drops out of the error bound."""
    return 1.0 / (1.0 + k**-0.5)


def sparsify_radius(b: ArrayLike, k: int, /) -> Array:
    """Compute b / (1 + sqrt k), the error bound of `sparsify` if `scale` is `shrinkage(k)`.

    The error in Maurey's own lemma is b / sqrt k. For k = 0, the only approximation is 0.
    """
    return jnp.asarray(b, float) / (1.0 + math.sqrt(k))


def sparsify(
    vectors: Float[Array, "n dim"],
    weights: Float[Array, "n"],
    k: int,
    /,
    *,
    scale: float = 1.0,
    use_all: bool = False,
) -> Sparsification:
    """Choose the whole numbers k_i of Lemma 3.1 by conditional expectations, without randomness.

    The sum of the k_i is at most k, or equal to k with `use_all`.

    Args:
        vectors: the vectors V_i, as rows.
        weights: the numbers a_i >= 0; their sum gamma is at most 1.
        k: the number of choices.
        scale: the factor s in the approximation (s/k) sum k_i V_i.
        use_all: whether each of the k choices takes a vector, and never the zero vector; the
            approximation is then (s gamma/k) sum k_i V_i.

    Raises:
        Refused: if k < 1, a known weight is negative, or the sum of known weights exceeds 1.
    """
    import chex  # slow to import

    chex.assert_equal_shape_prefix((vectors, weights), 1)
    if k < 1:
        raise Refused(f"k={k}, expected at least 1. Try k=1")
    require_norm(jnp.max(-weights, initial=0.0), 0.0, of="the largest negative weight")
    require_norm(jnp.sum(weights), 1.0, of="gamma, the sum of the weights,")
    dim = vectors.shape[1]
    target = weights @ vectors
    if use_all:
        step = scale * jnp.sum(weights) / k
        atoms, allowed = vectors, weights > 0
        mean = target / jnp.where(jnp.sum(weights) > 0, jnp.sum(weights), 1.0)
    else:
        step = jnp.asarray(scale / k, vectors.dtype)
        atoms = jnp.concatenate([vectors, jnp.zeros((1, dim), vectors.dtype)])
        # A draw may always be zero, which only adds a choice.
        allowed = jnp.concatenate([weights > 0, jnp.ones((1,), bool)])
        mean = target
    # At draw t, the k - 1 - t later draws enter with their mean.
    to_come = (k - 1 - jnp.arange(k)).astype(vectors.dtype)

    def draw(partial: Array, rest: Array) -> tuple[Array, Array]:
        goal = target - step * (partial + rest * mean)
        errors = jnp.sum((goal[None, :] - step * atoms) ** 2, axis=1)
        chosen = jnp.argmin(jnp.where(allowed, errors, jnp.inf))
        return partial + atoms[chosen], chosen

    total, chosen = jax.lax.scan(draw, jnp.zeros_like(target), to_come)
    multiplicities = jnp.bincount(chosen, length=atoms.shape[0])[: vectors.shape[0]]
    approximation = step * total
    return Sparsification(multiplicities, approximation, jnp.sum((target - approximation) ** 2))


def best_squared_error(
    vectors: Float[Array, "n dim"],
    weights: Float[Array, "n"],
    k: int,
    /,
    *,
    scale: float = 1.0,
    use_all: bool = False,
) -> Scalar:
    """Minimise ||f - (scale/k) sum k_i V_i||^2 over all whole k_i >= 0 with sum k_i <= k.

    `use_all` has the same meaning as in `sparsify`.

    Raises:
        Refused: if there are more than 200000 choices.
    """
    choices = nonnegative_vectors(weights.shape[0], k)
    if use_all:
        choices = choices[choices.sum(axis=1) == k]
    factor = scale * jnp.sum(weights) / k if use_all else scale / k
    points = factor * jnp.asarray(choices, vectors.dtype) @ vectors
    return jnp.min(jnp.sum(((weights @ vectors)[None] - points) ** 2, axis=1))


def maurey(gamma: ArrayLike, b: ArrayLike, f: Float[Array, "dim"], k: int, /) -> Array:
    """Compute the printed bound of Lemma 3.1, (gamma^2 b^2 - ||f||^2) / k.

    The bound is false for gamma < 1 (erratum E1). It is true for (gamma/k) sum k_i V_i with sum k_i
    = k.
    """
    return (jnp.asarray(gamma) ** 2 * jnp.asarray(b) ** 2 - jnp.sum(f**2)) / k


def maurey_corrected(
    gamma: ArrayLike, b: ArrayLike, f: Float[Array, "dim"], k: int, /, *, scale: float = 1.0
) -> Array:
    """Compute (gamma b^2 - ||f||^2) / k, the corrected bound of Lemma 3.1.

    The bound limits the squared error of (1/k) sum k_i V_i with sum k_i <= k. For (s/k) sum k_i V_i
    with s = `scale`, the bound becomes s^2 gamma b^2 / k + ||f||^2 ((1 - s)^2 - s^2 / k).
    """
    drawn = scale**2 * jnp.asarray(gamma) * jnp.asarray(b) ** 2 / k
    return drawn + jnp.sum(f**2) * ((1.0 - scale) ** 2 - scale**2 / k)


__getattr__ = renamed(
    __name__,
    {
        "maurey_printed": "maurey",
    },
)
