"""Find several eigenpairs at one end of a spectrum, and look for missed pairs by deflation."""

from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tables import Table, number, with_table, yes
from jaxbounds.networks.curvature.engine import run_hosted
from jaxbounds.networks.curvature.extremes import (
    DENSE_LIMIT,
    lanczos_options,
    matrix_of,
    pairs_in,
    rows_of,
)
from jaxbounds.networks.curvature.lanczos import (
    Operator,
    Wanted,
    _dot,
    images_of,
    ritz_pairs,
)
from jaxbounds.networks.curvature.products import Problem
from jaxbounds.networks.curvature.programs import Point
from jaxbounds.networks.curvature.shared import rayleigh
from jaxbounds.networks.options import whole

End = Literal["greatest", "least"]
WHAT = "several eigenvalues of the Hessian"

LEAST = 20
"""The first Lanczos run, and the run that looks for repeated eigenvalues, compute at least this
many matrix-vector products. A larger number of products costs more time, and misses fewer
eigenvalues.
"""


@with_table
class Top(NamedTuple):
    """The k eigenpairs nearest to one end of a spectrum, the outermost first.

    Attributes:
        values: the Rayleigh quotients of the eigenvectors, of shape (k,).
        residuals: the residual norm ||A v - value v|| for each pair, of shape (k,). At least one
            eigenvalue of A differs from `value` by at most the residual norm. Only a dense
            computation shows that no eigenvalue was missed.
        converged: for each pair, whether the residual is small relative to the spectral scale; of
            shape (k,).
        vectors: k pytrees like the parameters, of norm one and orthogonal up to rounding.
    """

    values: Float[Array, " k"]
    residuals: Float[Array, " k"]
    converged: Bool[Array, " k"]
    vectors: list[Any]

    def _table(self) -> Table:
        rows = [
            (str(i), number(v), number(r), yes(c))
            for i, (v, r, c) in enumerate(zip(self.values, self.residuals, self.converged), 1)
        ]
        return Table(f"{len(rows)} eigenvalues", ("", "eigenvalue", "residual", "converged"), rows)


@jax.jit
def _deflated(image: Array, rows: Array, shifts: Array, v: Array, sign: Any = 1) -> Array:
    """Return sign * A v, with the known eigenvalues of A shifted to the spectrum's other end."""
    return sign * image - (shifts * _dot(rows, v)) @ rows


@jax.jit
def _measured(rows: Array, images: Array) -> tuple[Array, Array]:
    values = jnp.sum(rows * images, axis=1)
    return values, jnp.linalg.norm(images - values[:, None] * rows, axis=1)


@jax.jit
def _inserted(rows: Array, values: Array, vector: Array, value: Array) -> tuple[Array, Array]:
    least = jnp.argmin(values)
    others = rows.at[least].set(0)
    vector = vector - _dot(others, vector) @ others
    return rows.at[least].set(vector / jnp.linalg.norm(vector)), values.at[least].set(value)


def _greatest(
    operator: Operator, size: int, dtype: Any, static: dict, dynamic: dict
) -> tuple[Array, Array]:
    """Return unit vectors of the k greatest eigenvalues, and the largest absolute eigenvalue.

    One run of Lanczos may miss copies of an eigenvalue. Therefore each further run shifts the found
    eigenvalues to the other end of the spectrum, until a run finds no value above the least of the
    k found values.
    """
    k, tolerance = static["k"], dynamic["tolerance"]
    shared = {"iterations": dynamic["iterations"], "tolerance": tolerance, "dtype": dtype}
    rows, least, _ = ritz_pairs(
        operator, size, dynamic["key"], Wanted(0, k), basis=static["basis"], **shared
    )
    rows, values, _ = _pairs(operator, rows, hosted=False)
    scale = jnp.maximum(jnp.max(jnp.abs(values)), jnp.abs(least))

    def again(carry: tuple) -> tuple:
        rows, values, turn, _ = carry
        shifts = values - least + scale
        beyond = lambda v: _deflated(operator(v), rows, shifts, v)
        floor = jnp.min(values) - tolerance * scale
        key = jax.random.fold_in(dynamic["key"], turn + 1)
        found, _, _ = ritz_pairs(
            beyond, size, key, Wanted(0, 1), basis=static["basis"], floor=floor, **shared
        )
        vector = found[0]
        value = _dot(vector, operator(vector))
        better = value > jnp.min(values) + tolerance * scale
        new = _inserted(rows, values, vector, value)
        rows, values = jax.tree.map(lambda x, y: jnp.where(better, x, y), new, (rows, values))
        return rows, values, turn + 1, better

    carry = (rows, values, jnp.int32(0), jnp.asarray(static["copies"] and k < size))
    unfinished = lambda carry: carry[3] & (carry[2] < 2 * k)
    return jax.lax.while_loop(unfinished, again, carry)[0], scale


def _pairs(operator: Operator, rows: Array, *, hosted: bool) -> tuple[Array, Array, Array]:
    return rows, *_measured(rows, images_of(operator, rows, hosted=hosted))


