"""Find extreme eigenpairs, with residuals, of a symmetric operator that may have deficient rank.

The three-term recurrence of Lanczos fails when the Krylov space of the start vector is exhausted,
because the iteration then divides by rounding noise. Loss Hessians of small data sets are
rank-deficient, so an exhausted Krylov space is the normal case. This module orthogonalises every
new vector against the whole basis. If the remainder of the new vector is no larger than rounding
noise, the iteration adds a random orthogonal direction of the remainder's length. The random
direction also lets the iteration find repeated eigenvalues. The iteration keeps the remainder,
which may have a component along an eigenvector that the basis lacks.

When the basis is full, the iteration keeps Ritz vectors of both ends and drops all other vectors.
Therefore neither the memory nor the cost of a step grows. This method is the thick restart of Wu
and Simon, SIAM J. Matrix Anal. Appl. 22, 2000.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tables import Table, number, with_table, yes

Operator = Callable[[Float[Array, " n"]], Float[Array, " n"]]

LEAST_BASIS = 32
"""The number of rows (vectors) of the default basis if the vectors are so long that `BASIS_BYTES`
allows fewer rows.

A larger number needs fewer products until convergence, and takes more memory.
"""

BASIS_BYTES = 8 * 2**20
"""The largest size in bytes of the default basis, unless `LEAST_BASIS` rows need more.

A larger number of bytes means fewer restarts, but the basis may exceed the caches of the processor.
"""

_STRETCH = 10
"""The number of products of the matrix with vectors between two checks of the residuals.

