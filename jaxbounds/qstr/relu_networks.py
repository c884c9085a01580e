"""ReLU networks as explicit weights: evaluation, joining, exact and piecewise-linear pieces."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Weights = Array | np.ndarray


class Layer(NamedTuple):
    """x -> W x + b."""

    W: Weights
    b: Weights


Network = tuple[Layer, ...]
"""Affine maps with a ReLU between any two of them, none after the last."""


def evaluate(network: Network, x: Float[Array, "*batch i"], /) -> Float[Array, "*batch o"]:
    """The network's output."""
    for number, (W, b) in enumerate(network):
        x = x if number == 0 else jax.nn.relu(x)
        x = jnp.einsum("...i,oi->...o", x, W)
        x = x + jnp.broadcast_to(b, x.shape)
    return x


def layer(W: np.ndarray, b: np.ndarray | None = None, /) -> Layer:
    """A layer in the precision in force, without bias unless one is given."""
    dtype = jnp.zeros(()).dtype
    b = np.zeros(len(W)) if b is None else b
    return Layer(np.asarray(W, dtype), np.asarray(b, dtype))


def shift_output(network: Network, offset: Float[Weights, "o"], /) -> Network:
    """The network plus a constant."""
    W, b = network[-1]
    return (*network[:-1], Layer(W, b + offset))


def shrink_output(network: Network, threshold: float, /) -> Network:
    """The network followed by v -> relu(v - e) - relu(-v - e), zero wherever |v| <= e."""
    W, b = network[-1]
    both = Layer(np.concatenate([W, -W]), np.concatenate([b, -b]) - threshold)
    eye = np.eye(W.shape[0])
    return (*network[:-1], both, layer(np.concatenate([eye, -eye], axis=1)))


def product_error(radius: float, knots: int, /) -> float:
    """How much a product from `square_hinges` may err: s^2 / 16, s = radius / knots. Explicit."""
    return (radius / knots) ** 2 / 16


def square_hinges(radius: float, knots: int, /) -> tuple[np.ndarray, np.ndarray]:
    """(kappa, beta) with sum_k beta_k relu(|v| - kappa_k) interpolating v^2 on [-radius, radius].

    It is even in v, so (P(a + b) - P(a - b))/4 approximates a b and vanishes exactly at b = 0. With
    spacing s = radius / knots the square errs by at most s^2/4, above only, the product by s^2/16.

    Raises:
        ValueError: if there is no knot or the radius is not positive.
    """
    if knots < 1 or radius <= 0:
        raise ValueError(f"at least one knot and radius > 0 are needed, got {knots}, {radius}")
    spacing = radius / knots
    kappa = spacing * np.arange(knots)
    return kappa, np.where(np.arange(knots) == 0, spacing, 2 * spacing)
