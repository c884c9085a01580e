"""From where a ratio is climbed: what was drawn and searched, and, while unsettled, other kinds.

`further` is the one door: each entry of `KINDS` makes instances of one kind from instances that are
known, and the most promising of each kind are taken.
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
"""How wide starts are spread: as powers of what is drawn, and as factors of whole arrays."""
EACH = 16
"""Instances that are made of each kind; the best and another one are climbed from."""
OTHERS = {"drawn": 7, "log-normal": 10, "wide": 2}
"""How many are climbed from besides the best one, if not one."""
SHRUNK = tuple(range(2, 310, 4))
"""Powers of ten by which an instance is divided whose sides overflow."""
Make = Callable[[Instance, np.random.Generator], Instance]


class Start(NamedTuple):
    """An instance to climb from, and of which kind it is."""

    kind: str
    instance: Instance


def _changed(instance: Instance, change: Callable[[np.ndarray], Any]) -> Instance:
    with np.errstate(all="ignore"):  # what leaves the range of floats does not count
        return filled(
            instance, [np.asarray(change(np.asarray(leaf))) for leaf in floats_of(instance)]
        )


def _middle(leaf: np.ndarray) -> float:
    """The geometric mean of the sizes that are not zero."""
    sizes = np.abs(leaf[leaf != 0])
    return float(np.exp(np.mean(np.log(sizes)))) if len(sizes) else 1.0


def wide(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Entries spread apart in logarithms: sign(x) m (|x| / m)^sigma about their middle m."""
    sigma = rng.choice(SIGMAS[1:])

    def spread(leaf: np.ndarray) -> Any:
        middle = _middle(leaf)
        with np.errstate(over="ignore"):
            far = np.sign(leaf) * middle * (np.abs(leaf) / middle) ** sigma
        return np.clip(np.nan_to_num(far), -1e100, 1e100)

    return _changed(instance, spread)