A larger number means fewer checks, and convergence is noticed later.
"""


@with_table
class Extremes(NamedTuple):
    """The least and the greatest eigenvalue of a symmetric operator, with residuals.

    Attributes:
        minimum: the Rayleigh quotient of `vector_minimum`, which is never below the least
            eigenvalue, up to rounding.
        maximum: the Rayleigh quotient of `vector_maximum`, which is never above the greatest
            eigenvalue, up to rounding.
        residual_minimum: the residual norm ||A v - minimum v||, where A is the operator and v is
            `vector_minimum`; it costs one more product. At least one eigenvalue of A differs from
            `minimum` by at most the residual norm. Only a dense computation shows that this
            eigenvalue of A is the least.
        residual_maximum: the residual of the eigenvalue `maximum`, measured like
            `residual_minimum`.
        iterations: the number of products of the operator with vectors, without the two products
            that measure residuals; 0 for a dense matrix.
        converged_minimum: whether `residual_minimum` is at most the tolerance times the spectral
            scale, the larger of |minimum| and |maximum|.
        converged_maximum: whether `residual_maximum` is at most the tolerance times the spectral
            scale.
        vector_minimum: the eigenvector of `minimum`, of norm one, as a vector or as a pytree like
            the parameters. The pytree has None in place of leaves that were held fixed.
        vector_maximum: the eigenvector of `maximum`, in the form of `vector_minimum`.
        noise: an estimate of the rounding error of both eigenvalues. The estimate is the spectral
            scale times the largest relative rounding error of the operator's operations, if this
            rounding error is known. If this relative rounding error is above the tolerance, neither
            eigenvalue counts as converged, however small the residuals are.
    """

    minimum: Float[Array, ""]
    maximum: Float[Array, ""]
    residual_minimum: Float[Array, ""]
    residual_maximum: Float[Array, ""]
    iterations: Int[Array, ""]
    converged_minimum: Bool[Array, ""]
    converged_maximum: Bool[Array, ""]
    vector_minimum: Any
    vector_maximum: Any
    noise: Float[Array, ""]

    @property
    def converged(self) -> Bool[Array, ""]:
        """Return whether the estimates of both extreme eigenvalues have converged."""
        return self.converged_minimum & self.converged_maximum

    def _table(self) -> Table:
        rows = [
            (end, *map(number, (value, residual)), yes(flag))
            for end, value, residual, flag in (
                ("least", self.minimum, self.residual_minimum, self.converged_minimum),
                ("greatest", self.maximum, self.residual_maximum, self.converged_maximum),
            )
        ]
        how = f"{number(self.iterations)} products" if number(self.iterations) != "0" else "dense"
        title = f"extreme eigenvalues ({how}; rounding about {number(self.noise)})"
        return Table(title, ("", "eigenvalue", "residual", "converged"), rows)


def default_tolerance(size: int, dtype: Any, /) -> float:
    """Return the default tolerance of the relative residual, for vectors of `size` numbers.

    The residual is relative to the spectral scale, the largest absolute value of an eigenvalue. The
    tolerance is max(1e-8, eps max(32, sqrt(size))): in float32, 3.8e-6 for up to 1024 numbers, and
    1.2e-4 for 10^6.
    """
    return max(1e-8, float(jnp.finfo(dtype).eps) * max(32.0, math.sqrt(size)))


def default_basis(size: int, iterations: int, dtype: Any, /) -> int:
    """Return the number of basis rows: one for each iteration, if `BASIS_BYTES` allows it."""
    fitting = BASIS_BYTES // (size * jnp.dtype(dtype).itemsize)
    return min(iterations, size, max(LEAST_BASIS, fitting))


def _flagged(
    values: Float[Array, "2"],
    vectors: Float[Array, "2 n"],
    images: Float[Array, "2 n"],
    iterations: Int[Array, ""],
    tolerance: float | Float[Array, ""],
) -> Extremes:
    residuals = jnp.linalg.norm(images - values[:, None] * vectors, axis=1)
    scale = jnp.max(jnp.abs(values))
    small = jnp.isfinite(values) & (residuals <= tolerance * scale)
    return Extremes(
        minimum=values[0],
        maximum=values[1],
        residual_minimum=residuals[0],
        residual_maximum=residuals[1],
        iterations=iterations,
        converged_minimum=small[0],
        converged_maximum=small[1],
        vector_minimum=vectors[0],
        vector_maximum=vectors[1],
        noise=jnp.finfo(values.dtype).eps * scale,
    )


def rounded(ends: Extremes, unit: Any, tolerance: Any, /) -> Extremes:
    """Add the rounding error to extreme eigenvalues; a large error unsets the convergence flags."""
    scale = jnp.maximum(jnp.abs(ends.minimum), jnp.abs(ends.maximum))
    fine = jnp.asarray(unit) <= jnp.maximum(tolerance, jnp.finfo(ends.minimum.dtype).eps)
    return ends._replace(
        noise=(unit * scale).astype(ends.minimum.dtype),
        converged_minimum=ends.converged_minimum & fine,
        converged_maximum=ends.converged_maximum & fine,
    )


def dense_extremes(
    matrix: Float[Array, "n n"], /, *, tolerance: float | Float[Array, ""] | None = None
) -> Extremes:
    """Return both ends of a symmetric matrix's spectrum, by a full eigendecomposition.

    An extreme eigenvalue counts as converged if its residual is at most `tolerance` times the
    spectral scale. The tolerance is `default_tolerance` unless given.
    """
    if tolerance is None:
        tolerance = default_tolerance(matrix.shape[0], matrix.dtype)
    values, vectors = jnp.linalg.eigh(matrix)
    ends = jnp.array([0, -1])
    images = _dot(vectors[:, ends].T, matrix)
    return _flagged(values[ends], vectors[:, ends].T, images, jnp.int32(0), tolerance)


def _dot(a: Array, b: Array) -> Array:
    # Without `precision`, accelerators multiply in fewer bits than the vectors have.
    return jnp.dot(a, b, precision=jax.lax.Precision.HIGHEST)


def _unit(vector: Array) -> Array:
    return vector / jnp.linalg.norm(vector)


class _Krylov(NamedTuple):
    """A partial Lanczos factorisation: `filled` computed rows of `basis`, and the next `vector`."""

    basis: Any  # (m, n)
    projected: Any  # (m, m), upper triangle
    vector: Any  # the next basis vector, of norm one
    coupling: Any  # the norm of the last image's part outside of the basis; 0 after a restart
    filled: Any  # the number of filled rows
    used: Any  # the number of products so far
    scale: Any  # the largest norm of an image so far


def _orthogonal(basis: Array, filled: Array | int, vector: Array) -> tuple[Array, Array]:
    mask = jnp.arange(basis.shape[0], dtype=jnp.int32) < filled
    coefficients = jnp.where(mask, _dot(basis, vector), 0)
    return vector - _dot(coefficients, basis), coefficients


def _advance(key: jax.Array, mask: Any, state: _Krylov, image: Any) -> _Krylov:
    """Extend the basis by the product `image`; entries of the new vector with mask 0 stay 0."""
    k, eps = state.filled, jnp.finfo(state.vector.dtype).eps
    basis = state.basis.at[k].set(state.vector)
    scale = jnp.maximum(state.scale, jnp.linalg.norm(image))
    alpha = _dot(state.vector, image)
    # The two terms of the recurrence go first: the pass over all rows then removes rounding alone,
    # and one pass is enough unless it cancels digits.
    rest = image - alpha * state.vector - state.coupling * basis[k - 1]
    before = jnp.linalg.norm(rest)
    rest, column = _orthogonal(basis, k + 1, rest)
    column = column.at[k - 1].add(state.coupling).at[k].add(alpha)

    def again(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        rest, column = pair
        rest, more = _orthogonal(basis, k + 1, rest)
        return rest, column + more

    cancelled = jnp.linalg.norm(rest) < 0.7 * before
    rest, column = jax.lax.cond(cancelled, again, lambda pair: pair, (rest, column))
    coupling = jnp.linalg.norm(rest)
    # The threshold is well below the least default tolerance, since the dropped part stays in the
    # residuals.
    exhausted = coupling <= 16 * eps * scale

    def fresh(rest: Array) -> Array:
        """The vector `rest` is rounding noise, or close to an eigenvector that the basis lacks."""
        noise = jax.random.normal(jax.random.fold_in(key, state.used), rest.shape, rest.dtype)
        noise = noise if mask is None else noise * mask
        left = rest / jnp.where(coupling > 0, coupling, 1)
        for _ in range(2):
            noise = _unit(_orthogonal(basis, k + 1, noise)[0])
        # The noise and the rest point to one side, so they cannot cancel in a complement of one
        # dimension.
        vector = noise + jnp.where(_dot(noise, left) < 0, -left, left)
        for _ in range(2):
            vector = _unit(_orthogonal(basis, k + 1, vector)[0])
        return vector

    vector = jax.lax.cond(exhausted, fresh, lambda rest: rest / jnp.linalg.norm(rest), rest)
    # The column is 0 below the diagonal: old entries there would belong to dropped vectors.
    projected = state.projected.at[:, k].set(column)
    coupling = jnp.where(exhausted, 0, coupling)
    return _Krylov(basis, projected, vector, coupling, k + 1, state.used + 1, scale)


def _step(operator: Operator, key: jax.Array, state: _Krylov) -> _Krylov:
    return _advance(key, None, state, operator(state.vector))


_taken = jax.jit(_advance, donate_argnums=2)


def steps(
    operator: Operator, key: jax.Array, state: _Krylov, count: Any, /, *, hosted: bool, mask: Any
) -> _Krylov:
    """Compute `count` products of the operator; each product adds a vector to the basis.

    If `hosted` is true, the loop runs in Python around a compiled operator, and JAX reuses
    (donates) the arrays of `state`. Entries of the vectors stay 0 where `mask` is 0.
    """
    if hosted:
        for _ in range(int(count)):
            state = _taken(key, mask, state, operator(state.vector))
        return state
    one = lambda _, state: _advance(key, mask, state, operator(state.vector))
    return jax.lax.fori_loop(0, count, one, state)


def started(start: Any, rows: int, /) -> _Krylov:
    """Return an empty Lanczos factorisation (no basis vectors) that starts from a unit vector."""
    zero = jnp.zeros((), start.dtype)
    return _Krylov(
        jnp.zeros((rows, start.size), start.dtype), jnp.zeros((rows, rows), start.dtype), start,
        zero, jnp.int32(0), jnp.int32(0), jnp.zeros((), start.dtype),
    )  # fmt: skip


def images_of(operator: Operator, rows: Any, /, *, hosted: bool) -> Any:
    """Return the product of the operator with each row."""
    if hosted:
        return jnp.stack([operator(row) for row in rows])
    return jax.lax.map(operator, rows)


def _ritz(state: _Krylov) -> tuple[Array, Array, Array]:
    """Return Ritz values, vectors and residuals; unfilled rows make the last ones invalid."""
    m = state.projected.shape[0]
    index = jnp.arange(m, dtype=jnp.int32)
    filled = index < state.filled
    upper = jnp.where(filled[None, :] & (index[:, None] <= index[None, :]), state.projected, 0)
    matrix = upper + jnp.triu(upper, 1).T
    beyond = 1.5 * jnp.max(jnp.sum(jnp.abs(matrix), axis=1))
    beyond = jnp.where(beyond > 0, beyond, 1)
    values, vectors = jnp.linalg.eigh(matrix + jnp.diag(jnp.where(filled, 0, beyond)))
    return values, vectors, jnp.abs(state.coupling * vectors[state.filled - 1])


def _restart(
    state: _Krylov, ritz: tuple[Array, Array, Array], kept: int, low: Array | int
) -> _Krylov:
    values, vectors, _ = ritz
    m = state.basis.shape[0]
    index = jnp.arange(kept, dtype=jnp.int32)
    index = jnp.where(index < low, index, m - kept + index)
    rows = _dot(vectors[:, index].T, state.basis)
    basis = jax.lax.dynamic_update_slice(state.basis, rows, (0, 0))
    projected = jnp.zeros_like(state.projected)
    projected = projected.at[jnp.arange(kept), jnp.arange(kept)].set(values[index])
    # The next image has a part in each kept row, so the recurrence of two terms starts after it.
    coupling = jnp.zeros_like(state.coupling)
    return state._replace(
        basis=basis, projected=projected, coupling=coupling, filled=jnp.int32(kept)
    )


class Wanted(NamedTuple):
    """The number of eigenpairs at each end of the spectrum that must converge."""

    low: int
    high: int


@partial(jax.jit, static_argnums=0)
def _small(wanted: Wanted, state: _Krylov, tolerance: Any, floor: Any) -> tuple[Any, Any]:
    """Count a Ritz value at the upper end as converged if it certainly lies below `floor`."""
    values, _, estimates = _ritz(state)
    last = state.filled - 1
    allowed = tolerance * jnp.maximum(jnp.abs(values[0]), jnp.abs(values[last]))
    index = jnp.arange(values.size, dtype=jnp.int32)
    there = state.filled >= wanted.low + wanted.high
    small = estimates <= allowed
    small_high = small | (values + estimates < floor)
    low = jnp.all(jnp.where(index < wanted.low, small, True))
    high = jnp.all(jnp.where((index > last - wanted.high) & (index <= last), small_high, True))
    strict = (tolerance > 0) & there
    return low & strict, high & strict


@partial(jax.jit, static_argnums=(0, 1))
def _full(wanted: Wanted, kept: int, state: _Krylov, tolerance: Any, floor: Any) -> _Krylov:
    low, high = _small(wanted, state, tolerance, floor)
    share = jnp.where(high & ~low, kept - kept // 4, kept // 2)
    share = jnp.where(low & ~high, kept // 4, share)
    return _restart(state, _ritz(state), kept, share)


@partial(jax.jit, static_argnums=0)
def _unit_ritz_vectors(wanted: Wanted, state: _Krylov) -> tuple[Any, Any]:
    values, coefficients, _ = _ritz(state)
    low = jnp.arange(wanted.low, dtype=jnp.int32)
    high = state.filled - wanted.high + jnp.arange(wanted.high, dtype=jnp.int32)
    vectors = _dot(coefficients[:, jnp.concatenate([low, high])].T, state.basis)
    return vectors / jnp.linalg.norm(vectors, axis=1, keepdims=True), values[0]


def ritz_pairs(
    operator: Operator,
    size: int,
    key: jax.Array,
    wanted: Wanted,
    /,
    *,
    iterations: Any,
    tolerance: Any,
    basis: int,
    dtype: Any,
    floor: Any = None,
) -> tuple[Any, Any, Any]:
    """Return unit Ritz vectors of both ends, the least Ritz value and the number of products.

    Lanczos does not wait for the convergence of greatest Ritz values below `floor`. The other
    options are those of `lanczos_extremes`.
    """
    m = basis
    # The space has `size` dimensions, so more products find nothing new.
    limit = jnp.minimum(iterations, size) if m >= size else jnp.asarray(iterations)
    start_key, fresh_key = jax.random.split(key)
    kept = max(m // 2, 1)
    state = started(_unit(jax.random.normal(start_key, (size,), dtype)), m)
    stretch = max(_STRETCH, m // 8)
    floor = jnp.asarray(-jnp.inf if floor is None else floor, dtype)
    tolerance = jnp.asarray(tolerance, dtype)

    def unfinished(carry: tuple[_Krylov, Array]) -> Array:
        state, streak = carry
        return (state.used < limit) & (streak < 2) & jnp.isfinite(state.scale)

    def advance(carry: tuple[_Krylov, Array]) -> tuple[_Krylov, Array]:
        state, streak = carry
        make_room = lambda state: _full(wanted, kept, state, tolerance, floor)
        state = jax.lax.cond(state.filled == m, make_room, lambda state: state, state)
        until = jnp.minimum(stretch, jnp.minimum(m - state.filled, limit - state.used))
        state = steps(operator, fresh_key, state, until, hosted=False, mask=None)
        low, high = _small(wanted, state, tolerance, floor)
        return state, jnp.where(low & high, streak + 1, 0)

    state = jax.lax.while_loop(unfinished, advance, (state, jnp.int32(0)))[0]
    return *_unit_ritz_vectors(wanted, state), state.used


def lanczos_extremes(
    operator: Operator,
    size: int,
    key: jax.Array,
    /,
    *,
    iterations: int | Int[Array, ""] = 200,
    tolerance: float | Float[Array, ""] | None = None,
    basis: int | None = None,
    dtype: Any = None,
) -> Extremes:
    """Return both ends of the spectrum of a symmetric `operator` on vectors of length `size`.

    The iteration stops when both residuals were small at two checks in a row, or after `iterations`
    products. The iteration stores about 1.5 * basis vectors. Under `jit`, `iterations` and
    `tolerance` may be traced values. The values are Rayleigh quotients: up to rounding, `minimum`
    is never below the least eigenvalue and `maximum` never above the greatest. If `basis` and
    `iterations` are at least `size`, the basis spans the whole space and the result is exact.

    Args:
        operator: the operator, a linear map `v -> A v`.
        size: the length of the operator's vectors.
        key: the random key that draws the start vector.
        iterations: the largest number of products with `operator`; two more products measure the
            residuals.
        tolerance: the residual that counts as small, relative to the largest absolute eigenvalue;
            `default_tolerance` unless given. If the tolerance is 0, the function computes all
            `iterations` products.
        basis: the number of vectors that the iteration keeps before it restarts, at least 8 (or
            `size`); `default_basis` unless given.
        dtype: the dtype of the vectors; the default float type unless given.

    Raises:
        Refused: if the size, the number of iterations or the basis is too small.
    """
    fixed = not isinstance(iterations, jax.core.Tracer)
    if size < 1 or (fixed and iterations < 1):
        raise Refused(
            f"size={size} and iterations={iterations} must both be positive. Try iterations=200"
        )
    dtype = jnp.dtype(dtype or jnp.zeros(()).dtype)
    if basis is None:
        basis = default_basis(size, int(iterations) if fixed else size, dtype)
    elif basis < min(8, size):
        raise Refused(
            f"basis={basis}, expected at least 8 rows, which a restart needs. Try basis=8"
        )
    tolerance = default_tolerance(size, dtype) if tolerance is None else tolerance
    vectors, _, used = ritz_pairs(
        operator, size, key, Wanted(1, 1), iterations=iterations, tolerance=tolerance,
        basis=min(basis, size), dtype=dtype,
    )  # fmt: skip
    images = images_of(operator, vectors, hosted=False)
    values = jnp.sum(vectors * images, axis=1)
    return _flagged(values, vectors, images, used, tolerance)
