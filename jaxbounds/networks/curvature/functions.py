"""Functions that answer a single question.

Each makes a `Curvature` and calls one method of the `Curvature`.
"""

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
    """`Curvature(loss, params, data).extremes()`: both ends of the Hessian's spectrum.

    Args:
        loss: see `Curvature`.
        params: see `Curvature`.
        data: see `Curvature`.
        key: see `Curvature.extremes`.
        iterations: see `Curvature.extremes`.
        tolerance: see `Curvature.extremes`.
        basis: see `Curvature.extremes`.
        dense_limit: see `Curvature.extremes`.
        batches: see `Curvature`.
        batch_size: see `Curvature`.
        filter: see `Curvature`.
        of: see `Curvature`.
        memory_limit: see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` or its method lists.
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
    """`Curvature(loss, params, data).spectrum()`: the density of the Hessian's eigenvalues.

    Args:
        loss: see `Curvature`.
        params: see `Curvature`.
        data: see `Curvature`.
        key: see `Curvature.spectrum`.
        probes: see `Curvature.spectrum`.
        iterations: see `Curvature.spectrum`.
        batches: see `Curvature`.
        batch_size: see `Curvature`.
        filter: see `Curvature`.
        of: see `Curvature`.
        memory_limit: see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` or its method lists.
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
    """`Curvature(loss, params, data).trace()`: the Hessian's trace, with its standard error.

    Args:
        loss: see `Curvature`.
        params: see `Curvature`.
        data: see `Curvature`.
        key: see `Curvature.trace`.
        products: see `Curvature.trace`.
        method: see `Curvature.trace`.
        batches: see `Curvature`.
        batch_size: see `Curvature`.
        filter: see `Curvature`.
        of: see `Curvature`.
        memory_limit: see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` or its method lists.
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
    """`Curvature(loss, params, data).weak_convexity()`: lower estimates of -lambda_min / L.

    Args:
        loss: see `Curvature`.
        params: see `Curvature`.
        data: see `Curvature`.
        heads: see `Curvature.weak_convexity`.
        kappa: see `Curvature.weak_convexity`.
        key: see `Curvature.weak_convexity`.
        iterations: see `Curvature.weak_convexity`.
        tolerance: see `Curvature.weak_convexity`.
        basis: see `Curvature.weak_convexity`.
        dense_limit: see `Curvature.weak_convexity`.
        batches: see `Curvature`.
        batch_size: see `Curvature`.
        filter: see `Curvature`.
        of: see `Curvature`.
        memory_limit: see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` or its method lists.
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
    """`Curvature(loss, params, data).blocks()`: the extremes of diagonal blocks.

    Args:
        loss: see `Curvature`.
        params: see `Curvature`.
        data: see `Curvature`.
        blocks: see `Curvature.blocks`.
        heads: see `Curvature.blocks`.
        key: see `Curvature.blocks`.
        iterations: see `Curvature.blocks`.
        tolerance: see `Curvature.blocks`.
        basis: see `Curvature.blocks`.
        dense_limit: see `Curvature.blocks`.
        batches: see `Curvature`.
        batch_size: see `Curvature`.
        filter: see `Curvature`.
        of: see `Curvature`.
        memory_limit: see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` or its method lists.
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
    """`Curvature(loss, params, data).dense()`: the Hessian as a matrix.

    Args:
        loss: see `Curvature`.
        params: see `Curvature`.
        data: see `Curvature`.
        limit_bytes: see `Curvature.dense`.
        columns: see `Curvature.dense`.
        batches: see `Curvature`.
        batch_size: see `Curvature`.
        filter: see `Curvature`.
        of: see `Curvature`.
        memory_limit: see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` or its method lists.
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
    """`Curvature(loss, params, data).memory()`: the bytes that `hessian_extremes` needs.

    Args:
        loss: see `Curvature`.
        params: see `Curvature`.
        data: see `Curvature`.
        basis: see `Curvature.memory`.
        dense_limit: see `Curvature.memory`.
        batches: see `Curvature`.
        batch_size: see `Curvature`.
        filter: see `Curvature`.
        of: see `Curvature`.
        memory_limit: see `Curvature`.

    Raises:
        Refused: in the cases that `Curvature` or its method lists.
    """
    made = Curvature(
        loss, params, data, batches=batches, batch_size=batch_size, filter=filter, of=of,
        memory_limit=memory_limit,
    )  # fmt: skip
    return made.memory(basis=basis, dense_limit=dense_limit)
