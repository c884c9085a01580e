"""The network of 20 numbers on which features are tried, its dense matrices, and the comparison."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

Try = Callable[[], tuple[str, str]]
"""Gives a verdict and its evidence."""

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, 2, 12)
A, B = (np.random.default_rng(2 + i).normal(size=s).astype(np.float32) for i, s in
        enumerate([(3, 4), (4, 2)]))  # fmt: skip
V = np.random.default_rng(4).normal(size=20).astype(np.float32)
SHIFT = 3.0
"""Added to the matrix where a logarithm or an inverse is taken; it makes the matrix positive."""


def check(found: Any, truth: Any, *, tolerance: float = 1e-3) -> tuple[str, str]:
    """`works` where the numbers agree, relative to the greatest."""
    found, truth = np.asarray(found, np.float64), np.asarray(truth, np.float64)
    off = float(np.max(np.abs(found - truth)) / np.max(np.abs(truth)))
    return ("works" if off <= tolerance else "wrong"), f"off by {off:.0e}"


def within(estimate: float, error: float, truth: float) -> tuple[str, str]:
    """`works` where an estimate is within four of its standard errors."""
    good = abs(estimate - truth) <= 4 * error + 1e-4 * abs(truth)
    return ("works" if good else "wrong"), f"{estimate:.4g} +- {error:.1g}, truth {truth:.4g}"


def by_hand(found: tuple[str, str]) -> tuple[str, str]:
    return ("by hand" if found[0] == "works" else found[0]), found[1]


def jax_loss(params: Any, batch: Any) -> jax.Array:
    x, y = batch
    z = jax.nn.log_softmax(jnp.tanh(x @ params["a"]) @ params["b"])
    return -jnp.mean(jnp.take_along_axis(z, y[:, None], axis=1))


PARAMS, BATCH = {"a": jnp.asarray(A), "b": jnp.asarray(B)}, (jnp.asarray(X), jnp.asarray(Y))
FLAT, BACK = ravel_pytree(PARAMS)
DENSE = np.asarray(jax.hessian(lambda x: jax_loss(BACK(x), BATCH))(FLAT), np.float64)
VALUES = np.linalg.eigvalsh(DENSE)
HALVES = [(BATCH[0][:8], BATCH[1][:8]), (BATCH[0][8:], BATCH[1][8:])]
"""The order of parameters is that of `torch_case`, too: a, then b, by rows."""


def truth_of(function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """f(H + SHIFT) as a matrix."""
    values, vectors = np.linalg.eigh(DENSE + SHIFT * np.eye(20))
    return vectors * function(values) @ vectors.T


GGN = (lambda J, W: np.einsum("nci,ncd,ndj->ij", J, W, J) / 12)(
    np.asarray(jax.jacobian(lambda x: jnp.tanh(X @ BACK(x)["a"]) @ BACK(x)["b"])(FLAT)),
    (lambda p: np.einsum("nc,cd->ncd", p, np.eye(2)) - np.einsum("nc,nd->ncd", p, p))(
        np.asarray(jax.nn.softmax(np.tanh(X @ A) @ B))
    ),
)
SLOPES = np.stack([
    np.asarray(jax.grad(lambda x, i=i: jax_loss(BACK(x), (X[i : i + 1], Y[i : i + 1])))(FLAT))
    for i in range(12)
])  # fmt: skip
FISHER = SLOPES.T @ SLOPES / 12


class Again:
    """Batches that can be read again, and have no length."""

    def __init__(self, batches: list) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator:
        return iter(self.batches)


def slope_of_greatest() -> float:
    """The derivative of the greatest eigenvalue in a scale of all parameters."""
    hessian = jax.hessian(lambda x: jax_loss(BACK(x), BATCH))
    return float(jax.grad(lambda s: jnp.linalg.eigvalsh(hessian(s * FLAT))[-1])(1.0))


SLOPE = np.asarray(jax.grad(lambda x: jax_loss(BACK(x), BATCH))(FLAT))
