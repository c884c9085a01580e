"""Base class of the sets: their points are drawn, moved, projected, tested, listed and mapped."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets.expressions import Number, Shape, Size, number_of, shape_of
from jaxbounds.claims.sets.expressions import refuse_other_expressions as refuse
from jaxbounds.ground.exceptions import Refused

ROUNDING = 1e-12
"""Relative error up to which a point outside of a set counts as inside: that of rounding."""
LESS, MORE = 1 - ROUNDING, 1 + ROUNDING
"""As factors: a small constant by itself may be read as zero, where digits are certified."""
Draw = Callable[[jax.Array], jax.Array]
MOST = 4096
"""A set of at most so many points is enumerated."""


class Chart(NamedTuple):
    """Coordinates in a box that reach every point of a set, or of a part of it.

    Attributes:
        part: which part, in words; empty where it is all of it.
        lower: the least coordinates.
        upper: the greatest.
        point: from coordinates of shape (k,) to the point.
    """

    part: str
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    point: Callable[[jax.Array], Any]


CORNERS = 256
"""Extreme points of a set up to which all are tried; more decide larger sets, for longer."""


def digits(rows: np.ndarray, base: int, places: int, /) -> np.ndarray:
    """Return the digits of numbers in a base, highest first, shape (rows, places)."""
    left, found = np.asarray(rows, np.int64), list[np.ndarray]()
    for _ in range(places):
        left, last = np.divmod(left, base)
        found.append(last)
    return np.stack(found[::-1], axis=-1) if found else np.zeros((len(left), 0), np.int64)


def modules(x: Any) -> Any:
    """Return NumPy for NumPy's arrays, which are on the host, else `jax.numpy`."""
    return np if isinstance(x, np.ndarray | np.generic) else jnp


def agrees(x: Any, value: Any) -> Any:
    """Whether nonnegative numbers are a value, up to rounding."""
    return (x >= value * LESS) & (x <= value * MORE)