def log_normal(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Every entry times exp(sigma Z), with its own Z."""
    sigma = rng.choice(SIGMAS, p=(0.2, 0.4, 0.2, 0.2))
    return _changed(instance, lambda x: x * np.exp(sigma * rng.normal(size=x.shape)))


def scaled(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Every array by a factor of its own, from 1/10 to 10."""
    factors = np.array([*(1 / s for s in SIGMAS[1:]), *SIGMAS])
    return _changed(instance, lambda x: x * rng.choice(factors))


def vertex(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Every entry of one size, with its sign or a random one."""
    flips = rng.choice([0.0, 0.1, 0.5])

    def corner(leaf: np.ndarray) -> Any:
        signs = np.where(leaf < 0, -1.0, 1.0)
        return np.max(np.abs(leaf), initial=0.0) * np.where(
            rng.random(leaf.shape) < flips, -signs, signs
        )

    return _changed(instance, corner)


def flipped(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """One entry in three, or a single one, with the other sign."""
    share = rng.choice([0.0, 1 / 3])

    def flip(leaf: np.ndarray) -> Any:
        mine = rng.random(leaf.shape) < share
        if leaf.size and not share:
            mine.flat[rng.integers(leaf.size)] = True
        return np.where(mine, -leaf, leaf)

    return _changed(instance, flip)


def sparse(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Few entries are left, the others are zero."""
    share = rng.choice([0.2, 0.5])
    return _changed(instance, lambda x: np.where(rng.random(x.shape) < share, x, 0.0))


def identity(instance: Instance, rng: np.random.Generator, /) -> Instance:
    """Square arrays are multiples of the identity with rows permuted; others stay."""

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
"""Those of `further`; whoever has another kind of start adds it here."""


def first_starts(pool: Pool, most: int, /) -> tuple[list[Start], np.ndarray]:
    """The worst instances found, searched and drawn; and the ratios of the draws."""
    (column, *_) = pool.columns()
    usable = column.measured.counted & (column.measured.rhs > 0)
    value = np.where(usable & np.isfinite(column.measured.value), column.measured.value, -np.inf)
    order = [i for i in np.argsort(-value, kind="stable") if value[i] > 0]
    searched = [i for i in order if column.sources[i] == "search"]
    drawn = [i for i in order if column.sources[i] not in ("search", SOURCE)]
    # Searches from nearby draws end alike: spread over what they found.
    spread = searched[:: max(1, len(searched) // (2 * most))][: most - 1]
    chosen = sorted(dict.fromkeys([*order[:2], *spread, *drawn[:1]]), key=lambda i: -value[i])
    kinds = {"search": "searched", SOURCE: SOURCE}
    kind = lambda i: kinds.get(str(column.sources[i]), "drawn")
    starts = [Start(kind(i), pool.instance(int(i))) for i in chosen]
    return starts, value[~np.isin(column.sources, tuple(kinds))]


def sides_overflow(pool: Pool, /) -> bool:
    """Whether the smaller side of an instance that counts is beyond floats, or both are."""
    if not pool.measured:
        return False
    (column, *_) = pool.columns()
    m = column.measured
    return bool(np.any(m.counted & np.isposinf(m.lhs)))


def within_floats(problem: Problem, pool: Pool, most: int, /) -> list[Start]:
    """Draws whose sides overflow, made so small that they no longer do: the largest ratios.

    Nothing where no side overflows.
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
    """Draws that were given to nobody: those of a pool first, then new ones.

    Drawing anew traces samplers and runs them once more, which may take longer than a climb.

    Args:
        problem: the form at its size.
        pool: with draws.
        budget: of the draws, when those of the pool are used up.
        seed: of the order, and of new draws.
    """

    def __init__(self, problem: Problem, pool: Pool, budget: Budget, seed: int, /) -> None:
        self.problem, self.budget, self.seed = problem, budget, seed
        self._left = self._shuffled(pool)

    def _shuffled(self, pool: Pool) -> list[Instance]:
        """In an order by chance."""
        drawn = [b for b, s in zip(pool.instances, pool.sources) if s not in ("search", SOURCE)]
        order = np.random.default_rng([self.seed, 5]).permutation(sum(map(length, drawn)))
        batch = concatenate(drawn) if drawn else {}
        return [take(batch, int(i)) for i in order]

    def __call__(self, count: int = 2 * EACH) -> list[Instance]:
        """So many, if there are."""
        if len(self._left) < count:
            self.seed, pool = self.seed + 1000, Pool()
            draw(self.problem.bench, pool, self.budget, self.seed)
            self._left += self._shuffled(pool)
        given, self._left = self._left[:count], self._left[count:]
        return given


def further(
    problem: Problem, known: Sequence[Instance], fresh: Sequence[Instance], /, *, seed: int
) -> Iterator[Start]:
    """Starts of every kind, from draws and from what is known: the best of each kind, then others.

    Args:
        problem: the form at its size.
        known: the best instances so far.
        fresh: draws.
        seed: of the moves; another one gives other starts.
    """
    rng = np.random.default_rng([seed, 7])
    found = [list(_best(problem, "drawn", fresh, rng))]
    sources = [*known, *fresh]
    for kind, make in KINDS.items():
        made = [make(sources[i % len(sources)], rng) for i in range(EACH)]
        found.append(list(_best(problem, kind, [problem.back(m) for m in made], rng)))
    # Time may be short: one of each kind tells more than many of one.
    for row in itertools.zip_longest(*found):
        yield from filter(None, row)


def _best(
    problem: Problem, kind: str, instances: Sequence[Instance], rng: np.random.Generator
) -> Iterator[Start]:
    """The one with the largest ratio, and others that count."""
    ratios = problem.ratios(instances)
    counts = np.flatnonzero(ratios > 0)
    if not len(counts):
        return
    best = int(np.argmax(ratios))
    # What is best at once is often near to what is known: others count as much.
    others = rng.permutation(counts[counts != best])[: OTHERS.get(kind, 1)]
    for i in (best, *others):
        yield Start(kind, instances[int(i)])
