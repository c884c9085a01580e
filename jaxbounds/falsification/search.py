"""Search for the instance with the worst ratio, from given starting points.

Each search maximises log(ratio), or the ratio itself if it is not positive, and projects every
candidate onto the hypotheses. The result is a lower estimate of the supremum.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxbounds.claims.statements import Instance, Size, Statement
from jaxbounds.falsification.cancellation import is_cancellation, is_noise, largest_entry
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.evaluation import Reading, is_floating, projection, read
from jaxbounds.falsification.measure import Measured, counts_for, measure, ratio
from jaxbounds.falsification.moves import Score, climb


class Found(NamedTuple):
    """The result of a search for the worst instance from one starting point.

    Attributes:
        best: the worst instance that counts as evidence; else the starting point.
        accepted: the number of steps that led to a worse instance.
        met: the number of steps that led to an instance that meets the hypotheses.
    """

    best: Instance
    accepted: Int[Array | np.ndarray, "..."]
    met: Int[Array | np.ndarray, "..."]


Slopes = tuple[Any, Any, list[Any]]
"""The tuple (score, measured sides or mask of evidence, gradient in the float arrays)."""

LOWEST = 1e3
"""The search lowers the score by this number if lhs / rhs is not positive. A smaller number would
rank some positive ratios lower."""
LEARNING_RATE = 0.1
"""Length of the first step of gradient ascent, relative to the root mean square of each array. A
larger step moves faster and overshoots narrow maxima."""


def _is_float(leaf: Any) -> bool:
    return is_floating(leaf.dtype)


def _score(ratio: Float[Array, ""]) -> Float[Array, ""]:
    positive = ratio > 1e-300
    return jnp.where(positive, jnp.log(jnp.where(positive, ratio, 1.0)), ratio - LOWEST)


def _better(score: Any, counted: Any, best: Any) -> Any:
    return counted & (score > best)


def _leads(statement: Statement, m: Measured, instance: Instance, /, *, axes: int = 0) -> Any:
    return m.counted & ~is_noise(statement, m, largest_entry(instance, np, axes=axes))


def slopes(statement: Statement, size: Size, /) -> Callable[..., Slopes]:
    """Return a function that computes the score of an instance and the score's gradient.

    The function takes an instance and the index of a form (version of the claim). The function
    returns the score, the sides or the measured value, and the gradient in the float arrays.
    """
    bound = statement.is_bound
    look: Callable[[Instance], Any] = (read if bound else measure)(statement, size)

    def side(part: Sequence[Array], form: Int[Array, ""]) -> Float[Array, ""]:
        floats = [value.astype(float) for value in part]
        return floats[0] if len(part) == 1 else jax.lax.select_n(form.astype(jnp.int32), *floats)

    def score_of(seen: Any, form: Int[Array, ""]) -> Float[Array, ""]:
        if not bound:
            return _score(seen.value[form])
        lhs, rhs = (side(part, form) for part in seen[:2])
        opposite = (lhs <= 0) & (rhs >= 0)  # the ratio has no useful slope
        gap = jnp.where(opposite, lhs - rhs, 0.0)
        return jnp.where(opposite, jnp.arcsinh(gap) - LOWEST, _score(ratio(lhs, rhs)))

    def along(instance: Instance, form: Int[Array, ""]) -> Slopes:
        leaves, structure = jax.tree.flatten(instance)
        moving = _moving(leaves)

        def objective(floats: list[Array]) -> tuple[Array, Any]:
            seen = look(jax.tree.unflatten(structure, _replaced(leaves, moving, floats)))
            return score_of(seen, form), seen

        floats = [leaves[i] for i in moving]
        (score, seen), slope = jax.value_and_grad(objective, has_aux=True)(floats)
        return score, seen, slope

    return along


def _moving(leaves: Sequence[Any]) -> list[int]:
    return [i for i, leaf in enumerate(leaves) if _is_float(leaf) and leaf.size]


def _replaced(leaves: Sequence[Any], at: Sequence[int], values: Sequence[Any]) -> list[Any]:
    new = dict(zip(at, values))
    return [new.get(i, leaf) for i, leaf in enumerate(leaves)]


def leading(statement: Statement, along: Callable[..., Slopes], /) -> Callable[..., Slopes]:
    """Return a function that computes scores of instances, a mask, and gradients of the scores.

    The mask is true for each instance that counts as evidence for the verdict.
    """
    above = np.log(edge(statement)) if statement.is_bound else np.inf

    def run(instances: Instance, forms: np.ndarray) -> Slopes:
        score, seen, slope = jax.tree.map(np.asarray, along(instances, forms))
        if isinstance(seen, Reading):
            counts, lhs, rhs = counts_for(statement, seen, instances, forms)
            noise = (score > above) & is_cancellation(
                lhs, rhs, largest_entry(instances, np, axes=1)
            )
            return score, counts & ~noise, slope
        column = jax.tree.map(lambda part: part[np.arange(len(forms)), forms], seen)
        return score, _leads(statement, column, instances, axes=1), slope

    return run


class _Flat:
    def __init__(self, leaves: Sequence[np.ndarray]) -> None:
        self.moving = _moving(leaves)
        self._shapes = [leaves[i].shape for i in self.moving]
        sizes = [leaves[i][0].size for i in self.moving]
        self._ends = np.cumsum([0, *sizes])
        self._of = np.repeat(np.arange(len(sizes)), sizes)
        self._sizes, self._none = np.array(sizes), np.zeros((len(leaves[0]), 0))

    def joined(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        columns = [part.reshape(len(part), -1) for part in parts]
        return np.concatenate([self._none, *columns], axis=1)

    def parts(self, x: np.ndarray) -> list[np.ndarray]:
        ends = zip(self._ends, self._ends[1:], self._shapes)
        return [x[:, first:last].reshape(shape) for first, last, shape in ends]

    def scale(self, x: np.ndarray) -> np.ndarray:
        mean = np.add.reduceat(x**2, self._ends[:-1], axis=1) / self._sizes
        return np.maximum(np.sqrt(mean), 1e-3)[:, self._of]


def gradient_search(
    along: Callable[..., Slopes], back: Callable[[Instance], Instance], steps: int, /
) -> Callable[..., Found]:
    """Return a search by Adam with a cosine schedule and steps relative to each float array's size.

    All runs of the search advance together. A run may instead take steps relative to each entry,
    which is a search in logarithms. JAX compiles only the gradient, because a loop of all steps
    would take longer to compile than to run.
    """
    first, second = 0.8, 0.95  # decays of the moments (Kingma and Ba 2015, Algorithm 1)

    def search(starts: Instance, forms: np.ndarray, each: np.ndarray) -> Found:
        leaves, structure = jax.tree.flatten(starts)
        flat = _Flat(leaves)
        x = flat.joined([leaves[i] for i in flat.moving])
        best, top = x.copy(), np.full(len(forms), -np.inf)
        accepted, met = np.zeros(len(forms), int), np.zeros(len(forms), int)
        m, v = np.zeros_like(x), np.zeros_like(x)
        unflat = lambda x: jax.tree.unflatten(
            structure, _replaced(leaves, flat.moving, flat.parts(x))
        )
        for step in range(steps):
            score, leads, slopes = along(unflat(x), forms)
            better = _better(score, leads, top)
            best[better], top = x[better], np.where(better, score, top)
            if step:  # the first score belongs to the starting point
                accepted, met = accepted + better, met + leads
            rate = LEARNING_RATE * (0.99 * (1 + np.cos(np.pi * step / steps)) / 2 + 0.01)
            slope = np.nan_to_num(flat.joined(slopes))
            with np.errstate(all="ignore"):  # an instance that overflows does not count
                m = first * m + (1 - first) * slope
                v = second * v + (1 - second) * slope**2
                spread = np.sqrt(v / (1 - second ** (step + 1))) + 1e-8
                direction = m / (1 - first ** (step + 1)) / spread
                length = np.where(each[:, None], np.abs(x), flat.scale(x))
                moved = x + rate * length * direction
            onto = jax.tree.leaves(back(unflat(moved)))
            x = flat.joined([np.asarray(onto[i]) for i in flat.moving])
        return Found(unflat(best), accepted, met)

    return search


def random_search(score: Score, donors: Instance, steps: int, /) -> Callable[..., Found]:
    """Return a search by random moves, for discrete or nonsmooth statements.

    A move copies an array, or a random fifth of its entries, from `donors`, or adds sparse Gaussian
    noise of random size. A run accepts a move that raises the score.
    """
    given = [np.asarray(leaf) for leaf in jax.tree.leaves(donors)]

    def moved(leaves: Sequence[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
        chains, others = len(leaves[0]), len(given[0])
        taken = rng.integers(-len(leaves), len(leaves), size=chains)
        whole, amount = rng.random(chains) < 0.5, 10.0 ** rng.uniform(-4, 0.5, size=chains)
        found: list[np.ndarray] = []
        for i, (leaf, other) in enumerate(zip(leaves, given)):
            along = lambda x, leaf=leaf: x.reshape(-1, *[1] * (leaf.ndim - 1))
            some, new = rng.random(leaf.shape) < 0.2, leaf
            if _is_float(leaf):
                mean = np.mean(leaf**2, axis=tuple(range(1, leaf.ndim))) if leaf[0].size else 0.0
                bump = along(amount * np.maximum(np.sqrt(mean), 1e-3)) * rng.normal(size=leaf.shape)
                new = np.where(some & along(taken < 0), leaf + bump, leaf)
            entries = other[(rng.integers(others, size=leaf.shape), *np.indices(leaf.shape)[1:])]
            from_others = np.where(along(whole), other[rng.integers(others, size=chains)], entries)
            replaced = along(taken == i) & (some | along(whole))
            found.append(np.where(replaced, from_others, new).astype(leaf.dtype))
        return found

    def search(rng: np.random.Generator, starts: Instance) -> Found:
        chains = climb(score, starts, rng, steps, moved)
        return Found(chains.instances, chains.accepted, chains.met)

    return search


def host_search(statement: Statement, size: Size, steps: int, /) -> Callable[..., Found]:
    """Return a search by random moves, for statements that run outside JAX.

    A move changes about one entry, a fifth of the entries, or all entries of an array. New entries
    come from another drawn instance, or from a Gaussian of random size.
    """
    one, project = measure(statement, size), projection(statement, size)

    def evaluate(leaves: list[np.ndarray], structure: Any, form: int) -> tuple[float, bool, Any]:
        moved = jax.tree.unflatten(structure, leaves)
        instance = project(moved)
        try:
            found = one(instance)
        except ValueError:  # the functions raise on an instance that the hypotheses admit
            if statement.project is None:
                raise
            instance = statement.project(moved, size)
            found = one(instance)
        found = found.column(form)
        value = float(found.value)
        score = np.log(value) if value > 1e-300 else value - 1e3
        return score, bool(_leads(statement, found, instance)), instance

    def search(rng: np.random.Generator, start: Instance, form: int, donors: Instance) -> Found:
        leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, start))
        given = [np.asarray(leaf) for leaf in jax.tree.leaves(donors)]
        score, counted, best = evaluate(leaves, structure, form)
        best_score, accepted, met = score if counted else -np.inf, 0, 0
        for _ in range(steps):
            moved = [np.array(leaf) for leaf in jax.tree.leaves(best)]
            which = rng.integers(len(moved))
            leaf = moved[which]
            share = rng.choice([1 / max(leaf.size, 1), 0.2, 1.0])
            mask = rng.random(leaf.shape) < share
            if np.issubdtype(leaf.dtype, np.floating) and rng.random() < 0.5:
                scale = max(float(np.sqrt(np.mean(leaf**2))), 1e-3) * 10.0 ** rng.uniform(-4, 0.5)
                moved[which] = np.where(mask, leaf + scale * rng.normal(size=leaf.shape), leaf)
            else:
                donor = given[which][rng.integers(len(given[which]))]
                moved[which] = np.where(mask, donor, leaf).astype(leaf.dtype)
            score, counted, instance = evaluate(moved, structure, form)
            met += counted
            if counted and score > best_score:
                best, best_score, accepted = instance, score, accepted + 1
        return Found(best, np.asarray(accepted), np.asarray(met))

    return search
