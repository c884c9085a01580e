"""Find the entries that a claim says exist (`there_is`), by gradient steps and random moves."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxbounds.claims.sets import Simplex
from jaxbounds.claims.statements import Instance, Size
from jaxbounds.falsification.discrete import finite_sets, leaves_of
from jaxbounds.falsification.evaluation import NO_SLOPES, Reading, of_form, projection, read
from jaxbounds.falsification.measure import measured, ratio
from jaxbounds.falsification.moves import is_float, one_leaf

CHAINS = 4
"""Number of starting points from which each instance's search runs. A larger value finds suitable
entries more often and takes longer."""
AT_ONCE = 16
"""Number of instances whose searches run together. A larger value takes more memory."""
ROUNDS = 60
"""Largest number of search rounds for an instance. A larger value finds suitable entries more often
and takes longer."""
PATIENCE = 8
"""Rounds without progress after which the search ends. A larger number takes longer."""
MOVES = 5
"""Random moves from each point in a round. A larger value takes longer."""
CLOSER = 24
"""Largest number of further rounds that lower the ratio after the search has satisfied the claim. A
larger value brings the reported worst ratio closer to the true ratio, and takes longer."""
ENOUGH = 1e-3
"""The search ends when lhs / rhs falls to this value. A smaller value spends more rounds on very
loose claims."""
ODD = "chain"
"""The name of an entry that tells the search to minimise lhs / rhs or lhs - rhs."""
BELOW = 2.0
"""The search subtracts this number from lhs / rhs if the entries satisfy the claim, so that the
score is negative. A larger number changes no result."""
PROGRESS = 1e-9
"""Relative decrease of lhs / rhs that counts as progress. A larger value ends the search sooner."""
PARTS = (3.0, 1.0, 0.3, 0.03)
"""Lengths of a round's trial steps along a gradient, as multiples of the last successful step."""


FACTORS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.03)
"""A trial step on a simplex multiplies entries by up to e^x, for each x in this tuple. More
exponents take longer."""
TINY = 1e-9
"""Before a gradient step, the search raises a simplex point's entries to this share of their sum. A
larger value ignores more points near a vertex."""
EXACT = 1e-3
"""For an `=`, the search ends once the sides differ by at most this fraction of the tolerance. A
larger fraction accepts entries at which the sides differ more."""
AGAIN = (0.5, 1.0, 4.0)
"""A round also repeats the last step, multiplied by each of these numbers. Longer steps help if the
ratio falls slowly along a valley."""


class Tried(NamedTuple):
    """Trial values of the entries that the claim says exist (`there_is`), with measurements.

    Attributes:
        leaves: the trial entries, each of shape (tried, instances, *shape).
        value: the ratio of the sides, shape (tried, instances); infinite for a trial that does not
            count as evidence or gives NaN.
        gap: the amount by which the sides violate the relation, with the shape of `value`; for an
            `=`, the largest difference of the sides.
        outer: whether each instance meets the hypotheses in which no trial entry occurs, shape
            (instances,).
    """

    leaves: list[np.ndarray]
    value: np.ndarray
    gap: np.ndarray
    outer: np.ndarray


def rows_of(batch: Any, /) -> int:
    """Return the number of instances stacked in a batch."""
    return len(jax.tree.leaves(batch)[0])


