"""Choose the instances from which the search begins to raise lhs/rhs.

The first starting instances are random draws, and later ones are changed instances. Each function
in `KINDS` changes known instances in one way (kind).
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.claims.statements import Budget, Instance
from jaxbounds.constants.problem import Problem, filled, floats_of
from jaxbounds.falsification.bench import Pool, concatenate, length, take
from jaxbounds.falsification.examples import SOURCE
from jaxbounds.falsification.explore import draw

SIGMAS = (1.0, 2.0, 3.0, 10.0)
"""The values of sigma for starting instances of the kinds "wide" (powers of entries) and
"log-normal" (random factors).
"""
EACH = 16
"""`further` makes this many changed instances for each kind of random change. The best instance and
a few others become starts of the search. A search with more changed instances finds better starts
and takes longer.
"""
OTHERS = {"drawn": 7, "log-normal": 10, "wide": 2}
"""For each kind of instance (way to make an instance), the number of starts after the best start.

A kind without an entry has one start after its best start. A larger number begins more climbs from
a kind of instance.
"""
SHRUNK = tuple(range(2, 310, 4))
"""The exponents k of the factors 10^-k by which the search shrinks a random instance whose sides
overflow."""
Make = Callable[[Instance, np.random.Generator], Instance]


class Start(NamedTuple):
    """The instance from which an ascent of lhs/rhs begins, and the kind of the instance."""

    kind: str
    instance: Instance


def _changed(instance: Instance, change: Callable[[np.ndarray], Any]) -> Instance:
    with np.errstate(all="ignore"):  # ignore overflows: an infinite instance does not count
        return filled(
            instance, [np.asarray(change(np.asarray(leaf))) for leaf in floats_of(instance)]
        )


def _middle(leaf: np.ndarray) -> float:
    sizes = np.abs(leaf[leaf != 0])
    return float(np.exp(np.mean(np.log(sizes)))) if len(sizes) else 1.0


def wide(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Replace entries x by sign(x) m (|x| / m)^sigma, where m is the geometric mean of all |x|."""
    sigma = rng.choice(SIGMAS[1:])

    def spread(leaf: np.ndarray) -> Any:
        middle = _middle(leaf)
        with np.errstate(over="ignore"):
            far = np.sign(leaf) * middle * (np.abs(leaf) / middle) ** sigma
        return np.clip(np.nan_to_num(far), -1e100, 1e100)

    return _changed(instance, spread)


