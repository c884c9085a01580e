"""Evaluate a claim with suprema, at the points that earlier searches found for the suprema.

NumPy and ball arithmetic cannot follow a search of thousands of equations, but they can evaluate
the function in the supremum at one point.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets.inner import at_points, points_noted
from jaxbounds.claims.statements import Instance, Size, Statement

KEPT = 16
"""The number of compiled searches that stay in memory; a larger number takes more memory."""
Points = tuple[Mapping[str, Any], ...]
"""The best points of all inner searches (for suprema and infima) in one evaluation, in order."""


@dataclass(frozen=True)
class _AtPoints:
    """A function `evaluate` that computes its suprema and infima at given points."""

    evaluate: Callable[[Instance, Size], Any]
    points: Points

    def __call__(self, instance: Instance, size: Size) -> Any:
        with at_points(self.points):
            return self.evaluate(instance, size)


def with_points(statement: Statement, points: Points, /) -> Statement:
    """Return a copy of a statement that evaluates its suprema and infima at the given points."""
    return replace(statement, evaluate=_AtPoints(statement.evaluate, points), judges=())


@functools.lru_cache(maxsize=KEPT)
def _search(statement: Statement, size: Size, /) -> Callable[[Instance], Points]:

    def points(instance: Instance) -> Points:
        with points_noted() as found:
            statement.evaluate(instance, size)
        return tuple(found)

    return jax.jit(jax.vmap(points))


def best_points(statement: Statement, batch: Instance, size: Size, /) -> Points:
    """Return, for each instance of a batch, the best points of the searches for suprema and infima.

    The result is empty if no side needs a search, if the statement runs outside JAX, or if JAX
    transforms a function that contains a search.
    """
    if not statement.estimates or statement.host:
        return ()
    try:
        return _search(statement, size)(jax.tree.map(jnp.asarray, dict(batch)))
    except (jax.errors.UnexpectedTracerError, TypeError):
        return ()


def at_best_points(statement: Statement, instance: Instance, size: Size, /) -> Statement:
    """Return a statement's copy that evaluates suprema at the points found for one instance.

    The result is the statement itself if `best_points` finds no points.
    """
    batch = jax.tree.map(lambda leaf: np.asarray(leaf)[None], dict(instance))
    found = best_points(statement, batch, size)
    return with_points(statement, jax.tree.map(lambda leaf: leaf[0], found)) if found else statement
