"""Sets of matrices with bounded singular values, eigenvalues or norms of rows."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.refused import careful
from jaxbounds.claims.sets.base import (
    LESS,
    MORE,
    ROUNDING,
    Chart,
    Draw,
    RefusedSet,
    Set,
    modules,
    supports,
)
from jaxbounds.claims.sets.expressions import Number, Shape, Size, number_of
from jaxbounds.claims.sets.spectral import on_singular_values, on_spectrum
from jaxbounds.claims.sets.vectors import Ball
from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.norms import project_l1, project_rows, vector_norm

Norm = Literal["frobenius", "operator", "nuclear", "trace", "rows", "row sum", "max"]


def _singular(x: Any) -> Any:
    return modules(x).linalg.svd(x, compute_uv=False)


def _numpy_if(x: Any, found: jax.Array) -> Any:
    return modules(x).asarray(found)


def _orthonormal(key: jax.Array, rows: int, columns: int) -> jax.Array:
    """Draw a Haar-random matrix with orthonormal columns (or rows, if there are fewer rows)."""
    if rows < columns:
        return _orthonormal(key, columns, rows).T
    q, r = jnp.linalg.qr(jax.random.normal(key, (rows, columns)))
    return q * jnp.where(jnp.diag(r) < 0, -1.0, 1.0)[None, :]


class _OfMatrices(Set):
    def _axes(self) -> tuple[int | str, ...]:
        axes = super()._axes()
        return axes * 2 if len(axes) == 1 else axes

    def shape_at(self, size: Size) -> tuple[int, ...]:
        shape = super().shape_at(size)
        if len(shape) == 1:
            shape = shape * 2
        if len(shape) != 2 or not min(shape):
            raise Refused(
                f"{self!r} has shape={shape}, expected axes of positive length. Try ('m', 'n')"
            )
        return shape


@dataclass(frozen=True)
class Orthogonal(_OfMatrices):
    """Matrices with orthonormal columns, or orthonormal rows if the matrix has fewer rows.

    The shape "d" means (d, d). The set of these matrices is not convex. The projection is the polar
    factor, which is the nearest point of the set.
    """

    shape: Shape = "d"
    convex: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._refuse()

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        return (
            lambda key: _orthonormal(key, shape[0], shape[1]),
            lambda key: self.extreme(key, size),
        )

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw a permutation matrix with random signs, cut to the shape."""
        rows, columns = self.shape_at(size)
        order, sign = jax.random.split(key)
        most = max(rows, columns)
        square = jnp.eye(most)[jax.random.permutation(order, most)]
        signed = square * jax.random.rademacher(sign, (most,), float)[None, :]
        wide = signed[:, : min(rows, columns)]
        return wide if rows >= columns else wide.T

    def project(self, x: Any, size: Size) -> Any:
        """Return the polar factor of `x`, or of a nearby matrix if `x` is nearly singular."""
        x_ = jnp.asarray(x)
        values = jax.lax.stop_gradient(jnp.linalg.svd(x_, compute_uv=False))
        thin = values[-1] <= 1e-4 * values[0]
        step = jnp.where(values[0] > 0, 1e-2 * values[0], 1.0)
        moved = x_ + jnp.where(thin, step, 0.0) * jnp.eye(x_.shape[0], x_.shape[1])
        return _numpy_if(x, on_singular_values(lambda s, _: jnp.ones_like(s), moved, jnp.zeros(())))

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test that x^T x is the identity, or x x^T if the matrix x has fewer rows than columns."""
        xp = modules(x)
        rows, columns = x.shape
        gram = x.T @ x if rows >= columns else x @ x.T
        off = xp.max(xp.abs(gram - xp.eye(min(rows, columns))))
        return {f"{name} is orthogonal": 1 + off <= 1 + ROUNDING * max(rows, columns)}

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return two charts (maps from rotation angles), for determinant 1 and -1.

        Raises:
            Refused: if the matrices are not square, or 1 x 1.
        """
        rows, columns = self.shape_at(size)
        if rows != columns:
            return super().charts(size)
        k = rows * (rows - 1) // 2
        if not k:
            return super().charts(size)
        flip = jnp.ones(rows).at[0].set(-1.0)
        return (
            Chart("rotations", (-3.15,) * k, (3.15,) * k, lambda t: rotation(t, rows)),
            Chart(
                "reflections", (-3.15,) * k, (3.15,) * k,
                lambda t: rotation(t, rows) * flip[None, :],
            ),
        )  # fmt: skip


