"""A two-layer network of small norm through n points: Lemmas 36-38, and Theorem 9's RNN."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr.relu_networks import Layer, Network, layer


class Interpolator(NamedTuple):
    """The network t -> sum_j a_j relu(w_j t + b_j) of a scalar t."""

    a: Float[Array, "n"]
    w: Float[Array, "n"]
    b: Float[Array, "n"]

    def __call__(self, t: Float[Array, "*batch"], /) -> Float[Array, "*batch"]:
        """Return the network's value at scalars t."""
        units = jnp.tensordot(t, self.w, axes=0)
        units = jax.nn.relu(units + jnp.broadcast_to(self.b, units.shape))
        return jnp.einsum("...n,n->...", units, self.a)

    def squared_norm(self) -> Float[Array, ""]:
        """Return the squared norm |a|^2 + |w|^2 + |b|^2.

        A network on R^d with the weights W = w v^T, |v| = 1, has the same squared norm.
        """
        return jnp.sum(self.a**2) + jnp.sum(self.w**2) + jnp.sum(self.b**2)


def unbalanced(z: Float[Array, "n"], y: Float[Array, "n"], /) -> Interpolator:
    """Return the unbalanced weights (a', (1, .., 1), b') of Lemma 38's network, for increasing z.

    The network's slope changes at z_1 - 1, z_1, .., z_{n-1}.
    """
    slopes = jnp.diff(y) / jnp.diff(z)
    before = jnp.concatenate([jnp.zeros(1, y.dtype), y[:1], slopes])
    b = jnp.concatenate([1.0 - z[:1], -z[:-1]])
    return Interpolator(jnp.diff(before), jnp.ones_like(z), b)


def balance(network: Interpolator, c: Float[Array, ""], /) -> Interpolator:
    """Return the network (c a, w / c, b / c), which computes the same function for any c > 0."""
    return Interpolator(c * network.a, network.w / c, network.b / c)


def optimal_balance(network: Interpolator, /) -> Float[Array, ""]:
    """Return the c of `balance` that minimises the squared norm.

    The optimal c is ((|w|^2 + |b|^2) / |a|^2)^{1/4}.
    """
    inner = jnp.sum(network.w**2) + jnp.sum(network.b**2)
    return jnp.sqrt(jnp.sqrt(inner) / vector_norm(network.a))


def printed_balance(
    z: Float[Array, "n"], y: Float[Array, "n"], eps: float | Float[Array, ""], /
) -> Float[Array, ""]:
    """Return the paper's c for `balance`, ((|z|^2 + n) eps^2 / |y|^2)^{1/4}."""
    return jnp.sqrt(jnp.sqrt(jnp.sum(z**2) + z.shape[0]) * eps / vector_norm(y))


def _refuse(z: Float[Array, "n"], y: Float[Array, "n"]) -> None:
    bad = ~(jnp.isfinite(z) & jnp.isfinite(y))
    if bool(jnp.any(bad)):
        raise Refused(
            f"z or y holds NaN or infinity: bad points={int(jnp.sum(bad))} of {z.shape[0]}, "
            f"expected finite numbers. Try to remove these points"
        )
    gap = float(jnp.min(jnp.diff(jnp.sort(z)), initial=jnp.inf))
    largest = float(jnp.max(jnp.abs(z)))
    if not gap > 64 * float(jnp.finfo(z.dtype).eps) * largest:
        raise Refused(
            f"two of the {z.shape[0]} points have distance={gap:.2e}, which {z.dtype} does not"
            f" resolve near {largest:.2e}. Try to merge equal points, or compute in float64"
        )


