"""Random and extremal inputs for statements: scales, points of norm balls, and extreme points."""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.claims.statements import Budget, Instance, Size, Statement
from jaxbounds.numerics.arrays import number

FEW = Budget(samples=64, restarts=0, steps=0, batch=64)
"""64 random inputs without search, for statements that random and extremal inputs decide."""

SEARCHED = Budget(samples=128, restarts=6, steps=100, batch=64)
"""Random inputs and a gradient search, for inequalities without known inputs that make both sides
nearly equal."""

MANY = Budget(samples=128, restarts=0, steps=0, batch=64)
"""128 random inputs without gradient search, for claims whose inputs vary widely."""

inequality = functools.partial(Statement, kind="inequality", search="none", budget=FEW)
identity = functools.partial(Statement, kind="identity", budget=FEW)
gradient_search = functools.partial(
    Statement,
    kind="inequality",
    search="gradient",
    budget=Budget(samples=64, restarts=2, steps=30, batch=64),
)
"""Declare an inequality that random and extremal inputs and a few gradient searches check."""

random_search = functools.partial(
    Statement,
    kind="inequality",
    search="random",
    budget=Budget(samples=64, restarts=4, steps=30, batch=64),
)
"""Declare an inequality that random searches check, because its sides are piecewise constant."""

FEWER = Budget(samples=16, restarts=0, steps=0)
"""16 random inputs without search, for sides that JAX does not compute."""

on_host = functools.partial(Statement, kind="inequality", host=True, budget=FEWER)
random_search_on_host = functools.partial(
    Statement,
    kind="inequality",
    host=True,
    budget=Budget(samples=16, restarts=2, steps=20),
    search="random",
)
identity_on_host = functools.partial(Statement, kind="identity", host=True, budget=FEWER)


def normals(key: Array, shapes: Mapping[str, tuple[int, ...]], /) -> dict[str, Array]:
    """Draw normal arrays with the given names and shapes, by one compiled program."""
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()]).tolist()
    parts = jnp.split(jax.random.normal(key, (ends[-1],)), ends[:-1])
    return {name: part.reshape(shape) for part, (name, shape) in zip(parts, shapes.items())}


def log_uniform(
    key: Array, low: ArrayLike, high: ArrayLike, /, shape: tuple[int, ...] = ()
) -> Array:
    """Draw 10^p with p uniform between `low` and `high`."""
    return 10.0 ** jax.random.uniform(key, shape, minval=low, maxval=high)


def l1_sphere(key: Array, shape: tuple[int, ...], /) -> Array:
    """Draw points with l_1 norm 1 along the last axis.

    Many of these points have only a few large entries.
    """
    size_key, sign_key, power_key = jax.random.split(key, 3)
    power = jax.random.uniform(power_key, (*shape[:-1], 1), minval=1.0, maxval=6.0)
    sizes = jax.random.exponential(size_key, shape) ** power
    sizes = sizes / jnp.sum(sizes, axis=-1, keepdims=True)
    return sizes * jax.random.rademacher(sign_key, shape, float)


def l2_sphere(key: Array, shape: tuple[int, ...], /) -> Array:
    """Draw vectors with uniform directions; each vector lies along the last axis."""
    return unit(jax.random.normal(key, shape))


def unit(x: Float[Array, "*batch n"], /) -> Float[Array, "*batch n"]:
    """Divide each vector along the last axis by its l_2 norm."""
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


def into_l1_ball(x: Float[Array, "*batch n"], /) -> Float[Array, "*batch n"]:
    """Scale vectors along the last axis down to l_1 norm at most 1."""
    return x / jnp.maximum(1.0, jnp.sum(jnp.abs(x), axis=-1, keepdims=True))


def signed_vertices(n: int, radius: float = 1.0, /) -> np.ndarray:
    """Return the 2n vertices of the l_1 ball, as rows."""
    return radius * np.concatenate([np.eye(n), -np.eye(n)])


def activation(slopes: Float[Array, "3"], /) -> Callable[[Array], Array]:
    """Return sigma(z) = a z + b tanh(z) + c relu(z), with L_sigma = a + b + c.

    The coefficients (a, b, c) are not negative, and sigma(0) = 0.
    """
    return lambda z: slopes[0] * z + slopes[1] * jnp.tanh(z) + slopes[2] * jax.nn.relu(z)


def stacked(rows: list[dict], /) -> dict:
    """Stack the arrays of several dicts along a new leading axis."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(x) for x in leaves]), *rows)


def grid(**values: Sequence[float]) -> Callable[[Size], Instance]:
    """Return a function that lists all combinations of the named values."""
    columns = zip(*itertools.product(*values.values()))
    cases = dict(zip(values, map(np.array, columns)))
    return lambda size: dict(cases)


def positive(*names: str) -> Callable[[Instance, Size], Instance]:
    """Return a function that replaces each named entry x of a dict by max(|x|, 1e-6)."""
    return lambda instance, size: {
        **instance,
        **{name: np.maximum(np.abs(instance[name]), 1e-6) for name in names},
    }


def numbers(instance: Instance, /, *names: str) -> tuple[Any, ...]:
    """Return the named entries of a dict; scalars become Python numbers unless they are traced."""
    return tuple(number(instance[name]) for name in names)
