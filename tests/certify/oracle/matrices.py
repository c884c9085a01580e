"""Programs for products and decompositions; oracle: fractions, and mpmath's own decompositions."""

from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from mpmath import mp

from oracle.programs import Draw, Program, floats
from oracle.truth import BITS, real

LOOSE = 1e-20
"""Roots of the eigenvalues of a singular Gram matrix lose half of the digits."""


def _matrix(x: np.ndarray) -> Any:
    return mp.matrix([[real(v) for v in row] for row in x])


def eigenvalues(x: np.ndarray) -> np.ndarray:
    """Ascending, by mpmath's tridiagonal QR at 400 bits."""
    with mp.workprec(BITS + 100):
        return np.array(sorted(mp.eigsy(_matrix(x), eigvals_only=True)), dtype=object)


def projections(x: np.ndarray) -> np.ndarray:
    """Onto each eigenvector: they have no sign."""
    with mp.workprec(BITS + 100):
        values, vectors = mp.eigsy(_matrix(x))
        order = sorted(range(len(x)), key=lambda i: values[i])
        columns = [np.array([vectors[j, i] for j in range(len(x))], dtype=object) for i in order]
        return np.array([np.outer(c, c) for c in columns], dtype=object)


def singular_values(x: np.ndarray) -> np.ndarray:
    """Descending, by mpmath's bidiagonal QR at 400 bits."""
    with mp.workprec(BITS + 100):
        found = mp.svd_r(_matrix(x if len(x) >= len(x.T) else x.T), compute_uv=False)
        return np.array(sorted(found, reverse=True), dtype=object)


def rank_ones(x: np.ndarray) -> np.ndarray:
    """u v^T of each singular value: the pair has one sign, which cancels."""
    with mp.workprec(BITS + 100):
        tall = x if len(x) >= len(x.T) else x.T
        u, s, v = mp.svd_r(_matrix(tall))
        order = sorted(range(len(s)), key=lambda i: -s[i])
        column = lambda m, i: np.array([m[j, i] for j in range(m.rows)], dtype=object)
        pairs = [np.outer(column(u, i), column(v.T, i)) for i in order]
        return np.array(pairs if tall is x else [p.T for p in pairs], dtype=object)


