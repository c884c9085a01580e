"""Multiply and decompose matrices of balls (intervals)."""

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from flint import arb, arb_mat, ctx

from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.reductions import order_statistics
from jaxbounds.programs.balls.values import (
    NAN,
    ONE,
    ZERO,
    NotSupported,
    as_reals,
    dtype_of,
    each,
    midpoints,
    reals,
    shape_of,
)

Values = list[Any]


def _matrix(a: np.ndarray) -> arb_mat:
    return arb_mat(int(a.shape[0]), int(a.shape[1]), list(a.ravel()))


def laid_out(
    a: np.ndarray, b: np.ndarray, dimension_numbers: Any, /
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Return `dot_general`'s operands as stacks of matrices, and the result's shape.

    The stacks have shapes (batch, m, k) and (batch, k, n).
    """
    (in_a, in_b), (batch_a, batch_b) = dimension_numbers
    free_a = [i for i in range(a.ndim) if i not in (*in_a, *batch_a)]
    free_b = [i for i in range(b.ndim) if i not in (*in_b, *batch_b)]
    sizes = lambda x, axes: [x.shape[i] for i in axes]
    count = lambda shape: int(np.prod(shape, dtype=int))
    batch, rows, columns = sizes(a, batch_a), sizes(a, free_a), sizes(b, free_b)
    many, m, k, n = map(count, (batch, rows, sizes(a, in_a), columns))
    left = np.transpose(a, [*batch_a, *free_a, *in_a]).reshape(many, m, k)
    right = np.transpose(b, [*batch_b, *in_b, *free_b]).reshape(many, k, n)
    return left, right, (*batch, *rows, *columns)


def contracted(a: np.ndarray, b: np.ndarray, dimension_numbers: Any, /) -> np.ndarray:
    """Apply `dot_general` to two arrays of balls (intervals)."""
    left, right, shape = laid_out(a, b, dimension_numbers)
    (_, m, k), n = left.shape, right.shape[2]
    entries: list[arb] = []
    for p, q in zip(left, right):
        if k == 0:
            entries += [ZERO] * (m * n)
        elif k == 1 or m * n == 1:  # exact zeros stay exact
            entries += [
                functools.reduce(functions.plus, map(functions.times, p[i], q[:, j]))
                for i in range(m)
                for j in range(n)
            ]
        elif m * n:
            entries += (_matrix(p) * _matrix(q)).entries()
    return reals(shape, entries)


def product(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `dot_general`.

    If both operands are the same variable and all axes are contracted, the product is a sum of
    squares.
    """
    a, b = map(as_reals, xs)
    numbers = eqn.params["dimension_numbers"]
    (in_a, in_b), _ = numbers
    alone = eqn.invars[0] is eqn.invars[1] and tuple(in_a) == tuple(in_b)
    if alone and a.size and len(in_a) == a.ndim:
        squares = map(functions.UNARY["square"], a.ravel())
        return [reals((), [functools.reduce(functions.plus, squares)])]
    return [contracted(a, b, numbers)]


def _rotation(app: arb, aqq: arb, apq: arb) -> tuple[arb, arb]:
    """Enclose cos and sin of one exact angle, whose rotation makes the entry `apq` tiny."""
    theta = (aqq.mid() - app.mid()) / (2 * apq.mid())
    t = (1 / (abs(theta) + (theta * theta + 1).sqrt())).mid()
    t = -t if theta < 0 else t
    c = 1 / (1 + t * t).sqrt()
    return c, t * c


def _worth_rotating(entry: arb, least: arb) -> bool:
    size = abs(entry.mid())
    return size > least and (entry.is_exact() or size > 4 * entry.rad())


def diagonalised(symmetric: np.ndarray, /) -> tuple[list[arb], arb, np.ndarray]:
    """Diagonalise A with Jacobi's rotations: return D, a bound of |E|, and V.

    A = V (diag(D) + E) V^T, where E is the remaining off-diagonal part. The balls of each rotation
    contain an exactly orthogonal matrix, so diag(D) + E has the eigenvalues of A.
    """
    A, n = symmetric.copy(), len(symmetric)
    V = reals((n, n), (ONE if i == j else ZERO for i in range(n) for j in range(n)))
    scale = sum((v.abs_upper() for v in A.ravel()), ZERO)
    least = scale * arb(2) ** -ctx.prec
    for _ in range(60):
        pairs = [(p, q) for p in range(n) for q in range(p + 1, n)]
        moved = False
        for p, q in pairs:
            if not _worth_rotating(A[p, q], least):
                continue
            moved = True
            c, s = _rotation(A[p, p], A[q, q], A[p, q])
            app, aqq, apq = A[p, p], A[q, q], A[p, q]
            x, y = A[p].copy(), A[q].copy()
            A[p], A[q] = c * x - s * y, s * x + c * y
            A[:, p], A[:, q] = A[p], A[q]
            A[p, p] = c * c * app - 2 * s * c * apq + s * s * aqq
            A[q, q] = s * s * app + 2 * s * c * apq + c * c * aqq
            A[p, q] = A[q, p] = (c * c - s * s) * apq + s * c * (app - aqq)
            u, w = V[:, p].copy(), V[:, q].copy()
            V[:, p], V[:, q] = c * u - s * w, s * u + c * w
        if not moved:
            break
    rest = sum((A[p, q].abs_upper() ** 2 for p in range(n) for q in range(n) if p != q), ZERO)
    return list(np.diagonal(A)), functions.square_root(rest).abs_upper(), V


def _unknown(n: int) -> np.ndarray:
    return reals((n,), [NAN] * n)


def eigenvalues(symmetric: np.ndarray, /) -> np.ndarray:
    """Return the eigenvalues in ascending order.

    Weyl's theorem bounds the distance of the k-th smallest eigenvalue from the k-th smallest entry
    of D by ||E||, for D and E of `diagonalised`.
    """
    if not all(v.is_finite() for v in symmetric.ravel()):
        return _unknown(len(symmetric))
    diagonal, rest, _ = diagonalised(symmetric)
    return reals((len(diagonal),), (v + arb(0, rest) for v in order_statistics(diagonal)))


def eigenvectors(symmetric: np.ndarray, /) -> np.ndarray:
    """Return unit eigenvectors, up to sign, as columns; NaN if the eigenvalue may be multiple.

    Let E and V be the matrices of `diagonalised`, and gap the distance of v's eigenvalue to the
    nearest other eigenvalue. The unit eigenvector v for the i-th diagonal entry then satisfies |sin
    angle(v, V e_i)| <= |E| / gap (Davis and Kahan). Two unit vectors at an acute angle t differ by
    at most sqrt(2) sin t.
    """
    n = len(symmetric)
    out = reals((n, n), [NAN] * (n * n))
    if not all(v.is_finite() for v in symmetric.ravel()):
        return out
    diagonal, rest, V = diagonalised(symmetric)
    middle = lambda i: float(diagonal[i].mid())
    for column, i in enumerate(sorted(range(n), key=middle)):
        gaps = [abs(diagonal[i] - diagonal[j]).lower() - 2 * rest for j in range(n) if j != i]
        if not all(gap > 0 for gap in gaps):
            continue
        off = max(((arb(2).sqrt() * rest / gap).abs_upper() for gap in gaps), default=ZERO)
        out[:, column] = [v + arb(0, off) for v in V[:, i]]
    return out


SHARP = 40
"""An entry of a matrix counts as a number, not as an interval, if its ball is accurate to more than
this many bits.

If this value is larger, more programs run once for each sign of a vector.
"""


def _signed(vectors: np.ndarray, m: np.ndarray, like: Callable[[], np.ndarray], run: Any) -> Any:
    """Give each eigenvector the sign that JAX computes, because no theorem determines the sign.

    If the matrix is known to full precision and has no zero entry, JAX's primitive computes the
    signs in floats. In every other case the interpreter runs the program once for each choice of
    signs.
    """
    if all(v.rel_accuracy_bits() > SHARP and not v.contains(0) for v in m.ravel()):
        along = np.einsum("ij,ij->j", like(), midpoints(vectors))
        signs = [-ONE if a < 0 else ONE for a in along]
    else:
        count = vectors.shape[1]
        signs = [(ONE, -ONE)[run.fork(2, "the sign of a vector")] for _ in range(count)]
    return vectors * np.array(signs)


def _in_floats(eqn: JaxprEqn, m: np.ndarray) -> list[np.ndarray]:
    middle = jnp.asarray(midpoints(m), dtype_of(eqn.invars[0]))
    return list(map(np.asarray, eqn.primitive.bind(middle, **eqn.params)))


def eigh(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `eigh`: eigenvectors (only if the program uses them) and eigenvalues."""
    a = as_reals(xs[0])
    values = np.empty(a.shape[:-1], dtype=object)
    vectors = reals(a.shape, [NAN] * a.size)
    for index in np.ndindex(a.shape[:-2]):
        m = a[index]
        # The primitive reads only one triangle.
        low = np.tril(np.ones(m.shape, bool)) == bool(eqn.params.get("lower", True))
        m = np.where(low | np.eye(len(m), dtype=bool), m, m.T)
        values[index] = eigenvalues(m)
        if run.used(eqn.outvars[0]):
            like = lambda m=m: _in_floats(eqn, m)[0]
            vectors[index] = _signed(eigenvectors(m), m, like, run)
    return [vectors, values]


def _singular_values(m: np.ndarray) -> np.ndarray:
    tall = _matrix(m if m.shape[0] >= m.shape[1] else m.T)
    k = min(m.shape)
    gram = reals((k, k), (tall.transpose() * tall).entries())
    clipped = (functions.greater(v, ZERO) for v in eigenvalues(gram)[::-1])
    return reals((k,), map(functions.square_root, clipped))


def _singular_vectors(eqn: JaxprEqn, m: np.ndarray, s: np.ndarray, run: Any) -> tuple[Any, Any]:
    """Return U and V^T of an SVD, with NaN where a singular value may be zero or multiple."""
    wide = m.shape[0] < m.shape[1]
    tall = m.T if wide else m
    gram = reals((len(s), len(s)), (_matrix(tall).transpose() * _matrix(tall)).entries())
    like = lambda: _in_floats(eqn, m)[1] if wide else _in_floats(eqn, m)[2].T
    V = _signed(eigenvectors(gram)[:, ::-1], m, like, run)
    U = reals((len(tall), len(s)), (_matrix(tall) * _matrix(V)).entries())
    U = each(functions.divide, U, s[None, :])
    return (V, U.T) if wide else (U, V.T)


def svd(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `svd`: singular values, and the thin singular vectors if the program uses them.

    Raises:
        NotSupported: if the program uses the full matrices of singular vectors.
    """
    a, wanted = as_reals(xs[0]), eqn.params["compute_uv"]
    shapes = [shape_of(v) for v in eqn.outvars]
    outs = [reals(shape, [NAN] * math.prod(shape)) for shape in shapes]
    square = a.shape[-1] == a.shape[-2]
    for index in np.ndindex(a.shape[:-2]):
        m = a[index]
        if not all(v.is_finite() for v in m.ravel()):
            continue
        outs[0][index] = s = _singular_values(m)
        if wanted and any(map(run.used, eqn.outvars[1:])):
            if eqn.params.get("full_matrices") and not square:
                raise NotSupported(
                    "svd with full matrices has no rule, got "
                    f"full_matrices={eqn.params.get('full_matrices')}. Try full_matrices=False"
                )
            outs[1][index], outs[2][index] = _singular_vectors(eqn, m, s, run)
    return outs


def lu(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `lu`: elimination with row pivoting, once for each possible pivot."""
    a = as_reals(xs[0])
    outs = [np.empty_like(a), *(np.zeros(shape_of(v), np.int32) for v in eqn.outvars[1:])]
    for index in np.ndindex(a.shape[:-2]):
        for out, found in zip(outs, _eliminated(a[index].copy(), run)):
            out[index] = found
    return outs


def _eliminated(a: np.ndarray, run: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m, n = a.shape
    pivots, order = np.zeros(min(m, n), np.int32), np.arange(m, dtype=np.int32)
    for k in range(min(m, n)):
        column = [abs(v) for v in a[k:, k]]
        possible = [
            i
            for i, v in enumerate(column)
            if not any(w > v for w in column)
            and not any(functions.equal(w, v) == 1 for w in column[:i])
        ]
        choice = possible[run.fork(len(possible), "a pivot")] if len(possible) > 1 else possible[0]
        pivots[k] = k + choice
        a[[k, k + choice]] = a[[k + choice, k]]
        order[[k, k + choice]] = order[[k + choice, k]]
        for i in range(k + 1, m):
            a[i, k] = functions.divide(a[i, k], a[k, k])
            a[i, k + 1 :] = a[i, k + 1 :] - a[i, k] * a[k, k + 1 :]
    return a, pivots, order


def _solved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve a x = b; the solution is NaN if the matrix may be singular."""
    with contextlib.suppress(ZeroDivisionError):
        found = reals(b.shape, _matrix(a).solve(_matrix(b)).entries())
        if all(v.is_finite() for v in found.ravel()):
            return found
    return reals(b.shape, [NAN] * b.size)


def triangular_solve(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Solve A x = b or x A = b for a triangular A."""
    a, b = map(as_reals, xs)
    out = np.empty_like(b)
    for index in np.ndindex(a.shape[:-2]):
        out[index] = _triangular(eqn.params, a[index], b[index])
    return [out]


def _triangular(p: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    keep = np.tril(np.ones(a.shape, bool)) if p["lower"] else np.triu(np.ones(a.shape, bool))
    a = a.copy()
    a[~keep] = ZERO
    if p["unit_diagonal"]:
        np.fill_diagonal(a, ONE)
    if p["transpose_a"]:
        a = a.T
    return _solved(a, b) if p["left_side"] else _solved(a.T, b.T).T


def linear_solve(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `custom_linear_solve`: run its solving program, which may be direct or iterative."""
    lengths, programs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    before = lengths.matvec + lengths.vecmat
    given = xs[before : before + lengths.solve]
    return run.closed(programs.solve, *given, *xs[sum(lengths) :])


RULES = {
    "dot_general": product,
    "eigh": eigh,
    "svd": svd,
    "lu": lu,
    "triangular_solve": triangular_solve,
    "custom_linear_solve": linear_solve,
}
