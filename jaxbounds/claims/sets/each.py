"""Stacks of points that all belong to one set, such as rows on a sphere."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets.base import MOST, Chart, Draw, RefusedSet, Set, digits
from jaxbounds.claims.sets.expressions import Size, shape_of
from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True)
class Each(Set):
    """Arrays that hold `count` points of the set `one`: jb.Each(jb.Sphere(1, "d"), "n")."""

    one: Set
    count: int | str = "n"

    def __post_init__(self) -> None:
        if isinstance(self.one, RefusedSet):
            raise self.one.problem
        if not isinstance(self.one, Set):
            raise TypeError(
                f"one={self.one!r:.60} in Each(one, count), expected a set. Try Each(jb.Sphere(1, "
                f"'d'), 'n')"
            )
        if not isinstance(self.count, int | str) or isinstance(self.count, bool):
            raise Refused(
                f"{self!r}: count={self.count!r}, expected a size's name or a whole number. Try 'n'"
            )
        self._refuse(self.count)

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether this set of arrays is convex: whether `one`, the set of each point, is convex."""
        return self.one.convex

    def _rows(self, size: Size) -> int:
        return shape_of(self.count, size)[0]

    def shape_at(self, size: Size) -> tuple[int, ...]:
        """Return the shape of a stack: a leading axis, then the shape of one point."""
        return (self._rows(size), *self.one.shape_at(size))

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        split = lambda key: jax.random.split(key, shape[0])
        apart = lambda key: jax.vmap(lambda own: self.one.draw(own, size))(split(key))
        alike = lambda key: jnp.broadcast_to(self.one.draw(key, size), shape)
        return apart, alike

    def project(self, x: Any, size: Size) -> Any:
        """Project each point of the stack onto the set `one`."""
        if isinstance(x, np.ndarray):
            return np.stack([self.one.project(row, size) for row in x]) if len(x) else x
        return jax.vmap(lambda row: self.one.project(row, size))(x)

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test whether each point is in the set `one`."""
        words = f"each {name}_i"
        if not isinstance(x, np.ndarray):
            found = jax.vmap(lambda row: self.one.meets(row, size, words))(x)
            return {said: jnp.all(met) for said, met in found.items()}
        rows = [self.one.meets(row, size, words) for row in x]
        return {said: np.all([row[said] for row in rows]) for said in (rows[0] if rows else ())}

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw an extreme point for each row.

        Raises:
            Refused: if the set `one` has no extreme point.
        """
        return self.one.vertices(key, size, self._rows(size))

    def candidates(self, key: jax.Array, x: jax.Array, size: Size) -> jax.Array:
        """Return candidates for a search: `x` with one point moved, or with all points moved."""
        if not x.size:
            return jnp.stack([x] * 6)
        at, own, all_of = jax.random.split(key, 3)
        row = jax.random.randint(at, (), 0, len(x))
        moved = self.one.candidates(own, x[row], size)
        together = () if jnp.issubdtype(x.dtype, jnp.integer) else (
            super().candidates(all_of, x, size),
        )  # fmt: skip
        return jnp.concatenate([jax.vmap(lambda new: x.at[row].set(new))(moved), *together])

    def cardinality(self, size: Size) -> int | None:
        """Return the number of stacks: the number of points of `one`, to the power of `count`."""
        one = self.one.cardinality(size)
        return None if one is None else int(one ** self._rows(size))

    def numbered(self, rows: np.ndarray, size: Size) -> np.ndarray:
        """Return the stacks with the numbers `rows`; the next number changes the last point."""
        of_each = digits(rows, self.one.cardinality(size) or 1, self._rows(size))
        points = self.one.numbered(of_each.ravel(), size)
        return points.reshape((len(of_each), *self.shape_at(size)))

    def every(self, size: Size) -> np.ndarray | None:
        """Return all stacks of points if there are at most 4096 stacks, else None."""
        points, rows = self.one.every(size), self._rows(size)
        if points is None or rows * math.log(max(len(points), 1)) > math.log(MOST) + 1e-9:
            return None
        chosen = list(itertools.product(range(len(points)), repeat=rows))
        return points[np.array(chosen, int).reshape(len(chosen), rows)]

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return charts (maps from coordinates to stacks of points).

        Raises:
            Refused: if the library knows no coordinates for the set `one`.
        """
        return tuple(
            _stacked(parts, self.shape_at(size))
            for parts in itertools.product(self.one.charts(size), repeat=self._rows(size))
        )


def _stacked(parts: tuple[Chart, ...], shape: tuple[int, ...]) -> Chart:
    ends = list(itertools.accumulate((len(part.lower) for part in parts), initial=0))

    def point(t: jax.Array) -> jax.Array:
        rows = [part.point(t[ends[i] : ends[i + 1]]) for i, part in enumerate(parts)]
        return jnp.stack(rows) if rows else jnp.zeros(shape)

    words = "; ".join(f"{i}: {part.part}" for i, part in enumerate(parts) if part.part)
    joined = lambda which: tuple(itertools.chain.from_iterable(getattr(p, which) for p in parts))
    return Chart(words, joined("lower"), joined("upper"), point)
