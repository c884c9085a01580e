"""Two-layer networks of Assumption 2 for the smooth links that have no exact network.

Each network interpolates functions of one variable at equally spaced knots. A network's error is
therefore at most spacing^2/8 times the largest second derivative of the interpolated function. The
number eps_2NN is the square of this error bound. The link `xor` jumps between -1 and 1, so every
continuous network has an error of at least 1, as large as the error of the zero network.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.qstr.links import TwoLayer
from jaxbounds.qstr.relu_networks import square_hinges


class Approximation(NamedTuple):
    """A network, and its squared error eps_2NN of Assumption 2 on tokens |x_l| <= radius."""

    network: TwoLayer
    eps_2nn: float


def _checked(radius: float, knots: int) -> None:
    if knots < 1 or not radius > 0:
        raise Refused(
            f"knots={knots} and radius={radius}, expected at least one knot and radius > 0. Try"
            " knots=8"
        )


def mean_network(u: Float[Array, "d"], /, *, q: int) -> Approximation:
    """Return the exact network relu(v) - relu(-v) for the link <u, x_1 + .. + x_q> / q."""
    row = jnp.tile(u, q) / q
    a, b = jnp.array([1.0, -1.0], u.dtype), jnp.zeros(2, u.dtype)
    return Approximation(TwoLayer(a, jnp.stack([row, -row]), b), 0.0)


def sine_network(u: Float[Array, "qd"], /, *, q: int, radius: float, knots: int) -> Approximation:
    """Interpolate the link sin<u, (x_1; ..; x_q)>, |u| = 1, on [-sqrt(q) r, sqrt(q) r].

    Since |sin''| <= 1, the network's error is at most h^2/8 for knots at distance h.

    Raises:
        Refused: if the number of knots is below 1, or the radius is not positive.
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
    """Approximate the link (|x_1|^2 + .. + |x_q|^2 - qd) / sqrt(qd) by ReLUs of each coordinate.

    Each interpolant of x_lk^2 exceeds the square by at least 0 and at most h^2/4, with h = r /
    knots. The function subtracts a constant from the network, which halves the largest error. The
    error is then at most sqrt(qd) h^2/8.

    Raises:
        Refused: if the number of knots is below 1, or the radius is not positive.
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
