"""The gate networks of Lemmas 24, 25 and Proposition 26, built explicitly.

The function (relu(s + e x)^2 - relu(s - e x)^2)/(2 e) equals 2 x relu(s) if |s| >= e |x|. If |s| <
e |x|, the function differs from 2 x relu(s) by at most e x^2/2. If piecewise-linear interpolation
at equally spaced knots replaces relu(.)^2, the function becomes a two-layer network. The
interpolated network is much narrower than the networks of Lemma 42.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.arrays import array_module
from jaxbounds.qstr.relu_networks import (
    Layer,
    Network,
    layer,
    product_error,
    shrink_output,
    square_hinges,
)
from jaxbounds.qstr.rnn_construction import inner_products


def _knots(radius: float, eps: float) -> tuple[int, float, float]:
    """Return the number and spacing of the knots that interpolate relu(.)^2, and the tilt e.

    The tilt e and the interpolation each cause an error of at most eps/2.
    """
    if not 0 < eps < radius:
        raise Refused(
            f"eps={eps}, expected a number between 0 and radius={radius}. Try a smaller eps;"
            " from eps = radius on, the zero network suffices"
        )
    spacing = 2 * eps / radius
    return math.ceil((0.5 + spacing / 2) / spacing), spacing, spacing / (2 * radius)


def gate_network(*, radius: float, eps: float, state_radius: float = 0.0) -> Network:
    """Build Lemma 24's network (h, x, z) -> h + 2 x relu(z - 1/2), with error at most eps.

    The error bound holds for |x| <= radius and |z| <= 1; at z = 1/2 and x = radius the error equals
    the bound. If there is no state h (state_radius = 0), the input is (x, z). The rows of W have
    the l_1 norm 1/R, as in the lemma, with R = sqrt(1 + 4 radius^2 + state_radius^2).

    Raises:
        Refused: if eps is not between 0 and radius.
    """
    knots, spacing, tilt = _knots(radius, eps)
    kappa, beta = square_hinges(knots * spacing, knots)
    ones = np.ones(knots)
    W = np.concatenate([np.stack([s * tilt * ones, ones], axis=1) for s in (1, -1)])
    b = np.tile(-0.5 - kappa, 2)
    a = np.concatenate([beta, -beta]) / (2 * tilt)
    if state_radius:
        keep = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
        W = np.concatenate([keep, np.pad(W, ((0, 0), (1, 0)))])
        a, b = np.concatenate([[1.0, -1.0], a]), np.concatenate([np.zeros(2), b])
    scale = math.sqrt(1 + 4 * radius**2 + state_radius**2) * np.sum(np.abs(W), axis=1)
    return layer(W / scale[:, None], b / scale), layer((a * scale)[None, :])


class Norms(NamedTuple):
    """The norms of a network A relu(W x + b) that Lemmas 24, 25 and 42 bound.

    Attributes:
        width: the number m of hidden units.
        outer: the largest l_2 norm of a row of A.
        rows: the norm |W^T|_{1,inf}, the largest l_1 norm of a row of W.
        bias: the norm |b|_inf, the largest absolute bias.
    """

    width: Array | float
    outer: Array | float
    rows: Array | float
    bias: Array | float


def network_norms(network: Network, /) -> Norms:
    """Measure the norms of a network of two layers."""
    (W, b), (A, _) = network
    xp = array_module(W, b, A)
    largest = lambda M: xp.max(xp.sum(M, axis=1))
    return Norms(float(len(b)), xp.sqrt(largest(A * A)), largest(xp.abs(W)), xp.max(xp.abs(b)))


def gate_norms(*, radius: float, eps: float, state_radius: float = 0.0) -> Norms:
    """Return the `network_norms` of `gate_network` in closed form.

    Let r be `radius`, K = ceil(r/(4 eps) + 1/2) and e = eps/r^2. The width is m = 2 K, and |a|^2 =
    2 R^2 (1 + e)^2 r^2 (4 K - 3). A state h in the input adds 2 units to the width and 2 R^2
    to |a|^2.
    """
    knots, spacing, tilt = _knots(radius, eps)
    R, state = math.sqrt(1 + 4 * radius**2 + state_radius**2), float(state_radius > 0)
    square = ((1 + tilt) * radius) ** 2 * (4 * knots - 3) + state
    bias = (0.5 + (knots - 1) * spacing) / (R * (1 + tilt))
    return Norms(2 * knots + 2 * state, R * math.sqrt(2 * square), 1 / R, bias)


def printed_norms(*, R: float, eps: float, dimension: int) -> Norms:
    """Return Lemma 24's bounds with all constants 1, for D = 2 inputs, or D = 3 with a state.

    The bounds are Lemma 42's bounds with L = 2 R. Let u = R^2 log(R/eps)/eps. Then m <= u^D,
    and |a| <= R^2 u^{(D+1)/2} / sqrt(m). Rows of W have l_1 norm at most 1/R, and biases are at
    most 1. The field `outer` of the result is the bound on |a| sqrt(m), not on |a|.
    """
    unit = R**2 * math.log(R / eps) / eps
    width = unit**dimension
    return Norms(width, R**2 * unit ** ((dimension + 1) / 2), 1 / R, 1.0)


def printed_product_norms(*, de: int, eps: float) -> Norms:
    """Return Lemma 22's bounds with all constants 1.

    Let u = log(de/eps)/eps. Then the width m is at most de^3 u^2, and |a| <= de^{5/2} u^{3/2} /
    sqrt(m). Rows of W have l_1 norm at most 1, and biases are at most 1. The field `outer` of the
    result is the bound on |a| sqrt(m), not on |a|.
    """
    unit = math.log(de / eps) / eps
    return Norms(de**3 * unit**2, de**2.5 * unit**1.5, 1.0, 1.0)


def block_network(*, q: int, d: int, radius: float, eps: float) -> Network:
    """Build a network that maps (x, s_1, .., s_q) to 2 x relu(s_l - 1/2) +- eps in block l.

    The network is Lemma 25's network, (C.8) and (C.9).

    Raises:
        Refused: if eps is not between 0 and radius.
    """
    (W, b), (a, _) = gate_network(radius=radius, eps=eps)
    x = np.kron(np.tile(np.eye(d), (q, 1)), W[:, :1])
    s = np.kron(np.repeat(np.eye(q), d, axis=0), W[:, 1:])
    return layer(np.concatenate([x, s], axis=1), np.tile(b, q * d)), layer(
        np.kron(np.eye(q * d), a)
    )


def printed_transition(*, q: int, d: int, de: int, radius: float, eps: float) -> Network:
    """Build the four layers of Proposition 26.

    The layers are those of Lemma 23, those of Lemma 25 with error eps/4, and a threshold at eps/2.
    Block (slot) l of the output is within eps of x_i if t_l = i, and otherwise exactly 0. The error
    bound holds for unit encodings of coherence at most 1/2. The first layer computes inner products
    up to an error of eps/(4 |A_2^T|_{1,inf} |W_2^T|_{1,inf}).

    Raises:
        Refused: if eps/4 is not between 0 and radius.
    """
    second, last = block_network(q=q, d=d, radius=radius, eps=eps / 4)
    l_1 = lambda M: np.max(np.sum(np.abs(M), axis=1))
    allowed = eps / (4 * l_1(last.W) * l_1(second.W))
    knots = math.ceil(math.sqrt(de * product_error(2.0, 1) / allowed))
    first, A = inner_products(q=q, d=d, de=de, knots=knots)
    both = layer(np.asarray(second.W) @ A, np.asarray(second.b))
    return shrink_output((first, both, last), eps / 2)


def lipschitz_network(values: Float[Array, "knots"], /, *, radius: float) -> Network:
    """Build Lemma 42's network in one dimension, which interpolates f at K + 1 equidistant knots.

    The knots divide [-radius, radius] into K intervals. If f is L-Lipschitz, the network errs by at
    most L radius/K. The entries of W are 1/radius or 0, and biases are at most 1.
    If |f(-radius)| <= L radius, then |a|^2 <= (L radius)^2 (4 K - 2).
    """
    K = values.shape[0] - 1
    slopes = jnp.diff(values) * (K / 2)  # slopes in the variable t/radius
    a = jnp.concatenate([values[:1], slopes[:1], jnp.diff(slopes)])
    W = np.concatenate([[0.0], np.full(K, 1 / radius)])
    b = np.concatenate([[1.0], 1 - 2 * np.arange(K) / K])
    return layer(W[:, None], b), Layer(a[None, :], jnp.zeros(1, a.dtype))


def lipschitz_norms(*, lipschitz: float, radius: float, eps: float) -> Norms:
    """Return Lemma 42's bounds in one dimension with C_1 = 9/2 and no logarithm.

    Let K = ceil(L R/eps) be the number of pieces. Then m = K + 1 <= 3 L R/eps and |a| sqrt(m) <= L
    R sqrt((4 K - 2)(K + 1)) <= (9/2) (L R)^2/eps.

    Raises:
        Refused: if eps is not between 0 and L R; for eps above L R the zero network suffices.
    """
    reach = lipschitz * radius
    if not 0 < eps <= reach:
        raise Refused(
            f"eps={eps}, expected a positive number of at most L R = {reach}. Try a smaller eps"
        )
    width = 4.5 * reach / eps
    return Norms(width, reach * width / math.sqrt(math.ceil(reach / eps) + 1), 1 / radius, 1.0)