def rotation(angles: jax.Array, d: int) -> jax.Array:
    """Return a product of plane rotations by d (d - 1) / 2 given angles, shape (d, d).

    Every rotation matrix is a product of d (d - 1) / 2 plane rotations.
    """
    found = jnp.eye(d)
    for angle, (i, j) in zip(angles, itertools.combinations(range(d), 2)):
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        a, b = cosine * found[i] - sine * found[j], sine * found[i] + cosine * found[j]
        found = found.at[i].set(a).at[j].set(b)
    return found


@dataclass(frozen=True)
class SpectralBall(_OfMatrices):
    """Matrices whose operator norm (p = inf) or nuclear norm (p = 1) is at most R."""

    R: Number = 1
    shape: Shape = "d"
    p: float = math.inf

    def __repr__(self) -> str:
        if self.p == 1:
            return f"Matrices({self.shape!r}, 'nuclear', {self.R!r})"
        return f"OperatorNorm({self.R!r}, {self.shape!r})"

    def __post_init__(self) -> None:
        self._refuse(self.R)
        if self.p not in (1, math.inf):
            raise Refused(f"{self!r} has p={self.p!r}, expected 1 or infinity. Try p=1")

    def _refuse_numbers(self, size: Size) -> None:
        self._radius(size)

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        radius, (m, n) = self._radius(size), shape

        def turned(key: jax.Array, values: jax.Array) -> jax.Array:
            left, right = jax.random.split(key)
            k = min(m, n)
            return (_orthonormal(left, m, k) * values[None, :]) @ _orthonormal(right, n, k).T

        def inside(key: jax.Array) -> jax.Array:
            a, b = jax.random.split(key)
            values = jax.random.uniform(a, (min(m, n),))
            return turned(b, radius * (values if self.p == math.inf else values / min(m, n)))

        def full(key: jax.Array) -> jax.Array:
            values = jnp.full(min(m, n), radius if self.p == math.inf else radius / min(m, n))
            return turned(key, values)

        def low_rank(key: jax.Array) -> jax.Array:
            a, b = jax.random.split(key)
            kept = jnp.abs(supports(a, (min(m, n),)))
            total = 1.0 if self.p == math.inf else jnp.sum(kept)
            return turned(b, radius * kept / total)

        def sparse(key: jax.Array) -> jax.Array:
            return self.project(1e3 * radius * supports(key, shape), size)

        return inside, full, low_rank, sparse, lambda k: self.extreme(k, size)

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw R times an orthogonal matrix (p = inf), or a matrix of rank one (p = 1)."""
        m, n = self.shape_at(size)
        if self.p == math.inf:
            which, own = jax.random.split(key)
            exact = Orthogonal((m, n)).extreme(own, {})
            chosen = jax.random.bernoulli(which)
            return self._radius(size) * jnp.where(chosen, exact, _orthonormal(own, m, n))
        left, right = jax.random.split(key)
        unit = lambda k, d: Ball(1, d).extreme(k, {})
        return self._radius(size) * jnp.outer(unit(left, m), unit(right, n))

    def project(self, x: Any, size: Size) -> Any:
        """Return the nearest matrix: clip (p = inf) or soft-threshold (p = 1) singular values."""
        radius, x_ = self._radius(size), jnp.asarray(x)
        values = jnp.linalg.svd(x_, compute_uv=False)
        if self.p == math.inf:
            cut = lambda s, r: jnp.minimum(s, r)
            found = on_singular_values(cut, x_, jnp.asarray(radius))
            return _numpy_if(x, jnp.where(values[0] > radius, found, x_))
        threshold = jnp.max(values - project_l1(values, radius))
        found = on_singular_values(lambda s, t: jnp.maximum(s - t, 0.0), x_, threshold)
        rounded = jax.lax.stop_gradient(jnp.sum(_singular(found)))
        found = found * jnp.where(rounded > radius, radius / rounded, 1.0)
        return _numpy_if(x, jnp.where(jnp.sum(values) > radius, found, x_))

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test whether the operator norm or the nuclear norm is at most R."""
        values, xp = _singular(x), modules(x)
        norm = xp.max(values) if self.p == math.inf else xp.sum(values)
        word = "op" if self.p == math.inf else "nuclear"
        return {f"|{name}|_{word} <= {self.R}": norm <= self._radius(size) * MORE}

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return one chart, a map from coordinates to matrices.

        The chart's coordinates are the angles of two rotations, and the signed singular values.

        Raises:
            Refused: if the matrices are not square, or the norm is nuclear.
        """
        (m, n), radius = self.shape_at(size), self._radius(size)
        if m != n or self.p != math.inf:
            return super().charts(size)
        k = n * (n - 1) // 2

        def point(t: jax.Array) -> jax.Array:
            return rotation(t[:k], n) @ (t[2 * k :][:, None] * rotation(t[k : 2 * k], n))

        turn, scale = (3.15,) * (2 * k), (radius,) * n
        least = tuple(-end for end in (*turn, *scale))
        return (Chart("", least, (*turn, *scale), point),)


@careful(RefusedSet.of)
def OperatorNorm(R: Number = 1, shape: Shape = "d") -> SpectralBall:
    """Matrices whose largest singular value is at most R.

    Args:
        R: the bound: a number or an expression of sizes.
        shape: names of sizes or integers; "d" means (d, d).
    """
    return SpectralBall(R, shape)


def _one_name(norm: Any) -> Any:
    return "nuclear" if norm == "trace" else norm


_OF_EIGENVALUES = {"operator": math.inf, "nuclear": 1, "frobenius": 2}
"""Maps the name of each norm to p; the norm is the l_p norm of the eigenvalues."""


@dataclass(frozen=True)
class Symmetric(_OfMatrices):
    """Symmetric (d, d) matrices whose norm is at most `at_most`.

    The norm is "operator" (the largest absolute eigenvalue), "nuclear" or "trace" (two names of the
    sum of the absolute eigenvalues), or "frobenius". The default bound on the norm is infinite. The
    projection of an array is the nearest point of the set.
    """

    shape: Shape = "d"
    at_most: Number = math.inf
    norm: Literal["operator", "nuclear", "trace", "frobenius"] = "operator"
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._refuse(self.at_most)
        if _one_name(self.norm) not in _OF_EIGENVALUES:
            raise Refused(
                f"{type(self).__name__} has norm={self.norm!r}, expected 'operator', 'nuclear' "
                "(or 'trace', its other name) or 'frobenius'. Try norm='operator'"
            )

    def shape_at(self, size: Size) -> tuple[int, ...]:
        """Return the matrices' shape (d, d), with the number d from `size`.

        Raises:
            Refused: if the matrices of the set are not square.
        """
        rows, columns = super().shape_at(size)
        if rows != columns:
            raise Refused(
                f"{self!r} has shape={(rows, columns)}, expected a square matrix. "
                f"Try jb.{type(self).__name__}({rows})"
            )
        return rows, columns

    def _refuse_numbers(self, size: Size) -> None:
        self._bound(size)

    def _bound(self, size: Size) -> float:
        bound = float(number_of(self.at_most, size))
        if not bound >= 0:
            raise Refused(
                f"{self!r} has at_most={bound}, expected a norm of at least 0. Try at_most=1"
            )
        return bound

    def every(self, size: Size) -> np.ndarray | None:
        """Return the zero matrix, the set's only point, if the norm is at most 0; else None."""
        return None if self._bound(size) else np.zeros((1, *self.shape_at(size)))

    @property
    def _p(self) -> float:
        return _OF_EIGENVALUES[_one_name(self.norm)]

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        bound, d = self._bound(size), shape[0]

        def of(values: Draw) -> Draw:
            def law(key: jax.Array) -> jax.Array:
                a, b, c = jax.random.split(key, 3)
                found = values(a)
                if self.signed:
                    found = found * _signs(a, d)
                if math.isfinite(bound):
                    found = found * bound / vector_norm(found, self._p)
                else:
                    found = found * 10.0 ** jax.random.uniform(c, minval=-2.0, maxval=2.0)
                q = _orthonormal(b, d, d)
                return _symmetric((q * found[None, :]) @ q.T)

            return law

        own = (lambda x: x) if self.signed else jnp.abs
        spread = of(lambda k: jax.random.uniform(k, (d,)) + 1e-12)
        peaked = of(lambda k: jnp.exp(3 * jax.random.normal(k, (d,))))
        low_rank = of(lambda k: jnp.abs(supports(k, (d,))))
        plain = lambda k: self.project(1e3 * jnp.diag(own(supports(k, (d,)))), size)
        part = lambda k: jax.random.uniform(jax.random.fold_in(k, 1)) * spread(k)
        return spread, peaked, low_rank, plain, part

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw a matrix of norm `at_most` whose nonzero eigenvalues have one absolute value.

        For the nuclear norm the drawn matrix has rank one. For the operator norm the drawn matrix
        has no zero eigenvalue, if negative eigenvalues are allowed.

        Raises:
            Refused: if the bound `at_most` is infinite.
        """
        bound, (d, _) = self._bound(size), self.shape_at(size)
        if not math.isfinite(bound):
            return super().extreme(key, size)
        a, b = jax.random.split(key)
        kept = jnp.abs(supports(a, (d,)))
        kept = jnp.where(jnp.arange(d) == 0, 1.0, 0.0) if self._p == 1 else kept
        if self.signed:
            kept = (jnp.ones(d) if self._p == math.inf else kept) * _signs(a, d)
        q = _orthonormal(b, d, d)
        values = bound * kept / vector_norm(kept, self._p)
        return _symmetric((q * values[None, :]) @ q.T)

    def project(self, x: Any, size: Size) -> Any:
        """Return the set's nearest matrix: project the eigenvalues of the symmetric part of x."""
        bound, x_ = self._bound(size), _symmetric(jnp.asarray(x))
        values = jnp.linalg.eigvalsh(x_)
        kept = values if self.signed else jnp.maximum(values, 0.0)
        own = (lambda v: v) if self.signed else (lambda v: jnp.maximum(v, 0.0))
        zero, scale = jnp.zeros(()), jnp.ones(())
        if self._p == math.inf:
            least = -bound if self.signed else 0.0
            clipped = on_spectrum(lambda v, _: jnp.clip(v, least, bound), x_, zero)
        elif self._p == 1 and math.isfinite(bound):
            cut = jnp.max(jnp.abs(kept) - jnp.abs(project_l1(kept, bound)))
            shrunk = lambda v, t: jnp.maximum(v - t, 0.0)
            both = lambda v, t: shrunk(v, t) - shrunk(-v, t)
            clipped = on_spectrum(both if self.signed else shrunk, x_, cut)
        else:
            if math.isfinite(bound):
                length = vector_norm(kept)
                scale = jnp.where(length > bound, bound / jnp.maximum(length, 1e-300), 1.0)
            clipped = on_spectrum(lambda v, s: s * own(v), x_, scale)
        within = (self.signed | (values[0] >= 0)) & (vector_norm(kept, self._p) <= bound)
        return _numpy_if(x, jnp.where(within, x_, _symmetric(clipped)))

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test a matrix's symmetry, its least eigenvalue's sign, and a finite bound on its norm."""
        xp, bound = modules(x), self._bound(size)
        values = xp.linalg.eigvalsh(_symmetric(x))
        largest = xp.max(xp.abs(values))
        found = {f"{name} is symmetric": largest + xp.max(xp.abs(x - x.T)) <= largest * MORE}
        if not self.signed:
            words = f"{name} is positive semidefinite"
            found[words] = largest + values[0] >= largest * LESS
        if math.isfinite(bound):
            norm = {
                math.inf: largest,
                1: xp.sum(xp.abs(values)),
                2: xp.sqrt(xp.sum(values**2)),
            }[self._p]
            found[f"|{name}|_{self.norm} <= {self.at_most}"] = norm <= bound * MORE
        return found

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return a chart that maps the angles of a rotation and the eigenvalues to a matrix.

        Raises:
            Refused: if the norm is not "operator", or the bound is infinite.
        """
        bound, (d, _) = self._bound(size), self.shape_at(size)
        if self._p != math.inf or not math.isfinite(bound):
            return super().charts(size)
        k = d * (d - 1) // 2
        least = -bound if self.signed else 0.0

        def point(t: jax.Array) -> jax.Array:
            q = rotation(t[:k], d)
            return _symmetric(q @ (t[k:][:, None] * q.T))

        return (Chart("", (-3.15,) * k + (least,) * d, (3.15,) * k + (bound,) * d, point),)


