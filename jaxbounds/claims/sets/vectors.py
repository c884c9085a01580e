"""Sets of arrays with bounded entries, or with a bounded l_p norm of all entries."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.refused import careful
from jaxbounds.claims.sets.base import (
    CORNERS,
    MORE,
    MOST,
    Chart,
    Draw,
    RefusedSet,
    Set,
    agrees,
    digits,
    modules,
    signs_at,
    supports,
)
from jaxbounds.claims.sets.expressions import Number, Shape, Size, number_of
from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.norms import project_l1, vector_norm

_norm = lambda x, p: vector_norm(x.ravel(), p)


def _length(x: Any, p: float) -> Any:
    if modules(x) is np:
        return np.linalg.norm(x.ravel(), p) if x.size else np.float64(0.0)
    return _norm(x, p)


@dataclass(frozen=True)
class Box(Set):
    """Arrays with entries in [lo, hi]; each end of the interval may be infinite."""

    lo: Number = -1
    hi: Number = 1
    shape: Shape = ()

    def __post_init__(self) -> None:
        self._refuse(self.lo, self.hi)

    def _refuse_numbers(self, size: Size) -> None:
        self.ends(size)

    def ends(self, size: Size) -> tuple[float, float]:
        """Return the least and the greatest value of an entry; both may be infinite.

        Raises:
            Refused: if the least value is not below the greatest value.
        """
        low, high = float(number_of(self.lo, size)), float(number_of(self.hi, size))
        where = f" at {dict(size)}" if size else ""
        if low == high and math.isfinite(low):
            raise Refused(
                f"{self!r} has lo={low}, hi={high}{where}, which allow only one point. "
                f"Try {self._point_in_words(low)}"
            )
        if not low < high:
            swapped = f"jb.Box({high:g}, {low:g}, {self.shape!r})"
            cure = f"{swapped}, which exchanges lo and hi" if high < low else "finite ends"
            raise Refused(f"{self!r} has lo={low}, hi={high}{where}, expected lo < hi. Try {cure}")
        return low, high

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        low, high = self.ends(size)
        if math.isfinite(low) and math.isfinite(high):
            inside = lambda k: jax.random.uniform(k, shape, minval=low, maxval=high)

            def partly(key: jax.Array) -> jax.Array:
                a, b, c = jax.random.split(key, 3)
                at_end = jax.random.bernoulli(a, 0.5, shape)
                return jnp.where(at_end, self.extreme(b, size), inside(c))

            laws: tuple[Draw, ...] = (inside, partly, lambda k: self.extreme(k, size))
            if not 0 < 100 * low <= high:
                return laws
            # A positive box of two orders of magnitude or more gets a log-uniform law, too.
            ends = math.log(low), math.log(high)
            uniform = lambda k: jax.random.uniform(k, shape, minval=ends[0], maxval=ends[1])
            return *laws, lambda k: jnp.clip(jnp.exp(uniform(k)), low, high)
        if math.isfinite(low) or math.isfinite(high):
            origin, sign = (low, 1.0) if math.isfinite(low) else (high, -1.0)
            spread = lambda sigma: (
                lambda k: origin + sign * jnp.exp(sigma * jax.random.normal(k, shape))
            )

            def sparse(key: jax.Array) -> jax.Array:
                support, scale, off = jax.random.split(key, 3)
                size = jnp.where(jax.random.bernoulli(off, 0.75), _scale(scale), 0.0)
                return origin + sign * jnp.abs(supports(support, shape)) * size

            return spread(1.0), spread(3.0), sparse
        return (lambda k: anywhere(k, (shape,))[0],)

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw a corner: each entry is a finite end of the interval."""
        low, high = self.ends(size)
        if not math.isfinite(low) and not math.isfinite(high):
            return super().extreme(key, size)
        corner = jax.random.bernoulli(key, 0.5, self.shape_at(size))
        finite = [low if math.isfinite(low) else high, high if math.isfinite(high) else low]
        return jnp.where(corner, finite[1], finite[0])

    def corners(self, size: Size) -> np.ndarray | None:
        """Return the box's corners; None if there are more than 256, or an end is infinite."""
        ends, shape = self.ends(size), self.shape_at(size)
        entries = math.prod(shape)
        if not all(map(math.isfinite, ends)) or entries > math.log2(CORNERS):
            return None
        which = digits(np.arange(2**entries), 2, entries)
        return np.asarray(ends)[which].reshape((-1, *shape))

    def project(self, x: Any, size: Size) -> Any:
        """Clip each entry to the interval [lo, hi]."""
        return modules(x).clip(x, *self.ends(size))

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test whether all entries respect each finite end, exactly and without a tolerance."""
        (low, high), xp = self.ends(size), modules(x)
        found = {
            f"{name} >= {self.lo}": xp.all(x >= low),
            f"{name} <= {self.hi}": xp.all(x <= high),
        }
        return {
            words: met
            for (words, met), end in zip(found.items(), (low, high))
            if math.isfinite(end)
        }

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return one chart (map from coordinates) if both bounds of the entries are finite."""
        (low, high), shape = self.ends(size), self.shape_at(size)
        if not math.isfinite(high - low):
            return super().charts(size)
        k = math.prod(shape)
        return (Chart("", (low,) * k, (high,) * k, lambda t: t.reshape(shape)),)


