"""Measure how far the curvature of a minibatch is from the curvature of all data."""

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.extras import require
from jaxbounds.networks.curvature.operator import Curvature
from jaxbounds.networks.curvature.paths import Params
from jaxbounds.networks.curvature.products import Loss

if TYPE_CHECKING:  # slow to import
    import xarray

_NUMBERS = ("minimum", "maximum", "residual_minimum", "residual_maximum")


def minibatch_bias(loss: Loss, params: Params, batches: Any, /, **options: Any) -> "xarray.Dataset":
    """Return the least Hessian eigenvalue of the mean loss over the first 1, 2, 4, ... batches.

    The last returned eigenvalue is the least eigenvalue over all batches. The earlier eigenvalues,
    over fewer batches, show their distance from the last eigenvalue, and how many batches suffice.

    Args:
        loss: `loss(params, batch)`.
        params: the parameters at which the Hessian is computed.
        batches: all data, as a list of batches of equal shape.
        **options: further options, which the function passes to `Curvature.extremes`.

    Raises:
        Refused: if fewer than two batches are given, and in the cases that `Curvature` lists.
    """
    if not isinstance(batches, list) or len(batches) < 2:
        raise Refused(
            f"batches has type={type(batches).__name__}, expected a list of at least two batches. "
            "Try batches=[first, second]"
        )
    sizes = [2**i for i in range(len(batches).bit_length()) if 2**i < len(batches)]
    sizes.append(len(batches))
    at = lambda size: Curvature(loss, params, batches=batches[:size])
    found = [at(size).extremes_and_loss(**options) for size in sizes]
    variables = {
        name: ("batches", np.asarray([getattr(ends, name) for ends, _ in found]))
        for name in _NUMBERS
    }
    variables["loss"] = ("batches", np.asarray([value for _, value in found]))
    require("xarray", why="data sets")
    import xarray

    return xarray.Dataset(variables, coords={"batches": sizes})