@dataclass(frozen=True)
class PSD(Symmetric):
    """Symmetric positive semidefinite (d, d) matrices whose norm is at most `at_most`.

    The norm is "operator" (the largest eigenvalue), "trace" or "nuclear" (two names of the sum of
    the eigenvalues), or "frobenius". The default of `at_most` is infinite. The projection of an
    array is the nearest point of the set.
    """

    signed: ClassVar[bool] = False


def _signs(key: jax.Array, d: int) -> jax.Array:
    return jax.random.rademacher(jax.random.fold_in(key, 1), (d,), float)


def _symmetric(x: Any) -> Any:
    return (x + x.T) / 2


@dataclass(frozen=True)
class RowBalls(Set):
    """Arrays whose rows' l_2 norms have a maximum ("max") or a sum ("sum") of at most R.

    A row is a vector along the last axis.
    """

    R: Number = 1
    shape: Shape = ("n", "d")
    over: Literal["max", "sum"] = "max"

    def __post_init__(self) -> None:
        self._refuse(self.R)
        if self.over not in ("max", "sum"):
            raise Refused(
                f"RowBalls has over={self.over!r}, expected 'max' or 'sum'. Try over='max'"
            )

    def shape_at(self, size: Size) -> tuple[int, ...]:
        """Return the arrays' shape, with the numbers from `size` in place of names.

        Raises:
            Refused: if there is no row, or a row has no entry.
        """
        shape = super().shape_at(size)
        if not shape or not min(shape):
            raise Refused(
                f"{self!r} has shape={shape}, expected axes of positive length. Try ('n', 'd')"
            )
        return shape

    def _refuse_numbers(self, size: Size) -> None:
        self._radius(size)

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        def near(draw: Draw) -> Draw:
            return lambda key: self.project(draw(key), size)

        radius = self._radius(size)
        part = lambda k: jax.random.uniform(jax.random.fold_in(k, 1))
        outside = near(lambda k: 1e3 * radius * jax.random.normal(k, shape))
        inside = lambda k: part(k) * outside(k)
        sparse = near(lambda k: 1e3 * radius * supports(k, shape))
        return inside, outside, sparse, lambda k: self.extreme(k, size)

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw rows of norm R (over="max"), or one row of norm R and zero rows (over="sum")."""
        *rows, d = self.shape_at(size)
        count = math.prod(rows)
        own, which, tie = jax.random.split(key, 3)
        drawn = jax.random.normal(own, (count, d))
        tied = jnp.where(jax.random.bernoulli(tie), drawn[:1], drawn)
        unit = tied / vector_norm(tied)[:, None]
        if self.over == "sum":
            alone = jax.nn.one_hot(jax.random.randint(which, (), 0, count), count, dtype=float)
            unit = unit * alone[:, None]
        return self._radius(size) * unit.reshape((*rows, d))

    def project(self, x: Any, size: Size) -> Any:
        """Return the nearest point: shrink the rows that are too long."""
        radius, x_ = self._radius(size), jnp.asarray(x)
        if self.over == "max":
            return _numpy_if(x, project_rows(x_, radius))
        lengths = vector_norm(x_)
        kept = project_l1(lengths.ravel(), radius).reshape(lengths.shape)
        factor = jnp.where(lengths > 0, kept / jnp.where(lengths > 0, lengths, 1.0), 0.0)
        return _numpy_if(x, x_ * factor[..., None])

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test whether the maximum or the sum of the rows' norms is at most R."""
        xp = modules(x)
        lengths = xp.sqrt(xp.sum(x**2, axis=-1))
        norm, word = (
            (xp.max(lengths), "rows") if self.over == "max" else (xp.sum(lengths), "row sum")
        )
        return {f"|{name}|_{word} <= {self.R}": norm <= self._radius(size) * MORE}


