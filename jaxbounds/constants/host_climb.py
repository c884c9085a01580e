"""Raise lhs/rhs without derivatives (climb), for statements that run in plain Python.

A move changes a float by a share of its size; the shares range from 1 down to the last digits. For
an integer, a climb (ascent of lhs/rhs) tries the values that random instances have there. The climb
also tries nearby integers if the statement declares a set of integers.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbounds.claims.sets import Integers
from jaxbounds.claims.statements import Instance
from jaxbounds.constants.polish import SAME
from jaxbounds.constants.problem import REFUSALS, Problem, flat, floats_of, is_float, unflat
from jaxbounds.falsification.move_search import FAR
from jaxbounds.falsification.search import projection

LEVELS = tuple(2.0**-k for k in range(0, 45, 4))
"""The step lengths of trial moves, relative to the moved entries. All moves of one sweep (series of
trial moves) have the same step length.
"""
COORDINATES, DENSE = 48, 8
"""The numbers of coordinates and of random directions that one sweep (series of moves) tries.

Larger numbers make a sweep longer.
"""
SWEEPS = 40
"""The largest number of sweeps (series of trial moves) with one step length. A climb with more
sweeps reaches larger ratios and takes longer.
"""
WORTH = 1e-13
"""A climb (ascent of lhs/rhs) goes on to the next step length if a sweep of trial moves raises the
ratio lhs/rhs by less than this fraction.

If this fraction is larger, the climb changes its step length earlier.
"""
GAINED = 1e-15
"""A climb (ascent of lhs/rhs) ignores an increase of lhs/rhs below this fraction of lhs/rhs.

If this fraction is larger, climbs end earlier.
"""
ROUNDS = 4
"""The largest number of rounds of a climb (ascent of lhs/rhs); a round moves integers and then
floats.

A climb with more rounds reaches larger ratios and takes longer.
"""
VALUES = 64
"""A climb (ascent of lhs/rhs) tries at most this many drawn values for one integer.