def eliminated(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """LU with the first largest pivot of each column, by fractions."""
    a, n = x.copy(), len(x)
    pivots, order = [], list(range(n))
    for k in range(min(x.shape)):
        best = max(range(k, n), key=lambda i: (abs(a[i, k]), -i))
        pivots.append(best)
        a[[k, best]] = a[[best, k]]
        order[k], order[best] = order[best], order[k]
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            a[i, k + 1 :] = a[i, k + 1 :] - a[i, k] * a[k, k + 1 :]
    return a, np.array(pivots), np.array(order)


def solved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """By Gauss and Jordan on fractions."""
    n = len(a)
    rows = np.concatenate([a, b.reshape(n, -1)], axis=1)
    for k in range(n):
        best = next(i for i in range(k, n) if rows[i, k] != 0)
        rows[[k, best]] = rows[[best, k]]
        rows[k] = rows[k] / rows[k, k]
        for i in range(n):
            if i != k:
                rows[i] = rows[i] - rows[i, k] * rows[k]
    return rows[:, n:].reshape(b.shape)


def _outer_products(x: jax.Array) -> jax.Array:
    v = jnp.linalg.eigh(x)[1]
    return jnp.einsum("ik,jk->kij", v, v)


def _singular_pairs(x: jax.Array) -> jax.Array:
    u, _, vh = jnp.linalg.svd(x, full_matrices=False)
    return jnp.einsum("ik,kj->kij", u, vh)


def _gapped(*diagonal: int) -> Draw:
    """Symmetric, with eigenvalues apart: a perturbed diagonal."""

    def draw(rng: np.random.Generator) -> list[np.ndarray]:
        n = len(diagonal)
        (noise,) = floats((n, n), low=-0.4, high=0.4)(rng)
        return [np.diag(rng.permutation(diagonal)).astype(float) + (noise + noise.T) / 2]

    return draw


def _dominant(shape: tuple[int, ...], *others: tuple[int, ...]) -> Draw:
    """A square matrix that stays regular on boxes, then other arrays."""

    def draw(rng: np.random.Generator) -> list[np.ndarray]:
        a, *rest = floats(shape, *others, low=-1, high=1)(rng)
        return [a + 8 * np.eye(*shape) * rng.choice((-1, 1)), *rest]

    return draw


def _symmetric(x: np.ndarray) -> np.ndarray:
    return (x + x.T) / Fraction(2)


def _mirrored(x: np.ndarray, lower: bool) -> np.ndarray:
    triangle = np.tril(x) if lower else np.triu(x)
    return triangle + (np.tril(x, -1) if lower else np.triu(x, 1)).T


def _lower(a: np.ndarray, unit: bool = False) -> np.ndarray:
    low = np.where(np.tril(np.ones(a.shape, bool)), a, Fraction(0))
    return np.where(np.eye(len(a), dtype=bool), Fraction(1), low) if unit else low


def _rows(rng: np.random.Generator) -> list[np.ndarray]:
    """In every second one the first column has a tie, or nearly one."""
    a = rng.permutation(np.array([[4.0, 1, 2], [-2, 3, 1], [0.5, -1, 5]]))
    if rng.random() < 0.5:
        a = rng.permutation(np.array([[4.0, 1, 7], [-4.0, 8, 1], [1, -1, 5]]))
        a[:, 0] *= 1 + rng.choice((0, 2.0**-5), size=3)
    return [a]


def _triangular(**options: bool) -> Any:
    return lambda a, b: lax.linalg.triangular_solve(a, b, **options)


SQUARE = floats((3, 3))
contract = lambda dims, batch=((), ()): lambda x, y: lax.dot_general(x, y, (dims, batch))
SYSTEM = _dominant((3, 3), (3, 2))
PROGRAMS: dict[str, tuple[Program, ...]] = {
    "dot_general": (
        Program(lambda x, y: x @ y, lambda x, y: x.dot(y), floats((2, 3), (3, 2))),
        Program(lambda x, y: x @ y, lambda x, y: np.asarray(x.dot(y)), floats((3,), (3,))),
        Program(lambda x, y: jnp.outer(x, y), np.outer, floats((2,), (3,))),
        Program(contract(((0,), (1,))), lambda x, y: x.T.dot(y.T), floats((3, 2), (2, 3))),
        Program(
            contract(((2,), (1,)), ((0,), (0,))),
            lambda x, y: np.array([a.dot(b) for a, b in zip(x, y)]),
            floats((2, 2, 3), (2, 3, 2)),
        ),
        Program(lambda x: x @ x, lambda x: np.asarray(x.dot(x)), floats((3,))),
        Program(
            lambda x: jnp.einsum("bk,bk->b", x, x), lambda x: (x * x).sum(axis=1), floats((2, 3))
        ),
        Program(
            lambda x: lax.dot_general(x, x, (((0, 1), (1, 0)), ((), ()))),
            lambda x: np.asarray((x * x.T).sum()),
            floats((2, 2)),
        ),
        Program(
            lambda x: lax.dot_general(x, x, (((1,), (0,)), ((0,), (1,)))),
            lambda x: (x * x.T).sum(axis=1),
            floats((2, 2)),
        ),
    ),
    "eigh": (
        Program(lambda x: jnp.linalg.eigvalsh(x), lambda x: eigenvalues(_symmetric(x)), SQUARE),
        Program(
            lambda x: jnp.linalg.eigvalsh(x, symmetrize_input=False),
            lambda x: eigenvalues(_mirrored(x, lower=True)),
            SQUARE,
        ),
        Program(
            lambda x: jnp.linalg.eigvalsh(x, UPLO="U", symmetrize_input=False),
            lambda x: eigenvalues(_mirrored(x, lower=False)),
            SQUARE,
        ),
        Program(
            lambda x: jnp.linalg.eigvalsh(x),
            lambda x: np.array([eigenvalues(_symmetric(m)) for m in x]),
            floats((2, 2, 2)),
        ),
        Program(
            _outer_products, lambda x: projections(_symmetric(x)), _gapped(-4, 1, 7), signs=True
        ),
    ),
    "svd": (
        Program(lambda x: jnp.linalg.svd(x, compute_uv=False), singular_values, SQUARE, LOOSE),
        Program(
            lambda x: jnp.linalg.svd(x, compute_uv=False), singular_values, floats((2, 4)), LOOSE
        ),
        Program(
            lambda x: jnp.linalg.svd(x, compute_uv=False),
            lambda x: np.array([singular_values(m) for m in x]),
            floats((2, 3, 2)),
            LOOSE,
        ),
        Program(_singular_pairs, rank_ones, _gapped(3, 9), signs=True),
        Program(
            lambda x: _singular_pairs(jnp.concatenate([x, 2 * x])),
            lambda x: rank_ones(np.concatenate([x, 2 * x])),
            _gapped(3, 9),
            signs=True,
        ),
        Program(
            lambda x: _singular_pairs(jnp.concatenate([x, x], axis=1)),
            lambda x: rank_ones(np.concatenate([x, x], axis=1)),
            _gapped(3, 9),
            signs=True,
        ),
    ),
    "lu": (
        Program(lambda x: tuple(lax.linalg.lu(x)), eliminated, _rows, forks=True),
        Program(
            lambda x: tuple(lax.linalg.lu(x[:, :2])),
            lambda x: eliminated(x[:, :2]),
            _rows,
            forks=True,
        ),
    ),
    "triangular_solve": (
        Program(_triangular(left_side=True, lower=True), lambda a, b: solved(_lower(a), b), SYSTEM),
        Program(
            _triangular(left_side=True, lower=False), lambda a, b: solved(_lower(a.T).T, b), SYSTEM
        ),
        Program(
            _triangular(left_side=True, lower=True, transpose_a=True),
            lambda a, b: solved(_lower(a).T, b),
            SYSTEM,
        ),
        Program(
            _triangular(left_side=False, lower=True),
            lambda a, b: solved(_lower(a).T, b.T).T,
            _dominant((3, 3), (2, 3)),
        ),
        Program(
            _triangular(left_side=False, lower=True, transpose_a=True, unit_diagonal=True),
            lambda a, b: solved(_lower(a, unit=True), b.T).T,
            _dominant((3, 3), (2, 3)),
        ),
    ),
    "custom_linear_solve": (
        Program(jnp.linalg.solve, solved, _dominant((3, 3), (3,))),
        Program(jnp.linalg.solve, solved, SYSTEM),
        Program(
            lambda a, b: lax.custom_linear_solve(
                lambda v: a @ v + v[::-1], b, solve=lambda _, v: v, transpose_solve=lambda _, v: v
            ),
            lambda a, b: b,  # what stands there, which is no solution
            _dominant((3, 3), (3,)),
        ),
    ),
}