@careful(RefusedSet.of)
def Matrices(shape: Shape = ("m", "n"), norm: Norm = "frobenius", at_most: Number = 1) -> Set:
    """Return the set of matrices of a shape whose norm is at most a bound.

    Args:
        shape: the shape of the matrices: names of sizes or integers.
        norm: "frobenius", or "max" for the largest absolute entry. "operator" and "nuclear" are the
            largest and the sum of the singular values; "trace" is another name of "nuclear".
            "rows" and "row sum" are the largest and the sum of the l_2 norms of the rows.
        at_most: the bound on the norm: a number or an expression of sizes.

    Raises:
        Refused: if the library has no norm of that name.
    """
    found: dict[str, Callable[[], Set]] = {
        "frobenius": lambda: Ball(at_most, shape),
        "max": lambda: Ball(at_most, shape, math.inf),
        "operator": lambda: SpectralBall(at_most, shape),
        "nuclear": lambda: SpectralBall(at_most, shape, 1),
        "rows": lambda: RowBalls(at_most, shape),
        "row sum": lambda: RowBalls(at_most, shape, "sum"),
    }
    if _one_name(norm) not in found:
        known = ", ".join(map(repr, found))
        raise Refused(f"norm={norm!r} is unknown. Try one of {known}")
    return found[_one_name(norm)]()