def _found(
    operator: Operator, size: int, dtype: Any, static: dict, dynamic: dict
) -> tuple[Array, Array, Array, Array]:
    sign = static["sign"]
    flipped = operator if sign == 1 else lambda v: sign * operator(v)
    rows, scale = _greatest(flipped, size, dtype, static, dynamic)
    rows, values, residuals = _pairs(operator, rows, hosted=False)
    return _flags(values, residuals, rows, scale, dynamic)


def _hosted(
    product: Any, selection: Any, static: dict, dynamic: dict
) -> tuple[Array, Array, Array, Array]:
    """Take the pairs from the shared Krylov run; a second run looks for pairs that it missed."""
    k, sign, size = static["k"], static["sign"], selection.size
    run = product.run(dynamic["key"], static["basis"])
    wanted = Wanted(0, k) if sign == 1 else Wanted(k, 0)
    look = pairs_in(run, wanted, dynamic, least=LEAST, space=size)
    rows = jnp.stack([vector for vector, _, _ in look.pairs])
    values, residuals = np.asarray([pair[1:] for pair in look.pairs]).T
    scale = max(abs(look.least), abs(look.greatest), *np.abs(values))
    end = look.least if sign == 1 else -look.greatest
    tolerance = float(dynamic["tolerance"]) * scale
    for turn in range(2 * k if static["copies"] and k < size else 0):
        shifts = jnp.asarray(values * sign - end + scale, rows.dtype)
        beyond = lambda v, rows=rows, shifts=shifts: _deflated(product(v), rows, shifts, v, sign)
        lowest = (values * sign).min()
        key = jax.random.fold_in(dynamic["key"], turn + 1)
        second = product.fresh_run(beyond, key, static["basis"])
        found = pairs_in(
            second, Wanted(0, 1), dynamic, least=LEAST, space=size,
            floor=lowest - tolerance,
        )  # fmt: skip
        if not found.pairs:
            break
        vector = found.pairs[0][0]
        value = sign * rayleigh(product, vector)[0]
        if not value > lowest + tolerance:
            break
        rows, _ = _inserted(rows, jnp.asarray(sign * values), vector, jnp.asarray(value))
        values, residuals = np.asarray([rayleigh(product, row) for row in rows]).T
    one = lambda numbers: jnp.asarray(numbers, rows.dtype)
    return _flags(one(values), one(residuals), rows, scale, dynamic)


def _flags(
    values: Array, residuals: Array, rows: Array, scale: Any, dynamic: dict
) -> tuple[Array, Array, Array, Array]:
    eps = float(jnp.finfo(rows.dtype).eps)
    allowed = jnp.maximum(dynamic["tolerance"], eps * 64) * scale
    fine = dynamic["unit"] <= jnp.maximum(dynamic["tolerance"], eps)
    return values, residuals, (residuals <= allowed) & fine, rows


def _kernel(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, Array, Array, Array]:
    product, size, dtype = problem.operator(), problem.selection.size, problem.selection.dtype
    if not static["dense"]:
        return _found(product, size, dtype, static, dynamic)
    values, vectors = jnp.linalg.eigh(static["sign"] * matrix_of(problem, 64))
    rows, scale = vectors.T[::-1][: static["k"]], jnp.max(jnp.abs(values))
    rows, values, residuals = _pairs(product, rows, hosted=False)
    return _flags(values, residuals, rows, scale, dynamic)


def top_at(
    point: Point,
    k: int,
    /,
    *,
    memory_limit: float,
    end: End = "greatest",
    copies: bool = True,
    key: jax.Array | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
) -> Top:
    """Return several eigenpairs from one end of the spectrum; see `Curvature.top`.

    Raises:
        Refused: in the cases that `Curvature` lists.
    """
    selection = point.selection
    if end not in get_args(End):
        raise Refused(
            f"end={end!r}, expected one of {', '.join(get_args(End))}. Try end='greatest'"
        )
    if not 1 <= whole("k", k, least=None) <= selection.size:
        raise Refused(
            f"k={k} eigenvalues were asked for, but the matrix has {selection.size}. Try k=1"
        )
    if not isinstance(copies, bool):
        raise Refused(f"copies={copies!r} is neither True nor False. Try copies=True")
    # A product reads the whole stream, so a dense matrix would take a pass for each column.
    limit = 0 if point.stream is not None else dense_limit
    static, dynamic = lanczos_options(selection, key, iterations, tolerance, basis, limit)
    static |= {"k": k, "sign": 1 if end == "greatest" else -1}
    dynamic["unit"] = jnp.asarray(point.unit, selection.dtype)
    if not static["dense"]:
        static["copies"] = copies
        # The basis has room for the pairs beside the vectors that a restart keeps.
        static["basis"] = min(max(static["basis"], 2 * k + 16), selection.size)
    values, residuals, converged, rows = run_hosted(
 point,
        _kernel, static, dynamic, limit=memory_limit, what=WHAT, advice="ask for fewer, ",
        hosted=None if static["dense"] else _hosted,
        rows=0 if static["dense"] else rows_of(static["basis"]) + 3 * k,
    )  # fmt: skip
    if not point.is_traced:
        point.refuse_not_finite(jnp.sum(values), values)
    point.refuse_constant(values)
    order = (jnp if point.is_transformed(values) else np).argsort(-static["sign"] * values)
    vectors = [selection.tree(rows[i]) for i in order]
    return Top(values[order], residuals[order], converged[order], vectors)
