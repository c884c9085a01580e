"""Build, change and evaluate ReLU networks that are given by explicit weights."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused

Weights = Array | np.ndarray


class Layer(NamedTuple):
    """The affine map x -> W x + b."""

    W: Weights
    b: Weights


Network = tuple[Layer, ...]
"""A ReLU network: affine maps with a ReLU after each map except the last."""


def evaluate(network: Network, x: Float[Array, "*batch i"], /) -> Float[Array, "*batch o"]:
    """Return the network's output."""
    for number, (W, b) in enumerate(network):
        x = x if number == 0 else jax.nn.relu(x)
        x = jnp.einsum("...i,oi->...o", x, W)
        x = x + jnp.broadcast_to(b, x.shape)
    return x


def layer(W: np.ndarray, b: np.ndarray | None = None, /) -> Layer:
    """Return a layer in JAX's current default precision; the bias is zero by default."""
    dtype = jnp.zeros(()).dtype
    b = np.zeros(len(W)) if b is None else b
    return Layer(np.asarray(W, dtype), np.asarray(b, dtype))


def shift_output(network: Network, offset: Float[Weights, "o"], /) -> Network:
    """Add a constant to the network's output."""
    W, b = network[-1]
    return (*network[:-1], Layer(W, b + offset))


def shrink_output(network: Network, threshold: float, /) -> Network:
    """Append the map v -> relu(v - e) - relu(-v - e), which is zero if |v| <= e = `threshold`."""
    W, b = network[-1]
    both = Layer(np.concatenate([W, -W]), np.concatenate([b, -b]) - threshold)
    eye = np.eye(W.shape[0])
    return (*network[:-1], both, layer(np.concatenate([eye, -eye], axis=1)))


def product_error(radius: float, knots: int, /) -> float:
    """Return s^2/16, the error of a product built by `square_hinges`, with s = radius / knots."""
    return (radius / knots) ** 2 / 16


def square_hinges(radius: float, knots: int, /) -> tuple[np.ndarray, np.ndarray]:
    """Return (kappa, beta) such that sum_k beta_k relu(|v| - kappa_k) interpolates v^2.

    The interpolation holds on [-radius, radius]. The interpolant P of v^2 is even in v. So (P(a +
    b) - P(a - b))/4 approximates the product a b, and is exactly zero at b = 0. If the spacing is
    s = radius / knots, P exceeds v^2 by at most s^2/4, and the approximate product errs by at most
    s^2/16.

    Raises:
        Refused: if the number of knots is below 1, or the radius is not positive.
    """
    if knots < 1 or radius <= 0:
        raise Refused(
            f"knots={knots} and radius={radius}, expected at least one knot and radius > 0. Try"
            " knots=8"
        )
    spacing = radius / knots
    kappa = spacing * np.arange(knots)
    return kappa, np.where(np.arange(knots) == 0, spacing, 2 * spacing)
