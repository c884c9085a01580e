"""Search for the entries that a claim says exist (`there_is`), for many instances at once.

The search starts from the instance's own values, from the statement's `witness`, and from zeros,
extreme points, draws and copies of other entries. Gradient steps and random moves then decrease the
ratio of the sides.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Over
from jaxbounds.claims.sets.base import MOST
from jaxbounds.claims.statements import Instance, Size, Statement
from jaxbounds.falsification.descent import Descent, Tried, evaluated, rows_of, taken
from jaxbounds.falsification.measure import Measured
from jaxbounds.ground.exceptions import Refused
from jaxbounds.programs.interpreted import once

DRAWN = 8
"""Each search starts from this many random and this many extreme points of the `there_is` sets. A
larger value finds suitable entries in small sets and takes longer."""
CORNERS = 64
"""The search starts from all corners of the `there_is` sets if there are at most this many. A
larger number takes longer."""
OPEN = 32
"""If the search fails for this many instances, further instances get only `FEW` rounds. A larger
value spends more time on claims that stay undecided."""
FEW = 6
"""After `OPEN` searches without success, each further instance gets this many rounds. A larger
number takes longer."""


class Reads(Protocol):
    """The interface of an object that measures instances which include the `there_is` entries."""

    statement: Statement

    def __call__(self, batch: Instance, size: Size) -> Measured:
        """Measure instances of one size."""

    def reading(self, batch: Instance, size: Size) -> Any:
        """Evaluate both sides and the hypotheses at instances, and compare nothing."""

    def mapped(self, function: Callable[..., Any], what: str, size: Size) -> Callable:
        """Map a function of one instance over a batch."""

    def in_parts(self, run: Callable[[Instance], Any], batch: Instance, /) -> Any:
        """Apply a function that maps batches to a batch of any length, part by part."""


class _Kept(NamedTuple):
    """The `there_is` entries of an instance, and whether all trial values violated a hypothesis."""

    entries: list[np.ndarray]
    lost: bool


class Promises:
    """Measures instances with the best `there_is` entries found for each version of the claim."""

    def __init__(self, statement: Statement, given: Reads, size: Size) -> None:
        self.statement, self.given, self.size = statement, given, size
        self.sets = Over(statement.there_is or {})
        self.every = self.sets.every(size)
        self._kept: dict[tuple[int, bytes], _Kept] = {}
        self._open = [0] * (len(statement.forms) + 1)
        self._starts: list[dict[str, Any]] | None = None
        self._descents: dict[int, Descent] = {}

    @np.errstate(all="ignore")  # an entry that overflows is no witness
    def __call__(self, batch: Instance, /) -> Measured:
        """Measure all claim versions, and the false variant, on stacked instances."""
        forms = len(self.statement.forms)
        columns = [self._column(batch, index, index) for index in range(forms)]
        control = self._column(batch, self._of_control, forms)
        if self.every is None:  # a search without success proves nothing
            none = np.full(len(control.value), -np.inf)
            columns = [column._replace(low=none) for column in columns]
        return jax.tree.map(lambda *fields: np.stack(fields, axis=-1), *columns, control)

    @property
    def _of_control(self) -> int:
        own = bool(self.statement.control.strip()) and self.statement.is_bound
        return len(self.statement.forms) if own else 0

    @property
    def points(self) -> int | None:
        """The number of values of the `there_is` entries if a check tries all values; else None."""
        return None if self.every is None else len(jax.tree.leaves(self.every)[0])

    def of_each(self, batch: Instance, forms: np.ndarray, /) -> Instance:
        """Fill each instance with the `there_is` entries that are best for its claim version.

        The index in `forms` of the false variant is the number of claim versions.
        """
        sought = np.where(forms == len(self.statement.forms), self._of_control, forms)
        filled = {
            name: jax.tree.map(np.array, value) if name in self.sets else value
            for name, value in batch.items()
        }
        for index in np.unique(sought).tolist():
            rows = np.flatnonzero(sought == index)
            best = self.filled(taken(batch, rows), index)
            for old, new in zip(*(jax.tree.leaves(self._own(one)) for one in (filled, best))):
                old[rows] = new
        return filled

    def _column(self, batch: Instance, sought: int, index: int) -> Measured:
        filled, lost = self._filled(batch, sought)
        m = self.given(filled, self.size).column(index)
        if not np.any(lost):
            return m
        inf = np.where(lost, np.inf, m.value)
        return m._replace(value=inf, high=np.where(lost, np.inf, m.high),
                          counted=m.counted | lost, met=m.met | lost)  # fmt: skip

    @np.errstate(all="ignore")
    def filled(self, batch: Instance, index: int, /) -> Instance:
        """Return the instances with the `there_is` entries that favour a claim version."""
        return self._filled(batch, index)[0]

    @np.errstate(all="ignore")
    def share(
        self, batch: Instance, index: int, failing: np.ndarray, donors: np.ndarray
    ) -> Measured:
        """Try the `there_is` entries of some instances for other instances of the same batch.

        Args:
            batch: the instances, which the function measured before.
            index: the index of the claim version.
            failing: the rows of the instances for which the search found no suitable entries.
            donors: the rows of the instances whose entries the function tries.

        Returns:
            The measurements of the failing instances with the best entries known now.
        """
        some = taken(batch, failing)
        known = jax.tree.leaves(self._own(self.filled(taken(batch, donors), index)))
        own = jax.tree.leaves(self._own(self.filled(some, index)))
        stacked = [
            np.concatenate([mine[None], np.repeat(theirs[:, None], len(failing), axis=1)])
            for mine, theirs in zip(own, known)
        ]
        tried = self._tried(stacked, some, index)
        best = np.lexsort((tried.gap, tried.value), axis=0)[0]
        for row, name in enumerate(_names(some)):
            if best[row] > 0 and np.isfinite(tried.value[best[row], row]):
                entries = [leaf[best[row], row] for leaf in stacked]
                self._kept[index, name] = _Kept(entries, lost=False)
        return self._column(some, index, index)._replace(low=np.full(len(failing), -np.inf))

    def _filled(self, batch: Instance, index: int) -> tuple[Instance, np.ndarray]:
        names, known = _names(batch), self._kept
        anew = {name: row for row, name in enumerate(names) if (index, name) not in known}
        if anew:
            some = taken(batch, np.array(list(anew.values())))
            entries, lost = self._found(some, index)
            for at, name in enumerate(anew):
                known[index, name] = _Kept([leaf[at] for leaf in entries], bool(lost[at]))
        kept = [known[index, name] for name in names]
        structure = jax.tree.structure(self._own(batch))
        leaves = [np.stack(parts) for parts in zip(*(one.entries for one in kept))]
        filled = dict(batch) | jax.tree.unflatten(structure, leaves)
        return filled, np.array([one.lost for one in kept])

    def _own(self, batch: Instance) -> dict[str, Any]:
        return {name: batch[name] for name in self.sets}

    def _found(self, batch: Instance, index: int) -> tuple[list[np.ndarray], np.ndarray]:
        if self.every is not None:
            tried = self._of_every(batch, index)
        else:
            tried = self._climbed(batch, index)
        # The ratio of a side to zero is flat, so equal ratios leave the choice to the gap.
        best = np.lexsort((tried.gap, tried.value), axis=0)[0]
        each = np.arange(rows_of(batch))
        nothing = ~np.isfinite(tried.value[best, each])
        return [leaf[best, each] for leaf in tried.leaves], nothing & tried.outer

    def _of_every(self, batch: Instance, index: int) -> Tried:
        points = jax.tree.leaves(self.every)
        own = jax.tree.leaves(self._own(batch))
        parts, step = [], max(1, MOST // len(points[0]))
        for start in range(0, rows_of(batch), step):
            some = taken(batch, slice(start, start + step))
            many = [
                np.repeat(np.asarray(x)[:, None].astype(o.dtype), rows_of(some), axis=1)
                for x, o in zip(points, own)
            ]
            parts.append(self._tried(many, some, index))
        join = lambda *leaves: np.concatenate(leaves, axis=1)
        leaves = [join(*some) for some in zip(*(part.leaves for part in parts))]
        outer = np.concatenate([part.outer for part in parts])
        value, gap = (join(*(getattr(part, of) for part in parts)) for of in ("value", "gap"))
        return Tried(leaves, value, gap, outer)

    def _tried(self, leaves: list[np.ndarray], batch: Instance, index: int) -> Tried:
        # A referee measures points beside the set; the best `there_is` entries matter there, too.
        outside = self.every is not None
        own = self._own(batch)
        return evaluated(self.given, self.size, own, leaves, batch, index, outside=outside)

    def _climbed(self, batch: Instance, index: int) -> Tried:
        if index not in self._descents:
            self._descents[index] = Descent(self.given, self.size, tuple(self.sets), index)
        descent = self._descents[index]
        starts = [jax.tree.leaves(self._own(one)) for one in self._all_starts(batch)]
        stacked = [np.stack(leaves) for leaves in zip(*starts)]
        stacked = descent.projected(stacked, batch)
        first = self._tried(stacked, batch, index)
        rounds = FEW if self._open[index] >= OPEN else descent.rounds
        found = descent(first, batch, rounds)
        tolerance = self.statement.tolerance
        most = 1 + tolerance if self.statement.is_bound else tolerance
        self._open[index] += int(np.sum(np.min(found.value, axis=0) > most))
        return found

    def _all_starts(self, batch: Instance) -> list[Instance]:
        count, own = rows_of(batch), self._own(batch)
        if self._starts is None:
            self._starts = list(self._of_sets(own))
        like = lambda new, old: np.broadcast_to(np.asarray(new).astype(old.dtype), old.shape)
        found = [dict(batch)]
        if self.statement.witness is not None:
            given = self.given.mapped(self._witness, "witness", self.size)
            found.append(dict(batch) | jax.tree.map(like, self.given.in_parts(given, batch), own))
        for one in self._starts:
            each = jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], count, axis=0), one)
            found.append(dict(batch) | jax.tree.map(like, each, own))
        return found + [dict(batch) | one for one in _copies(batch, own)]

    def _witness(self, instance: Instance) -> dict[str, Any]:
        given = witness_at(self.statement, instance, self.size)
        return self._own(instance) | given

    def _of_sets(self, own: Instance) -> list[dict[str, Any]]:
        sets, size = self.sets, self.size

        def make(key: jax.Array) -> tuple[Any, Any]:
            draws, ends = jax.random.split(key)
            drawn = jax.vmap(lambda k: sets.draw(k, size))(jax.random.split(draws, DRAWN))
            return drawn, sets.vertices(ends, size, DRAWN)

        drawn, ends = jax.tree.map(np.asarray, once(make, make)(jax.random.key(0)))
        many = [*_unstacked(drawn), *_unstacked(ends)]
        many += [_without_an_entry(one, at) for at, one in enumerate([*many, *_unstacked(ends)])]
        corners = sets.corners(size)
        if corners is not None and len(jax.tree.leaves(corners)[0]) <= CORNERS:
            many += _unstacked(corners)
        zero = jax.tree.map(lambda leaf: np.zeros(leaf.shape[1:], leaf.dtype), own)
        return [*many, zero]


def witness_at(statement: Statement, instance: Instance, size: Size, /) -> dict[str, Any]:
    """Return the values that a `witness` gives to the entries that the claim says exist.

    Raises:
        Refused: if the witness gives an entry that `there_is` does not name, or an entry of another
            shape.
    """
    sets, given = Over(statement.there_is or {}), statement.witness
    found: Any = given(instance, size) if callable(given) else given
    if not isinstance(found, Mapping):
        found = {next(iter(sets)): found} if len(sets) == 1 else {"": found}
    gives = f"statement {statement.id!r}: the `witness` gives"
    promised = ", ".join(sets)
    for name, value in found.items():
        if name not in sets:
            named = repr(name) if name else "a value without a name"
            raise Refused(
                f"{gives} {named}, expected the names in there_is={promised}. Try a dict with the "
                f"keys {promised}"
            )
        shapes = lambda tree: [tuple(jnp.shape(leaf)) for leaf in jax.tree.leaves(tree)]
        own, wanted = shapes(value)[0], shapes(instance[name])[0]
        if shapes(value) != shapes(instance[name]):
            raise Refused(
                f"{gives} {name} with shape={own}, expected shape={wanted}. Try an array of the "
                f"expected shape, or a dict with the keys {promised}"
            )
    return jax.tree.map(jnp.asarray, dict(found))


def _names(batch: Instance) -> list[bytes]:
    """Return a digest of each instance; instances that agree bit by bit have equal digests."""
    leaves = [np.ascontiguousarray(leaf) for leaf in jax.tree.leaves(batch)]
    made = []
    for row in range(rows_of(batch)):
        digest = hashlib.blake2b(digest_size=16)
        for leaf in leaves:
            digest.update(leaf[row].tobytes())
        made.append(digest.digest())
    return made


def _unstacked(points: Any) -> list[dict[str, Any]]:
    return [taken(points, row) for row in range(rows_of(points))]


def _without_an_entry(point: dict[str, Any], at: int) -> dict[str, Any]:

    def without(leaf: np.ndarray) -> np.ndarray:
        if not np.issubdtype(leaf.dtype, np.floating) or leaf.size < 2:
            return leaf
        moved = leaf.copy().reshape(-1)
        moved[at % leaf.size] = 0.0
        return moved.reshape(leaf.shape)

    return jax.tree.map(without, point)


def _copies(batch: Instance, own: Instance) -> list[dict[str, Any]]:
    found = []
    for name, entry in own.items():
        if not isinstance(entry, np.ndarray):
            continue
        for other, value in batch.items():
            if other in own or not isinstance(value, np.ndarray):
                continue
            if value.shape != entry.shape and value.ndim != 1:
                continue
            wide = value.reshape(len(value), *[1] * (entry.ndim - 1)) if value.ndim == 1 else value
            for sign in (1, -1):
                with np.errstate(all="ignore"):
                    copied = np.broadcast_to(sign * wide, entry.shape).astype(entry.dtype)
                found.append({**own, name: copied})
    return found
