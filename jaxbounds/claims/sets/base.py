"""Base class of the sets of arrays from which instances come."""

import math
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.refused import Careful
from jaxbounds.claims.sets.expressions import Number, Shape, Size, number_of, shape_of
from jaxbounds.claims.sets.expressions import refuse_other_expressions as refuse
from jaxbounds.ground.exceptions import Refused

ROUNDING = 1e-12
"""Relative tolerance of membership: a point counts as outside of a set if it exceeds a bound of the
set by a larger fraction. A larger tolerance accepts points farther outside of the set."""
LESS, MORE = 1 - ROUNDING, 1 + ROUNDING
"""The factors by which a bound may shrink or grow in a test of membership."""
Draw = Callable[[jax.Array], jax.Array]
MOST = 4096
"""The library enumerates a set if it has at most this many points. A larger number of points takes
more memory and time."""


class Chart(NamedTuple):
    """A chart: a box of coordinates, and a function from the box onto a set or a part of it.

    Attributes:
        part: the name of the part of the set that the chart (map from coordinates) reaches; empty
            if it reaches the whole set.
        point: the function that maps coordinates of shape (k,) to a point of the set.
    """

    part: str
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    point: Callable[[jax.Array], Any]


CORNERS = 256
"""`corners` lists a set's extreme points if there are at most this many. A larger number lets
`corners` list more points, which takes longer."""


def digits(rows: np.ndarray, base: int, places: int, /) -> np.ndarray:
    """Return the digits of whole numbers in a base, highest digit first, shape (rows, places)."""
    left, found = np.asarray(rows, np.int64), list[np.ndarray]()
    for _ in range(places):
        left, last = np.divmod(left, base)
        found.append(last)
    return np.stack(found[::-1], axis=-1) if found else np.zeros((len(left), 0), np.int64)


def modules(x: Any) -> Any:
    """Return the module that computes with `x`: `numpy` for NumPy arrays, else `jax.numpy`."""
    return np if isinstance(x, np.ndarray | np.generic) else jnp


def agrees(x: Any, value: Any) -> Any:
    """Tell whether each nonnegative number in `x` equals `value` up to rounding."""
    return (x >= value * LESS) & (x <= value * MORE)


