"""Search for the instance with the worst ratio, from given starting points.

Both searches maximise log(ratio) (the ratio itself where it is not positive) of one form, project
every candidate back onto the hypotheses, and remember the best candidate that counts. What they
find is a lower estimate of the supremum.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.falsification.lost import is_noise, largest_entry
from jaxbounds.falsification.measure import Measured, measure, met
from jaxbounds.statements import Instance, Sampler, Size, Statement


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
Searcher = Callable[[jax.Array, Instance, Int[Array, ""], Bool[Array, ""]], Found]
"""From a key, a start, a form, and whether steps are relative to each entry by itself."""

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

    def search(
        key: jax.Array, start: Instance, form: Int[Array, ""], each: Bool[Array, ""]
    ) -> Found:
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


def random_search(statement: Statement, size: Size, steps: int, sampler: Sampler, /) -> Searcher:
    """Hill climbing for discrete or non-smooth statements.

    Each move either redraws one leaf from a fresh sample, all of it or a random fifth of its
    entries, or adds to the float leaves a sparse Gaussian of a random size; it is kept if the score
    rises.
    """
    one, project = measure(statement, size), projection(statement, size)

    def search(
        key: jax.Array, start: Instance, form: Int[Array, ""], each: Bool[Array, ""]
    ) -> Found:
        leaves, structure = jax.tree.flatten(start)

        def evaluate(values):
            instance = jax.tree.unflatten(structure, values)
            measured = jax.tree.map(lambda column: column[form], one(instance))
            return _score(measured.value), _leads(statement, measured, instance)

        def step(carry, xs):
            (best, best_score), (key, at_start) = carry, xs
            which, fresh_key, size_key, part_key, *leaf_keys = jax.random.split(key, 4 + len(best))
            fresh = jax.tree.leaves(sampler(fresh_key, size))
            redraw = jax.random.randint(which, (), -len(best), len(best))
            whole = jax.random.bernoulli(part_key)
            amount = 10.0 ** jax.random.uniform(size_key, (), minval=-4.0, maxval=0.5)
            moved = []
            for i, (leaf, new, leaf_key) in enumerate(zip(best, fresh, leaf_keys)):
                mask_key, bump_key = jax.random.split(leaf_key)
                mask = jax.random.bernoulli(mask_key, 0.2, leaf.shape)
                redrawn = jnp.where((redraw == i) & (whole | mask), new.astype(leaf.dtype), leaf)
                nudged = leaf
                if _is_float(leaf):
                    bump = amount * _scale(leaf) * jax.random.normal(bump_key, leaf.shape)
                    nudged = leaf + jnp.where(mask, bump, 0.0).astype(leaf.dtype)
                moved.append(jnp.where(redraw >= 0, redrawn, nudged))
            moved = jax.tree.leaves(project(jax.tree.unflatten(structure, moved)))
            moved = [jnp.where(at_start, old, new) for old, new in zip(best, moved)]
            score, counted = evaluate(moved)
            improved = _better(score, counted, best_score)
            best = [jnp.where(improved, new, old) for new, old in zip(moved, best)]
            return (best, jnp.where(improved, score, best_score)), (improved, counted)

        # The first step stays at the start: what is measured is then compiled once.
        keys = jax.random.split(key, steps)
        xs = jnp.concatenate([keys[:1], keys]), jnp.arange(steps + 1) == 0
        carry = (leaves, jnp.full((), -jnp.inf))
        (best, _), (improved, counted) = jax.lax.scan(step, carry, xs)
        return Found(
            jax.tree.unflatten(structure, best), jnp.sum(improved[1:]), jnp.sum(counted[1:])
        )

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
