"""The trace of a Hessian with its standard error: Hutchinson, or Hutch++ where it pays."""

from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.curvature.leaves import Filter, Params
from jaxbounds.curvature.products import Loss, Of, Problem
from jaxbounds.curvature.programs import Call
from jaxbounds.memory import LIMIT

Method = Literal["auto", "hutchinson", "hutch++"]


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


def trace(
    loss: Loss,
    params: Params,
    batches: Any = None,
    /,
    *,
    batch_size: int | None = None,
    key: jax.Array | None = None,
    products: int = 30,
    method: Method = "auto",
    filter: Filter | None = None,
    of: Of = "hessian",
    memory_limit: float = LIMIT,
) -> Trace:
    """The trace of the Hessian.

    Hutch++ (Meyer, Musco, Musco, Woodruff, SOSA 2021) spends a third of the products on a sketch of
    the dominant eigenvectors, a third on their exact part and a third on Hutchinson's estimate of
    the rest. It pays where few eigenvalues hold most of the Frobenius norm, as Hessians of networks
    do, and stores `products / 3` vectors; for a flat spectrum its error is larger by sqrt(3).
    "auto" takes it from 15 products on, where the sketch stays below 256 MiB.

    Args:
        loss: see `hessian_extremes`, as all that is not listed here.
        params: the point.
        batches: the data.
        batch_size: cuts one pytree of examples.
        key: draws the probes; `jax.random.key(0)` unless given.
        products: in all.
        method: "auto", "hutchinson" or "hutch++".
        filter: which parameters.
        of: "hessian" or "ggn".
        memory_limit: in bytes.

    Raises:
        ValueError: as `hessian_extremes`; if the method is unknown, or there are too few products
            for a standard error (2, of Hutch++ 6).
    """
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {', '.join(get_args(Method))}, got {method!r}")
    call = Call(
        _trace_kernel, loss, params, batches, batch_size=batch_size, filter=filter, of=of,
        what="the trace of the Hessian",
    )  # fmt: skip
    size = call.selection.size
    third = products // 3
    small = third * size * call.selection.dtype.itemsize <= 2**28
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
    key = jax.random.key(0) if key is None else key
    exact, samples, value = call(
        static, {"key": key}, limit=memory_limit, advice="lower products, "
    )
    estimate = exact + jnp.mean(samples)
    error = jnp.std(samples, ddof=1) / jnp.sqrt(jnp.asarray(samples.size, samples.dtype))
    if not call.traced and not bool(jnp.isfinite(estimate)):
        raise ValueError(f"products with the Hessian are not finite; the loss is {float(value)}")
    return Trace(estimate, error, products, method)
