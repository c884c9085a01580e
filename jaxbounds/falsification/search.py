"""Search for the instance with the worst ratio, from given starting points.

Both searches maximise log(ratio) (the ratio itself where it is not positive) of one form, project
every candidate back onto the hypotheses, and remember the best candidate that counts. What they
find is a lower estimate of the supremum.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.falsification.lost import is_noise, largest_entry
from jaxbounds.falsification.measure import Measured, measure, met
from jaxbounds.falsification.moves import Score, climb
from jaxbounds.statements import Instance, Size, Statement


class Found(NamedTuple):
    """What a search from one starting point came to.

    Attributes:
        best: the best instance that counted; the starting point where none did.
        accepted: how many steps led to a better one.
        met: how many steps met the hypotheses.
    """

    best: Instance
    accepted: Int[Array | np.ndarray, "..."]
    met: Int[Array | np.ndarray, "..."]


export.register_namedtuple_serialization(Found, serialized_name="jaxbounds.falsification.Found")
Searcher = Callable[[Instance, Int[Array, ""], Bool[Array, ""]], Found]
"""From a start, a form, and whether steps are relative to each entry by itself."""

NO_SLOPES = (NotImplementedError, TypeError, ValueError)
"""What JAX raises where it cannot differentiate (loops of unknown length, callbacks, ...)."""
LEARNING_RATE = 0.1
"""First step of the ascent, relative to the root mean square of each leaf."""


def projection(statement: Statement, size: Size) -> Callable[[Instance], Instance]:
    """Back onto the hypotheses; what meets them as it is stays, wherever `project` would put it.

    Without hypotheses `project` alone says which instances there are.
    """
    project, xp = statement.project, np if statement.host else jnp
    if project is None:
        return lambda instance: instance
    if statement.hypotheses is None:
        return lambda instance: project(instance, size)

    def onto(instance: Instance) -> Instance:
        projected = project(instance, size)
        meets = xp.all(xp.stack(list(met(statement.hypotheses, instance, size, xp).values())))
        return jax.tree.map(lambda own, new: xp.where(meets, own, new), dict(instance), projected)

    return onto


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def _score(ratio: Float[Array, ""]) -> Float[Array, ""]:
    positive = ratio > 1e-300
    return jnp.where(positive, jnp.log(jnp.where(positive, ratio, 1.0)), ratio - 1e3)


def _scale(leaf: Array) -> Array:
    return jnp.maximum(jnp.sqrt(jnp.mean(leaf**2)), 1e-3)


def _better(score, counted, best):
    return counted & (score > best)


def _leads(statement: Statement, m: Measured, instance: Instance, xp: Any = jnp, /) -> Any:
    """Whether an instance counts, and does not violate by noise."""
    return m.counted & ~is_noise(statement, m, largest_entry(instance, xp))


def gradient_search(statement: Statement, size: Size, steps: int, /) -> Searcher:
    """Adam ascent with a cosine schedule, steps relative to the size of each float leaf.

    Or of each of its entries: then it is the logarithms of the entries that move.
    """
    import optax  # slow to import, and most commands search nothing

    one, project = measure(statement, size), projection(statement, size)
    schedule = optax.cosine_decay_schedule(LEARNING_RATE, steps, alpha=0.01)
    adam = optax.scale_by_adam(b1=0.8, b2=0.95)

    def search(start: Instance, form: Int[Array, ""], each: Bool[Array, ""]) -> Found:
        leaves, structure = jax.tree.flatten(start)
        moving = [i for i, leaf in enumerate(leaves) if _is_float(leaf) and leaf.size]

        def rebuild(floats):
            values = list(leaves)
            for i, value in zip(moving, floats):
                values[i] = value
            return jax.tree.unflatten(structure, values)

        def objective(floats):
            instance = rebuild(floats)
            measured = jax.tree.map(lambda column: column[form], one(instance))
            return _score(measured.value), _leads(statement, measured, instance)

        def step(carry, count):
            floats, state, best, best_score = carry
            (score, counted), slope = jax.value_and_grad(objective, has_aux=True)(floats)
            improved = _better(score, counted, best_score)
            best = jax.tree.map(lambda new, old: jnp.where(improved, new, old), floats, best)
            best_score = jnp.where(improved, score, best_score)
            slope = jax.tree.map(jnp.nan_to_num, slope)
            # Optax mixes floats with integer counts, which strict promotion refuses.
            with jax.numpy_dtype_promotion("standard"):
                direction, state = adam.update(slope, state)
                rate = schedule(count)
            scale = lambda x: jnp.where(each, jnp.abs(x), _scale(x))
            moved = jax.tree.map(lambda x, d: x + rate * scale(x) * d, floats, direction)
            projected = jax.tree.leaves(project(rebuild(moved)))
            return ([projected[i] for i in moving], state, best, best_score), (improved, counted)

        floats = [leaves[i] for i in moving]
        carry = (floats, adam.init(floats), floats, jnp.full((), -jnp.inf))
        (_, _, best, _), (improved, counted) = jax.lax.scan(step, carry, jnp.arange(steps))
        # The first step is at the starting point.
        return Found(rebuild(best), jnp.sum(improved[1:]), jnp.sum(counted[1:]))

    return search


def random_search(score: Score, donors: Instance, steps: int, /) -> Callable[..., Found]:
    """Hill climbing for discrete or non-smooth statements, all chains at once.

    Each move either takes one leaf from another drawn instance, or a random fifth of its entries
    from as many others, or adds to the float leaves a sparse Gaussian of a random size; it is kept
    if the score rises.

    Args:
        score: of all chains' instances.
        donors: the drawn instances, stacked.
        steps: how many.
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
    """Hill climbing for statements that are run on the host.

    A move takes one leaf (about one entry, a fifth of them, or all) from another drawn instance, or
    adds a Gaussian of a random size to so many of its floats; it is kept if the score rises.
    """
    one, project = measure(statement, size), projection(statement, size)

    def evaluate(leaves: list[np.ndarray], structure: Any, form: int) -> tuple[float, bool, Any]:
        moved = jax.tree.unflatten(structure, leaves)
        instance = project(moved)
        try:
            measured = one(instance)
        except ValueError:  # the functions refuse it: hypotheses say too little
            if statement.project is None:
                raise
            instance = statement.project(moved, size)
            measured = one(instance)
        measured = measured.column(form)
        ratio = float(measured.value)
        score = np.log(ratio) if ratio > 1e-300 else ratio - 1e3
        return score, bool(_leads(statement, measured, instance, np)), instance

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
