"""Two-layer networks of Assumption 2 for the smooth links that ship none of their own.

Functions of one variable are interpolated at equally spaced knots, so that eps_2NN is explicit:
spacing^2/8 for every unit of the second derivative. Constants come from a unit relu(1). (The link
`xor` jumps: no continuous network is nearer to it than 1, which zero is.)
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.qstr.links import TwoLayer
from jaxbounds.qstr.relu_networks import square_hinges


class Approximation(NamedTuple):
    """A network, and the eps_2NN of Assumption 2 that it has on |x_l| <= radius."""

    network: TwoLayer
    eps_2nn: float


def _checked(radius: float, knots: int) -> None:
    if knots < 1 or not radius > 0:
        raise ValueError(f"at least one knot and radius > 0 are needed, got {knots}, {radius}")


def mean_network(u: Float[Array, "d"], /, *, q: int) -> Approximation:
    """For g = <u, x_1 + .. + x_q> / q: relu(v) - relu(-v), exactly."""
    row = jnp.tile(u, q) / q
    a, b = jnp.array([1.0, -1.0], u.dtype), jnp.zeros(2, u.dtype)
    return Approximation(TwoLayer(a, jnp.stack([row, -row]), b), 0.0)


def sine_network(u: Float[Array, "qd"], /, *, q: int, radius: float, knots: int) -> Approximation:
    """For g = sin<u, (x_1; ..; x_q)> with |u| = 1: interpolation on [-sqrt(q) r, sqrt(q) r].

    |sin''| <= 1, so that the error is at most h^2/8 for knots h apart. Explicit.

    Raises:
        ValueError: if there is no knot or the radius is not positive.
    """
    _checked(radius, knots)
    end = math.sqrt(q) * radius
    at = np.linspace(-end, end, knots + 1)
    slopes = np.diff(np.sin(at)) / np.diff(at)
    a = np.concatenate([[np.sin(at[0])], slopes[:1], np.diff(slopes)])
    b = np.concatenate([[1.0], -at[:-1]])
    W = jnp.concatenate([jnp.zeros((1, len(u)), u.dtype), jnp.tile(u, (knots, 1))])
    network = TwoLayer(jnp.asarray(a, u.dtype), W, jnp.asarray(b, u.dtype))
    return Approximation(network, (2.0 * end / knots) ** 4 / 64.0)


def quadratic_network(*, q: int, d: int, radius: float, knots: int) -> Approximation:
    """For g = (|x_1|^2 + .. + |x_q|^2 - qd) / sqrt(qd): every coordinate's square by hinges.

    Each interpolant lies between 0 and h^2/4 above its square, h = r / knots; a constant halves the
    error, so that |g - network| <= sqrt(qd) h^2/8. Explicit.

    Raises:
        ValueError: if there is no knot or the radius is not positive.
    """
    _checked(radius, knots)
    kappa, beta = square_hinges(radius, knots)
    eye = np.eye(q * d)
    W = np.concatenate(
        [np.zeros((1, q * d)), np.repeat(np.concatenate([eye, -eye]), knots, axis=0)]
    )
    b = np.concatenate([[1.0], np.tile(-kappa, 2 * q * d)])
    spacing = radius / knots
    a = np.concatenate([[-q * d * (1.0 + spacing**2 / 8.0)], np.tile(beta, 2 * q * d)])
    network = TwoLayer(*(jnp.asarray(v, jnp.zeros(()).dtype) for v in (a / math.sqrt(q * d), W, b)))
    return Approximation(network, q * d * spacing**4 / 64.0)
