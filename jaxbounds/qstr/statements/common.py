"""What the sections of statements share: budgets and encodings."""

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


def stacked(*instances: dict) -> dict:
    """Instances given one by one, with a leading axis."""
    return {name: np.stack([np.asarray(i[name]) for i in instances]) for name in instances[0]}
