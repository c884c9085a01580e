"""Functions and search budgets that the statements share: samplers, encodings and quadrature."""

import functools
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxbounds.claims.sets import Box, Reals, Set
from jaxbounds.claims.statements import Budget, Size, Statement
from jaxbounds.qstr.data import sample_positions
from jaxbounds.qstr.encodings import greedy_signs

searched = functools.partial(
    Statement, kind="inequality", budget=Budget(samples=128, restarts=4, steps=80, batch=128)
)
cases_on_host = functools.partial(Statement, host=True, search="none", budget=Budget(samples=8))
searched_on_host = functools.partial(
    Statement, host=True, search="random", budget=Budget(samples=8, restarts=4, steps=30)
)
DRAWS = Budget(samples=2000, restarts=0, steps=0, batch=500)


@functools.lru_cache
def signs(N: int, de: int, /) -> Int[np.ndarray, "N de"]:
    """Return the signs of hypercube encodings of coherence at most 1/2.

    The signs are integers, which the search for counterexamples does not change.
    """
    return greedy_signs(np.random.default_rng(20), N, de)


def encodings(signs: Int[Array, "N de"], /) -> Float[Array, "N de"]:
    """Return the unit encodings whose entries have the given signs."""
    de = signs.shape[1]
    return signs.astype(jnp.zeros(()).dtype) / jnp.sqrt(jnp.asarray(float(de)))


def positions(key: Array, size: Size) -> dict[str, Array]:
    """Draw the positions t of one prompt; return t, and the signs of the positional encodings."""
    N = size["N"]
    t = sample_positions(key, (), N, size["q"], simple=bool(size.get("simple")))
    return {"t": t, "signs": jnp.asarray(signs(N, size["de"]))}


def reals(shapes: str, /) -> dict[str, Box]:
    """Return a dictionary from each name in `shapes` to the set of all real arrays of its shape.

    For example, "W: m k, b: 2 m" declares W of shape (m, k) and b of shape (2, m).
    """
    pairs = (text.split(":") for text in shapes.split(","))
    return {name.strip(): Reals(tuple(axes.split())) for name, axes in pairs}


def zeros(sets: Mapping[str, Set], size: Size, /, *, cases: int = 1) -> dict[str, np.ndarray]:
    """Return arrays of zeros with the shapes of the given sets."""
    return {name: np.zeros((cases, *one.shape_at(size))) for name, one in sets.items()}


def gauss_hermite(n: int, /, *, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all nodes, shape (nodes^n, n), and weights of the Gauss-Hermite rule for N(0, I_n)."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    product = lambda v: np.stack(np.meshgrid(*[v] * n, indexing="ij"), axis=-1).reshape(-1, n)
    mass = product(weights).prod(axis=1)
    return product(points), mass / mass.sum()
