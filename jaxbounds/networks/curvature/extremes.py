"""Find extreme eigenpairs of a loss's Hessian, for all parameters, for blocks, or for each head."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.curvature.engine import hosted_bytes, run_hosted
from jaxbounds.networks.curvature.lanczos import (
    LEAST_BASIS,
    Extremes,
    Wanted,
    default_basis,
    default_tolerance,
    dense_extremes,
    lanczos_extremes,
    rounded,
)
from jaxbounds.networks.curvature.leaves import Selection
from jaxbounds.networks.curvature.products import Problem
from jaxbounds.networks.curvature.programs import Point, as_key
from jaxbounds.networks.curvature.shared import Found, Run, pairs_of
from jaxbounds.networks.options import number, whole

DENSE_LIMIT = 1000
"""The largest number of parameters for which the library forms the whole Hessian matrix.

A larger number makes the results exact for larger networks, but takes more time and memory.
"""

WHAT = "the extreme eigenvalues of the Hessian"
_ADVICE = "lower basis, give smaller batches (a list, or batch_size), or "


def matrix_of(problem: Problem, columns: int, /) -> Float[Array, "n n"]:
    """Return the Hessian as a symmetrised matrix, computed `columns` columns at a time."""
    size, dtype = problem.selection.size, problem.selection.dtype
    columns = min(columns, size)
    product = problem.operator()
    basis = lambda i: (jnp.arange(size) == i).astype(dtype)
    # Whole stretches of columns: a shorter last stretch would compile another program.
    stretches = -(-size // columns)
    index = jnp.arange(stretches * columns).reshape(stretches, columns)
    rows = jax.lax.map(jax.vmap(lambda i: product(basis(i))), index)
    rows = rows.reshape(-1, size)[:size]
    return (rows + rows.T) / 2


def _dense_kernel(problem: Problem, static: dict, dynamic: dict) -> Float[Array, "n n"]:
    return matrix_of(problem, static["columns"])


def _extremes_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple[Extremes, Array]:
    selection = problem.selection
    if static["dense"]:
        ends = dense_extremes(matrix_of(problem, 64), tolerance=dynamic["tolerance"])
    else:
        ends = lanczos_extremes(
            problem.operator(), selection.size, dynamic["key"], iterations=dynamic["iterations"],
            tolerance=dynamic["tolerance"], basis=static["basis"], dtype=selection.dtype,
        )  # fmt: skip
    return rounded(ends, dynamic["unit"], dynamic["tolerance"]), problem.value()


def dense_at(point: Point, /, *, limit_bytes: float = 2**30, columns: int = 64) -> Array:
    """Return the Hessian as a matrix over the ravelled parameters; see `Curvature.dense`."""
    whole("columns", columns)
    limit_bytes = number("limit_bytes", limit_bytes, example="1e9")
    need = float(point.selection.size) ** 2 * point.selection.dtype.itemsize
    what = "the dense Hessian"
    point.refuse(need, limit_bytes, what, "use hessian_extremes, or ")
    matrix = point.run(_dense_kernel, {"columns": columns}, {}, limit=float("inf"), what=what)
    point.refuse_constant(matrix)
    return matrix


def lanczos_options(
    selection: Selection,
    key: jax.Array | None,
    iterations: Any,
    tolerance: Any,
    basis: Any,
    dense_limit: int,
) -> tuple[dict, dict]:
    """Return the options of Lanczos as two dicts: compiled constants, and the program's arguments.

    Raises:
        Refused: if an option of Lanczos is out of its range.
    """
    usual = isinstance(iterations, int | float | np.number | jax.Array)
    usual = usual and not isinstance(iterations, bool)
    traced = isinstance(iterations, jax.core.Tracer)
    if not usual or not (traced or (iterations >= 1 and iterations == int(iterations))):
        raise Refused(
            f"iterations must be a positive integer, got {iterations!r}. Try iterations=200"
        )
    size, dtype = selection.size, selection.dtype
    if basis is None:
        # The number of rows does not depend on small `iterations`, so one program serves all of
        # them.
        basis = default_basis(size, max(iterations, 64), dtype)
    elif whole("basis", basis, least=None) < min(8, size):
        raise Refused(
            f"basis={basis}, expected at least 8 rows, which a restart needs. Try basis=8"
        )
    if tolerance is None:
        tolerance = default_tolerance(size, dtype)
    elif not isinstance(tolerance, jax.core.Tracer) and not (
        0 <= number("tolerance", tolerance, above=-np.inf, example="1e-4") < np.inf
    ):
        raise Refused(
            "tolerance must be a finite number >= 0, relative to the spectral scale, got "
            f"{tolerance}. Try tolerance=1e-6"
        )
    dense = size <= whole("dense_limit", dense_limit, least=0)
    static = {"dense": dense, "basis": None if dense else min(basis, size)}
    key = as_key(key)
    dynamic = {
        "key": key,
        "iterations": jnp.asarray(iterations, jnp.int32),
        "tolerance": jnp.asarray(tolerance, dtype),
    }
    return static, dynamic


def extremes_at(
    point: Point,
    /,
    *,
    memory_limit: float,
    key: jax.Array | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
    head: int | Array | None = None,
    finite: bool = True,
) -> tuple[Extremes, Float[Array, ""]]:
    """Return the Hessian's extreme eigenvalues, and the mean loss; see `Curvature.extremes`.

    If `head` is given, `point` restricts the Hessian to the parameters of one attention head. One
    compiled program serves all heads. If `finite` is true, the function refuses a loss that is not
    finite.

    Raises:
        Refused: in the cases that `Curvature` lists.
    """
    selection = point.selection
    # A product reads the whole stream, so a dense matrix would take one pass for each column.
    limit = 0 if point.stream is not None else dense_limit
    static, dynamic = lanczos_options(selection, key, iterations, tolerance, basis, limit)
    if static["basis"]:
        # The memory of the rows alone is checked before anything is compiled.
        least = static["basis"] * selection.size * selection.dtype.itemsize
        point.refuse(least, memory_limit, WHAT, _ADVICE)
    dynamic["unit"] = jnp.asarray(point.unit, selection.dtype)
    whole = not static["dense"] and head is None
    ends, loss = run_hosted(
 point,
        _extremes_kernel, static, dynamic, limit=memory_limit, what=WHAT, advice=_ADVICE, head=head,
        hosted=_hosted if whole else None, rows=rows_of(static["basis"]) if whole else 0,
    )  # fmt: skip
    if finite:
        point.refuse_not_finite(loss, ends.minimum, ends.maximum)
    point.refuse_constant(ends.minimum, ends.maximum, head=head)
    # This is outside of the program, in whose results a shared Variable would be two Variables.
    low, high = (selection.tree(v, head) for v in (ends.vector_minimum, ends.vector_maximum))
    return ends._replace(vector_minimum=low, vector_maximum=high), loss


def pairs_in(
    run: Run, wanted: Wanted, /, dynamic: dict, *, least: int, space: int, floor: float = -np.inf
) -> Found:
    """Return a Krylov run's Ritz pairs (approximate eigenpairs); see `lanczos_options` for options.

    The run never needs more products than `space`, the dimension of the vectors. If the upper end
    of the spectrum lies below `floor`, the upper eigenpairs need not converge.
    """
    limit = int(dynamic["iterations"])
    limit = min(limit, space) if run.rows >= space else limit
    tolerance = float(dynamic["tolerance"])
    return pairs_of(run, wanted, tolerance=tolerance, limit=limit, least=least, floor=floor)


def rows_of(basis: int, /) -> int:
    """Return the number of vectors in memory while Lanczos with `basis` rows runs."""
    return basis + basis // 2 + 4


def hosted_extremes(run: Run, dynamic: dict, /, *, space: int, least: int) -> Extremes:
    """Compute the least and the greatest eigenvalue by Python loops around a compiled product."""
    found = pairs_in(run, Wanted(1, 1), dynamic, least=least, space=space)
    (low, least_value, low_residual), (high, greatest, high_residual) = found.pairs
    tolerance, unit = (np.asarray(dynamic[name]) for name in ("tolerance", "unit"))
    scale, eps = max(abs(least_value), abs(greatest)), jnp.finfo(low.dtype).eps
    fine = unit <= max(tolerance, eps)
    small = [
        bool(np.isfinite(value) and residual <= tolerance * scale and fine)
        for value, residual in ((least_value, low_residual), (greatest, high_residual))
    ]
    one = jnp.asarray
    return Extremes(
        minimum=one(least_value), maximum=one(greatest), residual_minimum=one(low_residual),
        residual_maximum=one(high_residual), iterations=one(found.products, jnp.int32),
        converged_minimum=one(small[0]), converged_maximum=one(small[1]), vector_minimum=low,
        vector_maximum=high, noise=one(unit * scale, low.dtype),
    )  # fmt: skip


def _hosted(product: Any, selection: Selection, static: dict, dynamic: dict) -> tuple:
    # This fills the rows that the other methods share.
    run = product.run(dynamic["key"], static["basis"])
    ends = hosted_extremes(run, dynamic, space=selection.size, least=LEAST_BASIS)
    return ends, product.value


def memory_at(point: Point, /, *, basis: int | None = None, dense_limit: int = DENSE_LIMIT) -> int:
    """Return the bytes of memory that `extremes_at` needs; see `Curvature.memory`."""
    static, dynamic = lanczos_options(point.selection, None, 1, None, basis, dense_limit)
    if not static["dense"]:
        return hosted_bytes(point, rows_of(static["basis"]))
    dynamic["unit"] = jnp.asarray(point.unit, point.selection.dtype)
    return point.bytes(_extremes_kernel, static, dynamic)
