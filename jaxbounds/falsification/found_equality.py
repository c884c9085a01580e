"""Equality cases that no form names: ball arithmetic clears the worst instances of a bound."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Size
from jaxbounds.falsification.approached import plain_equalities
from jaxbounds.falsification.bench import Bench, Column, Pool
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import is_float
from jaxbounds.falsification.second_opinion import Asked, clears_at_the_set, meets_at_the_set

WORST = 6
"""Worst instances about which the engine asks the referee; more take tenths of seconds each."""
LEAST = 1e-6
"""The least side that short enclosures show to be equal. A smaller value takes more tiny sides,
which are equal up to the length of the enclosures, for equality cases.
"""
MOVES, BESIDE = 8, 2.0**-4
"""Number of instances beside an equality case, and their distance as a share of the largest entry.
Larger values find fewer equality cases.
"""
GRID = 2.0**10
"""Largest entry, and inverse of the step, of an instance of few digits; a larger grid has more
instances.
"""
TRIED, SHORT = 256, 2
"""Instances that are looked through for few digits, and those that are asked about. Larger numbers
find more equality cases, for longer.
"""
NEAR_ONE = "floats give one at the worst instances, at which ball arithmetic finds the claim true"
"""The reason of a bound that holds, and of which no equality case is known."""
SHOWN = 4
"""Entries of an array that are shown one by one; a larger number makes longer reasons."""


class Cleared(NamedTuple):
    """The finding about a bound whose ratio reaches one up to rounding.

    Attributes:
        reason: why the bound holds; empty where the referee leaves it open.
        attained: whether both sides certainly agree at an instance.
    """

    reason: str = ""
    attained: bool = False


def cleared(
    bench: Bench, pool: Pool, column: Column, index: int, form: Form, referee: Asked, /
) -> Cleared:
    """Ask the referee about a bound whose ratio reaches one up to rounding.

    Args:
        bench: the bench that measures.
        pool: the pool of instances.
        column: the form's column.
        index: the form's index.
        form: a form that names no equality case.
        referee: the referee, who must find the claim true, or the sides equal, at each of the
            worst instances.
    """
    statement, m = bench.statement, column.measured
    if statement.host or statement.unrefutable or statement.there_is is not None:
        return Cleared()
    value = np.where(m.counted, m.value, -np.inf)
    for row in map(int, np.argsort(-value, kind="stable")[:WORST]):
        if value[row] < 1 - statement.tolerance:
            break
        asked = form, pool.instance(row), Size(statement.sizes[column.sizes[row]])
        said = referee(statement, *asked)
        if not said.clears and not clears_at_the_set(statement, *asked, referee):
            return Cleared()
    candidates = [*_short(bench, pool, column, value)]
    for instance, size in [*candidates, *plain_equalities(bench, pool, column, index, value)]:
        if _agree(bench, instance, size, index, form, referee):
            words = "the worst ratio is one: ball arithmetic finds both sides equal at"
            return Cleared(f"{words} {in_words(instance)}", attained=True)
    return Cleared(NEAR_ONE)


def _short(
    bench: Bench, pool: Pool, column: Column, value: np.ndarray
) -> Iterator[tuple[Instance, Size]]:
    """Yield instances of few digits at which floats give equal sides; their sums are exact."""
    m, found = column.measured, 0
    rows = np.flatnonzero(m.counted & (value == 1) & (m.lhs == m.rhs))
    for row in map(int, rows[:TRIED]):
        instance = pool.instance(row)
        floats = [np.ravel(x) for x in jax.tree.leaves(instance) if is_float(x)]
        entries = np.concatenate(floats or [np.zeros(0)])
        with np.errstate(over="ignore", invalid="ignore"):
            whole = entries * GRID == np.round(entries * GRID)
        if np.all(whole & (np.abs(entries) <= GRID)):
            found += 1
            yield instance, Size(bench.statement.sizes[column.sizes[row]])
        if found == SHORT:
            return


def _agree(
    bench: Bench, instance: Instance, size: Size, index: int, form: Form, referee: Asked
) -> bool:
    """Tell whether both sides are one number, and no two numbers that come ever closer."""
    said = referee(bench.statement, form, instance, size)
    if said.equal:
        return True
    sides = bench.one(instance, size).column(index)
    if min(abs(float(sides.lhs)), abs(float(sides.rhs))) < LEAST or said.is_true:
        return False
    meets = said.meeting or meets_at_the_set(bench.statement, form, instance, size, referee)
    return meets and _falls_beside(bench, instance, size, index)


def _falls_beside(bench: Bench, instance: Instance, size: Size, index: int) -> bool:
    """Tell whether the ratio falls at instances beside one, as it does around an equality case.

    The ratio stays where both sides come closer and closer without being equal.
    """
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, instance))
    rng = np.random.default_rng(0)

    def moved(leaf: np.ndarray) -> np.ndarray:
        many = np.repeat(leaf[None], MOVES, axis=0)
        if not is_float(leaf):
            return many
        largest = np.max(np.abs(leaf), initial=0.0)
        return many + BESIDE * (largest or 1.0) * rng.normal(size=many.shape)

    batch = projected(bench, size)(jax.tree.unflatten(structure, list(map(moved, leaves))))
    m = bench(batch, size).column(index)
    return bool(np.any(m.counted) and np.all(m.high[m.counted] < 1 - bench.statement.tolerance))


def in_words(instance: Instance, /) -> str:
    """Return short words for an instance: equal arrays, arrays of one number, few entries."""
    paths = jax.tree_util.tree_flatten_with_path(dict(instance))[0]
    named = {jax.tree_util.keystr(p, simple=True, separator="."): np.asarray(x) for p, x in paths}
    parts, said = list[str](), dict[str, Any]()
    for name, leaf in named.items():
        twin = next((n for n, x in said.items() if leaf.size > 1 and np.array_equal(x, leaf)), "")
        said[name] = leaf
        parts.append(f"{name} = {twin or _entries(leaf)}")
    return ", ".join(parts)


def _entries(leaf: np.ndarray) -> str:
    """Return the entries of an array; of a long one its shape."""
    digits = "{:.3g}".format if is_float(leaf) else str
    if leaf.size and np.all(leaf == leaf.flat[0]):
        return digits(leaf.flat[0].item())
    if leaf.size <= SHOWN:
        return f"({', '.join(digits(x.item()) for x in leaf.flat)})"
    return f"an array of shape {leaf.shape}"