def interpolate(z: ArrayLike, y: ArrayLike, /, *, optimal: bool = False) -> Interpolator:
    """Build Lemma 38's network of width n with value y_i at z_i and squared norm (C.16).

    The points may come in any order. For y = 0 the result is the zero network. Between two close
    points, the network's value is a sum of steep linear pieces. The rounding error of this sum
    grows like the rounding unit times |y| |z| / gap. Therefore compute in float64
    (`jaxbounds.float64_on_cpu()`) if there are many points or close points. If JAX traces the
    function, the function does not check the points.

    If `optimal` is set, the function scales the layers by the optimal factor c (see `balance`)
    instead of the paper's factor.

    Raises:
        Refused: if z and y are not finite vectors of equal length, two points coincide, or two
            points are so close that rounding destroys all digits of the slopes.
    """
    z, y = (jnp.asarray(values, dtype=jnp.result_type(float)) for values in (z, y))
    if z.ndim != 1 or z.shape != y.shape or not z.size:
        raise Refused(
            f"z.shape={z.shape} and y.shape={y.shape}, expected two vectors of equal length. Try"
            " z.ravel()"
        )
    if not any(isinstance(values, jax.core.Tracer) for values in (z, y)):
        _refuse(z, y)
    order = jnp.argsort(z)
    z, y = z[order], y[order]
    network = unbalanced(z, y)
    scale = optimal_balance(network) if optimal else printed_balance(z, y, smallest_gap(z))
    balanced = balance(network, scale)
    return jax.tree.map(lambda v: jnp.where(jnp.any(y != 0), v, jnp.zeros_like(v)), balanced)


def smallest_gap(z: Float[Array, "n"], /) -> Float[Array, ""]:
    """Return the number eps of (C.16): the smaller of 1 and the smallest gap between two points."""
    return jnp.min(jnp.diff(jnp.sort(z)), initial=1.0)


def norm_bound(
    z: Float[Array, "n"], y: Float[Array, "n"], /, *, constant: float = 19.0
) -> Float[Array, ""]:
    """Return the bound (C.16): constant |y| sqrt(n + |z|^2) / eps, eps = min(1, smallest gap).

    The constant is at most 19, since |a'|^2 <= 16 |y|^2 / eps^2 and |w'|^2 + |b'|^2 <= 3 (n +
    |z|^2), balanced by the paper's c. The optimal c gives the constant 2 sqrt(48).
    """
    reach = jnp.sqrt(z.shape[0] + jnp.sum(z**2))
    return constant * vector_norm(y) * reach / smallest_gap(z)


def separation(n: int, /) -> float:
    """Return Lemma 37's bound sqrt(pi) / (3 n^2).

    All gaps |v^T (x_i - x_j)| along the random direction v are at least this bound, with
    probability at least 2/3.
    """
    return math.sqrt(math.pi) / (3 * n**2)


def bias_bound(z: Float[Array, "n"], /, *, printed: bool = False) -> Float[Array, ""]:
    """Return the bound 3 |z|^2 + 2 on |b'|^2 in Lemma 38, or the printed, false |z|^2 + 1.

    The number z_1 enters twice: |b'|^2 = (1 - z_1)^2 + z_1^2 + .. + z_{n-1}^2.
    """
    square = jnp.sum(z**2)
    return square + 1 if printed else 3 * square + 2


def separated(x: Float[Array, "n d"], v: Float[Array, "d"], /) -> tuple[Array, Array]:
    """Return Lemma 37's two quantities: the smallest gap of v^T x_i, and sum_i (v^T x_i)^2."""
    z = x @ v
    return jnp.min(jnp.diff(jnp.sort(z)), initial=jnp.inf), jnp.sum(z**2)


def embed_in_rnn(network: Interpolator, v: Float[Array, "d"], depth: int, /) -> Network:
    """Build Theorem 9's readout f_y of `depth` layers that computes the interpolator of v^T x.

    The RNN's transitions and its input matrix U are zero. The readout's squared norm is
    2|a|^2 + |w|^2 + |b|^2 + 2 (depth - 3) + 2.

    Raises:
        Refused: if the depth is below 3.
    """
    if depth < 3:
        raise Refused(f"depth={depth}, expected at least 3 for the embedding. Try depth=3")
    first = Layer(jnp.outer(network.w, v), network.b)
    second = Layer(jnp.stack([network.a, -network.a]), jnp.zeros(2, network.a.dtype))
    middle = tuple(layer(np.eye(2)) for _ in range(depth - 3))
    return (first, second, *middle, layer(np.array([[1.0, -1.0]])))