A climb that tries more values finds rarer optima and takes longer.
"""


class TimeIsOver(Exception):
    """A climb (ascent of lhs/rhs) has no time left to measure a further instance."""


class Place(NamedTuple):
    """An instance and its ratio lhs/rhs, which is -inf if the instance violates a hypothesis."""

    instance: Instance
    ratio: float


class Whole(NamedTuple):
    """One integer or boolean of an instance.

    Attributes:
        leaf: the index of the leaf that holds the number.
        entry: the index of the number in the flattened leaf.
        seen: the values that random instances (draws) have in this entry.
        once: the fraction of random instances with a value in this entry that no other instance
            has.
    """

    leaf: int
    entry: int
    seen: np.ndarray
    once: float


class HostClimber:
    """A search that raises lhs/rhs: it changes an instance slightly, and measures it again."""

    def __init__(self, problem: Problem, draws: Instance, /) -> None:
        self.problem = problem
        self.draws = [np.asarray(leaf) for leaf in jax.tree.leaves(draws)]
        self.until = np.inf
        self._back = projection(problem.statement, problem.size)

    def at(self, instance: Instance, /) -> Place:
        """Project an instance and measure lhs/rhs, which is -inf if a hypothesis is violated.

        Raises:
            TimeIsOver: if `time.process_time()` is past the attribute `until`.
        """
        if time.process_time() > self.until:
            raise TimeIsOver
        try:
            there = jax.tree.map(np.asarray, self._back(instance))
        except REFUSALS:
            return Place(instance, -np.inf)
        if any(not np.all(np.isfinite(leaf)) for leaf in floats_of(there)):
            return Place(instance, -np.inf)
        return Place(there, float(self.problem.ratios([there])[0]))

    def climbed(
        self, start: Instance, rng: np.random.Generator, /, *, until: float, reach: float = np.inf
    ) -> Place:
        """Change the instance until no move raises lhs/rhs, or until lhs/rhs equals `reach`."""
        here = self.at(start)
        there = lambda: reach < np.inf and abs(here.ratio - reach) <= reach * SAME / 10
        for _ in range(ROUNDS):
            before = here.ratio
            here = here if there() else self._whole(here, until)
            for level in LEVELS:
                if there():
                    return here
                here = self._level(here, level, rng, until)
            if not here.ratio > before * (1 + WORTH) or not self.wholes(here.instance):
                break
        return here

    def _level(self, here: Place, level: float, rng: np.random.Generator, until: float) -> Place:
        for _ in range(SWEEPS):
            before, start = here.ratio, flat(here.instance)
            if time.process_time() > until or not len(start) or not before > 0:
                break
            for way in ways(here.instance, rng):
                here = self._along(here, level * way, until)
            if not here.ratio > before * (1 + WORTH):
                break
            here = self._along(here, flat(here.instance) - start, until)
        return here

    def _along(self, here: Place, step: np.ndarray, until: float) -> Place:
        for sign in (1.0, -1.0):
            length, start = sign, here
            while time.process_time() < until and np.any(step):
                there = self.at(unflat(here.instance, flat(here.instance) + length * step))
                if not there.ratio > here.ratio * (1 + GAINED):
                    break
                here, length = there, 2 * length
            if here is not start:
                break
        return here

    def wholes(self, instance: Instance, /) -> list[Whole]:
        """Return the integers and booleans whose values differ between random instances."""
        found = list[Whole]()
        for i, leaf in enumerate(jax.tree.leaves(instance)):
            if is_float(leaf):
                continue
            columns = self.draws[i].reshape(len(self.draws[i]), -1)
            for j, column in enumerate(columns.T):
                seen, counts = np.unique(column, return_counts=True)
                if len(seen) > 1:
                    found.append(Whole(i, j, seen, float(np.sum(counts == 1)) / len(column)))
        return found

    def with_whole(self, instance: Instance, whole: Whole, value: Any, /) -> Instance:
        """Return a copy of the instance in which the integer `whole` has the value `value`."""
        leaves, structure = jax.tree.flatten(instance)
        changed = np.array(leaves[whole.leaf])
        changed.flat[whole.entry] = value
        leaves[whole.leaf] = changed
        return jax.tree.unflatten(structure, leaves)

    def values_of(self, instance: Instance, whole: Whole, /) -> list[int]:
        """Return trial values of an integer: drawn ones, and near ones if its set is declared."""
        seen = whole.seen[:: -(-len(whole.seen) // VALUES)].tolist()
        if not self.declared(instance, whole):
            return seen
        own = int(self.number(instance, whole))
        near = [own + sign * 2**k for k in range(40) for sign in (1, -1)]
        return [*seen, *near]

    def tried(self, instance: Instance, whole: Whole, value: Any, /) -> Place:
        """Return lhs/rhs for another value of one integer, or -inf for a refused value."""
        try:
            return self.at(self.with_whole(instance, whole, value))
        except TimeIsOver:
            raise
        except Exception:
            return Place(instance, -np.inf)

    def out(self, instance: Instance, /) -> Iterator[int]:
        """Yield, for each float x, 1 if |x| is far above all draws, -1 if far below, else 0."""
        for leaf, drawn in zip(jax.tree.leaves(instance), self.draws):
            if not is_float(leaf):
                continue
            sizes, own = np.abs(drawn[np.isfinite(drawn) & (drawn != 0)]), np.abs(leaf).ravel()
            low, high = (sizes.min(), sizes.max()) if len(sizes) else (1.0, 1.0)
            yield from np.where(own > FAR * high, 1, np.where((own > 0) & (own < low / FAR), -1, 0))

    def number(self, instance: Instance, whole: Whole, /) -> Any:
        """Return the value that an instance has at the place of the integer `whole`."""
        return np.asarray(jax.tree.leaves(instance)[whole.leaf]).flat[whole.entry]

    def declared(self, instance: Instance, whole: Whole, /) -> bool:
        """Tell whether the statement declares a set of integers for an integer of the instance."""
        statement = self.problem.statement
        path, _ = jax.tree.flatten_with_path(instance)[0][whole.leaf]
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        return isinstance((statement.over or {}).get(name), Integers)

    def _whole(self, here: Place, until: float) -> Place:
        for _ in range(SWEEPS):
            before = here.ratio
            for whole in self.wholes(here.instance):
                for value in self.values_of(here.instance, whole):
                    if time.process_time() > until:
                        return here
                    there = self.at(self.with_whole(here.instance, whole, value))
                    here = there if there.ratio > here.ratio * (1 + GAINED) else here
            if not here.ratio > before * (1 + GAINED):
                break
        return here


def ways(instance: Instance, rng: np.random.Generator, /) -> Iterator[np.ndarray]:
    """Yield directions of moves: single coordinates, whole arrays, and random directions.

    Each component of a direction is about as large as the entry that the component moves.
    """
    x, sizes = flat(instance), [leaf.size for leaf in floats_of(instance)]
    scale = scales(instance)
    for i in rng.permutation(len(x))[:COORDINATES]:
        yield np.where(np.arange(len(x)) == i, scale, 0.0)
    rows = np.split(np.arange(len(x)), np.cumsum(sizes)[:-1])
    for row in rows if len(x) > len(rows) else ():
        yield np.where(np.isin(np.arange(len(x)), row), x, 0.0)
    for _ in range(DENSE if len(x) > 1 else 0):
        yield scale * rng.normal(size=len(x)) / np.sqrt(len(x))


def scales(instance: Instance, /) -> np.ndarray:
    """Return the size |x| of each float x; the size of a zero is the largest |x| in its leaf."""
    leaves: Sequence[np.ndarray] = [np.asarray(leaf, float) for leaf in floats_of(instance)]
    largest = [np.full(v.size, np.max(np.abs(v), initial=0.0) or 1.0) for v in leaves]
    x = np.abs(flat(instance))
    return np.where(x > 0, x, np.concatenate(largest)) if leaves else x
