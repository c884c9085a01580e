"""The trace of a Hessian with its standard error: Hutchinson, or Hutch++ where it pays."""

from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.curvature.products import Problem
from jaxbounds.curvature.programs import Point, as_key
from jaxbounds.shown import Table, number, shown

Method = Literal["auto", "hutchinson", "hutch++"]


@shown
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


def _trace_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, Array, Array]:
    """The exact part, one estimate of the rest for each probe, and the loss."""
    operator, size, dtype = problem.operator(), problem.selection.size, problem.selection.dtype
    sketch_key, probe_key = jax.random.split(dynamic["key"])
    signs = lambda key, count: [
        jax.random.rademacher(k, (size,), dtype) for k in jax.random.split(key, count)
    ]
    high = jax.lax.Precision.HIGHEST
    exact, rows = jnp.zeros((), dtype), None
    if static["sketch"]:
        drawn = jax.lax.map(operator, jnp.stack(signs(sketch_key, static["sketch"])))
        rows = jnp.linalg.qr(drawn.T)[0].T
        exact = jnp.sum(jax.lax.map(lambda q: q @ operator(q), rows))

    def probe(key):
        z = jax.random.rademacher(key, (size,), dtype)
        if rows is not None:
            z = z - jnp.dot(jnp.dot(rows, z, precision=high), rows, precision=high)
        return z @ operator(z)

    samples = jax.lax.map(probe, jax.random.split(probe_key, static["probes"]))
    return exact, samples, problem.value()


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
    exact, samples, value = point.run(
        _trace_kernel, static, {"key": key}, limit=memory_limit, what="the trace of the Hessian",
        advice="lower products, ",
    )  # fmt: skip
    estimate = exact + jnp.mean(samples)
    error = jnp.std(samples, ddof=1) / jnp.sqrt(jnp.asarray(samples.size, samples.dtype))
    point.refuse_not_finite(value, estimate)
    point.refuse_constant(samples, exact)
    return Trace(estimate, error, products, method)
