"""The neural tangent kernel, and the best margin in condition P3 between two certified bounds.

The best NTK margin is max_v min_i y_i <grad Phi(X_i), v> over directions v of norm sqrt(2).
Duality gives the value sqrt(2) min_{q in simplex} ||sum_i q_i y_i grad Phi(X_i)||.

Every weight vector q in the simplex gives an upper bound on the best margin. The direction sum_i
q_i y_i grad Phi(X_i), scaled to norm sqrt(2), gives a lower bound. Both bounds hold for every q,
independent of the solver.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.multihead.calculus import head_gradient
from jaxbounds.multihead.derivatives import network
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params

SQUARED_NORM = 2.0
"""The squared norm ||theta*||^2 that Definition 1 (P3) prescribes. A larger squared norm gives
larger margins."""


class NTKMargin(NamedTuple):
    """A certified enclosure of the best NTK margin.

    Attributes:
        lower: the margin min_i y_i <grad Phi(X_i), theta*> of the direction theta* that `weights`
            determine.
        upper: the upper bound sqrt(2) ||sum_i q_i y_i grad Phi(X_i)|| on the best margin.
        weights: q, shape (n,): non-negative, with sum one. The samples with q_i > 0 are the support
            vectors.
    """

    lower: float | Array
    upper: float | Array
    weights: np.ndarray | Array

    @property
    def gap(self) -> float | Array:
        """The upper bound on the best margin minus the lower bound, divided by the upper bound."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0


def sample_gradients(
    params: Params, tokens: Float[Array, "n T d"], /
) -> tuple[Float[Array, "n H T d"], Float[Array, "n H d d"]]:
    """Return the model's gradients in U and W for each sequence, by the closed form of Lemma 1."""
    per_head = jax.vmap(head_gradient, in_axes=(0, 0, None))
    outer, inner = jax.vmap(per_head, in_axes=(None, None, 0))(params["U"], params["W"], tokens)
    root = jnp.sqrt(jnp.asarray(params["U"].shape[0], tokens.dtype))
    return outer / root, inner / root


@jax.jit
def ntk_gram(
    params: Params, rows: Float[Array, "n T d"], columns: Float[Array, "m T d"], /
) -> Float[Array, "n m"]:
    """Return <grad Phi(X_i), grad Phi(X'_j)>, the mean over the heads of the heads' kernels."""
    heads = params["U"].shape[0]

    def features(head: tuple[Array, Array], tokens: Array) -> Array:
        outer, inner = jax.vmap(head_gradient, in_axes=(None, None, 0))(*head, tokens)
        n = tokens.shape[0]
        return jnp.concatenate([outer.reshape(n, -1), inner.reshape(n, -1)], axis=1)

    def add(total: Array, head: tuple[Array, Array]) -> tuple[Array, None]:
        return total + features(head, rows) @ features(head, columns).T, None

    start = jnp.zeros((rows.shape[0], columns.shape[0]), rows.dtype)
    total, _ = jax.lax.scan(add, start, (params["U"], params["W"]))
    return total / heads


def certified_margin(signed: np.ndarray, weights: np.ndarray | Array, /) -> NTKMargin:
    """Return the lower and the upper bound on the best margin that the weights q prove.

    Args:
        signed: y_i y_j <grad Phi(X_i), grad Phi(X_j)>, shape (n, n).
        weights: the simplex weights q, shape (n,).
    """
    along = signed @ weights
    norm = float(np.sqrt(max(weights @ along, 0.0)))
    lower = float(np.min(along)) / norm if norm > 0 else 0.0
    root = np.sqrt(SQUARED_NORM)
    return NTKMargin(root * lower, root * norm, weights)


def best_ntk_margin(
    gram: Float[Array | np.ndarray, "n n"], labels: Array | np.ndarray, /
) -> NTKMargin:
    """Return bounds on the best NTK margin over the samples, with the weights that prove them.

    Finding the point of least norm in a convex hull is a non-negative least squares problem. Let
    the rows of A be the gradients y_i grad Phi(X_i), so A A^T is the signed kernel. Let q >= 0 be
    the vector that minimises ||A^T q||^2 + (1 - sum q)^2. This q is a multiple of the best weights.

    Args:
        gram: the result of `ntk_gram(params, X, X)`; double precision gives closer bounds on the
            margin.
        labels: the labels y in {-1, +1}.

    Raises:
        Refused: if the shapes disagree or the kernel is not finite.
    """
    y = np.asarray(labels, dtype=np.float64)
    signed = np.asarray(gram, dtype=np.float64)
    if signed.shape != (len(y), len(y)) or not np.all(np.isfinite(signed)):
        raise Refused(
            f"kernel.shape={signed.shape}, expected finite numbers of shape"
            f" {(len(y), len(y))}. Try ntk_gram(params, X, X) with one sample in X for each label "
            f"in y"
        )
    signed = y[:, None] * signed * y[None, :]
    values, vectors = np.linalg.eigh(signed)
    keep = values > 1e-14 * values[-1]
    factor = (np.sqrt(values[keep]) * vectors[:, keep]).T
    # The scaling makes the norm to minimise and the norm of the constraint comparable.
    scale = np.sqrt(max(float(np.mean(signed)), 1e-12 * float(values[-1])))
    problem = np.vstack([factor / scale, np.ones(len(y))])
    target = np.concatenate([np.zeros(len(factor)), [1.0]])
    weights, _ = scipy.optimize.nnls(problem, target, maxiter=50 * len(y))
    return certified_margin(signed, weights / np.sum(weights))


@jax.jit
def separator(params: Params, data: Data, margin: NTKMargin, /) -> Params:
    """Return the direction theta* of norm sqrt(2) that has the margin `margin.lower`."""
    tokens = data["X"]
    pull = jnp.asarray(margin.weights, tokens.dtype) * data["y"].astype(tokens.dtype)
    outer, inner = sample_gradients(params, tokens)
    combined = {"U": jnp.tensordot(pull, outer, 1), "W": jnp.tensordot(pull, inner, 1)}
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in combined.values()))
    scale = jnp.sqrt(jnp.asarray(SQUARED_NORM, tokens.dtype)) / jnp.where(norm > 0, norm, 1.0)
    return jax.tree.map(lambda leaf: scale * leaf, combined)


@jax.jit
def ntk_margins(params: Params, data: Data, direction: Params, /) -> Float[Array, " n"]:
    """Return the margins y_i <grad Phi(X_i; params), direction>; the least one is P3's margin."""
    outputs = lambda point: jax.vmap(network, in_axes=(None, 0))(point, data["X"])
    _, along = jax.jvp(outputs, (dict(params),), (dict(direction),))
    return data["y"].astype(along.dtype) * along


def held_out_margins(
    cross: Float[Array | np.ndarray, "m n"],
    labels: Array | np.ndarray,
    held_out: Array | np.ndarray,
    margin: NTKMargin,
    /,
) -> Float[Array, " m"]:
    """Return the NTK margins of theta* on held-out samples, computed from the kernel alone.

    `margin` is the result of `best_ntk_margin` for samples X with the labels `labels`, and
    determines theta*. `cross` is the result of `ntk_gram(params, X_held_out, X)` for the held-out
    samples X_held_out, whose labels are `held_out`.
    """
    kernel: Array = jnp.asarray(cross)
    as_floats = lambda values: jnp.asarray(values).astype(kernel.dtype)
    along: Array = kernel @ (as_floats(margin.weights) * as_floats(labels))
    # margin.upper is sqrt(2) times the norm of the combination, and theta* has norm sqrt(2).
    return as_floats(held_out) * along * SQUARED_NORM / margin.upper
