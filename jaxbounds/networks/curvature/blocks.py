"""Find extreme eigenvalues of a matrix's diagonal block from products with vectors."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.networks.curvature.engine import product_at
from jaxbounds.networks.curvature.extremes import (
    DENSE_LIMIT,
    WHAT,
    extremes_at,
    hosted_extremes,
    lanczos_options,
    rows_of,
)
from jaxbounds.networks.curvature.filters import Filter
from jaxbounds.networks.curvature.lanczos import Extremes
from jaxbounds.networks.curvature.leaves import Selection, select
from jaxbounds.networks.curvature.programs import Point
from jaxbounds.networks.curvature.shared import Run
from jaxbounds.networks.curvature.short import ShortRun, is_short

LEAST = 8
"""The smallest number of products of the matrix with vectors that Lanczos computes for a block.

A larger number of products costs more time, and misses fewer eigenvalues.
"""


def mask_of(whole: Selection, block: Selection, /) -> Float[Array, " n"] | None:
    """Return a vector (mask) with 1 at each parameter of the block, and 0 elsewhere.

    The result is None if the selection `whole` lacks a parameter of the block.
    """
    taken = [bool(entry) for entry in block.chosen]
    if any(inside and not entry for inside, entry in zip(taken, whole.chosen)):
        return None
    sizes = [math.prod(entry[1]) for entry in whole.chosen if entry]
    inside = [inside for inside, entry in zip(taken, whole.chosen) if entry]
    return jnp.asarray(np.repeat(inside, sizes), whole.dtype)


def _inside(whole: Selection, block: Selection, vector: Array) -> Any:
    pairs = zip(whole.pieces(vector), [b for b, w in zip(block.chosen, whole.chosen) if w])
    return block.tree_of([piece for piece, inside in pairs if inside])


def block_at(
    point: Point,
    at: Callable[..., Point],
    chosen: Filter,
    /,
    *,
    memory_limit: float,
    dense_limit: int = DENSE_LIMIT,
    basis: int | None = None,
    finite: bool = True,
    key: jax.Array | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
) -> tuple[Extremes, Float[Array, ""]]:
    """Return the extreme eigenpairs of a diagonal block, and the loss.

    A large block uses the product with the whole matrix, on vectors that are 0 outside the block. A
    block with few parameters and a short program gets its own product, on vectors of its own
    parameters. The function forms a small block as a matrix. `at` returns the `Point` (a loss with
    its parameters) of a block. The options are those of `Curvature.extremes`.
    """
    given: Mapping[str, Any] = {
        "key": key, "iterations": iterations, "tolerance": tolerance, "basis": basis,
    }  # fmt: skip
    whole, mask = point.selection, None
    rows = 2**62
    if not point.is_traced:
        block = select(point.params, chosen)
        mask = mask_of(whole, block) if block.size > dense_limit else None
        static, dynamic = lanczos_options(whole, dense_limit=0, **given)
        rows = rows_of(static["basis"])
    room = rows * whole.size * whole.dtype.itemsize < memory_limit
    if mask is None or not room or block.dtype != whole.dtype:
        return extremes_at(
            at(filter=chosen), memory_limit=memory_limit, dense_limit=dense_limit, finite=finite,
            **given,
        )  # fmt: skip
    dynamic["unit"] = jnp.asarray(point.unit, whole.dtype)
    product = product_at(point, limit=memory_limit, rows=rows, what=WHAT)
    taken = tuple(bool(inside) for inside, entry in zip(block.chosen, whole.chosen) if entry)
    short = basis is None and is_short(block.size, int(iterations))
    operator = product.short_block(taken, block) if short else None
    if operator is not None:
        rows = min(int(iterations), block.size)
        run: Run = ShortRun(operator, dynamic["key"], rows, dtype=block.dtype, size=block.size)
    else:
        operator = product.block(taken, mask)
        run = Run(operator, dynamic["key"], static["basis"], dtype=whole.dtype, mask=mask)
    ends = hosted_extremes(run, dynamic, space=block.size, least=LEAST)
    if finite:
        point.refuse_not_finite(product.value, ends.minimum, ends.maximum)
    if not (float(ends.minimum) or float(ends.maximum)):
        at(filter=chosen).refuse_constant(ends.minimum)
    tree = lambda v: block.tree(v) if isinstance(run, ShortRun) else _inside(whole, block, v)
    low, high = tree(ends.vector_minimum), tree(ends.vector_maximum)
    return ends._replace(vector_minimum=low, vector_maximum=high), product.value
