"""Define the rules that run decompositions and triangular solves in NumPy: `eigh`, `qr`, ..."""

from typing import Any

import numpy as np

from jaxbounds.programs.interpreted.values import NotInterpreted, Rule


def _finite(a: Any) -> Any:
    """Refuse infinite entries, for which NumPy raises and compiled programs return NaN."""
    if not np.all(np.isfinite(a)):
        raise NotInterpreted("a matrix has infinite entries")
    return a


def _eigh(a: Any, *, lower: bool, **_: Any) -> list[Any]:
    values, vectors = np.linalg.eigh(_finite(a), UPLO="L" if lower else "U")
    return [vectors, values]


def _svd(a: Any, *, full_matrices: bool, compute_uv: bool, **_: Any) -> list[Any]:
    if not compute_uv:
        # A compiled program gives NaN for a matrix that is not finite; LAPACK prints a warning.
        finite = np.all(np.isfinite(a), axis=(-1, -2))
        values = np.linalg.svd(np.where(finite[..., None, None], a, 0), compute_uv=False)
        return [np.where(finite[..., None], values, np.asarray(np.nan, a.dtype))]
    u, s, vh = np.linalg.svd(_finite(a), full_matrices=full_matrices)
    return [s, u, vh]


def _qr(a: Any, *, pivoting: bool, full_matrices: bool, **_: Any) -> list[Any]:
    if pivoting:
        raise NotInterpreted("NumPy has no qr with pivots")
    return list(np.linalg.qr(_finite(a), "complete" if full_matrices else "reduced"))


def _lu(a: Any, **_: Any) -> list[Any]:
    return eliminated(a)


def eliminated(a: Any, pivots: Any = None, /) -> list[Any]:
    """Return the LU factorisation of matrices: the factors in one array, the pivots, the order.

    The matrices have the shape (..., m, n). `pivots` holds the row to exchange in each step; by
    default, each step moves the row with the column's largest entry up. A matrix with an entry that
    is not finite has NaN factors.
    """
    finite = np.all(np.isfinite(a), axis=(-1, -2), keepdims=True)
    left = np.where(finite, a, np.asarray(np.nan, a.dtype))
    *batch, m, n = left.shape
    left, steps = left.reshape(-1, m, n), min(m, n)
    each = np.arange(len(left))
    chosen = np.zeros((len(left), steps), np.int32)
    order = np.tile(np.arange(m, dtype=np.int32), (len(left), 1))
    for k in range(steps):
        if pivots is None:
            chosen[:, k] = k + np.argmax(np.abs(left[:, k:, k]), axis=1)
        else:
            chosen[:, k] = np.reshape(pivots, chosen.shape)[:, k]
        for rows in (left, order):
            first, other = rows[:, k].copy(), rows[each, chosen[:, k]].copy()
            rows[:, k], rows[each, chosen[:, k]] = other, first
        pivot = left[:, k, k, None]
        left[:, k + 1 :, k] /= np.where(pivot == 0, np.asarray(1, pivot.dtype), pivot)
        left[:, k + 1 :, k + 1 :] -= left[:, k + 1 :, k, None] * left[:, k, None, k + 1 :]
    shaped = lambda x, *own: x.reshape(*batch, *own)
    return [shaped(left, m, n), shaped(chosen, steps), shaped(order, m)]


def _solved(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool,
    conjugate_a: bool, **_: Any,
) -> Any:  # fmt: skip
    if np.iscomplexobj(a):
        raise NotInterpreted("a triangular system has complex entries")
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        one = np.eye(a.shape[-1], dtype=bool)
        a = np.where(one, np.asarray(1, a.dtype), a)
    if np.any(np.diagonal(a, axis1=-2, axis2=-1) == 0):
        raise NotInterpreted(
            "a triangular matrix with a zero on its diagonal makes a singular system"
        )
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    if left_side:
        return np.linalg.solve(a, b)
    turned = np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2))
    return np.swapaxes(turned, -1, -2)


RULES: dict[str, Rule] = {
    "eigh": _eigh,
    "svd": _svd,
    "qr": _qr,
    "lu": _lu,
    "triangular_solve": _solved,
}