def _scale(key: jax.Array) -> jax.Array:
    return 10.0 ** jax.random.uniform(key, minval=-2.0, maxval=2.0)


def anywhere(key: jax.Array, shapes: Sequence[tuple[int, ...]], /) -> list[jax.Array]:
    """Draw unbounded arrays of the given shapes with one compiled program.

    Each array has one of four distributions: normal, normal at a random scale, entries of different
    scales, or signs on a few entries.
    """
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    of_all, of_entries, places = jax.random.split(key, 3)
    laws = jax.random.uniform(of_all, (len(shapes), 3))
    entries = jax.random.normal(of_entries, (2, int(ends[-1])))
    signs = jax.random.uniform(places, (int(ends[-1]),), minval=-1.0, maxval=1.0)
    found = []
    for shape, end, (law, scale, share) in zip(shapes, ends, laws):
        own = slice(int(end) - math.prod(shape), int(end))
        normal, spread = entries[:, own]
        kinds = (normal, 10.0 ** (4 * scale - 2) * normal, jnp.exp(2.0 * spread) * normal)
        which = jnp.floor(4 * law).astype(jnp.int32)
        chosen = jax.lax.select_n(which, *kinds, signs_at(signs[own], share))
        found.append(chosen.reshape(shape))
    return found


@careful(RefusedSet.of)
def Reals(shape: Shape = ()) -> Box:
    """Return the set of all arrays of a shape; random points are dense or sparse, at many scales.

    Args:
        shape: the shape of the arrays: names of sizes or integers; () is the shape of a number.
    """
    return Box(-math.inf, math.inf, shape)


