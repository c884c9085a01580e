"""Programs for windows, total orders, scattered folds and triangular factors.

Oracle: loops over windows on fractions, mpmath's logarithms, Gram and Schmidt at 400 bits.
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from mpmath import mp

from oracle.movement import _indices
from oracle.programs import Program, floats
from oracle.truth import BITS, real

ROW, IMAGE = floats((5,)), floats((3, 4))


def _slid(x: np.ndarray, fold: Any, width: int, step: int) -> np.ndarray:
    """One axis, no padding, by Python's own slices."""
    starts = range(0, len(x) - width + 1, step)
    return np.array([fold(list(x[i : i + width])) for i in starts], dtype=object)


def _pooled_plane(x: np.ndarray, fold: Any, empty: Any) -> np.ndarray:
    """Windows of 2 x 2, one apart along rows and two along columns, a border of one before."""
    rows, columns = x.shape
    out = []
    for i in range(rows):
        line = []
        for j in range(0, columns, 2):
            seen = [x[a, b] for a in (i - 1, i) for b in (j - 1, j) if a >= 0 and b >= 0]
            line.append(fold([empty, *seen]))
        out.append(line)
    return np.array(out, dtype=object)


def _product(row: list[Any]) -> Any:
    return math.prod(row, start=Fraction(1))


PLANE = {"window_dimensions": (2, 2), "window_strides": (1, 2), "padding": ((1, 0), (1, 0))}


def _window(function: Any, start: float) -> Any:
    return lambda x: lax.reduce_window(x, start, function, (3,), (1,), "VALID")


def _plane(function: Any, start: float) -> Any:
    return lambda x: lax.reduce_window(x, start, function, **PLANE)


def _correlated(x: np.ndarray, k: np.ndarray) -> np.ndarray:
    """x of shape (C, H, W), k of (O, C, h, w): strides 2, 1; the kernel's columns two apart, and
    one column of zeros after."""
    channels, height, width = x.shape
    x = np.concatenate([x, np.full((channels, height, 1), Fraction(0))], axis=2)
    features, _, h, w = k.shape
    rows, columns = range(0, height - h + 1, 2), range(width + 1 - 2 * (w - 1))
    out = np.empty((features, len(rows), len(columns)), dtype=object)
    for o, (a, i), (b, j) in itertools.product(
        range(features), enumerate(rows), enumerate(columns)
    ):
        out[o, a, b] = sum(
            x[c, i + p, j + 2 * q] * k[o, c, p, q]
            for c in range(channels) for p in range(h) for q in range(w)
        )  # fmt: skip
    return out


def _convolved(x: Any, k: Any) -> Any:
    return lax.conv_general_dilated(
        x[None], k, (2, 1), ((0, 0), (0, 1)), rhs_dilation=(1, 2)
    )[0]  # fmt: skip


def _grouped(x: Any, k: Any) -> Any:
    """Two groups: each feature sees its own channel, spread by holes."""
    return lax.conv_general_dilated(
        x[None], k, (1,), ((1, 0),), lhs_dilation=(2,), feature_group_count=2
    )[0]  # fmt: skip


def _grouped_oracle(x: np.ndarray, k: np.ndarray) -> np.ndarray:
    spread = np.full((2, 2 * x.shape[1]), Fraction(0))
    spread[:, 1::2] = x  # one before, and a hole between two
    return np.array(
        [[spread[c, i] * k[c, 0, 0] + spread[c, i + 1] * k[c, 0, 1]
          for i in range(spread.shape[1] - 1)] for c in range(2)], dtype=object
    )  # fmt: skip


