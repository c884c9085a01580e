"""How far the curvature of a minibatch is from that of the data."""

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
    """The least eigenvalue of the mean over the first 1, 2, 4, ... batches, and over all.

    Shows how far the value of a minibatch is from that of the data, and how it settles.

    Args:
        loss: `loss(params, batch)`.
        params: the point.
        batches: a list of batches of one shape: all data.
        **options: of `Curvature.extremes`.

    Raises:
        Refused: if fewer than two batches are given, and as `Curvature`.
    """
    if not isinstance(batches, list) or len(batches) < 2:
        raise Refused("give a list of at least two batches")
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
