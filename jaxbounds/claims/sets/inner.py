"""Estimate suprema and infima over sets by a search, which is exact over small finite sets."""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbounds.claims.sets.base import Set
from jaxbounds.claims.sets.expressions import Size
from jaxbounds.claims.sets.over import Over, refuse_other_sets

NO_SIZES: Size = MappingProxyType({})
"""No sizes: the default for sets whose shapes are numbers."""
STARTS, STEPS = 12, 200
FIRST, LAST = 0.5, 1e-9
"""Lengths of the first and the last steps of a search, relative to the norm of each array."""

_made: ContextVar[list[str] | None] = ContextVar("_made", default=None)
_noted: ContextVar[list[dict[str, Any]] | None] = ContextVar("_noted", default=None)
_given: ContextVar[Iterator[Mapping[str, Any]] | None] = ContextVar("_given", default=None)


class Best(NamedTuple):
    """The best point that a search over sets found, and the objective's value there."""

    point: dict[str, Any]
    value: jax.Array


def best_point(
    objective: Callable[[Any], jax.Array],
    over: Over,
    size: Size,
    /,
    *,
    given: Mapping[str, Any] | None = None,
    starts: int = STARTS,
    steps: int = STEPS,
) -> Best:
    """Search a product of sets for the point with the largest objective.

    If the sets have at most 4096 points, the search tries all of them. Over larger sets the search
    runs projected gradient ascent from random points, from random points with one entry set to
    zero, and from extreme points. The ascent also starts from the best corner, if there are at most
    256 corners, and from `given`. The first two fifths of the steps have equal length; the later
    steps shrink geometrically. The random key is fixed: equal arguments give equal values.

    NaN values of the objective count as minus infinity.
    """
    safe = lambda point: jnp.nan_to_num(objective(point), nan=-jnp.inf, posinf=jnp.inf)
    every = over.every(size)
    if every is not None:
        listed = jax.tree.map(jnp.asarray, every)
        values = jax.vmap(safe)(listed)
        at = jnp.argmax(values)
        return Best(jax.tree.map(lambda leaf: leaf[at], listed), values[at])
    draws, ends = jax.random.split(jax.random.key(0))
    half = max(1, starts // 2)
    drawn = jax.vmap(lambda key: over.draw(key, size))(jax.random.split(draws, half))
    at_ends = over.vertices(ends, size, max(1, starts - half))
    without = jax.vmap(lambda point: over.project(point, size))(_without_an_entry(drawn))
    first = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), drawn, at_ends, without)
    if (corners := over.corners(size)) is not None:
        listed = jax.tree.map(lambda x, like: jnp.asarray(x, like.dtype), corners, drawn)
        at = jnp.argmax(jax.vmap(safe)(listed))
        first = jax.tree.map(lambda old, new: jnp.concatenate([old, new[at][None]]), first, listed)
    if given is not None:
        own = over.project({name: given[name] for name in over}, size)
        first = jax.tree.map(lambda old, new: jnp.concatenate([old, new[None]]), first, own)
    rates = jnp.concatenate(
        [jnp.full(2 * steps // 5, FIRST), jnp.geomspace(FIRST, LAST, steps - 2 * steps // 5)]
    )

    def climb(start: Any) -> Best:
        def step(carry: tuple[Any, Best], rate: jax.Array) -> tuple[tuple[Any, Best], None]:
            here, best = carry
            moving, rest = _split(here)
            value, slope = jax.value_and_grad(lambda m: safe(_joined(m, rest)))(moving)
            kept = jax.tree.map(lambda a, b: jnp.where(value > best.value, a, b), here, best.point)
            best = Best(kept, jnp.maximum(value, best.value))
            moved = [_moved(x, jnp.nan_to_num(s), rate) for x, s in zip(moving, slope)]
            return (over.project(_joined(moved, rest), size), best), None

        least = Best(start, jnp.full((), -jnp.inf))
        (end, best), _ = jax.lax.scan(step, (start, least), rates)
        value = safe(end)
        kept = jax.tree.map(lambda a, b: jnp.where(value > best.value, a, b), end, best.point)
        return Best(kept, jnp.maximum(value, best.value))

    found = jax.vmap(climb)(first)
    at = jnp.argmax(found.value)
    return jax.tree.map(lambda leaf: leaf[at], found)


def _without_an_entry(points: Any) -> Any:
    def without(leaf: Any) -> Any:
        entries = leaf[0].size
        if not jnp.issubdtype(leaf.dtype, jnp.floating) or entries < 2:
            return leaf
        flat = leaf.reshape(len(leaf), entries)
        kept = jnp.arange(entries)[None] != (jnp.arange(len(leaf)) % entries)[:, None]
        return jnp.where(kept, flat, 0.0).reshape(leaf.shape)

    return jax.tree.map(without, points)


def _split(point: Any) -> tuple[list[jax.Array], Any]:
    leaves, structure = jax.tree.flatten(point)
    floats = [jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves]
    return [x for x, moves in zip(leaves, floats) if moves], (leaves, floats, structure)


def _joined(moving: list[jax.Array], rest: Any) -> Any:
    leaves, floats, structure = rest
    new = iter(moving)
    return jax.tree.unflatten(
        structure, [next(new) if moves else leaf for leaf, moves in zip(leaves, floats)]
    )


def _moved(x: jax.Array, slope: jax.Array, rate: jax.Array) -> jax.Array:
    steep = jnp.sqrt(jnp.sum(slope**2))
    length = jnp.maximum(jnp.sqrt(jnp.sum(x**2)), 1e-3)
    return x + rate * length * slope / jnp.where(steep > 0, steep, 1.0)


def supremum(
    function: Callable[..., jax.Array],
    over: Mapping[str, Set | Mapping[str, Any]],
    *,
    size: Size = NO_SIZES,
    starts: int = STARTS,
    steps: int = STEPS,
) -> jax.Array:
    """Estimate the supremum of a function over sets from below: a search finds a large value.

    The value is exact if the sets have at most 4096 points. Gradients with respect to variables
    that the function closes over are gradients at the maximiser found. If the left side of a
    statement calls `supremum`, the statement must declare `estimates={"lhs": "below"}`. The library
    refuses the relation `=`, because the search supports only `<=`.

    Args:
        function: the function that the search maximises. The function has a keyword argument for a
            point of each set, and returns a number.
        over: the sets, keyed by the names of the function's arguments.
        size: a dict from the names of sizes in the sets' shapes to numbers; not necessary if the
            shapes consist of numbers.
        starts: the number of random points and extreme points from which the search climbs.
        steps: the number of steps of the search from each starting point.
    """
    return _found(function, over, size, (starts, steps), "below")


def _found(
    function: Callable[..., jax.Array],
    over: Mapping[str, Set | Mapping[str, Any]],
    size: Size,
    effort: tuple[int, int],
    side: str,
) -> jax.Array:
    if not isinstance(over, Mapping):
        refuse_other_sets("over", over, list(inspect.signature(function).parameters))
    sets, sign = Over(over), 1 if side == "below" else -1
    score = lambda point: sign * function(**point)
    is_search = sets.every(size) is None
    if is_search and (made := _made.get()) is not None:
        made.append(side)
    if is_search and (given := _given.get()) is not None:
        return function(**sets.project(dict(next(given)), size))
    found = best_point(score, sets, size, starts=effort[0], steps=effort[1])
    if is_search and (noted := _noted.get()) is not None:
        noted.append(found.point)
    return function(**jax.lax.stop_gradient(found.point))


def infimum(
    function: Callable[..., jax.Array],
    over: Mapping[str, Set | Mapping[str, Any]],
    *,
    size: Size = NO_SIZES,
    starts: int = STARTS,
    steps: int = STEPS,
) -> jax.Array:
    """Estimate the infimum of a function over sets from above: a search finds a small value.

    See `supremum`. If the left side of a statement calls `infimum`, the statement must declare
    `estimates={"lhs": "above"}`. The library refuses the relation `=`, because the search supports
    only `>=`.

    Args:
        function: the function whose infimum the search estimates. The function has a keyword
            argument for a point of each set, and returns a number.
        over: the sets, keyed by the names of the function's arguments.
        size: a dict from the names of sizes in the sets' shapes to numbers; not necessary if the
            shapes consist of numbers.
        starts: the number of random points and extreme points from which the search descends.
        steps: the number of steps of the search from each starting point.
    """
    return _found(function, over, size, (starts, steps), "above")


@contextlib.contextmanager
def _holding(variable: ContextVar[Any], value: Any) -> Iterator[Any]:
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


@contextlib.contextmanager
def estimates_made() -> Iterator[list[str]]:
    """Yield a list; each estimate of a supremum or infimum in a `with` block adds a word to it.

    The word "below" stands for an estimate of a supremum, and "above" for an estimate of an
    infimum.
    """
    with _holding(_made, list[str]()) as found:
        yield found


@contextlib.contextmanager
def points_noted() -> Iterator[list[dict[str, Any]]]:
    """Collect the best point of each search in a `with` block, in the order of the searches."""
    with _holding(_noted, list[dict[str, Any]]()) as found:
        yield found


@contextlib.contextmanager
def at_points(points: Iterable[Mapping[str, Any]], /) -> Iterator[None]:
    """Evaluate suprema and infima in a `with` block at given points, without searches.

    Args:
        points: the points that `points_noted` collected.
    """
    with _holding(_given, iter(points)):
        yield