def taken(batch: Any, index: Any, /) -> Any:
    """Return the instances of a batch at the given row indices."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], batch)


def _joined(own: Instance, leaves: Sequence[np.ndarray], batch: Instance) -> Instance:
    tried, count = leaves[0].shape[:2]
    flat = [leaf.reshape(tried * count, *leaf.shape[2:]) for leaf in leaves]
    repeated = taken(batch, np.tile(np.arange(count), tried))
    return dict(repeated) | jax.tree.unflatten(jax.tree.structure(own), flat)


def evaluated(
    given: Any, size: Size, own: Instance, leaves: list[np.ndarray], batch: Instance, index: int,
    /, *, outside: bool = False,
) -> Tried:  # fmt: skip
    """Measure one version of the claim with several trial values of the entries of `there_is`.

    Each array of `leaves` has the shape (tried, instances, *shape). If `outside` is true, instances
    count although they violate a hypothesis about their other entries.
    """
    shape = leaves[0].shape[:2]
    instances = _joined(own, leaves, batch)
    reading = given.reading(instances, size)
    m = measured(given.statement, reading, instances, axes=1).column(index)
    outer, inner = np.ones(shape[1], bool), np.ones(shape, bool)
    own_flags = reading.met[1 + index] if index + 1 < len(reading.met) else {}
    for flag in (*reading.met[0].values(), *own_flags.values()):
        flags = np.asarray(flag).reshape(*shape, -1).all(axis=2)
        if not np.any(flags.any(axis=0) & ~flags.all(axis=0)):  # no `there_is` entry matters here
            outer &= flags.all(axis=0)
        else:
            inner &= flags
    known = m.met & ~np.isnan(m.value)  # a stated error may hide the best entries
    if outside:
        known |= (inner & ~outer).reshape(known.shape) & ~np.isnan(m.value)
    with np.errstate(all="ignore"):
        apart = m.lhs - m.rhs if given.statement.is_bound else _largest_gap(reading, index)
    value = np.where(known, m.value, np.inf).reshape(shape)
    gap = np.where(known & ~np.isnan(apart), apart, np.inf).reshape(shape)
    return Tried(leaves, value, gap, outer)


def _largest_gap(reading: Reading, index: int) -> np.ndarray:
    left, right = (np.asarray(of_form(side, index), float) for side in (reading.lhs, reading.rhs))
    return np.max(np.abs(left - right), axis=tuple(range(1, left.ndim)), initial=0.0)


class Descent:
    """Searches, for many instances, the `there_is` entries that minimise lhs / rhs.

    Attributes:
        rounds: the largest number of rounds of the search for an instance.
    """

    def __init__(self, given: Any, size: Size, names: tuple[str, ...], index: int) -> None:
        self.given, self.size, self.names, self.index = given, size, names, index
        self.rounds, self._has_slopes = ROUNDS, True
        self._discrete, self._simplices = frozenset[int](), frozenset[int]()
        self._rng = np.random.default_rng([index, *map(ord, "promised")])

    def satisfied(self, value: np.ndarray, /) -> np.ndarray:
        """Return whether ratios lhs / rhs show that the `there_is` entries satisfy the claim."""
        statement = self.given.statement
        return value <= (
            1 + statement.tolerance if statement.is_bound else EXACT * statement.tolerance
        )

    def _amount(self, tried: Tried) -> np.ndarray:
        """Return the score that the search minimises; negative if the entries satisfy the claim.

        Without such entries, half of the runs minimise lhs / rhs, which is constant if a side has
        the wrong sign. The other runs minimise lhs - rhs, which is small whenever both sides are
        small.
        """
        chain = np.arange(len(tried.value)).reshape(-1, *[1] * (tried.value.ndim - 1))
        missed = np.where(chain % 2 == 0, tried.value, np.maximum(tried.gap, 1e-300))
        return np.where(self.satisfied(tried.value), tried.value - BELOW, missed)

    def projected(self, leaves: list[np.ndarray], batch: Instance, /) -> list[np.ndarray]:
        """Project the entries that the claim says exist (`there_is`) onto their declared sets."""
        own = {name: batch[name] for name in self.names}
        run = self.given.mapped(projection(self.given.statement, self.size), "project", self.size)
        there = self.given.in_parts(run, _joined(own, leaves, batch))
        moved = jax.tree.leaves({name: there[name] for name in self.names})
        return [np.asarray(new).reshape(old.shape) for new, old in zip(moved, leaves)]

    def __call__(self, first: Tried, batch: Instance, rounds: int, /) -> Tried:
        """Decrease lhs / rhs from the best starting points, until lhs / rhs stops falling."""
        held, count = _best_of(first), rows_of(batch)
        own = {name: batch[name] for name in self.names}
        self._discrete = leaves_of(finite_sets(self.given.statement, self.size), own)
        sets = self.given.statement.over or {}
        of_simplices = [name for name in self.names if isinstance(sets.get(name), Simplex)]
        self._simplices = leaves_of(of_simplices, own)
        length, past = np.full(held.value.shape, np.nan), [leaf.copy() for leaf in held.leaves]
        left, stale = np.full(count, rounds), np.zeros(count, int)
        met = self.satisfied(np.min(held.value, axis=0))
        left[met] = np.minimum(left[met], CLOSER if self.given.statement.is_bound else 0)
        for row in np.argsort(np.where(met, -np.min(held.value, axis=0), np.inf))[AT_ONCE:]:
            left[row] = 0 if met[row] else left[row]
        while True:
            best = np.min(self._amount(held), axis=0)
            going = (left > 0) & (stale < PATIENCE) & (best > ENOUGH - BELOW)
            if not np.any(going):
                return held
            order = np.argsort(np.where(going, -best, np.inf), kind="stable")
            rows = order[: min(AT_ONCE, int(np.sum(going)))]
            self._round(held, length, past, batch, rows)
            now = np.min(self._amount(held)[:, rows], axis=0)
            with np.errstate(invalid="ignore"):
                scale = np.where(best[rows] < 0, best[rows] + BELOW, best[rows])
                better = now < best[rows] - PROGRESS * scale
            stale[rows] = np.where(better, 0, stale[rows] + 1)
            left[rows] -= 1
            done = self.satisfied(np.min(held.value[:, rows], axis=0))
            left[rows] = np.where(done, np.minimum(left[rows], CLOSER), left[rows])

    def _round(
        self, held: Tried, length: np.ndarray, past: list[np.ndarray], batch: Instance, rows: Any
    ) -> None:
        here = [leaf[:, rows] for leaf in held.leaves]
        some, last = taken(batch, rows), length[:, rows]
        before = Tried(here, held.value[:, rows], held.gap[:, rows], held.outer[rows])
        ways = self._ways(before, last, [leaf[:, rows] for leaf in past], some)
        moved = [
            *([x.copy() for x in self._moved(here)] for _ in range(MOVES)),
            *(list(way.leaves) for way in ways),
        ]
        tried = [np.stack(parts, axis=1) for parts in zip(*moved)]  # (chains, tried, ...)
        chains, many, count = tried[0].shape[:3]
        flat = [leaf.reshape(chains * many, count, *leaf.shape[3:]) for leaf in tried]
        flat = self.projected(flat, some)
        own = {name: some[name] for name in self.names}
        found = evaluated(self.given, self.size, own, flat, some, self.index)
        shaped = lambda x: x.reshape(chains, many, *x.shape[1:])
        new = Tried(list(map(shaped, flat)), shaped(found.value), shaped(found.gap), found.outer)
        amount, held_amount = self._amount(new), self._amount(before)
        best = np.argmin(amount, axis=1)
        at = (np.arange(chains)[:, None], best, np.arange(count)[None])
        better = amount[at] < held_amount
        lengths = np.stack(
            [np.full(last.shape, np.nan)] * MOVES + [way.length for way in ways], axis=1
        )
        shrunk = np.where(better, last, last * PARTS[-1])
        length[:, rows] = np.where(better & ~np.isnan(lengths[at]), lengths[at], shrunk)
        pairs = [(held.value, new.value), (held.gap, new.gap), *zip(held.leaves, new.leaves)]
        for old, leaf in zip(past, here):
            keep = better.reshape(*better.shape, *[1] * (leaf.ndim - 2))
            old[:, rows] = np.where(keep, leaf, old[:, rows])
        for old, other in pairs:
            part = other[at]
            keep = better.reshape(*better.shape, *[1] * (part.ndim - 2))
            old[:, rows] = np.where(keep, part, old[:, rows])

    def _moved(self, here: list[np.ndarray]) -> list[np.ndarray]:
        chains, count = here[0].shape[:2]
        flat = [leaf.reshape(chains * count, *leaf.shape[2:]) for leaf in here]
        new = one_leaf(flat, self._rng, discrete=self._discrete)
        return [leaf.reshape(old.shape) for leaf, old in zip(new, here)]

    def _ways(
        self, before: Tried, last: np.ndarray, past: list[np.ndarray], some: Instance
    ) -> list["_Way"]:
        here = before.leaves
        moving = [i for i, leaf in enumerate(here) if is_float(leaf) and leaf[0, 0].size]
        slope = self._slopes(here, some) if self._has_slopes and moving else None
        if slope is None:
            return []
        score, along = slope
        reach = _norm([here[i] for i in moving])
        last = np.where(np.isnan(last) | (last < 1e-14 * reach), 0.3 * reach + 1e-3, last)
        own = [np.sqrt(np.sum(p**2, axis=_axes(p), keepdims=True)) for p in along]
        sizes = [np.sqrt(np.sum(here[i] ** 2, axis=_axes(here[i]), keepdims=True)) for i in moving]
        each = [p / np.where(n > 0, n, 1.0) * (x + 1e-3) for p, n, x in zip(along, own, sizes)]
        steps = [here[i] - past[i] for i in moving]
        with np.errstate(all="ignore"):
            whole = np.nan_to_num(np.maximum(score, 0.0) / _norm(along), posinf=0.0)
        ways = [(part * last, along, 0.0) for part in PARTS] + [(whole, along, 0.0)]
        ways += [(0.0 * last, along, by) for by in AGAIN] + [(last, along, by) for by in AGAIN[:2]]
        if len(moving) > 1:
            ways += [(part * _norm(each), each, 0.0) for part in (0.3, 0.01)]
        found = []
        for far, direction, by in ways:
            total, leaves = _norm(direction), list(here)
            factor = np.where(total > 0, far / np.where(total > 0, total, 1.0), 0.0)
            for i, p, step in zip(moving, direction, steps):
                amount = factor.reshape(*factor.shape, *[1] * (p.ndim - 2))
                leaves[i] = here[i] - amount * p + by * step
            found.append(_Way(leaves, np.where(far > 0, far, np.nan)))
        return [*found, *self._by_factors(here, dict(zip(moving, along)))]

    def _by_factors(self, here: list[np.ndarray], along: dict[int, np.ndarray]) -> list["_Way"]:
        """Return trial points in simplices, made by exponentiated-gradient steps.

        A plain gradient step would move small entries too far.
        """
        found = []
        for part in FACTORS if self._simplices else ():
            leaves = list(here)
            for i in self._simplices & set(along):
                slope = along[i] - np.mean(along[i], axis=-1, keepdims=True)
                most = np.max(np.abs(slope), axis=-1, keepdims=True)
                grown = _inside(here[i]) * np.exp(-part * slope / np.where(most > 0, most, 1.0))
                total = np.sum(grown, axis=-1, keepdims=True)
                same = np.sum(here[i], axis=-1, keepdims=True)
                leaves[i] = grown * same / np.where(total > 0, total, 1.0)
            found.append(_Way(leaves, np.full(here[0].shape[:2], np.nan)))
        return found

    def _slopes(
        self, here: list[np.ndarray], some: Instance
    ) -> tuple[np.ndarray, list[np.ndarray]] | None:
        """Return all scores and gradients; None if JAX cannot compute a gradient."""
        chains, count = here[0].shape[:2]
        own = {name: some[name] for name in self.names}
        inside = [_inside(x) if i in self._simplices else x for i, x in enumerate(here)]
        flat = _joined(own, inside, some)
        flat = dict(flat) | {ODD: np.repeat(np.arange(chains) % 2 == 1, count)}
        pad = np.minimum(np.arange(CHAINS * AT_ONCE), chains * count - 1)
        run = self.given.mapped(self._along, f"downhill {self.index}", self.size)
        try:
            score, slope = jax.tree.map(np.asarray, run(taken(flat, pad)))
        except NO_SLOPES:
            self._has_slopes = False
            return None
        shaped = lambda x: x[: chains * count].reshape(chains, count, *x.shape[1:])
        return shaped(score), [np.nan_to_num(shaped(part), posinf=0.0, neginf=0.0)
                               for part in slope]  # fmt: skip

    def _along(self, instance: Instance) -> tuple[Any, list[Any]]:
        """Return one instance's score and its gradient; for an `=`, a Gauss-Newton step."""
        leaves, structure = jax.tree.flatten({name: instance[name] for name in self.names})
        moving = [i for i, leaf in enumerate(leaves) if is_float(leaf) and leaf.size]

        def filled(floats: list[Any]) -> Instance:
            new = list(leaves)
            for i, value in zip(moving, floats):
                new[i] = value
            return dict(instance) | jax.tree.unflatten(structure, new)

        floats = [leaves[i] for i in moving]
        if self.given.statement.is_bound:
            return jax.value_and_grad(lambda floats: self._score(filled(floats)))(floats)
        return _newton(lambda floats: self._apart(filled(floats)), floats)

    def _sides(self, instance: Instance) -> tuple[Any, Any]:
        found = read(self.given.statement, self.size)(instance)
        side = lambda part: jnp.asarray(of_form(part, self.index), float)
        return side(found.lhs), side(found.rhs)

    def _score(self, instance: Instance) -> Any:
        """Return lhs / rhs - 1 or lhs - rhs; either is at most zero if the claim is true."""
        left, right = self._sides(instance)
        missed = instance[ODD] & (left > right)
        return jnp.where(missed, left - right, ratio(left, right) - 1)

    def _apart(self, instance: Instance) -> Any:
        left, right = self._sides(instance)
        return jnp.ravel(left - right)


