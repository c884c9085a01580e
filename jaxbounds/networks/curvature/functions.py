"""Compute one property of a loss's Hessian by one call, without making a `Curvature`."""

from collections.abc import Mapping
from typing import Any

import jax
from jaxtyping import Array, Float

from jaxbounds.ground.memory import LIMIT
from jaxbounds.networks.curvature.convexity import WeakConvexity
from jaxbounds.networks.curvature.extremes import DENSE_LIMIT
from jaxbounds.networks.curvature.filters import Filter
from jaxbounds.networks.curvature.lanczos import Extremes
from jaxbounds.networks.curvature.operator import Curvature
from jaxbounds.networks.curvature.paths import Params
from jaxbounds.networks.curvature.products import Loss, Of
from jaxbounds.networks.curvature.spectrum import Spectrum
from jaxbounds.networks.curvature.trace import Method, Trace


def hessian_extremes(
    loss: Loss,
    params: Params,
    data: Any = None,
    *,
    key: jax.Array | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
    batches: Any = None,
    batch_size: int | None = None,
    filter: Filter | None = None,
    of: Of = "hessian",
    memory_limit: float = LIMIT,
) -> Extremes:
    """Return both ends of the Hessian's spectrum: `Curvature(loss, params, data).extremes()`.

    Args:
        loss: the loss function; see `Curvature`.
        params: the parameters of the network; see `Curvature`.
        data: one batch, a list of batches, or an iterable of batches; see `Curvature`.
        key: the random key; see `Curvature.extremes`.
        iterations: the largest number of matrix-vector products; see `Curvature.extremes`.
        tolerance: the residual that counts as converged; see `Curvature.extremes`.
        basis: the number of vectors in the Krylov basis; see `Curvature.extremes`.
        dense_limit: the largest number of parameters for a dense matrix; see `Curvature.extremes`.
        batches: the list of batches, in place of `data`, if the list could also be one batch; see
            `Curvature`.
        batch_size: the number of examples in a batch; see `Curvature`.
        filter: the filter that selects parameters; see `Curvature`.
        of: the matrix, "hessian" or "ggn"; see `Curvature`.
        memory_limit: the largest number of bytes that a call may need; see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` and `Curvature.extremes` list.
    """
    made = Curvature(
        loss, params, data, batches=batches, batch_size=batch_size, filter=filter, of=of,
        memory_limit=memory_limit,
    )  # fmt: skip
    return made.extremes(
        key=key, iterations=iterations, tolerance=tolerance, basis=basis, dense_limit=dense_limit
    )


def spectrum(
    loss: Loss,
    params: Params,
    data: Any = None,
    *,
    key: jax.Array | None = None,
    probes: int | None = None,
    iterations: int | None = None,
    batches: Any = None,
    batch_size: int | None = None,
    filter: Filter | None = None,
    of: Of = "hessian",
    memory_limit: float = LIMIT,
) -> Spectrum:
    """Estimate the density of Hessian eigenvalues: `Curvature(loss, params, data).spectrum()`.

    Args:
        loss: the loss function; see `Curvature`.
        params: the parameters of the network; see `Curvature`.
        data: one batch, a list of batches, or an iterable of batches; see `Curvature`.
        key: the random key; see `Curvature.spectrum`.
        probes: the number of random vectors; see `Curvature.spectrum`.
        iterations: the number of Lanczos steps for each random vector; see `Curvature.spectrum`.
        batches: the list of batches, in place of `data`, if the list could also be one batch; see
            `Curvature`.
        batch_size: the number of examples in a batch; see `Curvature`.
        filter: the filter that selects parameters; see `Curvature`.
        of: the matrix, "hessian" or "ggn"; see `Curvature`.
        memory_limit: the largest number of bytes that a call may need; see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` and `Curvature.spectrum` list.
    """
    made = Curvature(
        loss, params, data, batches=batches, batch_size=batch_size, filter=filter, of=of,
        memory_limit=memory_limit,
    )  # fmt: skip
    return made.spectrum(key=key, probes=probes, iterations=iterations)


