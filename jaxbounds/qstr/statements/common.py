"""What the sections of statements share: budgets, draws and encodings."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxbounds.qstr.data import sample_positions
from jaxbounds.qstr.encodings import greedy_signs
from jaxbounds.statements import Budget, Instance, Size

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


def prompt(keys: Array, size: Size, /, *, simple: bool = False) -> dict[str, Array]:
    """Normal tokens x, positions t and the signs of the encodings of one prompt."""
    (key_x, key_t), N, d, q = keys, size["N"], size["d"], size["q"]
    return {
        "x": jax.random.normal(key_x, (N, d)),
        "t": sample_positions(key_t, (), N, q, simple=simple),
        "signs": jnp.asarray(signs(N, size["de"])),
    }


def normals(*shapes: str) -> Callable[[Array, Size], Instance]:
    """A sampler of standard normal arrays: "W: m k" is W of the sizes m and k ("2" is a number)."""

    def sample(key: Array, size: Size) -> Instance:
        found = {}
        for own, text in zip(jax.random.split(key, len(shapes)), shapes, strict=True):
            name, names = text.split(":")
            shape = tuple(int(n) if n.isdigit() else size[n] for n in names.split())
            found[name] = jax.random.normal(own, shape)
        return found

    return sample


def stacked(*instances: dict) -> dict:
    """Instances given one by one, with a leading axis."""
    return {name: np.stack([np.asarray(i[name]) for i in instances]) for name in instances[0]}


def gauss_hermite(n: int, /, *, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """All nodes (nodes^n, n) and weights of the n-fold Gauss-Hermite rule for N(0, I_n)."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    product = lambda v: np.stack(np.meshgrid(*[v] * n, indexing="ij"), axis=-1).reshape(-1, n)
    mass = product(weights).prod(axis=1)
    return product(points), mass / mass.sum()
