"""Sets of arrays of whole numbers, and sets that list their points."""

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets.base import MOST, Draw, Set, digits, modules
from jaxbounds.claims.sets.expressions import Number, Shape, Size, number_of
from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True)
class Integers(Set):
    """Arrays of whole numbers from `lo` to `hi` inclusive; a gradient search never changes them."""

    lo: Number
    hi: Number
    shape: Shape = ()
    convex: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._refuse(self.lo, self.hi)

    def _refuse_numbers(self, size: Size) -> None:
        self.ends(size)

    def ends(self, size: Size) -> tuple[int, int]:
        """Return the least and the greatest value of an entry.

        Raises:
            Refused: if the ends are not whole numbers, or the least value exceeds the greatest.
        """
        low, high = number_of(self.lo, size), number_of(self.hi, size)
        if math.isinf(low) or math.isinf(high):
            raise Refused(f"{self!r} has lo={low}, hi={high}, expected finite ends. Try hi=100")
        if low != int(low) or high != int(high):
            raise Refused(
                f"{self!r} has lo={low}, hi={high}, expected whole numbers. "
                f"Try jb.Integers({math.ceil(low)}, {max(math.ceil(low), math.floor(high))})"
            )
        if low > high:
            raise Refused(
                f"{self!r} has lo={low}, hi={high}, expected lo <= hi. "
                f"Try jb.Integers({int(high)}, {int(low)})"
            )
        return int(low), int(high)

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        low, high = self.ends(size)
        # `high + 1` may overflow the machine integers; then only `extreme` draws the largest
        # integer.
        above = lambda: min(high + 1, int(jnp.iinfo(jnp.asarray(0).dtype).max))
        return (
            lambda key: jax.random.randint(key, shape, low, above()),
            lambda key: self.extreme(key, size),
        )

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw a point with each entry equal to `lo` or `hi`."""
        low, high = self.ends(size)
        corner = jax.random.bernoulli(key, 0.5, self.shape_at(size))
        return jnp.where(corner, jnp.asarray(high), jnp.asarray(low))

    def project(self, x: Any, size: Size) -> Any:
        """Return the nearest point: round each entry, then clip it to lo..hi."""
        low, high = self.ends(size)
        xp = modules(x)
        return xp.clip(xp.round(x), low, high).astype(xp.asarray(1).dtype)

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test that each entry is a whole number in lo..hi."""
        (low, high), xp = self.ends(size), modules(x)
        within = xp.all((x >= low) & (x <= high) & (x == xp.round(x)))
        return {f"{name} in {self.lo}..{self.hi}": within}

    def candidates(self, key: jax.Array, x: jax.Array, size: Size) -> jax.Array:
        """Return 5 changes of `x`: an entry plus 1, minus 1, or set to another entry, lo or hi."""
        at, copy = jax.random.split(key)
        flat = jnp.ravel(x)
        if not flat.size:
            return jnp.stack([x] * 5)
        entry = jax.random.randint(at, (), 0, flat.size)
        onto, source = jax.random.randint(copy, (2,), 0, flat.size)
        low, high = self.ends(size)
        moved = [flat.at[entry].add(1), flat.at[entry].add(-1), flat.at[onto].set(flat[source]),
                 flat.at[entry].set(low), flat.at[entry].set(high)]  # fmt: skip
        shape = jnp.shape(x)
        return jnp.stack([self.project(other.reshape(shape), size) for other in moved])

    def cardinality(self, size: Size) -> int:
        """Return the number of points: (hi - lo + 1) to the power of the number of entries."""
        low, high = self.ends(size)
        return (high - low + 1) ** math.prod(self.shape_at(size))

    def numbered(self, rows: np.ndarray, size: Size) -> np.ndarray:
        """Return the points with the indices `rows` in the lexicographic order of the entries."""
        (low, high), shape = self.ends(size), self.shape_at(size)
        found = low + digits(rows, high - low + 1, math.prod(shape))
        return found.reshape((-1, *shape))

    def every(self, size: Size) -> np.ndarray | None:
        """Return all points of the set if there are at most 4096, else None."""
        (low, high), shape = self.ends(size), self.shape_at(size)
        if math.prod(shape) * math.log(high - low + 1) > math.log(MOST) + 1e-9:
            return None
        found = list(itertools.product(range(low, high + 1), repeat=math.prod(shape)))
        return np.array(found, int).reshape((-1, *shape))


@dataclass(frozen=True)
class OneOf(Set):
    """A finite set that lists its points: arrays or numbers, all of one shape."""

    values: tuple[Any, ...]
    convex: ClassVar[bool] = False

    def __init__(self, *values: Any) -> None:
        """Store the points; OneOf(0, 1) and OneOf([0, 1]) make the same set.

        Raises:
            Refused: if there is no point, the points differ in shape, or a point holds NaN.
        """
        listed = isinstance(values[0], list | tuple) or np.ndim(values[0]) if values else False
        given = list(values[0]) if len(values) == 1 and listed else list(values)
        try:
            shapes = {np.shape(v) for v in given}
        except ValueError:  # NumPy raises it for a ragged list
            shapes = set()
        if len(shapes) != 1:
            raise Refused(
                f"OneOf lists values={values!r:.80}, expected values of one shape. Try OneOf(0, 1)"
            )
        if any(np.any(np.not_equal(v, v)) for v in given):
            raise Refused(f"OneOf lists values={values!r:.80}, which hold NaN. Try OneOf(0, 1)")
        # Nested tuples make the set comparable and hashable.
        object.__setattr__(self, "values", tuple(_frozen(np.asarray(v).tolist()) for v in given))

    def shape_at(self, size: Size) -> tuple[int, ...]:
        """Return the shape of each listed point."""
        return np.shape(self.values[0])

    def _all(self) -> np.ndarray:
        return np.asarray(self.values)

    def draw(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw one of the set's listed points; all have the same probability."""
        return self.extreme(key, size)

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw a listed point uniformly, because every listed point counts as an extreme point."""
        listed = jnp.asarray(self._all())
        return listed[jax.random.randint(key, (), 0, len(self.values))]

    def project(self, x: Any, size: Size) -> Any:
        """Return the point of the set's list that is nearest to x."""
        xp, listed = modules(x), self._all()
        far = xp.abs(listed - xp.asarray(x)[None])
        nearest = xp.argmin(xp.sum(far.reshape(len(listed), -1), axis=1))
        return xp.asarray(listed)[nearest]

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test that a point equals a listed point exactly."""
        xp, listed = modules(x), self._all()
        same = (listed == xp.asarray(x)[None]).reshape(len(listed), -1)
        return {f"{name} is one of {len(listed)}": xp.any(xp.all(same, axis=1))}

    def candidates(self, key: jax.Array, x: jax.Array, size: Size) -> jax.Array:
        """Return all listed points."""
        return jnp.asarray(self._all())

    def cardinality(self, size: Size) -> int:
        """Return the number of listed points."""
        return len(self.values)

    def numbered(self, rows: np.ndarray, size: Size) -> np.ndarray:
        """Return the listed points with the indices `rows`."""
        return self._all()[rows]

    def every(self, size: Size) -> np.ndarray | None:
        """Return all listed points if there are at most 4096, else None."""
        return self._all() if len(self.values) <= MOST else None


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
