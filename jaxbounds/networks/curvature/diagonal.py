"""Estimate a Hessian's diagonal, and functions of the Hessian, from its products with vectors.

The diagonal of A is the mean of z * (A z) over random signs z. Source: Bekas, Kokiopoulou and Saad,
Applied Numerical Mathematics 57, 2007. After k steps of Lanczos from v, with the basis Q and the
tridiagonal matrix T, f(A) v is approximately ||v|| Q f(T) e_1. Source: Saad, SIAM Journal on
Numerical Analysis 29, 1992.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.ground.tracing_errors import users_line
from jaxbounds.networks.curvature.engine import run_hosted
from jaxbounds.networks.curvature.lanczos import Operator, _ritz, images_of, started, steps
from jaxbounds.networks.curvature.products import Problem
from jaxbounds.networks.curvature.programs import Point, as_key
from jaxbounds.networks.options import function as as_function
from jaxbounds.networks.options import whole


@with_table
class Diagonal(NamedTuple):
    """An estimate of the diagonal of a matrix A, such as the Hessian.

    Attributes:
        estimate: the unbiased estimate of each diagonal entry, a pytree like the parameters.
        standard_error: the standard error of each entry, from the spread over the random vectors.
        products: the number of products of the matrix with vectors.
    """

    estimate: Any
    standard_error: Any
    products: int

    def _table(self) -> Table:
        sums = [float(jnp.sum(leaf)) for leaf in jax.tree.leaves(self.estimate)]
        return Table(f"diagonal with sum {number(sum(sums))} ({self.products} products)")


@with_table
class Applied(NamedTuple):
    """The result of f(A) v, where f is a function, A the matrix and v a vector.

    Attributes:
        value: the computed vector f(A) v, as a vector or a pytree like v.
        error: an estimate of the norm of the error of `value`, the computed vector f(A) v. The
            error estimate is the change of f(A) v over the last tenth of the Lanczos steps.
        products: the number of products with the matrix.
    """

    value: Any
    error: float
    products: int

    def _table(self) -> Table:
        return Table(f"f(A) v within {number(self.error)} ({self.products} products)")


@jax.jit
def _moments(probes: Array, images: Array) -> tuple[Array, Array]:
    samples = probes * images
    count = jnp.asarray(samples.shape[0], samples.dtype)
    return jnp.mean(samples, axis=0), jnp.std(samples, axis=0, ddof=1) / jnp.sqrt(count)


def _estimated(
    operator: Operator, size: int, dtype: Any, dynamic: dict, static: dict, *, hosted: bool
) -> tuple[Array, Array]:
    probes = jax.random.rademacher(dynamic["key"], (static["probes"], size), dtype)
    return _moments(probes, images_of(operator, probes, hosted=hosted))


def _diagonal_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple:
    selection = problem.selection
    found = _estimated(
        problem.operator(), selection.size, selection.dtype, dynamic, static, hosted=False
    )
    return *found, problem.value()


def _hosted_diagonal(product: Any, selection: Any, static: dict, dynamic: dict) -> tuple:
    found = _estimated(product, selection.size, selection.dtype, dynamic, static, hosted=True)
    return *found, product.value


def diagonal_at(
    point: Point, /, *, memory_limit: float, key: jax.Array | None = None, products: int = 30
) -> Diagonal:
    """Estimate the diagonal of the Hessian; see `Curvature.diagonal`.

    Raises:
        Refused: in the cases that `Curvature.diagonal` lists.
    """
    if whole("products", products, least=None) < 2:
        raise Refused(
            f"products={products} Hessian-vector products are too few for a standard error, "
            f"expected at least 2. Try products=2"
        )
    estimate, error, value = run_hosted(
 point,
        _diagonal_kernel, {"probes": products}, {"key": as_key(key)}, limit=memory_limit,
        what="the diagonal of the Hessian", advice="lower products, ", hosted=_hosted_diagonal,
        rows=3 * products,
    )  # fmt: skip
    point.refuse_not_finite(value, estimate)
    point.refuse_constant(estimate, error)
    tree = point.selection.tree
    return Diagonal(tree(estimate), tree(error), products)


def _krylov(
    operator: Operator, vector: Array, key: Array, function: Callable, k: int, *, hosted: bool
) -> tuple[Array, Array]:
    norm = jnp.linalg.norm(vector)
    start = vector / jnp.where(norm > 0, norm, 1)
    before = max(k - max(k // 10, 1), 1)
    state = steps(operator, key, started(start, k), before, hosted=hosted, mask=None)
    early = _value(function, state)
    state = steps(operator, key, state, k - before, hosted=hosted, mask=None)
    late = _value(function, state)
    return norm * late, norm * jnp.linalg.norm(late - early)


def _checked(given: Callable) -> Callable:
    as_function("function", given, "eigenvalues (k,), in jax.numpy")

    def checked(values: Array) -> Array:
        try:
            found = jnp.asarray(given(values))
        except (TypeError, ValueError, AttributeError) as problem:
            first = (str(problem).splitlines() or ["no message"])[0]
            raise Refused(
                f"the function fails on eigenvalues of "
                f"shape={values.shape}{users_line(problem)}: {first}. "
                "Try a function in jax.numpy that takes all eigenvalues at once"
            ) from problem
        if found.shape != values.shape:
            raise Refused(
                f"the function returns shape={found.shape} for eigenvalues of "
                f"shape={values.shape}. Try to return one number for each eigenvalue"
            )
        return found

    return checked


def _value(function: Callable, state: Any) -> Array:
    values, vectors, _ = _ritz(state)
    filled = jnp.arange(values.size, dtype=jnp.int32) < state.filled
    # Rows beyond the filled ones have meaningless values, at which f need not be finite.
    weights = jnp.where(filled, function(jnp.where(filled, values, values[0])) * vectors[0], 0)
    return jnp.dot(vectors @ weights, state.basis, precision=jax.lax.Precision.HIGHEST)


def applied_at(
    point: Point,
    function: Callable[[Float[Array, " k"]], Float[Array, " k"]],
    vector: Float[Array, " n"],
    /,
    *,
    memory_limit: float,
    iterations: int = 60,
) -> tuple[Array, Array, int]:
    """Return f(A) v, its error, and the number of products; see `Curvature.apply`.

    Raises:
        Refused: in the cases that `Curvature.apply` lists.
    """
    if whole("iterations", iterations, least=None) < 2:
        raise Refused(
            f"iterations={iterations} is too few for an error estimate, expected at least 2. Try "
            "iterations=2"
        )
    function = _checked(function)
    k = min(iterations, point.selection.size)
    key = as_key(None)
    value, error = run_hosted(
 point,
        lambda problem, static, dynamic: _krylov(
            problem.operator(), dynamic["vector"], key, function, k, hosted=False
        ),
        {}, {"vector": vector}, limit=memory_limit, what="a function of the Hessian",
        advice="lower iterations, ", rows=k + 8,
        hosted=lambda product, selection, static, dynamic: _krylov(
            product, dynamic["vector"], key, function, k, hosted=True
        ),
    )  # fmt: skip
    if not point.is_traced and not bool(jnp.all(jnp.isfinite(value))):
        raise Refused(
            f"function={getattr(function, '__name__', function)!r} is not finite at an eigenvalue "
            "of the Hessian, expected a finite value. Try a function that is finite there, such as "
            "lambda x: 1 / (x + 1)"
        )
    return value, error, k
