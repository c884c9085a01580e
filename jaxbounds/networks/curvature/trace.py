"""Estimate a Hessian's trace, with standard error, by Hutchinson, Hutch++ or a Krylov space."""

from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.networks.curvature.engine import run_hosted
from jaxbounds.networks.curvature.lanczos import Operator, default_basis, images_of
from jaxbounds.networks.curvature.products import Problem
from jaxbounds.networks.curvature.programs import Point, as_key
from jaxbounds.networks.options import whole

Method = Literal["auto", "hutchinson", "hutch++", "krylov"]

SHARE = 5
"""The method "krylov" uses a fraction 1 / SHARE of its products for random vectors (probes), which
estimate the trace outside the Krylov space.

A larger SHARE shares more products with other methods, and estimates the trace outside the Krylov
space less accurately.
"""


@with_table
class Trace(NamedTuple):
    """An estimate of a matrix's trace.

    Attributes:
        estimate: the unbiased estimate of the trace.
        standard_error: the standard error of the estimate, from the spread over the random vectors.
        products: the number of products of the matrix with vectors.
        method: the method that made the estimate, "hutchinson", "hutch++" or "krylov".
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
    high = jax.lax.Precision.HIGHEST
    return vectors - jnp.dot(jnp.dot(vectors, rows.T, precision=high), rows, precision=high)


def _estimated(
    operator: Operator, size: int, dtype: Any, key: Array, static: dict, *, hosted: bool
) -> tuple[Array, Array]:
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


def _outside(basis: Array, rows: Array, vector: Array) -> Array:
    high = jax.lax.Precision.HIGHEST
    first = jnp.arange(basis.shape[0], dtype=jnp.int32) < rows
    for _ in range(2):
        coefficients = jnp.where(first, jnp.dot(basis, vector, precision=high), 0)
        vector = vector - jnp.dot(coefficients, basis, precision=high)
    return vector


@jax.jit
def _probe(basis: Array, rows: Array, normal: Array) -> tuple[Array, Array]:
    signs = jnp.where(normal < 0, -1, 1).astype(normal.dtype)
    return signs, _outside(basis, rows, signs)


@jax.jit
def _sampled(
    basis: Array, rows: Array, signs: Array, image: Array, sums: tuple[Array, Array]
) -> tuple[Array, tuple[Array, Array]]:
    entries = signs * _outside(basis, rows, image)
    return jnp.sum(entries), (sums[0] + entries, sums[1] + jnp.sum(entries**2))


def _krylov(product: Any, size: int, dtype: Any, key: Array, static: dict) -> tuple:
    """Return the exact trace within the Krylov space, and estimates of the trace outside of it.

    Let B be the matrix projected on the complement of the Krylov space. An estimate of the trace of
    B from a vector of random signs has the variance 2 (||B||_F^2 - sum B_ii^2) (Chen and Hallman,
    SIAM J. Matrix Anal. Appl. 44, 2023). All entries of the products with the probes (random
    vectors) estimate this variance, so a few probes give a reliable standard error.
    """
    rows, probes = static["rows"], static["probes"]
    run = product.run(key, max(static["basis"], rows))
    exact, basis, count = np.trace(run.matrix(rows)), run.basis, jnp.int32(rows)
    samples, sums = [], (jnp.zeros(size, dtype), jnp.zeros((), dtype))
    for i in range(probes):
        normal = jax.random.normal(jax.random.fold_in(key, 2000 + i), (size,), dtype)
        signs, outside = _probe(basis, count, normal)
        sample, sums = _sampled(basis, count, signs, product(outside), sums)
        samples.append(float(sample))
    total, squares = (np.asarray(x, np.float64) for x in sums)
    diagonal = (np.sum(total**2) - squares) / (probes * (probes - 1))
    variance = 2 * max(squares / probes - diagonal, 0.0)
    return np.asarray(exact, dtype), np.asarray(samples, dtype), np.asarray(variance, dtype)


def _trace_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, Array, Array]:
    selection = problem.selection
    found = _estimated(
        problem.operator(), selection.size, selection.dtype, dynamic["key"], static, hosted=False
    )
    return *found, problem.value()


def _hosted(product: Any, selection: Any, static: dict, dynamic: dict) -> tuple:
    if "rows" in static:
        return *_krylov(product, selection.size, selection.dtype, dynamic["key"], static), (
            product.value
        )
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
    """Estimate the trace of the Hessian; see `Curvature.trace`.

    Raises:
        Refused: in the cases that `Curvature.trace` lists.
    """
    if method not in get_args(Method):
        raise Refused(
            f"method must be one of {', '.join(get_args(Method))}, got {method!r}. Try 'auto'"
        )
    size = point.selection.size
    third = whole("products", products, least=None) // 3
    dtype = point.selection.dtype
    small = third * size * dtype.itemsize <= 2**28
    if method == "auto":
        sketched: Method = "hutch++" if point.is_traced else "krylov"
        method = sketched if products >= 15 and small and third <= size else "hutchinson"
    if method == "krylov" and point.is_transformed(key):
        raise Refused("method='krylov' is unavailable inside of jit and vmap. Try method='hutch++'")
    least = {"hutch++": 6, "krylov": 10}.get(method, 2)
    if products < least:
        raise Refused(
            f"method={method!r} needs at least {least} products, got products={products}. Try "
            f"products={least}"
        )
    if method == "hutch++" and third > size:
        raise Refused(
            f"method='hutch++' needs products // 3 <= size, got products={products} for "
            f"size={size} parameters. Try method='hutchinson', or the dense Hessian"
        )
    sketch = third if method == "hutch++" else 0
    static = {"sketch": sketch, "probes": products - 2 * sketch}
    if method == "krylov":
        probes = max(products // SHARE, 2)
        rows, basis = min(products - probes, size), default_basis(size, 200, dtype)
        static = {"rows": rows, "probes": probes, "basis": basis}
    key = as_key(key)
    exact, samples, *spread, value = run_hosted(
 point,
        _trace_kernel, static, {"key": key}, limit=memory_limit, what="the trace of the Hessian",
        advice="lower products, ", hosted=_hosted,
        rows=static["basis"] + 8 if method == "krylov" else 4 * max(sketch, static["probes"]),
    )  # fmt: skip
    if spread:
        estimate = jnp.asarray(exact + samples.mean())
        error = jnp.asarray(np.sqrt(spread[0] / samples.size).astype(samples.dtype))
    else:
        estimate = exact + jnp.mean(samples)
        error = jnp.std(samples, ddof=1) / jnp.sqrt(jnp.asarray(samples.size, samples.dtype))
    point.refuse_not_finite(value, estimate)
    point.refuse_constant(samples, exact)
    return Trace(estimate, error, products, method)
