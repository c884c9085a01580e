"""Matrix norms of Section 2.1 with the orientation in the name, and norms of a token sequence.

||W||_{q,p} is the l_p norm of the l_q norms of the columns of W. Several of the paper's results
need this norm of W^T instead.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.norms import dual_exponent, entrywise_norm, project_l1, vector_norm

Scalar = Float[Array, ""]


def column_norm(W: Float[Array, "k d"], q: float, p: float, /) -> Scalar:
    """Compute ||W||_{q,p} as Section 2.1 means it: l_q within columns, l_p across columns.

    Raises:
        Refused: if q or p is below 1.
    """
    return entrywise_norm(W, q, p)


def row_norm(W: Float[Array, "k d"], q: float, p: float, /) -> Scalar:
    """Compute ||W^T||_{q,p}: l_q within the rows of W, l_p across rows.

    Raises:
        Refused: if q or p is below 1.
    """
    return entrywise_norm(W.T, q, p)


def literal_norm(W: Float[Array, "r d"], q: float, /) -> Scalar:
    """Compute ||W||_{q,p} as printed: the outer norm is l_r, r the number of rows (E14)."""
    return entrywise_norm(W, q, float(W.shape[0]))


def require_norm(norm: ArrayLike, radius: ArrayLike, /, *, of: str) -> None:
    """Refuse a norm that exceeds the radius by more than rounding, if the values are known.

    Under `jit`, `vmap` or `grad` the values are unknown, and the function refuses nothing.

    Raises:
        Refused: if the norm exceeds the radius. The argument `of` names the measured quantity in
            the message.
    """
    if isinstance(norm, jax.core.Tracer) or isinstance(radius, jax.core.Tracer):
        return
    size, most = np.asarray(norm).item(), np.asarray(radius).item()
    if not size <= most * (1 + 1e-6):
        raise Refused(
            f"{of} is {size:.6g}, expected at most {most:.6g}. Try to scale the"
            " matrix down, or a larger bound"
        )


def project_entries_l1(W: Float[Array, "k d"], radius: float | Scalar, /) -> Float[Array, "k d"]:
    """Project W onto the matrices with ||W||_{1,1} at most `radius`."""
    return project_l1(W.ravel(), radius).reshape(W.shape)


def _dual_vector(x: Float[Array, "n"], p: float, /) -> Float[Array, "n"]:
    """Return a dual vector v of x: ||v||_{p*} = 1 and v . x = ||x||_p; 0 for x = 0."""
    if p == 1:
        return jnp.sign(x)
    if p == math.inf:
        largest = jnp.argmax(jnp.abs(x))
        return jnp.zeros_like(x).at[largest].set(jnp.sign(x[largest]))
    size = vector_norm(x, p)
    scaled = jnp.abs(x) / jnp.where(size > 0, size, 1.0)
    return jnp.sign(x) * scaled ** (p - 1.0)


def operator_norm_lower(
    key: Array, W: Float[Array, "k d"], q: float, p: float, /, *, starts: int = 16, steps: int = 50
) -> Scalar:
    """Estimate ||W||_{q->p} from below, for the pairs (q, p) without a closed form.

    Boyd's power iteration x <- dual of W^T (dual of W x) starts at `starts` random vectors. Its
    lower bound never decreases.

    Raises:
        Refused: if q or p is below 1.
    """
    if min(q, p) < 1:
        raise Refused(
            f"q={q} and p={p}, expected at least 1, because l_q is no norm for q < 1. Try q=1"
        )

    def climb(x: Float[Array, "d"]) -> Scalar:
        def step(_: Array, x: Array) -> Array:
            return _dual_vector(W.T @ _dual_vector(W @ x, p), dual_exponent(q))

        x = jax.lax.fori_loop(0, steps, step, x)
        length = vector_norm(x, q)
        return vector_norm(W @ x, p) / jnp.where(length > 0, length, 1.0)

    return jnp.max(jax.vmap(climb)(jax.random.normal(key, (starts, W.shape[1]), W.dtype)))
