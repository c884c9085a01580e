"""What the sections of statements share: budgets, encodings and safe norms."""

import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxbounds.qstr.encodings import greedy_signs
from jaxbounds.statements import Budget

QUICK = Budget(samples=128, restarts=4, steps=80, batch=128)
DRAWS = Budget(samples=2000, restarts=0, steps=0, batch=500)


@functools.lru_cache
def signs(N: int, de: int, /) -> Int[np.ndarray, "N de"]:
    """Hypercube encodings of coherence at most 1/2, as signs: an integer leaf stays fixed."""
    return greedy_signs(np.random.default_rng(20), N, de)


def encodings(signs: Int[Array, "N de"], /) -> Float[Array, "N de"]:
    """The unit encodings of these signs."""
    de = signs.shape[1]
    return signs.astype(jnp.zeros(()).dtype) / jnp.sqrt(jnp.asarray(float(de)))


def length(v: Float[Array, "*s"], /) -> Float[Array, ""]:
    """The Euclidean norm of all entries, with gradient 0 at 0."""
    square = jnp.sum(v**2)
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0 * square)


def row_lengths(v: Float[Array, "*batch k"], /) -> Float[Array, "*batch"]:
    """The Euclidean norm of every row, with gradient 0 at 0."""
    square = jnp.sum(v**2, axis=-1)
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0 * square)


def stacked(*instances: dict) -> dict:
    """Instances given one by one, with a leading axis."""
    return {name: np.stack([np.asarray(i[name]) for i in instances]) for name in instances[0]}
