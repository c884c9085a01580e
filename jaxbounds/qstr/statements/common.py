"""Shared parts of the sections of statements: budgets, draws and encodings."""

import functools
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxbounds.claims.sets import Box, Reals, Set
from jaxbounds.claims.statements import Budget, Size
from jaxbounds.qstr.data import sample_positions
from jaxbounds.qstr.encodings import greedy_signs

SEARCHED: dict[str, Any] = {
    "kind": "inequality",
    "budget": Budget(samples=128, restarts=4, steps=80, batch=128),
}
CASES_ON_HOST: dict[str, Any] = {"host": True, "search": "none", "budget": Budget(samples=8)}
SEARCHED_ON_HOST: dict[str, Any] = {
    "host": True,
    "search": "random",
    "budget": Budget(samples=8, restarts=4, steps=30),
}
DRAWS = Budget(samples=2000, restarts=0, steps=0, batch=500)


@functools.lru_cache
def signs(N: int, de: int, /) -> Int[np.ndarray, "N de"]:
    """Hypercube encodings of coherence at most 1/2, as signs: an integer leaf stays fixed."""
    return greedy_signs(np.random.default_rng(20), N, de)


def encodings(signs: Int[Array, "N de"], /) -> Float[Array, "N de"]:
    """The unit encodings of these signs."""
    de = signs.shape[1]
    return signs.astype(jnp.zeros(()).dtype) / jnp.sqrt(jnp.asarray(float(de)))


def positions(key: Array, size: Size) -> dict[str, Array]:
    """Positions t and the signs of the encodings of one prompt; its tokens are a set's."""
    N = size["N"]
    t = sample_positions(key, (), N, size["q"], simple=bool(size.get("simple")))
    return {"t": t, "signs": jnp.asarray(signs(N, size["de"]))}


def reals(shapes: str, /) -> dict[str, Box]:
    """All arrays, as sets: "W: m k, b: 2 m" is W of the sizes m and k, and b of 2 and m."""
    pairs = (text.split(":") for text in shapes.split(","))
    return {name.strip(): Reals(tuple(axes.split())) for name, axes in pairs}


def zeros(sets: Mapping[str, Set], size: Size, /, *, cases: int = 1) -> dict[str, np.ndarray]:
    """Cases to fill in: points of these sets whose entries are all zero."""
    return {name: np.zeros((cases, *one.shape_at(size))) for name, one in sets.items()}


def gauss_hermite(n: int, /, *, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """All nodes (nodes^n, n) and weights of the n-fold Gauss-Hermite rule for N(0, I_n)."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    product = lambda v: np.stack(np.meshgrid(*[v] * n, indexing="ij"), axis=-1).reshape(-1, n)
    mass = product(weights).prod(axis=1)
    return product(points), mass / mass.sum()
