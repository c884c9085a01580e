"""Programs for the rules that fold an axis; oracle: NumPy and Python on arrays of fractions."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from oracle.programs import Program, floats, signs

TABLE, CLOSE = floats((3, 4)), floats((4,), low=-1, high=1)
ROWS = floats((2, 3), low=-1, high=1)


def _first(better: str, x: np.ndarray) -> int:
    return list(x).index(max(x) if better == "max" else min(x))


def _order(x: np.ndarray) -> list[int]:
    return sorted(range(len(x)), key=lambda i: x[i])


def _sorted_together(*keys: np.ndarray) -> tuple[np.ndarray, ...]:
    order = sorted(range(len(keys[0])), key=lambda i: tuple(k[i] for k in keys[:-1]))
    return tuple(k[order] for k in keys)


def _keyed(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.integers(0, 3, size=4), *floats((4,))(rng)]


def _fold(function, by_numpy) -> tuple[Program, ...]:
    return (
        Program(lambda x: function(x, axis=0), lambda x: by_numpy(x, axis=0), TABLE),
        Program(
            lambda x: function(x, axis=(0, 2)),
            lambda x: by_numpy(x, axis=(0, 2)),
            floats((2, 3, 2)),
        ),
        Program(lambda x: function(x), lambda x: np.asarray(by_numpy(x)), TABLE),
    )


def _running(function, by_numpy) -> tuple[Program, ...]:
    flipped = lambda x: by_numpy(x[:, ::-1], axis=1)[:, ::-1]
    return (
        Program(lambda x: function(x, axis=0), lambda x: by_numpy(x, axis=0), TABLE),
        Program(lambda x: function(x, axis=1, reverse=True), flipped, TABLE),
        Program(lambda x: function(x, axis=0), lambda x: by_numpy(x, axis=0), floats((4,))),
    )


def _position(function, better: str) -> tuple[Program, ...]:
    return (
        Program(lambda x: function(x), lambda x: np.asarray(_first(better, x)), CLOSE, forks=True),
        Program(
            lambda x: function(x, axis=1),
            lambda x: np.array([_first(better, row) for row in x]),
            ROWS,
            forks=True,
        ),
    )


PROGRAMS: dict[str, tuple[Program, ...]] = {
    "reduce_sum": _fold(jnp.sum, np.sum),
    "reduce_prod": _fold(jnp.prod, np.prod),
    "reduce_max": (
        *_fold(jnp.max, np.max),
        Program(lambda x: lax.reduce_max(x > 0, (0,)), lambda x: signs(x).max(axis=0), TABLE),
    ),
    "reduce_min": (
        *_fold(jnp.min, np.min),
        Program(lambda x: lax.reduce_min(x > 0, (0,)), lambda x: signs(x).min(axis=0), TABLE),
    ),
    "reduce_and": (
        Program(
            lambda x: jnp.all(x > -2, axis=0), lambda x: (x > -2).astype(bool).all(axis=0), TABLE
        ),
        Program(
            lambda x: jnp.all(x > -3.5), lambda x: np.asarray((x > -3.5).astype(bool).all()), TABLE
        ),
    ),
    "reduce_or": (
        Program(
            lambda x: jnp.any(x > 2, axis=1), lambda x: (x > 2).astype(bool).any(axis=1), TABLE
        ),
        Program(
            lambda x: jnp.any(x > 3.5), lambda x: np.asarray((x > 3.5).astype(bool).any()), TABLE
        ),
    ),
    "argmax": _position(jnp.argmax, "max"),
    "argmin": _position(jnp.argmin, "min"),
    "cumsum": _running(lax.cumsum, np.cumsum),
    "cumprod": _running(lax.cumprod, np.cumprod),
    "cummax": _running(lax.cummax, np.maximum.accumulate),
    "cummin": _running(lax.cummin, np.minimum.accumulate),
    "sort": (
        Program(lambda x: jnp.sort(x, axis=0), lambda x: np.sort(x, axis=0), TABLE),
        Program(lambda x: jnp.argsort(x), lambda x: np.array(_order(x)), CLOSE, forks=True),
        Program(lambda k, x: lax.sort((k, x), num_keys=1), _sorted_together, _keyed),
        Program(
            lambda k, x: lax.sort((k, x, jnp.arange(4)), num_keys=2),
            lambda k, x: _sorted_together(k, x, np.arange(4)),
            _keyed,
            forks=True,
        ),
        Program(
            lambda x: jnp.argsort(x > 0),
            lambda x: np.array(_order(signs(x))),
            CLOSE,
            forks=True,
        ),
        Program(
            lambda x: lax.sort((x > 0, jnp.arange(4)), num_keys=2),
            lambda x: _sorted_together(signs(x), np.arange(4), np.arange(4))[:2],
            CLOSE,
            forks=True,
        ),
        Program(lambda x: jnp.sort(x > 0), lambda x: np.sort(signs(x)), CLOSE, forks=True),
    ),
}