def trace(
    loss: Loss,
    params: Params,
    data: Any = None,
    *,
    key: jax.Array | None = None,
    products: int = 30,
    method: Method = "auto",
    batches: Any = None,
    batch_size: int | None = None,
    filter: Filter | None = None,
    of: Of = "hessian",
    memory_limit: float = LIMIT,
) -> Trace:
    """Estimate the Hessian's trace and its standard error: `Curvature(loss, params, data).trace()`.

    Args:
        loss: the loss function; see `Curvature`.
        params: the parameters of the network; see `Curvature`.
        data: one batch, a list of batches, or an iterable of batches; see `Curvature`.
        key: the random key; see `Curvature.trace`.
        products: the number of matrix-vector products; see `Curvature.trace`.
        method: the name of the method; see `Curvature.trace`.
        batches: the list of batches, in place of `data`, if the list could also be one batch; see
            `Curvature`.
        batch_size: the number of examples in a batch; see `Curvature`.
        filter: the filter that selects parameters; see `Curvature`.
        of: the matrix, "hessian" or "ggn"; see `Curvature`.
        memory_limit: the largest number of bytes that a call may need; see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` and `Curvature.trace` list.
    """
    made = Curvature(
        loss, params, data, batches=batches, batch_size=batch_size, filter=filter, of=of,
        memory_limit=memory_limit,
    )  # fmt: skip
    return made.trace(key=key, products=products, method=method)


def weak_convexity(
    loss: Loss,
    params: Params,
    data: Any = None,
    *,
    heads: int | Mapping[str, int] | None = None,
    kappa: float | None = None,
    key: jax.Array | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
    batches: Any = None,
    batch_size: int | None = None,
    filter: Filter | None = None,
    of: Of = "hessian",
    memory_limit: float = LIMIT,
) -> WeakConvexity:
    """Estimate -lambda_min / L from below: `Curvature(loss, params, data).weak_convexity()`.

    Args:
        loss: the loss function; see `Curvature`.
        params: the parameters of the network; see `Curvature`.
        data: one batch, a list of batches, or an iterable of batches; see `Curvature`.
        heads: the heads of the network; see `Curvature.weak_convexity`.
        kappa: the constant kappa of the tested condition; see `Curvature.weak_convexity`.
        key: the random key; see `Curvature.weak_convexity`.
        iterations: the largest number of matrix-vector products; see `Curvature.weak_convexity`.
        tolerance: the residual that counts as converged; see `Curvature.weak_convexity`.
        basis: the number of vectors in the Krylov basis; see `Curvature.weak_convexity`.
        dense_limit: the largest number of parameters for a dense matrix; see
            `Curvature.weak_convexity`.
        batches: the list of batches, in place of `data`, if the list could also be one batch; see
            `Curvature`.
        batch_size: the number of examples in a batch; see `Curvature`.
        filter: the filter that selects parameters; see `Curvature`.
        of: the matrix, "hessian" or "ggn"; see `Curvature`.
        memory_limit: the largest number of bytes that a call may need; see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` and `Curvature.weak_convexity` list.
    """
    made = Curvature(
        loss, params, data, batches=batches, batch_size=batch_size, filter=filter, of=of,
        memory_limit=memory_limit,
    )  # fmt: skip
    return made.weak_convexity(
        heads=heads,
        kappa=kappa,
        key=key,
        iterations=iterations,
        tolerance=tolerance,
        basis=basis,
        dense_limit=dense_limit,
    )


