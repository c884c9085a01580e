"""The trace of a Hessian with its standard error: Hutchinson, or Hutch++ where it pays."""

from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.networks.curvature.engine import run_hosted
from jaxbounds.networks.curvature.lanczos import Operator, images_of
from jaxbounds.networks.curvature.products import Problem
from jaxbounds.networks.curvature.programs import Point, as_key

Method = Literal["auto", "hutchinson", "hutch++"]


@with_table
class Trace(NamedTuple):
    """An estimate of a trace.

    Attributes:
        estimate: unbiased.
        standard_error: of it, from the spread over the probes.
        products: used.
        method: "hutchinson" or "hutch++".
    """

    estimate: Float[Array, ""]
    standard_error: Float[Array, ""]
    products: int
    method: str

    def _table(self) -> Table:
        estimate = f"{number(self.estimate)} +- {number(self.standard_error)}"
        return Table(f"trace {estimate} ({self.products} products, {self.method})")


@jax.jit
def _orthonormal(rows: Array) -> Array:
    return jnp.linalg.qr(rows.T)[0].T


@jax.jit
def _less(rows: Array, vectors: Array) -> Array:
    """Vectors less their projections on orthonormal rows."""
    high = jax.lax.Precision.HIGHEST
    return vectors - jnp.dot(jnp.dot(vectors, rows.T, precision=high), rows, precision=high)


def _estimated(
    operator: Operator, size: int, dtype: Any, key: Array, static: dict, *, hosted: bool
) -> tuple[Array, Array]:
    """The exact part, and one estimate of the rest for each probe."""
    sketch_key, probe_key = jax.random.split(key)
    signs = lambda key, count: jnp.stack(
        [jax.random.rademacher(k, (size,), dtype) for k in jax.random.split(key, count)]
    )
    exact, rows = jnp.zeros((), dtype), None
    if static["sketch"]:
        drawn = images_of(operator, signs(sketch_key, static["sketch"]), hosted=hosted)
        rows = _orthonormal(drawn)
        exact = jnp.sum(rows * images_of(operator, rows, hosted=hosted))
    probes = signs(probe_key, static["probes"])
    probes = probes if rows is None else _less(rows, probes)
    return exact, jnp.sum(probes * images_of(operator, probes, hosted=hosted), axis=1)


def _trace_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, Array, Array]:
    """The exact part, one estimate of the rest for each probe, and the loss."""
    selection = problem.selection
    found = _estimated(
        problem.operator(), selection.size, selection.dtype, dynamic["key"], static, hosted=False
    )
    return *found, problem.value()


def _hosted(product: Any, selection: Any, static: dict, dynamic: dict) -> tuple:
    found = _estimated(
        product, selection.size, selection.dtype, dynamic["key"], static, hosted=True
    )
    return *found, product.value


def trace_at(
    point: Point,
    /,
    *,
    memory_limit: float,
    key: jax.Array | None = None,
    products: int = 30,
    method: Method = "auto",
) -> Trace:
    """The trace of the Hessian; see `Curvature.trace`.

    Raises:
        ValueError: as there.
    """
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {', '.join(get_args(Method))}, got {method!r}")
    size = point.selection.size
    third = products // 3
    small = third * size * point.selection.dtype.itemsize <= 2**28
    if method == "auto":
        method = "hutch++" if products >= 15 and small and third <= size else "hutchinson"
    least = 6 if method == "hutch++" else 2
    if products < least:
        raise ValueError(f"{method} needs at least {least} products, got {products}")
    if method == "hutch++" and third > size:
        raise ValueError(
            f"a third of {products} products is more than the {size} parameters: use "
            "method='hutchinson', or the dense Hessian"
        )
    sketch = third if method == "hutch++" else 0
    static = {"sketch": sketch, "probes": products - 2 * sketch}
    key = as_key(key)
    exact, samples, value = run_hosted(
 point,
        _trace_kernel, static, {"key": key}, limit=memory_limit, what="the trace of the Hessian",
        advice="lower products, ", hosted=_hosted, rows=4 * max(sketch, static["probes"]),
    )  # fmt: skip
    estimate = exact + jnp.mean(samples)
    error = jnp.std(samples, ddof=1) / jnp.sqrt(jnp.asarray(samples.size, samples.dtype))
    point.refuse_not_finite(value, estimate)
    point.refuse_constant(samples, exact)
    return Trace(estimate, error, products, method)
