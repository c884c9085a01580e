"""The extreme eigenpairs of a loss's Hessian: of all parameters, of blocks, of each head."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.curvature.lanczos import (
    Extremes,
    default_basis,
    default_tolerance,
    dense_extremes,
    lanczos_extremes,
    rounded,
)
from jaxbounds.curvature.leaves import Filter, Params, Selection, select
from jaxbounds.curvature.products import Loss, Of, Problem
from jaxbounds.curvature.programs import Call, refuse_memory
from jaxbounds.memory import LIMIT

DENSE_LIMIT = 1000
"""Up to this many parameters `hessian_extremes` forms the matrix: exact and fast enough."""

_ADVICE = "lower basis, give smaller batches (a list, or batch_size), or "


def _matrix(problem: Problem, columns: int) -> Float[Array, "n n"]:
    size, dtype = problem.selection.size, problem.selection.dtype
    columns = min(columns, size)
    product = problem.operator()
    basis = lambda i: (jnp.arange(size) == i).astype(dtype)
    # Whole stretches of columns: what is left over would be compiled as a program of its own.
    stretches = -(-size // columns)
    index = jnp.arange(stretches * columns).reshape(stretches, columns)
    rows = jax.lax.map(jax.vmap(lambda i: product(basis(i))), index)
    rows = rows.reshape(-1, size)[:size]
    return (rows + rows.T) / 2


def _dense_kernel(problem: Problem, static: dict, dynamic: dict) -> Float[Array, "n n"]:
    return _matrix(problem, static["columns"])


def _extremes_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple[Extremes, Array]:
    """Both ends, their vectors as pytrees, and the loss."""
    selection = problem.selection
    if static["dense"]:
        ends = dense_extremes(_matrix(problem, 64), tolerance=dynamic["tolerance"])
    else:
        ends = lanczos_extremes(
            problem.operator(), selection.size, dynamic["key"], iterations=dynamic["iterations"],
            tolerance=dynamic["tolerance"], basis=static["basis"], dtype=selection.dtype,
        )  # fmt: skip
    low, high = (
        selection.tree(v, problem.head) for v in (ends.vector_minimum, ends.vector_maximum)
    )
    ends = ends._replace(vector_minimum=low, vector_maximum=high)
    return rounded(ends, dynamic["unit"], dynamic["tolerance"]), problem.value()


def dense_hessian(
    loss: Loss,
    params: Params,
    batches: Any = None,
    /,
    *,
    limit_bytes: float = 2**30,
    batch_size: int = 64,
    filter: Filter | None = None,
    of: Of = "hessian",
) -> Float[Array, "P P"]:
    """The Hessian as a matrix over the ravelled parameters, leaf by leaf in the pytree's order.

    Columns are computed `batch_size` at a time, so that the peak is the matrix itself plus
    `batch_size` gradients. The result is symmetrised.

    Args:
        loss: `loss(params)`, or `loss(params, batch)` where batches are given.
        params: any pytree; fixed leaves have no rows.
        batches: one batch or a list of batches.
        limit_bytes: of the matrix.
        batch_size: columns at a time.
        filter: which leaves; see `hessian_extremes`.
        of: "hessian" or "ggn".

    Raises:
        ValueError: if the matrix needs more than `limit_bytes`; nothing has been allocated then.
    """
    call = Call(
        _dense_kernel, loss, params, batches, batch_size=None, filter=filter, of=of,
        what="the dense Hessian",
    )  # fmt: skip
    size, dtype = call.selection.size, call.selection.dtype
    need = float(size) ** 2 * dtype.itemsize
    refuse_memory(need, limit_bytes, call.selection, call.what, "use hessian_extremes, or ")
    return call({"columns": batch_size}, {}, limit=float("inf"))


def _call(loss, params, batches, batch_size, filter, of, heads=None) -> Call:
    return Call(
        _extremes_kernel, loss, params, batches, batch_size=batch_size, filter=filter, of=of,
        what="the extreme eigenvalues of the Hessian", heads=heads,
    )  # fmt: skip


def _options(
    selection: Selection, key, iterations, tolerance, basis, dense_limit
) -> tuple[dict, dict]:
    """Static and dynamic options of the kernel."""
    if iterations < 1 or iterations != int(iterations):
        raise ValueError(f"iterations must be a positive integer, got {iterations}")
    size, dtype = selection.size, selection.dtype
    if basis is None:
        # Of a fixed number of rows whatever the iterations, so that one program serves all.
        basis = default_basis(size, max(iterations, 64), dtype)
    elif basis < min(8, size):
        raise ValueError(f"the basis needs at least 8 rows to restart, got {basis}")
    if tolerance is None:
        tolerance = default_tolerance(size, dtype)
    elif not isinstance(tolerance, jax.core.Tracer) and not tolerance >= 0:
        raise ValueError(f"tolerance is relative and cannot be negative, got {tolerance}")
    dense = size <= dense_limit
    static = {"dense": dense, "basis": None if dense else min(basis, size)}
    key = jax.random.key(0) if key is None else key
    dynamic = {
        "key": key,
        "iterations": jnp.asarray(iterations, jnp.int32),
        "tolerance": jnp.asarray(tolerance, dtype),
    }
    return static, dynamic


def _checked(found: tuple[Extremes, Array], traced: bool, finite: bool = True):
    """Refuse what is not finite, where it can be looked at."""
    ends, loss = found
    if traced or not finite:
        return found
    if not np.isfinite(loss):
        raise ValueError(
            f"the loss is {float(loss)} at these parameters: it has no curvature there"
        )
    if not np.isfinite([ends.minimum, ends.maximum]).all():
        raise ValueError(
            f"the loss is {float(loss):.6g}, but products with its Hessian are not finite: look "
            "for a root, a norm or a logarithm at 0"
        )
    return found


def extremes_and_loss(
    loss: Loss,
    params: Params,
    batches: Any = None,
    /,
    *,
    batch_size: int | None = None,
    key: jax.Array | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
    filter: Filter | None = None,
    of: Of = "hessian",
    memory_limit: float = LIMIT,
    heads: Mapping[str, int] | None = None,
    head: int | Array | None = None,
    finite: bool = True,
) -> tuple[Extremes, Float[Array, ""]]:
    """`hessian_extremes` and the mean loss at the same point, from one program.

    Args:
        loss: see `hessian_extremes`, as all that is not listed here.
        params: the point.
        batches: the data.
        batch_size: cuts one pytree of examples.
        key: starts Lanczos.
        iterations: products at most.
        tolerance: of the residuals.
        basis: rows kept.
        dense_limit: parameters up to which the matrix is formed.
        filter: which leaves.
        of: which matrix.
        memory_limit: in bytes.
        heads: the axis of the heads for each pattern of a path, for the block of one head.
        head: which head; one program serves all.
        finite: whether to raise for a loss that is not finite.

    Raises:
        ValueError: see `hessian_extremes`.
    """
    call = _call(loss, params, batches, batch_size, filter, of, heads)
    static, dynamic = _options(call.selection, key, iterations, tolerance, basis, dense_limit)
    if static["basis"]:
        # Before compiling, from the rows alone.
        least = static["basis"] * call.selection.size * call.selection.dtype.itemsize
        refuse_memory(least, memory_limit, call.selection, call.what, _ADVICE)
    dynamic["unit"] = jnp.asarray(call.unit, call.selection.dtype)
    found = call(static, dynamic, limit=memory_limit, advice=_ADVICE, head=head)
    return _checked(found, call.traced, finite)


def hessian_extremes(
    loss: Loss,
    params: Params,
    batches: Any = None,
    /,
    *,
    batch_size: int | None = None,
    key: jax.Array | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
    filter: Filter | None = None,
    of: Of = "hessian",
    memory_limit: float = LIMIT,
) -> Extremes:
    """The least and the greatest eigenvalue of the Hessian, with residuals and eigenvectors.

    Dense up to `dense_limit` parameters, Lanczos with thick restarts beyond. Look at `converged`
    before using the values. The loss is traced at each call, as it is then; what is compiled serves
    all later calls whose trace is the same, with other numbers, parameters and batches of those
    shapes. It may also be called inside of `jit` and `vmap`, where what needs values is not
    checked.

    Args:
        loss: `loss(params)`, or `loss(params, batch)` where batches are given: one real number.
        params: any pytree, linen variables, an nnx module or state, an Equinox module. Arrays of
            real numbers are differentiated, all else is held fixed, and so are statistics (linen's
            batch_stats, nnx variables other than `nnx.Param`) and the state of an optax optimiser;
            bfloat16 parameters compute in float32. A loss that rounds to fewer digits than its
            parameters have (mixed precision) never converges: see `Extremes.noise`.
        batches: one batch (any pytree), or a list of batches of one shape whose losses are averaged
            in the memory of one of them. The extremes of one minibatch are not those of the data:
            its least eigenvalue is as a rule several times too negative.
        batch_size: cuts one pytree of examples (n, ...) into batches instead.
        key: starts Lanczos; `jax.random.key(0)` unless given.
        iterations: products at most (two more measure the residuals); it stops when both ends have
            converged.
        tolerance: of the residuals, relative to the spectral scale; max(1e-8, eps max(32,
            sqrt(size))) unless given. 0 does all iterations.
        basis: rows of the Krylov basis, each as long as the parameters; unless given 32, or what
            8 MiB hold. More rows, fewer iterations.
        dense_limit: see above.
        filter: which parameters, the rest held fixed: a part of their path or a pattern
            ("attention", "block_*/kernel"), several, a function of the path, or a kind of
            `nnx.Variable`. The eigenvalues are then those of that block.
        of: "hessian", or "ggn" (then `loss` is a `Composite`).
        memory_limit: in bytes, for the whole call; `extremes_memory` says what one needs.

    Raises:
        ValueError: if the loss is no real number, is not finite, is another one at each call, or
            draws random numbers from a state that it holds; if no parameter is left; if batches
            differ in shape; if the call needs more memory than the limit (nothing has been run
            then).
    """
    return extremes_and_loss(
        loss, params, batches, batch_size=batch_size, key=key, iterations=iterations,
        tolerance=tolerance, basis=basis, dense_limit=dense_limit, filter=filter, of=of,
        memory_limit=memory_limit,
    )[0]  # fmt: skip


def extremes_memory(
    loss: Loss,
    params: Params,
    batches: Any = None,
    /,
    *,
    batch_size: int | None = None,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
    filter: Filter | None = None,
    of: Of = "hessian",
) -> int:
    """Bytes that `hessian_extremes` with these options needs, parameters and data included.

    The program is compiled, and not run. See `hessian_extremes` for the arguments.
    """
    call = _call(loss, params, batches, batch_size, filter, of)
    static, dynamic = _options(call.selection, None, 1, None, basis, dense_limit)
    return call.bytes(static, dynamic | {"unit": jnp.asarray(call.unit, call.selection.dtype)})


def block_extremes(
    loss: Loss,
    params: Params,
    batches: Any = None,
    /,
    *,
    blocks: Mapping[str, Filter] | None = None,
    heads: Mapping[str, int] | None = None,
    **options: Any,
) -> dict[str, Extremes]:
    """The extremes of diagonal blocks of the Hessian, by name.

    Args:
        loss: see `hessian_extremes`.
        params: see `hessian_extremes`.
        batches: see `hessian_extremes`.
        blocks: for each name which parameters ({"attention": "attention", "first": "block_0/*"}).
        heads: the axis of the heads for each pattern of a path; adds the blocks "head 0", "head 1",
            ... of the parameters of each head. `head_axes(params)` finds those of Flax's attention.
        **options: of `hessian_extremes`.

    Raises:
        ValueError: if a block matches nothing (the nearest paths are named), and as
            `hessian_extremes`.
    """
    if not isinstance(blocks or {}, Mapping):
        raise ValueError(f"blocks must give a filter for each name, got {blocks!r}")
    found = {
        name: hessian_extremes(loss, params, batches, filter=chosen, **options)
        for name, chosen in (blocks or {}).items()
    }
    if heads:
        for head in range(select(params, heads=heads).heads or 0):
            found[f"head {head}"] = extremes_and_loss(
                loss, params, batches, heads=heads, head=head, **options
            )[0]
    return found