def block_extremes(
    loss: Loss,
    params: Params,
    data: Any = None,
    *,
    blocks: Mapping[str, Filter] | None = None,
    heads: Mapping[str, int] | None = None,
    key: jax.Array | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
    batches: Any = None,
    batch_size: int | None = None,
    filter: Filter | None = None,
    of: Of = "hessian",
    memory_limit: float = LIMIT,
) -> dict[str, Extremes]:
    """Return the extreme eigenvalues of diagonal blocks: `Curvature(loss, params, data).blocks()`.

    Args:
        loss: the loss function; see `Curvature`.
        params: the parameters of the network; see `Curvature`.
        data: one batch, a list of batches, or an iterable of batches; see `Curvature`.
        blocks: a filter of parameters for each block's name; see `Curvature.blocks`.
        heads: the heads of the network; see `Curvature.blocks`.
        key: the random key; see `Curvature.blocks`.
        iterations: the largest number of matrix-vector products; see `Curvature.blocks`.
        tolerance: the residual that counts as converged; see `Curvature.blocks`.
        basis: the number of vectors in the Krylov basis; see `Curvature.blocks`.
        dense_limit: the largest number of parameters for a dense matrix; see `Curvature.blocks`.
        batches: the list of batches, in place of `data`, if the list could also be one batch; see
            `Curvature`.
        batch_size: the number of examples in a batch; see `Curvature`.
        filter: the filter that selects parameters; see `Curvature`.
        of: the matrix, "hessian" or "ggn"; see `Curvature`.
        memory_limit: the largest number of bytes that a call may need; see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` and `Curvature.blocks` list.
    """
    made = Curvature(
        loss, params, data, batches=batches, batch_size=batch_size, filter=filter, of=of,
        memory_limit=memory_limit,
    )  # fmt: skip
    return made.blocks(
        blocks=blocks,
        heads=heads,
        key=key,
        iterations=iterations,
        tolerance=tolerance,
        basis=basis,
        dense_limit=dense_limit,
    )


def dense_hessian(
    loss: Loss,
    params: Params,
    data: Any = None,
    *,
    limit_bytes: float = 2**30,
    columns: int = 64,
    batches: Any = None,
    batch_size: int | None = None,
    filter: Filter | None = None,
    of: Of = "hessian",
    memory_limit: float = LIMIT,
) -> Float[Array, "P P"]:
    """Return the Hessian as a matrix: `Curvature(loss, params, data).dense()`.

    Args:
        loss: the loss function; see `Curvature`.
        params: the parameters of the network; see `Curvature`.
        data: one batch, a list of batches, or an iterable of batches; see `Curvature`.
        limit_bytes: the number of bytes that the matrix may need; see `Curvature.dense`.
        columns: the number of columns that are computed at a time; see `Curvature.dense`.
        batches: the list of batches, in place of `data`, if the list could also be one batch; see
            `Curvature`.
        batch_size: the number of examples in a batch; see `Curvature`.
        filter: the filter that selects parameters; see `Curvature`.
        of: the matrix, "hessian" or "ggn"; see `Curvature`.
        memory_limit: the largest number of bytes that a call may need; see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` and `Curvature.dense` list.
    """
    made = Curvature(
        loss, params, data, batches=batches, batch_size=batch_size, filter=filter, of=of,
        memory_limit=memory_limit,
    )  # fmt: skip
    return made.dense(limit_bytes=limit_bytes, columns=columns)


def extremes_memory(
    loss: Loss,
    params: Params,
    data: Any = None,
    *,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
    batches: Any = None,
    batch_size: int | None = None,
    filter: Filter | None = None,
    of: Of = "hessian",
    memory_limit: float = LIMIT,
) -> int:
    """Return the bytes that `hessian_extremes` needs: `Curvature(loss, params, data).memory()`.

    Args:
        loss: the loss function; see `Curvature`.
        params: the parameters of the network; see `Curvature`.
        data: one batch, a list of batches, or an iterable of batches; see `Curvature`.
        basis: the number of vectors in the Krylov basis; see `Curvature.memory`.
        dense_limit: the largest number of parameters for a dense matrix; see `Curvature.memory`.
        batches: the list of batches, in place of `data`, if the list could also be one batch; see
            `Curvature`.
        batch_size: the number of examples in a batch; see `Curvature`.
        filter: the filter that selects parameters; see `Curvature`.
        of: the matrix, "hessian" or "ggn"; see `Curvature`.
        memory_limit: the largest number of bytes that a call may need; see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` lists.
    """
    made = Curvature(
        loss, params, data, batches=batches, batch_size=batch_size, filter=filter, of=of,
        memory_limit=memory_limit,
    )  # fmt: skip
    return made.memory(basis=basis, dense_limit=dense_limit)
