"""Programs for the rules that move data; oracle: NumPy on object arrays, or loops over indices."""

import itertools
import math
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from oracle.programs import Draw, Program, floats, signs


def _indices(low: int, high: int, count: int, *shapes: tuple[int, ...]) -> Draw:
    """Whole numbers, then floats."""
    return lambda rng: [rng.integers(low, high, size=count), *floats(*shapes)(rng)]


def _outside(x: np.ndarray, i: np.ndarray, otherwise: Any) -> np.ndarray:
    out = np.empty(i.shape, dtype=object)
    for k, at in enumerate(i):
        at = int(at) + len(x) if at < 0 else int(at)
        out[k] = x[at] if 0 <= at < len(x) else otherwise
    return out


def _padded(x: np.ndarray, value: Any) -> np.ndarray:
    """Rows one apart with one more before and two after; the first column left out."""
    rows, columns = x.shape
    out = np.full((2 * rows - 1 + 3, columns - 1), value, dtype=object)
    for i, j in itertools.product(range(rows), range(1, columns)):
        out[1 + 2 * i, j - 1] = x[i, j]
    return out


def _put(x: np.ndarray, i: np.ndarray, y: np.ndarray, add: bool) -> np.ndarray:
    out = x.copy()
    for k, at in enumerate(i):
        if at < len(x):
            out[at] = out[at] + y[k] if add else y[k]
    return out


def _updated(x: np.ndarray, y: np.ndarray, i: int) -> np.ndarray:
    out, start = x.copy(), min(max(i, 0), len(x) - len(y))
    out[start : start + len(y)] = y
    return out


def _different(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.permutation(6)[:3], *floats((4,), (3,))(rng)]


