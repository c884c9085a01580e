"""Several eigenpairs of one end of a spectrum, one after the other, by deflation."""

from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxbounds.curvature.extremes import DENSE_LIMIT, lanczos_options, matrix_of
from jaxbounds.curvature.lanczos import lanczos_extremes
from jaxbounds.curvature.products import Problem
from jaxbounds.curvature.programs import Point
from jaxbounds.shown import Table, number, shown, yes

End = Literal["greatest", "least"]
WHAT = "several eigenvalues of the Hessian"


@shown
class Top(NamedTuple):
    """Eigenpairs from one end of a spectrum inward.

    Attributes:
        values: (k,), Rayleigh quotients.
        residuals: (k,), ||A v - value v||: an eigenvalue lies within this distance. Only a dense
            computation shows that none was passed over.
        converged: (k,), whether the residual is small beside the spectral scale.
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


def _kernel(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, Array, Array, Array]:
    product, size, dtype = problem.operator(), problem.selection.size, problem.selection.dtype
    sign, k = static["sign"], static["k"]
    if static["dense"]:
        values, vectors = jnp.linalg.eigh(sign * matrix_of(problem, 64))
        values, rows = values[::-1][:k], vectors.T[::-1][:k]
        scale = jnp.max(jnp.abs(values))
    else:
        flipped = lambda v: sign * product(v)

        def following(found, step):
            rows, shifts = found

            def deflated(v):
                return flipped(v) - (shifts * (rows @ v)) @ rows

            ends = lanczos_extremes(
                deflated, size, jax.random.fold_in(dynamic["key"], step),
                iterations=dynamic["iterations"], tolerance=dynamic["tolerance"],
                basis=static["basis"], dtype=dtype,
            )  # fmt: skip
            vector = ends.vector_maximum - (rows @ ends.vector_maximum) @ rows
            vector = vector / jnp.linalg.norm(vector)
            # What was found goes to the other end, so that it is not found again.
            shift = ends.maximum - ends.minimum
            rows, shifts = rows.at[step].set(vector), shifts.at[step].set(shift)
            return (rows, shifts), jnp.maximum(jnp.abs(ends.maximum), jnp.abs(ends.minimum))

        start = jnp.zeros((k, size), dtype), jnp.zeros(k, dtype)
        (rows, _), scales = jax.lax.scan(following, start, jnp.arange(k))
        scale = jnp.max(scales)
    images = jax.lax.map(product, rows)
    values = jnp.sum(rows * images, axis=1)
    residuals = jnp.linalg.norm(images - values[:, None] * rows, axis=1)
    allowed = jnp.maximum(dynamic["tolerance"], jnp.finfo(dtype).eps * 64) * scale
    fine = dynamic["unit"] <= jnp.maximum(dynamic["tolerance"], jnp.finfo(dtype).eps)
    return values, residuals, (residuals <= allowed) & fine, rows


def top_at(
    point: Point,
    k: int,
    /,
    *,
    memory_limit: float,
    end: End = "greatest",
    key: jax.Array | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
) -> Top:
    """Several eigenpairs from one end; see `Curvature.top`.

    Raises:
        ValueError: as there.
    """
    selection = point.selection
    if end not in get_args(End):
        raise ValueError(f"end must be one of {', '.join(get_args(End))}, got {end!r}")
    if not 1 <= k <= selection.size:
        raise ValueError(f"there are {selection.size} eigenvalues, and {k} were asked for")
    static, dynamic = lanczos_options(selection, key, iterations, tolerance, basis, dense_limit)
    static |= {"k": k, "sign": 1 if end == "greatest" else -1}
    dynamic["unit"] = jnp.asarray(point.unit, selection.dtype)
    values, residuals, converged, rows = point.run(
        _kernel, static, dynamic, limit=memory_limit, what=WHAT, advice="ask for fewer, "
    )
    point.refuse_constant(values)
    order = jnp.argsort(-static["sign"] * values)
    vectors = [selection.tree(rows[i]) for i in order]
    return Top(values[order], residuals[order], converged[order], vectors)