def supports(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draw signs on a random set of entries, zero elsewhere; their number is log-uniform."""
    share, places = jax.random.split(key)
    return signs_at(
        jax.random.uniform(places, shape, minval=-1.0, maxval=1.0), jax.random.uniform(share)
    )


def signs_at(places: jax.Array, share: jax.Array) -> jax.Array:
    """The same from numbers: `places` in [-1, 1) say where and which, `share` in [0, 1) how many.

    One number for place and sign: a permutation would be sorted, which takes long to compile.
    """
    most, away = jnp.exp((share - 1) * math.log(max(places.size, 1))), jnp.abs(places)
    chosen = (away <= most) | (away == jnp.min(away, initial=1.0))
    return jnp.where(chosen, jnp.where(places < 0, -1.0, 1.0), 0.0)


@dataclass(frozen=True)
class Set(ABC):
    """One set of arrays; its shape and numbers may name sizes.

    One object gives what a statement over it needs: draws that reach its boundary, the projection
    onto it, the hypothesis by name, its extreme points, moves for a search, and coordinates for
    proofs. Every method takes the size (a dict) that the names refer to.
    """

    convex: ClassVar[bool] = True
    """Whether it is; then `project` gives the nearest point, unless its docstring says else."""

    def shape_at(self, size: Size) -> tuple[int, ...]:
        """The shape of its points at a size."""
        return shape_of(getattr(self, "shape", ()), size)

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        return ()

    def draw(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw a point by one of several laws: inside, on the boundary, extreme, or sparse."""
        which, key = jax.random.split(key)
        laws = self._laws(self.shape_at(size), size)
        drawn = [law(own) for law, own in zip(laws, jax.random.split(key, len(laws)))]
        chosen = jax.random.randint(which, (), 0, len(laws), "int32")
        return jax.lax.select_n(chosen, *drawn) if len(drawn) > 1 else drawn[0]

    @abstractmethod
    def project(self, x: Any, size: Size) -> Any:
        """Return a point of the set near `x`; a point of the set stays as it is."""

    @abstractmethod
    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Whether `x` is in the set, up to rounding (1e-12 of its size); by the words for it."""

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw an extreme point.

        Raises:
            Refused: if it has none, as the whole space.
        """
        raise Refused(f"{self!r} has no extreme points")

    def vertices(self, key: jax.Array, size: Size, count: int = 16) -> jax.Array:
        """Draw extreme points, shape (count, *shape).

        Raises:
            Refused: if it has none.
        """
        return jax.vmap(lambda k: self.extreme(k, size))(jax.random.split(key, count))

    def candidates(self, key: jax.Array, x: jax.Array, size: Size) -> jax.Array:
        """Return points of the set to try beside `x` in a search, shape (6, *shape).

        Its negative, one sign flipped, one entry left out, one entry (or row) copied onto another,
        all entries of one absolute value, and what lies farthest out in its direction.
        """
        flip, out, copy = jax.random.split(key, 3)
        x = jnp.asarray(x)
        if not x.size:
            return jnp.stack([x] * 6)
        flat = x.ravel()
        at = lambda k, n: jax.random.randint(k, (), 0, n)
        flipped = flat.at[at(flip, flat.size)].multiply(-1.0).reshape(x.shape)
        without = flat.at[at(out, flat.size)].set(0.0).reshape(x.shape)
        rows = x if x.ndim else x[None]
        onto, source = jax.random.randint(copy, (2,), 0, rows.shape[0])
        copied = rows.at[onto].set(rows[source]).reshape(x.shape)
        scale = jnp.maximum(jnp.max(jnp.abs(x)), 1e-3)
        moved = jnp.stack([-x, flipped, without, copied, jnp.sign(x) * scale, 1e3 * x])
        return jax.vmap(lambda point: self.project(point, size))(moved)

    def corners(self, size: Size) -> np.ndarray | None:
        """Return all extreme points, shape (count, *shape), if at most 256, else None."""
        return None

    def cardinality(self, size: Size) -> int | None:
        """Return the number of points of the set; None if infinite or unknown."""
        every = self.every(size)
        return None if every is None else len(every)

    def numbered(self, rows: np.ndarray, size: Size) -> np.ndarray:
        """Return the points with these numbers, from 0 to `cardinality` - 1, shape (rows, *shape).

        Raises:
            Refused: if the set has no numbered points.
        """
        every = self.every(size)
        if every is None:
            raise Refused(f"{self!r} has points without numbers. Try `draw`")
        return np.asarray(every)[rows]

    def every(self, size: Size) -> np.ndarray | None:
        """Return all points of the set, shape (count, *shape), if at most 4096, else None."""
        return None

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return coordinates that together reach every point.

        Raises:
            Refused: if none are known.
        """
        raise Refused(f"no coordinates are known for {self!r}: write a Domain by hand")

    def _refuse(self, *numbers: Number) -> None:
        for number in numbers:
            refuse(number)
        shape: Shape = getattr(self, "shape", ())
        for axis in shape if isinstance(shape, tuple) else (shape,):
            if not isinstance(axis, int | str) or isinstance(axis, bool):
                raise Refused(f"a shape is sizes by name or whole numbers, as ('n', 3): {shape}")
            refuse(axis)

    def _radius(self, size: Size) -> float:
        radius = number_of(self.R, size)  # type: ignore[attr-defined]
        if not 0 < radius < math.inf:
            raise Refused(f"{self!r}: its radius must be positive and finite, got {radius}")
        return float(radius)


def product(parts: Mapping[str, tuple[Chart, ...]]) -> tuple[Chart, ...]:
    """Return coordinates of a product of sets from the coordinates of each set."""
    found = [Chart("", (), (), lambda t: {})]
    for name, charts in parts.items():
        found = [_joined(before, name, chart) for before in found for chart in charts]
    return tuple(found)


def _joined(before: Chart, name: str, chart: Chart) -> Chart:
    cut = len(before.lower)
    words = f"{name}: {chart.part}" if chart.part else ""
    return Chart(
        "; ".join(part for part in (before.part, words) if part),
        before.lower + chart.lower,
        before.upper + chart.upper,
        lambda t: before.point(t[:cut]) | {name: chart.point(t[cut:])},
    )
