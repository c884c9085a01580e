"""Products of sets: the set of instances whose entries lie in the sets of a dict."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets.base import CORNERS, MOST, Chart, RefusedSet, Set, product
from jaxbounds.claims.sets.expressions import Size
from jaxbounds.claims.sets.vectors import Reals, anywhere
from jaxbounds.ground.exceptions import Refused

Point = dict[str, Any]
LONGEST = 80
"""The advice of an error message quotes the sets of a caller if their text has at most this many
characters. A larger number lets the advice quote longer texts."""


def refuse_other_sets(which: str, sets: Any, names: Sequence[str] = (), /) -> None:
    """Refuse sets that are not a dict from the name of each argument to a set.

    Raises:
        TypeError: if `sets` is no dict; the message shows a dict with the sets of the caller.
    """
    if isinstance(sets, Mapping):
        return
    given = list(sets) if isinstance(sets, list | tuple) else [sets]
    keys = [*names, "x"] if len(given) == 1 else names
    named = bool(given) and len(given) <= len(keys) and all(isinstance(s, Set) for s in given)
    pairs = ", ".join(f"{key!r}: jb.{one!r}" for key, one in zip(keys, given)) if named else ""
    if not pairs or len(pairs) > LONGEST:
        pairs = f"{(*names, 'x')[0]!r}: jb.Ball(1, 'd')"
    raise TypeError(
        f"{which}={sets!r:.60}: expected a dict from the names of arguments to sets. "
        f"Try {which}={{{pairs}}}"
    )


def _combined(parts: Mapping[str, Any], counts: list[int]) -> Point:
    rows = np.array(list(itertools.product(*map(range, counts))), int).reshape(-1, len(counts))
    return {
        name: jax.tree.map(lambda leaf, at=at: np.asarray(leaf)[rows[:, at]], part)
        for at, (name, part) in enumerate(parts.items())
    }


class Over(Mapping[str, Any]):
    """A dict from the name of each entry of an instance to its set.

    For an entry that is itself a dict of arrays, the set is a dict of sets. Two `Over` objects are
    equal if their sets are equal; an `Over` object is hashable.
    """

    is_code = True
    """If true, the JSON of a dataclass omits this object, as it omits code."""

    def __init__(self, sets: Mapping[str, "Set | Mapping[str, Any]"], /) -> None:
        """Make the product of sets, given as a dict from an instance's entry to its set.

        Raises:
            TypeError: if a value is not a set, or the dict is empty.
            Refused: if a set is a `RefusedSet`, which stands for a set with wrong arguments.
        """
        given = dict(sets)
        for name, one in given.items():
            if isinstance(one, Mapping):
                given[name] = Over(one)
            elif isinstance(one, RefusedSet):
                raise type(one.problem)(f"over[{name!r}]: {one.problem}") from one.problem
            elif not isinstance(one, Set):
                raise TypeError(f"over[{name!r}]={one!r:.60} is not a set. Try jb.Ball(1, 'd')")
        if not given:
            raise TypeError("over={} names no set. Try {'x': jb.Ball(1, 'd')}")
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
        """Draw an instance: each set draws its entry independently."""
        own_key, key = jax.random.split(key)
        found = dict[str, Any]()
        free = [name for name, one in self.items() if one == Reals(getattr(one, "shape", ()))]
        if free:
            shapes = [self[name].shape_at(size) for name in free]
            found |= zip(free, anywhere(own_key, shapes))
        others = list(dict.fromkeys(one for name, one in self.items() if name not in free))
        for one, own in zip(others, jax.random.split(key, max(len(others), 1))):
            # One compiled program draws the entries of all equal sets.
            names = [name for name, other in self.items() if other == one]
            keys = jax.random.split(own, len(names))
            drawn = jax.vmap(lambda k, one=one: one.draw(k, size))(keys)
            found |= {name: jax.tree.map(lambda leaf, at=at: leaf[at], drawn)
                      for at, name in enumerate(names)}  # fmt: skip
        return {name: found[name] for name in self}

    def project(self, point: Mapping[str, Any], size: Size) -> Point:
        """Project each entry onto its set; an entry without a set stays unchanged."""
        return dict(point) | {name: one.project(point[name], size) for name, one in self.items()}

    def meets(self, point: Mapping[str, Any], size: Size, name: str = "") -> dict[str, Any]:
        """Test whether each entry is in its set; return {condition in words: bool}."""
        found: dict[str, Any] = {}
        for entry, one in self.items():
            found |= one.meets(point[entry], size, f"{name}{entry}" + "." * isinstance(one, Over))
        return found

    def extreme(self, key: jax.Array, size: Size) -> Point:
        """Draw an extreme point of each set; a set without extreme points draws any point."""

        def one_of(one: Any, own: jax.Array) -> Any:
            try:
                return one.extreme(own, size)
            except Refused:
                return one.draw(own, size)

        return self._each(key, one_of)

    def vertices(self, key: jax.Array, size: Size, count: int = 16) -> Point:
        """Draw `count` instances of extreme points; leaves have shape (count, *shape)."""
        return jax.vmap(lambda k: self.extreme(k, size))(jax.random.split(key, count))

    def candidates(self, key: jax.Array, point: Mapping[str, Any], size: Size) -> Point:
        """Return points that differ from a point in one entry, as arrays (count, *shape)."""
        moved = self._each(key, lambda one, own: one)  # a key for each entry, in the order of names
        rows = []
        for (name, one), own in zip(moved.items(), jax.random.split(key, len(self))):
            tried = one.candidates(own, point[name], size)
            same = [dict(point)] * len(jax.tree.leaves(tried)[0])
            rest = jax.tree.map(lambda *leaves: jnp.stack(leaves), *same)
            rows.append(rest | {name: tried})
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *rows)

    def corners(self, size: Size) -> Point | None:
        """Return all combinations of extreme points if there are at most 256, else None."""
        parts = {name: one.corners(size) for name, one in self.items()}
        if any(part is None for part in parts.values()):
            return None
        counts = [len(jax.tree.leaves(part)[0]) for part in parts.values()]
        if math.prod(counts) > CORNERS:
            return None
        return _combined(parts, counts)

    def cardinality(self, size: Size) -> int | None:
        """Return the number of points; None if it is infinite or unknown."""
        counts = [one.cardinality(size) for one in self.values()]
        known = [n for n in counts if n is not None]
        return math.prod(known) if len(known) == len(counts) else None

    def numbered(self, rows: np.ndarray, size: Size) -> Point:
        """Return the points with the indices `rows`; leaves have shape (rows, *shape).

        As the index rises, the entry from the last set varies fastest.
        """
        left, found = np.asarray(rows, np.int64), dict[str, Any]()
        for name in reversed(self._sets):
            one: Any = self[name]
            left, own = np.divmod(left, one.cardinality(size))
            found[name] = one.numbered(own, size)
        return {name: found[name] for name in self}

    def every(self, size: Size) -> Point | None:
        """Return all points, as arrays (count, *shape), if there are at most 4096; else None."""
        parts = {name: one.every(size) for name, one in self.items()}
        if any(part is None for part in parts.values()):
            return None
        counts = [len(jax.tree.leaves(part)[0]) for part in parts.values()]
        if math.prod(counts) > MOST:
            return None
        return _combined(parts, counts)

    def charts(self, size: Size) -> tuple[Chart, ...]:
        """Return charts (maps from coordinates to instances) that together reach every instance.

        Raises:
            Refused: if the library knows no coordinates for one of the sets.
        """
        return product({name: one.charts(size) for name, one in self.items()})
