"""Climbing where there are no slopes: by moves, on the host, along floats and whole numbers.

A float is moved by powers of two of itself, up and down, from its double to its last digits;
besides, whole arrays and random directions are. A whole number takes the values that draws have at
its place, and any value of the set that it is declared to be of.
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
"""Lengths of steps, relative to what is moved."""
COORDINATES, DENSE = 48, 8
"""Of a sweep: coordinates, and random directions of all of them."""
SWEEPS = 40
"""At one level."""
WORTH = 1e-13
"""A sweep that gains less, relatively, is the last of its level."""
GAINED = 1e-15
"""What is larger by less is no gain."""
ROUNDS = 4
"""Of whole numbers and floats, one after the other."""
VALUES = 64
"""That a whole number is given, at most."""


class TimeIsOver(Exception):
    """Nothing more is measured."""


class Place(NamedTuple):
    """An instance on the hypotheses, and its ratio."""

    instance: Instance
    ratio: float


class Whole(NamedTuple):
    """One whole number of an instance.

    Attributes:
        leaf: its leaf, by index.
        entry: which entry of it.
        seen: the values that draws have there.
        once: the share of the draws whose value no other draw has.
    """

    leaf: int
    entry: int
    seen: np.ndarray
    once: float


class HostClimber:
    """Moves on a statement's instances, measured one by one.

    Args:
        problem: what is made large.
        draws: instances stacked along a leading axis.
    """

    def __init__(self, problem: Problem, draws: Instance, /) -> None:
        self.problem = problem
        self.draws = [np.asarray(leaf) for leaf in jax.tree.leaves(draws)]
        self.until = np.inf
        self._back = projection(problem.statement, problem.size)

    def at(self, instance: Instance, /) -> Place:
        """Back on the hypotheses, and measured; -inf where it does not count.

        Raises:
            TimeIsOver: after `until`, a time of `time.process_time`.
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
        """As high as moves lead; what comes to a ratio that is known to be reached, ends there."""
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
        """Sweeps with steps of one length, and on along what a sweep came to."""
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
        """Both ways, on and on while it rises."""
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
        """The whole numbers that draws do not all have alike, and flags."""
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
        """The instance with another value there."""
        leaves, structure = jax.tree.flatten(instance)
        changed = np.array(leaves[whole.leaf])
        changed.flat[whole.entry] = value
        leaves[whole.leaf] = changed
        return jax.tree.unflatten(structure, leaves)

    def values_of(self, instance: Instance, whole: Whole, /) -> list[int]:
        """What a whole number may be: as drawn, and near by where its set is declared."""
        seen = whole.seen[:: -(-len(whole.seen) // VALUES)].tolist()
        if not self.declared(instance, whole):
            return seen
        own = int(self.number(instance, whole))
        near = [own + sign * 2**k for k in range(40) for sign in (1, -1)]
        return [*seen, *near]

    def tried(self, instance: Instance, whole: Whole, value: Any, /) -> Place:
        """The same, measured; what is no value of it, whatever is raised then, does not count."""
        try:
            return self.at(self.with_whole(instance, whole, value))
        except TimeIsOver:
            raise
        except Exception:
            return Place(instance, -np.inf)

    def out(self, instance: Instance, /) -> Iterator[int]:
        """For each float whether its size is far above those of the draws, 1, or far below, -1."""
        for leaf, drawn in zip(jax.tree.leaves(instance), self.draws):
            if not is_float(leaf):
                continue
            sizes, own = np.abs(drawn[np.isfinite(drawn) & (drawn != 0)]), np.abs(leaf).ravel()
            low, high = (sizes.min(), sizes.max()) if len(sizes) else (1.0, 1.0)
            yield from np.where(own > FAR * high, 1, np.where((own > 0) & (own < low / FAR), -1, 0))

    def number(self, instance: Instance, whole: Whole, /) -> Any:
        """The value there."""
        return np.asarray(jax.tree.leaves(instance)[whole.leaf]).flat[whole.entry]

    def declared(self, instance: Instance, whole: Whole, /) -> bool:
        """Whether it is of a declared set of whole numbers, on which it is put back."""
        statement = self.problem.statement
        path, _ = jax.tree.flatten_with_path(instance)[0][whole.leaf]
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        return isinstance((statement.over or {}).get(name), Integers)

    def _whole(self, here: Place, until: float) -> Place:
        """Every whole number at its best, one after the other, until nothing gains."""
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
    """Directions: coordinates, whole arrays, and random ones; as long as what they move."""
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
    """The size of each coordinate, or the largest of its leaf where it is zero."""
    leaves: Sequence[np.ndarray] = [np.asarray(leaf, float) for leaf in floats_of(instance)]
    largest = [np.full(v.size, np.max(np.abs(v), initial=0.0) or 1.0) for v in leaves]
    x = np.abs(flat(instance))
    return np.where(x > 0, x, np.concatenate(largest)) if leaves else x