TABLE = floats((3, 4))
PAD = ((1, 2, 1), (-1, 0, 0))
PROGRAMS: dict[str, tuple[Program, ...]] = {
    "broadcast_in_dim": (
        Program(
            lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)),
            lambda x: np.broadcast_to(x[:, None, :], (3, 2, 4)),
            TABLE,
        ),
        Program(
            lambda x: jnp.broadcast_to(x > 0, (2, 3, 4)),
            lambda x: np.broadcast_to(signs(x), (2, 3, 4)),
            TABLE,
        ),
    ),
    "reshape": (
        Program(lambda x: x.reshape(2, 6), lambda x: x.reshape(2, 6), TABLE),
        Program(lambda x: (x > 0).reshape(12), lambda x: signs(x).reshape(12), TABLE),
    ),
    "slice": (
        Program(lambda x: lax.slice(x, (0, 1), (3, 4), (2, 1)), lambda x: x[0:3:2, 1:4], TABLE),
        Program(lambda x: lax.slice(x, (1, 0), (3, 2)), lambda x: x[1:3, :2], TABLE),
    ),
    "squeeze": (Program(lambda x: lax.squeeze(x, (1,)), lambda x: x[:, 0, :], floats((2, 1, 3))),),
    "rev": (Program(lambda x: lax.rev(x, (1,)), lambda x: x[:, ::-1], TABLE),),
    "transpose": (
        Program(
            lambda x: lax.transpose(x, (2, 0, 1)),
            lambda x: np.moveaxis(x, 2, 0),
            floats((2, 3, 4)),
        ),
    ),
    "gather": (
        Program(lambda i, x: x[i], lambda i, x: x[i], _indices(-4, 4, 5, (4,))),
        Program(lambda i, x: x[:, i], lambda i, x: x[:, i], _indices(0, 4, 2, (3, 4))),
        Program(
            lambda i, x: x.at[i].get(mode="fill"),
            lambda i, x: _outside(x, i, None),
            _indices(-6, 8, 5, (4,)),
        ),
        Program(
            lambda i, x: x.at[i].get(mode="fill", fill_value=0.5),
            lambda i, x: _outside(x, i, Fraction(1, 2)),
            _indices(-6, 8, 5, (4,)),
            tight=math.inf,
        ),
        Program(
            lambda i, x: x.at[i].get(mode="fill", fill_value=0.0),
            lambda i, x: _outside(x, i, Fraction(0)),
            _indices(-6, 8, 5, (4,)),
            tight=math.inf,
        ),
        Program(
            lambda i, x: (x > 0).at[i].get(mode="fill", fill_value=False),
            lambda i, x: _outside(signs(x), i, False),
            _indices(-6, 8, 5, (4,)),
        ),
        Program(
            lambda i, x: x.at[i].get(mode="clip"),
            lambda i, x: x[np.clip(i, 0, 3)],
            _indices(0, 8, 5, (4,)),
        ),
        Program(lambda i, x: (x > 0)[i], lambda i, x: signs(x)[i], _indices(0, 4, 5, (4,))),
    ),
    "dynamic_slice": (
        Program(
            lambda i, x: lax.dynamic_slice(x, (i[0],), (2,)),
            lambda i, x: x[(k := min(max(int(i[0]), 0), 2)) : k + 2],
            _indices(0, 6, 1, (4,)),
        ),
    ),
    "dynamic_update_slice": (
        Program(
            lambda i, x, y: lax.dynamic_update_slice(x, y, (i[0],)),
            lambda i, x, y: _updated(x, y, int(i[0])),
            _indices(0, 6, 1, (4,), (2,)),
        ),
        Program(
            lambda i, x, y: lax.dynamic_update_slice(x > 0, y > 0, (i[0],)),
            lambda i, x, y: _updated(signs(x), signs(y), int(i[0])),
            _indices(0, 6, 1, (4,), (2,)),
        ),
    ),
    "scatter": (
        Program(
            lambda i, x, y: x.at[i].set(y), lambda i, x, y: _put(x, i, y, add=False), _different
        ),
        Program(
            lambda i, x, y: (x > 0).at[i].set(y > 0),
            lambda i, x, y: _put(signs(x), i, signs(y), add=False),
            _different,
        ),
    ),
    "scatter-add": (
        Program(
            lambda i, x, y: x.at[i].add(y),
            lambda i, x, y: _put(x, i, y, add=True),
            _indices(0, 6, 5, (4,), (5,)),
        ),
        Program(
            lambda i, x, y: x.at[i].add(y),
            lambda i, x, y: _put(x, i, y, add=True),
            _indices(0, 4, 3, (4, 2), (3, 2)),
        ),
    ),
    "pad": (
        Program(
            lambda x, v: lax.pad(x, v[0], PAD), lambda x, v: _padded(x, v[0]), floats((2, 3), (1,))
        ),
        Program(
            lambda x: lax.pad(x > 0, jnp.array(True), PAD),
            lambda x: _padded(signs(x), True).astype(bool),
            floats((2, 3)),
        ),
    ),
    "split": (
        Program(lambda x: lax.split(x, (1, 3), axis=1), lambda x: (x[:, :1], x[:, 1:]), TABLE),
    ),
    "tile": (Program(lambda x: jnp.tile(x, (2, 1)), lambda x: np.tile(x, (2, 1)), TABLE),),
    "unstack": (Program(lambda x: tuple(jnp.unstack(x)), lambda x: tuple(x), TABLE),),
    "stack": (Program(lambda x: jnp.stack([x, -x], 1), lambda x: np.stack([x, -x], 1), TABLE),),
    "concatenate": (
        Program(
            lambda x, y: jnp.concatenate([x, y], axis=1),
            lambda x, y: np.concatenate([x, y], axis=1),
            floats((2, 1), (2, 3)),
        ),
        Program(
            lambda x, y: jnp.concatenate([x > 0, y > 0]),
            lambda x, y: np.concatenate([signs(x), signs(y)]),
            floats((2,), (3,)),
        ),
        Program(
            lambda x: jnp.concatenate([x > 0, jnp.array([True, False])]),
            lambda x: np.concatenate([signs(x), [True, False]]),
            floats((2,)),
        ),
    ),
}