def log_normal(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Multiply each entry by exp(sigma Z), with a new standard normal Z; sigma is random."""
    sigma = rng.choice(SIGMAS, p=(0.2, 0.4, 0.2, 0.2))
    return _changed(instance, lambda x: x * np.exp(sigma * rng.normal(size=x.shape)))


def scaled(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Multiply every array by its own random factor between 1/10 and 10."""
    factors = np.array([*(1 / s for s in SIGMAS[1:]), *SIGMAS])
    return _changed(instance, lambda x: x * rng.choice(factors))


def vertex(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Set each |entry| of an array to the largest |entry| of the array, and flip some signs."""
    flips = rng.choice([0.0, 0.1, 0.5])

    def corner(leaf: np.ndarray) -> Any:
        signs = np.where(leaf < 0, -1.0, 1.0)
        return np.max(np.abs(leaf), initial=0.0) * np.where(
            rng.random(leaf.shape) < flips, -signs, signs
        )

    return _changed(instance, corner)


def flipped(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Flip the sign of one random entry, or flip the sign of each entry with probability 1/3."""
    share = rng.choice([0.0, 1 / 3])

    def flip(leaf: np.ndarray) -> Any:
        mine = rng.random(leaf.shape) < share
        if leaf.size and not share:
            mine.flat[rng.integers(leaf.size)] = True
        return np.where(mine, -leaf, leaf)

    return _changed(instance, flip)


def sparse(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Keep a few random entries, and set all other entries to zero."""
    share = rng.choice([0.2, 0.5])
    return _changed(instance, lambda x: np.where(rng.random(x.shape) < share, x, 0.0))


def identity(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Replace square arrays by multiples of permutation matrices, and keep all other arrays."""

    def square(leaf: np.ndarray) -> Any:
        if leaf.ndim < 2 or leaf.shape[-1] != leaf.shape[-2]:
            return leaf
        eye = np.eye(leaf.shape[-1])
        size = np.max(np.abs(leaf), initial=0.0)
        return np.broadcast_to(size * eye[rng.permutation(len(eye))], leaf.shape).copy()

    return _changed(instance, square)


KINDS: dict[str, Make] = {
    "wide": wide,
    "log-normal": log_normal,
    "scaled": scaled,
    "vertex": vertex,
    "flipped": flipped,
    "sparse": sparse,
    "identity": identity,
}
"""A dictionary from the name of each kind of changed instance to the function that makes it."""


def first_starts(pool: Pool, most: int, /) -> tuple[list[Start], np.ndarray]:
    """Return the known instances with large ratios lhs/rhs, and the ratios of all random draws."""
    (column, *_) = pool.columns()
    usable = column.measured.counted & (column.measured.rhs > 0)
    value = np.where(usable & np.isfinite(column.measured.value), column.measured.value, -np.inf)
    order = [i for i in np.argsort(-value, kind="stable") if value[i] > 0]
    searched = [i for i in order if column.sources[i] == "search"]
    drawn = [i for i in order if column.sources[i] not in ("search", SOURCE)]
    # Searches from nearby draws have similar results, so spread the starts over all results.
    spread = searched[:: max(1, len(searched) // (2 * most))][: most - 1]
    chosen = sorted(dict.fromkeys([*order[:2], *spread, *drawn[:1]]), key=lambda i: -value[i])
    kinds = {"search": "searched", SOURCE: SOURCE}
    kind = lambda i: kinds.get(str(column.sources[i]), "drawn")
    starts = [Start(kind(i), pool.instance(int(i))) for i in chosen]
    return starts, value[~np.isin(column.sources, tuple(kinds))]


def sides_overflow(pool: Pool, /) -> bool:
    """Tell whether the left side is infinite at a drawn instance that meets the hypotheses."""
    if not pool.measured:
        return False
    (column, *_) = pool.columns()
    m = column.measured
    return bool(np.any(m.counted & np.isposinf(m.lhs)))


def within_floats(problem: Problem, pool: Pool, most: int, /) -> list[Start]:
    """Divide random instances with overflowing sides by powers of ten until the sides are finite.

    The returned instances stand in decreasing order of lhs/rhs. The list is empty if no side
    overflows.
    """
    if not pool.measured:
        return []
    (column, *_) = pool.columns()
    m = column.measured
    over = m.counted & (np.isinf(m.lhs) | np.isinf(m.rhs) | np.isnan(m.value))
    rows = np.flatnonzero(over)[:EACH]
    small = [
        _changed(pool.instance(int(row)), partial(np.multiply, 10.0**-power))
        for row in rows for power in SHRUNK
    ]  # fmt: skip
    if not small:
        return []
    there = [problem.back(one) for one in small]
    ratios = problem.ratios(there)
    order = [i for i in np.argsort(-ratios, kind="stable") if ratios[i] > 0]
    return [Start("drawn", there[int(i)]) for i in order[:most]]


class Fresh:
    """A source of unused random draws: first the draws of a pool, then new draws.

    A new draw traces and runs the samplers again, which may take longer than an ascent.
    """

    def __init__(self, problem: Problem, pool: Pool, budget: Budget, seed: int, /) -> None:
        self.problem, self.budget, self.seed = problem, budget, seed
        self._left = self._shuffled(pool)

    def _shuffled(self, pool: Pool) -> list[Instance]:
        drawn = [b for b, s in zip(pool.instances, pool.sources) if s not in ("search", SOURCE)]
        order = np.random.default_rng([self.seed, 5]).permutation(sum(map(length, drawn)))
        batch = concatenate(drawn) if drawn else {}
        return [take(batch, int(i)) for i in order]

    def __call__(self, count: int = 2 * EACH) -> list[Instance]:
        """Return `count` unused random instances, or fewer if one further draw gives too few."""
        if len(self._left) < count:
            self.seed, pool = self.seed + 1000, Pool()
            draw(self.problem.bench, pool, self.budget, self.seed)
            self._left += self._shuffled(pool)
        given, self._left = self._left[:count], self._left[count:]
        return given


def further(
    problem: Problem, known: Sequence[Instance], fresh: Sequence[Instance], /, *, seed: int
) -> Iterator[Start]:
    """Yield starts of the search (random and changed instances), the best of each kind first.

    The starts are the instances `fresh`, and changed copies of `known` and `fresh`.
    """
    rng = np.random.default_rng([seed, 7])
    found = [list(_best(problem, "drawn", fresh, rng))]
    sources = [*known, *fresh]
    for kind, make in KINDS.items():
        made = [make(sources[i % len(sources)], rng) for i in range(EACH)]
        found.append(list(_best(problem, kind, [problem.back(m) for m in made], rng)))
    # If time is short, one start of each kind is more useful than many starts of one kind.
    for row in itertools.zip_longest(*found):
        yield from filter(None, row)


def _best(
    problem: Problem, kind: str, instances: Sequence[Instance], rng: np.random.Generator
) -> Iterator[Start]:
    ratios = problem.ratios(instances)
    counts = np.flatnonzero(ratios > 0)
    if not len(counts):
        return
    best = int(np.argmax(ratios))
    # The best start is often near a known point, so choose the other starts at random.
    others = rng.permutation(counts[counts != best])[: OTHERS.get(kind, 1)]
    for i in (best, *others):
        yield Start(kind, instances[int(i)])
