"""One question at a time, without keeping the operator: each is `Curvature(...)` and a method.

`batches`, `batch_size`, `filter`, `of` and `memory_limit` are of `Curvature`, the other options of
the method.
"""

from typing import Any

from jaxtyping import Array, Float

from jaxbounds.networks.curvature.convexity import WeakConvexity
from jaxbounds.networks.curvature.lanczos import Extremes
from jaxbounds.networks.curvature.operator import Curvature
from jaxbounds.networks.curvature.paths import Params
from jaxbounds.networks.curvature.products import Loss
from jaxbounds.networks.curvature.spectrum import Spectrum
from jaxbounds.networks.curvature.trace import Trace

_OF_OPERATOR = ("batches", "batch_size", "filter", "of", "memory_limit")


def _made(loss: Loss, params: Params, data: Any, options: dict[str, Any]) -> Curvature:
    given = {name: options.pop(name) for name in _OF_OPERATOR if name in options}
    return Curvature(loss, params, data, **given)


def hessian_extremes(loss: Loss, params: Params, data: Any = None, **options: Any) -> Extremes:
    """`Curvature(loss, params, data).extremes()`: both ends of the Hessian's spectrum."""
    return _made(loss, params, data, options).extremes(**options)


def spectrum(loss: Loss, params: Params, data: Any = None, **options: Any) -> Spectrum:
    """`Curvature(loss, params, data).spectrum()`: the density of the Hessian's eigenvalues."""
    return _made(loss, params, data, options).spectrum(**options)


def trace(loss: Loss, params: Params, data: Any = None, **options: Any) -> Trace:
    """`Curvature(loss, params, data).trace()`: the Hessian's trace, with its standard error."""
    return _made(loss, params, data, options).trace(**options)


def weak_convexity(loss: Loss, params: Params, data: Any = None, **options: Any) -> WeakConvexity:
    """`Curvature(loss, params, data).weak_convexity()`: -lambda_min / L, from below."""
    return _made(loss, params, data, options).weak_convexity(**options)


def block_extremes(
    loss: Loss, params: Params, data: Any = None, **options: Any
) -> dict[str, Extremes]:
    """`Curvature(loss, params, data).blocks()`: the extremes of diagonal blocks."""
    return _made(loss, params, data, options).blocks(**options)


def dense_hessian(
    loss: Loss, params: Params, data: Any = None, **options: Any
) -> Float[Array, "P P"]:
    """`Curvature(loss, params, data).dense()`: the Hessian as a matrix."""
    return _made(loss, params, data, options).dense(**options)


def extremes_memory(loss: Loss, params: Params, data: Any = None, **options: Any) -> int:
    """`Curvature(loss, params, data).memory()`: bytes that its extremes need."""
    return _made(loss, params, data, options).memory(**options)
