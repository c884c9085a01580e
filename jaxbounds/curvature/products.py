"""Hessians of a scalar function of a pytree, as products with vectors or as a dense matrix."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from jaxbounds.curvature.lanczos import Extremes, dense_extremes, lanczos_extremes

Params = Any
Loss = Callable[[Params], Float[Array, ""]]

DENSE_LIMIT = 2000
"""Up to this many parameters `hessian_extremes` forms the matrix: exact and fast enough."""


def hessian_vector_product(loss: Loss, params: Params, /) -> Callable[[Params], Params]:
    """The map v -> (Hessian of `loss` at `params`) v, on pytrees shaped like `params`.

    The gradient is linearised once, so that each product costs about one gradient; the
    linearisation keeps the intermediate values of the gradient in memory.
    """
    return jax.linearize(jax.grad(loss), params)[1]


def _bytes(amount: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} TiB"


def dense_hessian(
    loss: Loss, params: Params, /, *, limit_bytes: float = 2**30, batch_size: int = 64
) -> Float[Array, "P P"]:
    """The Hessian as a matrix over the ravelled parameters (`jax.flatten_util.ravel_pytree`).

    Columns are computed `batch_size` at a time, so that the peak is the matrix itself plus
    `batch_size` gradients. The result is symmetrised.

    Raises:
        ValueError: if the matrix needs more than `limit_bytes`; nothing has been allocated then.
    """
    flat, unravel = ravel_pytree(params)
    size = flat.size
    need = float(size) ** 2 * flat.dtype.itemsize
    if need > limit_bytes:
        raise ValueError(
            f"the dense Hessian of {size} parameters in {flat.dtype} needs {_bytes(need)}, more "
            f"than the limit of {_bytes(limit_bytes)}: use hessian_extremes or "
            "hessian_vector_product, or raise limit_bytes"
        )
    product = jax.linearize(jax.grad(lambda x: loss(unravel(x))), flat)[1]
    basis = lambda i: (jnp.arange(size) == i).astype(flat.dtype)
    matrix = jax.lax.map(lambda i: product(basis(i)), jnp.arange(size), batch_size=batch_size)
    return (matrix + matrix.T) / 2


def hessian_extremes(
    loss: Loss,
    params: Params,
    /,
    *,
    key: jax.Array | None = None,
    iterations: int = 200,
    dense_limit: int = DENSE_LIMIT,
) -> Extremes:
    """The least and the greatest eigenvalue of the Hessian, with residuals.

    Dense up to `dense_limit` parameters, Lanczos beyond (then `key` starts it; the default is
    `jax.random.key(0)`). Look at `converged` before using the values.
    """
    flat, unravel = ravel_pytree(params)
    flat_loss = lambda x: loss(unravel(x))
    if flat.size <= dense_limit:
        return dense_extremes(dense_hessian(flat_loss, flat))
    key = jax.random.key(0) if key is None else key
    product = hessian_vector_product(flat_loss, flat)
    return lanczos_extremes(product, flat.size, key, iterations=iterations, dtype=flat.dtype)
