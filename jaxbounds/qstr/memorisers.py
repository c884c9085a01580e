"""Compute Theorem 9's memorising networks of least norm, a convex problem over neurons.

A network of units a_j relu(<w_j, x> + b_j) has the variation V = sum_j |a_j| |(w_j, b_j)|. If |a_j|
= |(w_j, b_j)| for each unit, the squared norm |vec|^2 of all parameters is 2 V. A network is a
signed measure of total mass V on unit neurons, and the predictions are linear in the measure. A
linear program therefore finds the least V over a finite dictionary of neurons. Neurons outside the
dictionary, and networks that use their states, may have a smaller norm.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.arrays import array_module
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr.links import TwoLayer
from jaxbounds.qstr.relu_networks import Layer, Network

Draws = Array | np.ndarray


def variation(network: TwoLayer, /) -> Any:
    """Return V = sum_j |a_j| |(w_j, b_j)|, half of the least |vec|^2 over rescalings of units."""
    xp = array_module(*network)
    a, W, b = map(xp.asarray, network)
    return xp.abs(a) @ xp.sqrt(xp.sum(W**2, axis=1) + b**2)


def memorising_product(variation: Any, depth: int, /) -> Any:
    """Return the product 2^{depth - 2} V^2 of the layers' squared norms in `deep_readout`.

    If all layers have equal norms, |vec|^2 is depth times the depth-th root of the product. A
    network with no larger |vec|^2 has L^2 |U|_F^2 at most the product, by the AM-GM inequality
    (`jaxbounds.qstr.rnn_bounds.weight_norm_lower_bound`).

    Raises:
        Refused: if the depth is below 2.
    """
    if depth < 2:
        raise Refused(f"depth={depth}, expected at least 2 (Theorem 9). Try depth=2")
    return 2.0 ** (depth - 2) * variation**2


def deep_readout(network: TwoLayer, depth: int, /) -> Network:
    """Build Theorem 9's readout f_y of `depth` layers that computes a network at least norm.

    The second layer sums the units with a_j > 0 and the units with a_j < 0 separately. Every later
    ReLU keeps the two sums, which are not negative, and the last layer computes their difference.
    All layers of the readout have equal norms.

    Raises:
        Refused: if the depth is below 2.
    """
    V = variation(network)
    # The root is the squared norm of each layer.
    root = memorising_product(V, depth) ** (1 / depth)
    size = vector_norm(jnp.column_stack([network.W, network.b]))
    own = jnp.where(size > 0, jnp.sqrt(jnp.abs(network.a) / jnp.where(size > 0, size, 1.0)), 0.0)
    scale = jnp.sqrt(root / jnp.where(V > 0, V, 1.0))
    first = Layer(scale * own[:, None] * network.W, scale * own * network.b)
    out = jnp.sign(network.a) * scale * jnp.sqrt(jnp.abs(network.a) * size)
    if depth == 2:
        return first, Layer(out[None, :], jnp.zeros(1, out.dtype))
    apart = jnp.maximum(jnp.stack([out, -out]), 0.0)
    step = jnp.sqrt(root / 2)
    keep = Layer(step * jnp.eye(2, dtype=out.dtype), jnp.zeros(2, out.dtype))
    last = Layer(step * jnp.asarray([[1.0, -1.0]], out.dtype), jnp.zeros(1, out.dtype))
    return first, Layer(apart, jnp.zeros(2, out.dtype)), *(keep,) * (depth - 3), last


def stateless_risk(
    values: Float[Draws, "m"], own: Float[Draws, "m"], /, *, N: int
) -> Float[Draws, "m"]:
    """Return, for each x_j, the risk (task q = 1) of a network that depends only on x_j.

    `values` are the network's predictions at random tokens x_j, and `own` are the numbers <u, x_j>;
    the caller averages the result over x_j. The label is <u, x_j> with probability 1/N, and
    otherwise a standard normal number independent of x_j. So every network that depends only on x_j
    has an average risk of at least 1 - 1/N^2.
    """
    return ((values - own) ** 2 + (N - 1) * (values**2 + 1)) / N


class Memorised(NamedTuple):
    """A network through given points, and a bound on the factor between V and the least variation.

    Attributes:
        network: a two-layer network that passes through the points.
        price: the largest value |dual^T relu(neuron)| of a unit neuron that the search found, or 1
            if the largest value is smaller. If this value is the maximum over all unit neurons, the
            least variation is at least V / price.
    """

    network: TwoLayer
    price: float


def _ascend(rows: np.ndarray, dual: np.ndarray, w: np.ndarray, steps: int) -> np.ndarray:
    w, moving = w.copy(), np.arange(len(w))
    strides = np.array([0.0, 0.03, 0.1, 0.3, 1.0, 10.0])
    for _ in range(steps):
        own = w[moving]
        at = own @ rows.T
        value = np.maximum(at, 0.0) @ dual
        towards = _unit(np.sign(value)[:, None] * ((at > 0) * dual) @ rows)
        step, cosine = towards @ rows.T, np.sum(own * towards, axis=1)
        # relu(c t) = c relu(t) for c > 0, so the division by the length comes after the sum.
        worth = np.abs([value, *(np.maximum(at + s * step, 0.0) @ dual for s in strides[1:])])
        square = np.sum(own**2, axis=1) + strides[:, None] * (2 * cosine + strides[:, None])
        best = strides[np.argmax(worth / np.sqrt(np.maximum(square, 1e-300)), axis=0)]
        # A neuron that no stride improves stays where it is.
        further = best > 0
        moving, best = moving[further], best[further, None]
        w[moving] = _unit(own[further] + best * towards[further])
    return w


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)


def least_variation(
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    seed: int = 0,
    units: int = 64,
    rounds: int = 6,
) -> Memorised:
    """Find a network of small variation V through n points, by linear programs over neurons.

    The first linear program chooses among the neurons of the affine interpolant (if it exists),
    Lemma 38's neurons along one direction, and random neurons. The random neurons lie in the span
    of the data, because the best neurons lie there. Each round adds neurons, found by ascent, whose
    constraint in the dual linear program is violated. The resulting network has n neurons, of which
    some may be zero. Compute in float64 if there are many points or close points, as for Lemma 38's
    network.

    `x` has shape (n, d), and `y` has shape (n,). `units` is the number of random neurons that each
    round draws, and also the largest number of neurons that a round adds. `rounds` is the number of
    linear programs.

    Raises:
        Refused: if x or y has another shape or an entry that is not finite, or if two points
            coincide.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    finite = np.all(np.isfinite(x)) and np.all(np.isfinite(y))
    if x.ndim != 2 or y.shape != x.shape[:1] or not y.size or not finite:
        raise Refused(
            f"x.shape={x.shape} and y.shape={y.shape}, expected finite numbers of shapes (n,"
            " d) and (n,). Try x[:, None] for numbers"
        )
    rng = np.random.default_rng(seed)
    rows = np.column_stack([x, np.ones(len(x))])
    parts = np.stack([y, -y, np.maximum(y, 0.0), np.maximum(-y, 0.0)], axis=1)
    affine = np.linalg.lstsq(rows, parts)[0].T
    draw = lambda: rng.standard_normal((units, len(x))) @ rows
    v = rng.standard_normal(x.shape[1])
    hinges = np.column_stack([np.tile(v, (len(x), 1)), -x @ v])
    neurons = _unit(np.concatenate([affine, np.eye(rows.shape[1])[-1:], hinges, draw()]))
    for k in range(rounds):
        features = np.maximum(rows @ neurons.T, 0.0)
        both = np.concatenate([features, -features], axis=1)
        found = scipy.optimize.linprog(
            np.ones(both.shape[1]), A_eq=both, b_eq=y, options={"presolve": False}
        )
        if found.status:
            raise Refused(
                f"neurons={len(neurons)} cannot fit the points={len(y)}. Try to merge points"
                " with equal inputs"
            )
        dual = found.eqlin.marginals
        start = np.concatenate([neurons, _unit(draw())])
        more = _ascend(rows, dual, start, 20)
        worth = np.abs(np.maximum(rows @ more.T, 0.0).T @ dual)
        price = max(1.0, float(np.max(worth)))
        if k < rounds - 1:
            best = np.argsort(-worth)[:units]
            neurons = np.concatenate([neurons, more[best[worth[best] > 1 + 1e-9]]])
    mass = found.x[: len(neurons)] - found.x[len(neurons) :]
    used = np.flatnonzero(np.abs(mass) > 1e-12)
    a, W = np.zeros(len(y)), np.zeros((len(y), rows.shape[1]))
    # The program meets its constraints only to 1e-7, so least squares refines the weights.
    a[: len(used)], W[: len(used)] = np.linalg.lstsq(features[:, used], y)[0], neurons[used]
    network = TwoLayer(*(jnp.asarray(part) for part in (a, W[:, :-1], W[:, -1])))
    return Memorised(network, price)