def _newton(apart: Callable[[list[Any]], Any], floats: list[Any]) -> tuple[Any, list[Any]]:
    """Return (squared length, step) of a Gauss-Newton step that makes the vector `apart` longer."""
    flat, back = ravel_pytree(floats)
    of = lambda x: apart(back(x))
    amount, slopes = of(flat), jax.jacfwd(of)(flat)
    square = slopes.T @ slopes
    eye = jnp.eye(len(flat), dtype=flat.dtype)
    damped = square + (1e-13 * jnp.trace(square) + 1e-300) * eye
    step = jnp.linalg.solve(damped, slopes.T @ amount)
    step = jnp.where(jnp.all(jnp.isfinite(step)), step, slopes.T @ amount)
    norm = jnp.sqrt(jnp.sum(step**2))
    return norm**2, back(step)


def _inside(leaf: np.ndarray) -> np.ndarray:
    """Raise the zero entries of a simplex's point, because a gradient may be infinite there."""
    return np.maximum(leaf, TINY * np.sum(leaf, axis=-1, keepdims=True))


def _axes(leaf: np.ndarray) -> tuple[int, ...]:
    return tuple(range(2, leaf.ndim))


def _norm(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(np.sqrt(sum(np.sum(p**2, axis=_axes(p)) for p in parts)))


class _Way(NamedTuple):
    leaves: list[np.ndarray]
    length: np.ndarray


def _best_of(first: Tried) -> Tried:
    order = np.argsort(first.value, axis=0, kind="stable")
    value = np.take_along_axis(first.value, order, axis=0)
    same = np.vstack([np.zeros((1, value.shape[1]), bool), value[1:] == value[:-1]])
    again = np.argsort(np.where(same, np.inf, value), axis=0, kind="stable")
    chosen = np.take_along_axis(order, again, axis=0)[:CHAINS]
    each = np.arange(value.shape[1])
    leaves = [leaf[chosen, each] for leaf in first.leaves]
    return Tried(leaves, first.value[chosen, each], first.gap[chosen, each], first.outer)