def _full(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The coefficients of a product of polynomials."""
    out = [Fraction(0)] * (len(x) + len(y) - 1)
    for (i, a), (j, b) in itertools.product(enumerate(x), enumerate(y)):
        out[i + j] += a * b
    return np.array(out, dtype=object)


def _log_sums(x: np.ndarray) -> np.ndarray:
    with mp.workprec(BITS):
        sums = itertools.accumulate(mp.exp(real(v)) for v in x)
        return np.array([mp.log(s) for s in sums], dtype=object)


def _largest(x: np.ndarray, k: int) -> list[int]:
    return sorted(range(len(x)), key=lambda i: (-x[i], i))[:k]


def _folded_at(fold: Any) -> Any:
    def oracle(i: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = x.copy()
        for k, at in enumerate(i):
            if at < len(x):
                out[at] = fold(out[at], y[k])
        return out

    return oracle


def _nonzero(rng: np.random.Generator) -> list[np.ndarray]:
    """No two are zero: of those the signs would decide."""
    return [np.where(v == 0, 0.25, v) for v in floats((4,), (4,), low=-1, high=1)(rng)]


def _different(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.permutation(np.array([-2.0, -0.5, 0.25, 1.0, 3.0]))]


def _positive_definite(rng: np.random.Generator) -> list[np.ndarray]:
    (a,) = floats((3, 3), low=-0.4, high=0.4)(rng)
    return [a + a.T + np.diag([3.0, 4.0, 5.0])]


def _lower_factor(a: Any) -> Any:
    return lax.linalg.cholesky(a, symmetrize_input=False)


def _cholesky(a: np.ndarray) -> np.ndarray:
    """By mpmath, of the lower triangle."""
    full = np.tril(a) + np.tril(a, -1).T
    with mp.workprec(BITS + 100):
        factor = mp.cholesky(mp.matrix([[real(v) for v in row] for row in full]))
        n = len(a)
        return np.array([[factor[i, j] for j in range(n)] for i in range(n)], dtype=object)


def _tall(rng: np.random.Generator) -> list[np.ndarray]:
    (noise,) = floats((4, 3), low=-0.3, high=0.3)(rng)
    return [noise + np.array([[3.0, 1, 0], [1, -4, 1], [0, 1, 5], [1, 1, 1]])]


def _pairs(a: Any) -> Any:
    """q_k r_k^T, in which the signs cancel, and their sum, which is the matrix."""
    q, r = jnp.linalg.qr(a)
    pairs = jnp.einsum("ik,kj->kij", q, r)
    return pairs, jnp.sum(pairs, axis=0)


def _pairs_oracle(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By Gram and Schmidt."""
    with mp.workprec(BITS + 100):
        a = np.vectorize(real, otypes=[object])(a)
        out, rest = [], a.copy()
        for k in range(a.shape[1]):
            q = rest[:, k] / mp.sqrt(sum(rest[:, k] ** 2))
            row = np.array([sum(q * a[:, j]) if j >= k else mp.zero for j in range(a.shape[1])])
            out.append(np.outer(q, row))
            rest = rest - np.outer(q, [sum(q * rest[:, j]) for j in range(a.shape[1])])
        return np.array(out, dtype=object), a


def _floats_near(x: Any, y: Any) -> Any:
    return Fraction(math.nextafter(float(x), float(y)))


near = np.frompyfunc(_floats_near, 2, 1)
compare = lambda name: np.frompyfunc(
    {"lt_to": lambda a, b: a < b, "le_to": lambda a, b: a <= b}[name], 2, 1
)
GRID = np.array([-3.0, -1.0, 0.5, 0.5, 2.0])


def _searched(side: str) -> Any:
    return lambda x: jnp.searchsorted(jnp.asarray(GRID), x[0], side=side)


def _searched_oracle(side: str) -> Any:
    before = (lambda g, v: g < v) if side == "left" else (lambda g, v: g <= v)
    return lambda x: np.asarray(sum(before(Fraction(g), x[0]) for g in GRID))


PROGRAMS: dict[str, tuple[Program, ...]] = {
    "reduce_window_sum": (
        Program(_window(lax.add, 0.0), lambda x: _slid(x, sum, 3, 1), ROW),
        Program(_plane(lax.add, 0.0), lambda x: _pooled_plane(x, sum, Fraction(0)), IMAGE),
    ),
    "reduce_window_max": (
        Program(_window(lax.max, -math.inf), lambda x: _slid(x, max, 3, 1), ROW),
        Program(
            _plane(lax.max, -math.inf), lambda x: _pooled_plane(x, max, Fraction(-(10**9))), IMAGE
        ),
    ),
    "reduce_window_min": (
        Program(_window(lax.min, math.inf), lambda x: _slid(x, min, 3, 1), ROW),
        Program(
            lambda x: lax.reduce_window(
                x, math.inf, lax.min, (2,), (1,), "VALID", window_dilation=(2,)
            ),
            lambda x: np.array([min(x[i], x[i + 2]) for i in range(3)], dtype=object),
            ROW,
        ),
    ),
    "reduce_window": (
        Program(_window(lax.mul, 1.0), lambda x: _slid(x, _product, 3, 1), ROW),
        Program(_plane(lax.mul, 1.0), lambda x: _pooled_plane(x, _product, Fraction(1)), IMAGE),
        Program(
            lambda x: lax.reduce_window(x, 0.5, lax.max, (2,), (1,), ((1, 0),)),
            lambda x: np.array(
                [max([Fraction(1, 2), *x[max(i - 1, 0) : i + 1]]) for i in range(5)], dtype=object
            ),
            ROW,
        ),
    ),
    "conv_general_dilated": (
        Program(_convolved, _correlated, floats((2, 3, 4), (2, 2, 2, 2))),
        Program(_grouped, _grouped_oracle, floats((2, 3), (2, 1, 2))),
        Program(lambda x, y: jnp.convolve(x, y), _full, floats((4,), (3,))),
    ),
    "cumlogsumexp": (
        Program(lambda x: lax.cumlogsumexp(x), _log_sums, ROW),
        Program(
            lambda x: lax.cumlogsumexp(x, reverse=True), lambda x: _log_sums(x[::-1])[::-1], ROW
        ),
    ),
    "top_k": (
        Program(
            lambda x: lax.top_k(x, 3),
            lambda x: (x[_largest(x, 3)], np.array(_largest(x, 3))),
            _different,
            forks=True,
        ),
        Program(
            lambda x: lax.top_k(x, 2)[0], lambda x: x[_largest(x, 2)], floats((4,)), forks=True
        ),
    ),
    "scatter-mul": (
        Program(
            lambda i, x, y: x.at[i].multiply(y),
            _folded_at(lambda a, b: a * b),
            _indices(0, 6, 5, (4,), (5,)),
        ),
    ),
    "scatter-min": (
        Program(lambda i, x, y: x.at[i].min(y), _folded_at(min), _indices(0, 6, 5, (4,), (5,))),
    ),
    "scatter-max": (
        Program(lambda i, x, y: x.at[i].max(y), _folded_at(max), _indices(0, 6, 5, (4,), (5,))),
    ),
    "lt_to": (
        Program(lambda x, y: lax.lt_to_p.bind(x, y), compare("lt_to"), _nonzero),
        Program(_searched("left"), _searched_oracle("left"), floats((1,)), forks=True),
    ),
    "le_to": (
        Program(lambda x, y: lax.le_to_p.bind(x, y), compare("le_to"), _nonzero),
        Program(_searched("right"), _searched_oracle("right"), floats((1,)), forks=True),
    ),
    "nextafter": (
        Program(lambda x, y: lax.nextafter(x, y), near, floats((3,), (3,), low=0.5, high=2)),
    ),
    "cholesky": (Program(_lower_factor, _cholesky, _positive_definite, tight=1e-30),),
    "qr": (Program(_pairs, _pairs_oracle, _tall, tight=1e-30, forks=True, signs=True),),
}