def supports(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draw an array of 1, -1 and 0; the number of nonzero entries is log-uniform."""
    share, places = jax.random.split(key)
    return signs_at(
        jax.random.uniform(places, shape, minval=-1.0, maxval=1.0), jax.random.uniform(share)
    )


def signs_at(places: jax.Array, share: jax.Array) -> jax.Array:
    """Return an array of 1, -1 and 0; the argument `places` decides which entries are nonzero.

    Args:
        places: one random number in [-1, 1) for each entry of the array. An entry becomes 0 if its
            random number is far from 0, else the number's sign.
        share: a number in [0, 1). A larger share makes more entries 1 or -1, and fewer entries 0.

    A random permutation could also choose the entries, but sorting takes long to compile.
    """
    most, away = jnp.exp((share - 1) * math.log(max(places.size, 1))), jnp.abs(places)
    chosen = (away <= most) | (away == jnp.min(away, initial=1.0))
    return jnp.where(chosen, jnp.where(places < 0, -1.0, 1.0), 0.0)


class CarefulABC(Careful, ABCMeta):
    """Metaclass of sets and their products, which combines `Careful` and `ABCMeta`."""


@dataclass(frozen=True)
class Set(metaclass=CarefulABC):
    """A set of arrays; its shape and its numbers may be expressions of named sizes.

    Every method has an argument `size`, a dict from the name of each size to a number.
    """

    convex: ClassVar[bool] = True
    """Whether the set is convex. For a convex set, `project` returns the nearest point, unless the
    docstring of `project` says otherwise.
    """

    @classmethod
    def refused_as(cls, problem: Exception, given: Mapping[str, Any], /) -> "RefusedSet":
        """Return the placeholder of a set whose constructor refused its arguments."""
        return RefusedSet(problem)

    def shape_at(self, size: Size) -> tuple[int, ...]:
        """Return the shape of the set's points, for given numbers of the named sizes."""
        return shape_of(getattr(self, "shape", ()), size)

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        return ()

    def draw(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw a random point of the set: an inner, boundary, extreme or sparse point."""
        which, key = jax.random.split(key)
        laws = self._laws(self.shape_at(size), size)
        drawn = [law(own) for law, own in zip(laws, jax.random.split(key, len(laws)))]
        chosen = jax.random.randint(which, (), 0, len(laws), "int32")
        return jax.lax.select_n(chosen, *drawn) if len(drawn) > 1 else drawn[0]

    @abstractmethod
    def project(self, x: Any, size: Size) -> Any:
        """Return a point of the set near `x`; the point is `x` itself if `x` is in the set."""

    @abstractmethod
    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test if `x` is in the set up to rounding (1e-12); return {condition in words: bool}."""

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw an extreme point.

        Raises:
            Refused: if the set has no extreme point, like the whole space.
        """
        raise Refused(f"set={self!r} has no extreme points. Try `draw`")

    def vertices(self, key: jax.Array, size: Size, count: int = 16) -> jax.Array:
        """Draw extreme points, shape (count, *shape).

        Raises:
            Refused: if the set has no extreme point.
        """
        return jax.vmap(lambda k: self.extreme(k, size))(jax.random.split(key, count))

    def candidates(self, key: jax.Array, x: jax.Array, size: Size) -> jax.Array:
        """Return points of the set to try beside `x` in a search, shape (6, *shape).

        The first three candidates are -x, x with one sign flipped, and x with one entry set to 0.
        The last three candidates are x with one entry (or row) copied onto another, x with every
        entry replaced by its sign times the largest absolute entry, and 1000 x. The method projects
        each candidate point onto the set.
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
        """Return the number of points of the set; None if it is infinite or unknown."""
        every = self.every(size)
        return None if every is None else len(every)

    def numbered(self, rows: np.ndarray, size: Size) -> np.ndarray:
        """Return the points with the indices `rows` (below `cardinality`), shape (rows, *shape).

        Raises:
            Refused: if the library cannot list the points of the set.
        """
        every = self.every(size)
        if every is None:
            raise Refused(
                f"the library cannot list all points of set={self!r}. Try `draw`, which samples "
                f"points"
            )
        return np.asarray(every)[rows]

    def every(self, size: Size) -> np.ndarray | None:
        """Return all points of the set, shape (count, *shape), if at most 4096, else None."""
        return None

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return charts (maps from coordinates) that together reach every point of the set.

        Raises:
            Refused: if the library knows no coordinates for the set.
        """
        raise Refused(f"set={self!r} has no known coordinates. Try to write a jb.Domain yourself")

    def _refuse(self, *numbers: Number) -> None:
        for number in numbers:
            refuse(number)
        shape: Shape = getattr(self, "shape", ())
        for axis in self._axes():
            if not isinstance(axis, int | str) or isinstance(axis, bool):
                raise Refused(
                    f"shape={shape!r}: expected names of sizes or whole numbers. Try ('n', 3)"
                )
            refuse(axis)
        if not any(isinstance(number, str) for number in numbers):
            self._refuse_numbers({})
        if hasattr(self, "shape") and not any(isinstance(axis, str) for axis in self._axes()):
            self.shape_at({})

    def _refuse_numbers(self, size: Size) -> None:
        """Refuse numbers that define no set for the given sizes, such as a negative radius."""

    def _positive(self, name: str, number: Number, size: Size) -> float:
        """Return a positive finite number that defines the set, or refuse the number.

        Raises:
            Refused: if the number is not positive and finite. For 0 the message says how to state a
                claim about the single point of the set.
        """
        found = number_of(number, size)
        if 0 < found < math.inf:
            return float(found)
        if found:
            raise Refused(f"{self!r} has {name}={found}, expected a positive finite number. Try 1")
        where = f" at {dict(size)}" if size else ""
        positive = f"sizes at which {number} is positive"
        cure = positive if isinstance(number, str) else self._point_in_words(0.0)
        raise Refused(
            f"{self!r} has {name}={found}, expected a positive finite number: only the point zero "
            f"lies in the set{where}. Try {cure}"
        )

    def _radius(self, size: Size) -> float:
        return self._positive("radius", self.R, size)  # type: ignore[attr-defined]

    def _axes(self) -> tuple[int | str, ...]:
        shape: Shape = getattr(self, "shape", ())
        return shape if isinstance(shape, tuple) else (shape,)

    def _point_in_words(self, value: float) -> str:
        """Return advice for a claim about the one array whose entries all have a value."""
        axes = self._axes()
        if not axes:
            return f"jb.OneOf({value})"
        shape = f"({', '.join(map(str, axes))})" if axes[1:] else f"{axes[0]}"
        if any(isinstance(axis, str) for axis in axes):
            return f"jnp.full({shape}, {value}) in both sides, and no set for this argument"
        return f"jb.OneOf([np.full({shape}, {value})])"


@dataclass(frozen=True)
class RefusedSet(Set):
    """Stands for a set with wrong arguments, so that only statements with this set fail."""

    problem: Exception
    """The exception that the set's constructor raised."""

    @classmethod
    def of(cls, problem: Exception, *given: Any, **named: Any) -> Set:
        """Return a placeholder that raises `problem` when the library uses the set."""
        return cls(problem)

    def shape_at(self, size: Size) -> tuple[int, ...]:
        """Raise the exception of the set's constructor.

        Raises:
            Exception: the exception of the set's constructor.
        """
        raise self.problem

    def project(self, x: Any, size: Size) -> Any:
        """Raise the exception of the set's constructor.

        Raises:
            Exception: the exception of the set's constructor.
        """
        raise self.problem

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Raise the exception of the set's constructor.

        Raises:
            Exception: the exception of the set's constructor.
        """
        raise self.problem


def product(parts: Mapping[str, tuple[Chart, ...]]) -> tuple[Chart, ...]:
    """Return a product's charts (maps from boxes): one for each combination of the sets' charts."""
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
