"""Factorise matrices of balls (intervals): Cholesky's factorisation, and QR with LAPACK's signs."""

from typing import Any

import numpy as np
from flint import arb

from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.values import NAN, ONE, ZERO, NotSupported, as_reals, reals, shape_of

Values = list[Any]


def cholesky(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `cholesky`: return the lower factor; the rule reads only the lower triangle.

    All entries of the factor are NaN unless every pivot is certainly positive.
    """
    a = as_reals(xs[0])
    out = np.empty_like(a)
    for index in np.ndindex(a.shape[:-2]):
        out[index] = _lower_factor(a[index])
    return [out]


def _lower_factor(a: np.ndarray) -> np.ndarray:
    n = len(a)
    factor = reals((n, n), [ZERO] * (n * n))
    for j in range(n):
        squares = (functions.UNARY["square"](factor[j, k]) for k in range(j))
        pivot = a[j, j] - sum(squares, ZERO)
        if not (pivot > 0 and pivot.is_finite()):
            return reals((n, n), [NAN] * (n * n))
        factor[j, j] = pivot.sqrt()
        for i in range(j + 1, n):
            rest = a[i, j] - sum((factor[i, k] * factor[j, k] for k in range(j)), ZERO)
            factor[i, j] = rest / factor[j, j]
    return factor


def qr(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `qr` by LAPACK's choice of Householder reflections, which fixes all signs.

    A column that is zero below the diagonal stays unchanged. In every other column the new diagonal
    entry has the opposite sign of the old entry. If the old sign is undecided, the interpreter runs
    the program once for each sign.

    Raises:
        NotSupported: if the program asks for a factorisation with pivoting.
    """
    if eqn.params.get("pivoting") or len(eqn.outvars) > 2:
        raise NotSupported(
            f"qr with pivoting={eqn.params.get('pivoting')} has no rule. Try pivoting=False"
        )
    a = as_reals(xs[0])
    outs = [np.empty(shape_of(v), dtype=object) for v in eqn.outvars]
    for index in np.ndindex(a.shape[:-2]):
        q, r = _reflected(a[index].copy(), run)
        for out, found in zip(outs, (q, r)):
            rows, columns = out.shape[-2:]
            out[index] = found[:rows, :columns]
    return outs


def _reflected(a: np.ndarray, run: Any) -> tuple[np.ndarray, np.ndarray]:
    m, n = a.shape
    q = reals((m, m), (ONE if i == j else ZERO for i in range(m) for j in range(m)))
    for k in range(min(m - 1, n)):
        below = list(a[k + 1 :, k])
        if all(v.is_zero() for v in below) or not _moves(below, run):
            a[k + 1 :, k] = ZERO
            continue
        head, norm = a[k, k], _norm(list(a[k:, k]))
        positive = head > 0 or (not head < 0 and run.fork(2, "the sign of a pivot") == 0)
        new = -norm if positive else norm
        v = np.array([head - new, *below], dtype=object)
        if not head > 0 and not head < 0:
            size = functions.absolute(head)  # the fork's sign prevents a cancellation
            v[0] = (size if positive else -size) - new
        half = -new * v[0]  # |v|^2 / 2
        for matrix, rows in ((a, slice(k, n)), (q, slice(0, m))):
            for j in range(matrix.shape[1])[rows]:
                along = sum((v[i] * matrix[k + i, j] for i in range(m - k)), ZERO)
                along = functions.divide(along, half)
                for i in range(m - k):
                    matrix[k + i, j] = matrix[k + i, j] - along * v[i]
        a[k, k], a[k + 1 :, k] = new, ZERO
    return q.T, a


def _norm(column: list[arb]) -> arb:
    squares = (functions.UNARY["square"](v) for v in column)
    return functions.square_root(sum(squares, ZERO))


def _moves(below: list[arb], run: Any) -> bool:
    return any(v > 0 or v < 0 for v in below) or run.fork(2, "whether a column is zero") == 0


RULES = {"cholesky": cholesky, "qr": qr}
