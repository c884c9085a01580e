"""Simplices: arrays whose rows are nonnegative, with row sums equal to or at most a number."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets.base import CORNERS, MORE, Chart, Draw, Set, agrees, modules
from jaxbounds.claims.sets.expressions import Number, Shape, Size
from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True)
class Simplex(Set):
    """Arrays whose rows (last axis) are nonnegative and add up to `total`."""

    shape: Shape = "d"
    total: Number = 1

    def __post_init__(self) -> None:
        self._refuse(self.total)

    def shape_at(self, size: Size) -> tuple[int, ...]:
        """Return the arrays' shape, with the numbers from `size` in place of names.

        Raises:
            Refused: if a row has no entry.
        """
        shape = super().shape_at(size)
        if not shape or not shape[-1]:
            raise Refused(f"{self!r} has shape={shape}, expected rows with entries. Try 'd'")
        return shape

    def _refuse_numbers(self, size: Size) -> None:
        self._sum(size)

    def _sum(self, size: Size) -> float:
        return self._positive("total", self.total, size)

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        total = self._sum(size)
        normal = lambda a: total * a / jnp.sum(a, axis=-1, keepdims=True)
        uniform = lambda k: normal(jax.random.exponential(k, shape) + 1e-300)
        peaked = lambda k: total * jax.nn.softmax(3 * jax.random.normal(k, shape), axis=-1)

        def face(key: jax.Array) -> jax.Array:
            which, first = jax.random.split(key)
            chosen = jax.random.bernoulli(which, 0.5, shape).astype(float)
            return normal(jnp.where(jnp.any(chosen > 0, -1, keepdims=True), chosen,
                                    self.extreme(first, size)))  # fmt: skip

        return uniform, peaked, face, lambda k: self.extreme(k, size)

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw rows with one nonzero entry each."""
        *rows, n = self.shape_at(size)
        at = jax.random.randint(key, tuple(rows), 0, n)
        return self._sum(size) * jax.nn.one_hot(at, n, dtype=float)

    def corners(self, size: Size) -> np.ndarray | None:
        """Return the simplex's corners; None for a set of matrices, or with too many corners."""
        *rows, n = self.shape_at(size)
        return self._sum(size) * np.eye(n) if not rows and n <= CORNERS else None

    def every(self, size: Size) -> np.ndarray | None:
        """Return the set's only point if the rows have a single entry, else None."""
        shape = self.shape_at(size)
        return np.full((1, *shape), self._sum(size)) if shape[-1] == 1 else None

    def project(self, x: Any, size: Size) -> Any:
        """Return the nearest rows: find a threshold by sorting, subtract it, and clip at zero."""
        total, xp = self._sum(size), modules(x)
        n = x.shape[-1]
        ordered = xp.flip(xp.sort(x, axis=-1), axis=-1)
        counts = xp.arange(1.0, n + 1.0).reshape((1,) * (x.ndim - 1) + (n,))
        thresholds = (xp.cumsum(ordered, axis=-1) - total) / counts
        # The thresholds rise up to the right k and fall after it: the largest is the right one.
        near = xp.maximum(x - xp.max(thresholds, axis=-1, keepdims=True), 0.0)
        return near * (total / xp.sum(near, axis=-1, keepdims=True))  # correct the sum for rounding

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test that all entries are nonnegative, and that each row adds up to `total`."""
        xp, total = modules(x), self._sum(size)
        return {
            f"{name} >= 0": xp.all(x >= 0),
            f"{name} adds up to {self.total}": xp.all(agrees(xp.sum(x, axis=-1), total)),
        }

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return one chart, a map from coordinates by stick breaking.

        The coordinates t_i in [0, 1] give the entries t_1, (1 - t_1) t_2, ...
        """
        shape, total = self.shape_at(size), self._sum(size)
        *rows, n = shape
        k = math.prod(rows) * (n - 1)

        def point(t: jax.Array) -> jax.Array:
            parts, one = t.reshape((*rows, n - 1)), jnp.ones((*rows, 1))
            left = jnp.concatenate([one, jnp.cumprod(1 - parts, axis=-1)], axis=-1)
            return total * left * jnp.concatenate([parts, one], axis=-1)

        return (Chart("", (0.0,) * k, (1.0,) * k, point),)


@dataclass(frozen=True)
class SubSimplex(Simplex):
    """Arrays whose rows (last axis) are nonnegative and add up to at most `total`.

    A row of `Simplex` with one more entry becomes a row of this set if its last entry is dropped.
    """

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        longer = (*shape[:-1], shape[-1] + 1)
        laws = Simplex(longer, self.total)._laws(longer, size)[:-1]
        cut = [lambda key, law=law: law(key)[..., :-1] for law in laws]
        return *cut, lambda key: self.extreme(key, size)

    def corners(self, size: Size) -> np.ndarray | None:
        """Return the corners, for a single row: rows with one nonzero entry, and the zero row."""
        found = super().corners(size)
        return None if found is None else np.concatenate([found, np.zeros_like(found[:1])])

    def every(self, size: Size) -> None:
        """Return None, because the set has infinitely many points."""

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw rows with one nonzero entry, or with only zeros."""
        *rows, n = self.shape_at(size)
        at = jax.random.randint(key, tuple(rows), 0, n + 1)
        return self._sum(size) * jax.nn.one_hot(at, n, dtype=float)

    def project(self, x: Any, size: Size) -> Any:
        """Return the nearest rows: clip at zero; project rows with a large sum on the simplex."""
        total, xp = self._sum(size), modules(x)
        near = xp.maximum(x, 0.0)
        within = xp.sum(near, axis=-1, keepdims=True) <= total
        return xp.where(within, near, super().project(x, size))

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test that all entries are nonnegative, and that each row adds up to at most `total`."""
        xp, total = modules(x), self._sum(size)
        return {
            f"{name} >= 0": xp.all(x >= 0),
            f"{name} adds up to at most {self.total}": xp.all(xp.sum(x, axis=-1) <= total * MORE),
        }

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return one chart (map from coordinates), by the stick-breaking formula.

        The coordinates t_i in [0, 1] give the entries t_1, (1 - t_1) t_2, ... times the total. The
        entries may add up to less than the total.
        """
        shape, total = self.shape_at(size), self._sum(size)
        k = math.prod(shape)

        def point(t: jax.Array) -> jax.Array:
            parts, one = t.reshape(shape), jnp.ones((*shape[:-1], 1))
            left = jnp.concatenate([one, jnp.cumprod(1 - parts, axis=-1)[..., :-1]], axis=-1)
            return total * left * parts

        return (Chart("", (0.0,) * k, (1.0,) * k, point),)
