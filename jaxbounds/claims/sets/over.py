"""Products of sets: what a dict of them says of an instance."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets.base import CORNERS, MOST, Chart, Set, product
from jaxbounds.claims.sets.expressions import Size
from jaxbounds.claims.sets.vectors import Reals, anywhere
from jaxbounds.ground.exceptions import Refused

Point = dict[str, Any]


def _combined(parts: Mapping[str, Any], counts: list[int]) -> Point:
    """Return every combination of the points of several sets."""
    rows = np.array(list(itertools.product(*map(range, counts))), int).reshape(-1, len(counts))
    return {
        name: jax.tree.map(lambda leaf, at=at: np.asarray(leaf)[rows[:, at]], part)
        for at, (name, part) in enumerate(parts.items())
    }


class Over(Mapping[str, Any]):
    """A dict of sets by the name of an instance's entry; dicts of such stand for nested entries.

    It is a set, too, whose points are instances. Hashable; equal if its sets are.
    """

    is_code = True
    """No data: left out where dataclasses that hold one are written."""

    def __init__(self, sets: Mapping[str, "Set | Mapping[str, Any]"], /) -> None:
        """Take the sets.

        Raises:
            TypeError: if an entry is no set.
        """
        given = dict(sets)
        for name, one in given.items():
            if isinstance(one, Mapping):
                given[name] = one if isinstance(one, Over) else Over(one)
            elif not isinstance(one, Set):
                raise TypeError(
                    f"over[{name!r}] must be a set, as jb.Ball(1, 'd'), got {one!r:.60}"
                )
        if not given:
            raise TypeError("over names no set: give at least one, as {'x': jb.Ball(1, 'd')}")
        self._sets = given

    def __getitem__(self, name: str) -> Any:
        return self._sets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sets)

    def __len__(self) -> int:
        return len(self._sets)

    def __hash__(self) -> int:
        return hash(tuple(self._sets.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Over) and self._sets == other._sets

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: {one!r}" for name, one in self._sets.items()) + "}"

    def _each(self, key: jax.Array, call: Callable[[Any, jax.Array], Any]) -> Point:
        keys = jax.random.split(key, len(self))
        return {name: call(one, own) for (name, one), own in zip(self._sets.items(), keys)}

    def draw(self, key: jax.Array, size: Size) -> Point:
        """Draw an instance, each entry by a law of its own."""
        own_key, key = jax.random.split(key)
        found = dict[str, Any]()
        free = [name for name, one in self.items() if one == Reals(getattr(one, "shape", ()))]
        if free:
            shapes = [self[name].shape_at(size) for name in free]
            found |= zip(free, anywhere(own_key, shapes))
        others = list(dict.fromkeys(one for name, one in self.items() if name not in free))
        for one, own in zip(others, jax.random.split(key, max(len(others), 1))):
            # Equal sets by one program, compiled once.
            names = [name for name, other in self.items() if other == one]
            keys = jax.random.split(own, len(names))
            drawn = jax.vmap(lambda k, one=one: one.draw(k, size))(keys)
            found |= {name: jax.tree.map(lambda leaf, at=at: leaf[at], drawn)
                      for at, name in enumerate(names)}  # fmt: skip
        return {name: found[name] for name in self}

    def project(self, point: Mapping[str, Any], size: Size) -> Point:
        """Project each entry onto its set; an entry without a set stays."""
        return dict(point) | {name: one.project(point[name], size) for name, one in self.items()}

    def meets(self, point: Mapping[str, Any], size: Size, name: str = "") -> dict[str, Any]:
        """Return the hypotheses of each set."""
        found: dict[str, Any] = {}
        for entry, one in self.items():
            found |= one.meets(point[entry], size, f"{name}{entry}" + "." * isinstance(one, Over))
        return found

    def extreme(self, key: jax.Array, size: Size) -> Point:
        """Draw each entry at an extreme point, or at any point of a set without extreme points."""

        def one_of(one: Any, own: jax.Array) -> Any:
            try:
                return one.extreme(own, size)
            except Refused:
                return one.draw(own, size)

        return self._each(key, one_of)

    def vertices(self, key: jax.Array, size: Size, count: int = 16) -> Point:
        """Draw instances at extreme points: leaves of shape (count, *shape)."""
        return jax.vmap(lambda k: self.extreme(k, size))(jax.random.split(key, count))

    def candidates(self, key: jax.Array, point: Mapping[str, Any], size: Size) -> Point:
        """Return instances to try beside one: one entry moved, leaves of shape (count, *shape)."""
        moved = self._each(key, lambda one, own: one)  # in the order of the names
        rows = []
        for (name, one), own in zip(moved.items(), jax.random.split(key, len(self))):
            tried = one.candidates(own, point[name], size)
            same = [dict(point)] * len(jax.tree.leaves(tried)[0])
            rest = jax.tree.map(lambda *leaves: jnp.stack(leaves), *same)
            rows.append(rest | {name: tried})
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *rows)

    def corners(self, size: Size) -> Point | None:
        """Return all combinations of extreme points if at most 256, else None."""
        parts = {name: one.corners(size) for name, one in self.items()}
        if any(part is None for part in parts.values()):
            return None
        counts = [len(jax.tree.leaves(part)[0]) for part in parts.values()]
        if math.prod(counts) > CORNERS:
            return None
        return _combined(parts, counts)

    def cardinality(self, size: Size) -> int | None:
        """Return the number of points; None if infinite or unknown."""
        counts = [one.cardinality(size) for one in self.values()]
        known = [n for n in counts if n is not None]
        return math.prod(known) if len(known) == len(counts) else None

    def numbered(self, rows: np.ndarray, size: Size) -> Point:
        """Return the points with these numbers as leaves (rows, *shape).

        The last set changes fastest.
        """
        left, found = np.asarray(rows, np.int64), dict[str, Any]()
        for name in reversed(self._sets):
            one: Any = self[name]
            left, own = np.divmod(left, one.cardinality(size))
            found[name] = one.numbered(own, size)
        return {name: found[name] for name in self}

    def every(self, size: Size) -> Point | None:
        """Return all points, leaves of shape (count, *shape), if at most 4096, else None."""
        parts = {name: one.every(size) for name, one in self.items()}
        if any(part is None for part in parts.values()):
            return None
        counts = [len(jax.tree.leaves(part)[0]) for part in parts.values()]
        if math.prod(counts) > MOST:
            return None
        return _combined(parts, counts)

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return coordinates that together reach every instance.

        Raises:
            Refused: if none are known of one of the sets.
        """
        return product({name: one.charts(size) for name, one in self.items()})