@dataclass(frozen=True)
class Ball(Set):
    """Arrays with |x|_p <= R, where |x|_p is the l_p norm of all entries and 1 <= p <= inf.

    The projection is the nearest point for p = 1, 2 and infinity, and x R / |x|_p for another p.
    """

    R: Number = 1
    shape: Shape = ()
    p: float = 2
    _words: ClassVar[str] = "<="

    def __post_init__(self) -> None:
        self._refuse(self.R)
        if not self.p >= 1:
            raise Refused(f"{self!r} has p={self.p!r}, expected p >= 1. Try p=2")

    def _refuse_numbers(self, size: Size) -> None:
        self._radius(size)

    def _scaled(self, x: jax.Array, radius: jax.Array | float) -> jax.Array:
        length = _norm(x, self.p)
        first = jnp.zeros(x.size).at[:1].set(1.0).reshape(x.shape)
        return radius * jnp.where(length > 0, x / jnp.where(length > 0, length, 1.0), first)

    def _boundary(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        radius = self._radius(size)
        dense = lambda k: self._scaled(jax.random.normal(k, shape), radius)
        return dense, lambda k: self._scaled(supports(k, shape), radius), self._extreme(size)

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        radius, n = self._radius(size), max(math.prod(shape), 1)

        def inside(key: jax.Array) -> jax.Array:
            a, b = jax.random.split(key)
            part = radius * jax.random.uniform(a) ** (1.0 / n)
            return self._scaled(jax.random.normal(b, shape), part)

        def small(key: jax.Array) -> jax.Array:
            a, b = jax.random.split(key)
            part = radius * 10.0 ** -jax.random.uniform(a, maxval=4.0)
            return self._scaled(jax.random.normal(b, shape), part)

        return inside, small, *self._boundary(shape, size)

    def _extreme(self, size: Size) -> Draw:
        return lambda key: self.extreme(key, size)

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw an extreme point: R e_i or -R e_i for p = 1, and R times signs for p = infinity.

        For another p every point of the sphere is extreme, and the drawn point has a random set of
        nonzero entries.
        """
        shape, radius = self.shape_at(size), self._radius(size)
        n = math.prod(shape)
        if self.p == 1 and n:
            at, sign = jax.random.split(key)
            unit = jnp.zeros(n).at[jax.random.randint(at, (), 0, n)]
            return unit.set(radius * jax.random.rademacher(sign, (), float)).reshape(shape)
        if self.p == math.inf:
            return radius * jax.random.rademacher(key, shape, float)
        return self._scaled(supports(key, shape), radius)

    def project(self, x: Any, size: Size) -> Any:
        """Return the ball's nearest point if p is 1, 2 or infinity; for other p, shrink `x`."""
        radius, xp = self._radius(size), modules(x)
        if self.p == math.inf:
            return xp.clip(x, -radius, radius)
        if self.p == 1:
            near = xp.asarray(project_l1(jnp.asarray(x).ravel(), radius).reshape(x.shape))
            length = xp.sum(xp.abs(near))
            over = length > radius  # rounding may leave the length above the radius
            return near * xp.where(over, radius / xp.where(over, length, 1.0), 1.0)
        length = _length(x, self.p)
        return x * xp.where(length > radius, radius / xp.where(length > 0, length, 1.0), 1.0)

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test whether |x|_p <= R."""
        within = _length(x, self.p) <= self._radius(size) * MORE
        return {f"|{name}|_{_said(self.p)} <= {self.R}": within}

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return one map onto the set: from entries if p = infinity, else from radius and angles.

        For arrays with a single entry, the map is from the entry, too.

        Raises:
            Refused: if p is neither 2 nor infinity, and the arrays have more than one entry.
        """
        radius, shape = self._radius(size), self.shape_at(size)
        n = math.prod(shape)
        if self.p == math.inf or n == 1:
            return (Chart("", (-radius,) * n, (radius,) * n, lambda t: t.reshape(shape)),)
        if self.p != 2:
            return super().charts(size)
        lower, upper = _angles(n)
        point = lambda t: (t[0] * on_sphere(t[1:])).reshape(shape)
        return (Chart("", (0.0, *lower), (radius, *upper), point),)


@dataclass(frozen=True)
class Sphere(Ball):
    """Arrays with |x|_p = R, where |x|_p is the l_p norm of all entries. The set is not convex.

    The projection is x R / |x|_p, which is the nearest point for p = 2. The projection of zero is
    R times the first unit vector.
    """

    convex: ClassVar[bool] = False

    def shape_at(self, size: Size) -> tuple[int, ...]:
        """Return the arrays' shape, with the numbers from `size` in place of names.

        Raises:
            Refused: if the arrays have no entry, so that no norm is positive.
        """
        shape = super().shape_at(size)
        if not math.prod(shape):
            raise Refused(
                f"{self!r} has shape={shape}, expected at least one entry. Try the size 'd'"
            )
        return shape

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        return self._boundary(shape, size)

    def every(self, size: Size) -> np.ndarray | None:
        """Return the numbers -R and R if the arrays have a single entry, else None."""
        shape, radius = self.shape_at(size), self._radius(size)
        return np.reshape([-radius, radius], (2, *shape)) if math.prod(shape) == 1 else None

    def project(self, x: Any, size: Size) -> Any:
        """Scale the point to norm R."""
        found = self._scaled(jnp.asarray(x), self._radius(size))
        return modules(x).asarray(found)

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test whether |x|_p = R."""
        on = agrees(_length(x, self.p), self._radius(size))
        return {f"|{name}|_{_said(self.p)} = {self.R}": on}

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return one chart (map from angles), for p = 2 and at least two entries.

        Raises:
            Refused: if p is not 2, or the arrays have a single entry.
        """
        radius, shape = self._radius(size), self.shape_at(size)
        n = math.prod(shape)
        if self.p != 2 or n < 2:
            return Set.charts(self, size)
        return (Chart("", *_angles(n), lambda t: (radius * on_sphere(t)).reshape(shape)),)


def _said(p: float) -> str:
    return "inf" if p == math.inf else f"{p:g}"


def _angles(n: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the corners of a box of angles that covers the unit sphere in n dimensions."""
    return (0.0,) * (n - 2) + (-3.15,), (3.15,) * (n - 1)


def on_sphere(angles: jax.Array) -> jax.Array:
    """Return the unit vector with k angles a, b, ...: (cos a, sin a cos b, sin a sin b, ...)."""
    sines = jnp.concatenate([jnp.ones(1), jnp.cumprod(jnp.sin(angles))])
    return sines * jnp.concatenate([jnp.cos(angles), jnp.ones(1)])


@dataclass(frozen=True)
class Signs(Set):
    """Arrays whose entries are `scale` or -`scale`."""

    shape: Shape = "d"
    scale: float = 1.0
    convex: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._refuse(self.scale)
        if isinstance(self.scale, str) or not 0 < self.scale < math.inf:
            raise Refused(
                f"{self!r} has scale={self.scale!r}, expected a positive finite number. Try 1"
            )

    def _laws(self, shape: tuple[int, ...], size: Size) -> tuple[Draw, ...]:
        return (lambda key: self.extreme(key, size),)

    def extreme(self, key: jax.Array, size: Size) -> jax.Array:
        """Draw a sign pattern uniformly; every sign pattern is extreme."""
        return self.scale * jax.random.rademacher(key, self.shape_at(size), float)

    def project(self, x: Any, size: Size) -> Any:
        """Return `scale` times the sign of each entry; the sign of 0 is 1."""
        return modules(x).where(x >= 0, self.scale, -self.scale)

    def meets(self, x: Any, size: Size, name: str = "x") -> dict[str, Any]:
        """Test that each entry is `scale` or -`scale` exactly."""
        xp = modules(x)
        return {f"{name} is of signs": xp.all(xp.abs(x) == self.scale)}

    def cardinality(self, size: Size) -> int:
        """Return the number of points: 2 to the power of the number of entries."""
        return int(2 ** math.prod(self.shape_at(size)))

    def numbered(self, rows: np.ndarray, size: Size) -> np.ndarray:
        """Return the points with these indices; each binary digit gives an entry's sign."""
        shape = self.shape_at(size)
        bits = digits(rows, 2, math.prod(shape)).reshape((-1, *shape))
        return np.where(bits == 1, self.scale, -self.scale)

    def every(self, size: Size) -> np.ndarray | None:
        """Return all sign patterns if there are at most 12 entries, else None."""
        shape = self.shape_at(size)
        if 2 ** math.prod(shape) > MOST:
            return None
        found = list(itertools.product((-self.scale, self.scale), repeat=math.prod(shape)))
        return np.array(found).reshape((-1, *shape))
