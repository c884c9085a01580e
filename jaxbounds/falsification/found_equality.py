"""Judge a bound without named equality whose largest lhs / rhs is one up to rounding."""

import contextlib
import functools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Box, Integers, OneOf, Signs
from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification.approached import ROUNDED, plain_equalities
from jaxbounds.falsification.bench import Bench, Column, Pool, batch_of, spread, take
from jaxbounds.falsification.cancellation import is_cancellation, largest_entry
from jaxbounds.falsification.decide import UNNAMED
from jaxbounds.falsification.measure import UNITS
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import is_float
from jaxbounds.falsification.scales import sizes_of_terms, traced_reading
from jaxbounds.falsification.second_opinion import (
    LARGE,
    Asked,
    clears_at_the_set,
    fails_by_less,
    meets_at_the_set,
)
from jaxbounds.falsification.summands import long_constants
from jaxbounds.falsification.wording import in_words
from jaxbounds.programs.interpreted import NotInterpreted

WORST = 6
"""Ball arithmetic decides this many of the worst instances, each in tenths of seconds. A larger
number takes longer."""
LEAST = 1e-6
"""Sides of at least this absolute value may count as equal if their short enclosures overlap. A
smaller value counts more tiny sides as equal."""
MOVES, BESIDE = 8, 2.0**-4
"""Equal sides count as exact if lhs / rhs is below one at MOVES random neighbours at relative
distance BESIDE. Larger values find fewer equalities."""
GRID = 2.0**10
"""Size of a grid of floats with few digits: the multiples of 1 / GRID up to GRID. A larger value
puts more instances on the grid."""
TRIED, SHORT = 256, 2
"""The search examines TRIED instances for entries with few digits; ball arithmetic decides at most
SHORT. Larger numbers find more equalities and take longer."""
IN_FLOATS = 32
"""If ball arithmetic cannot decide, the search perturbs at most this many instances with equal
float sides. A larger number finds more equalities and takes longer."""
ULPS, LAST_DIGITS = 2.0**-48, 2.0**-50
"""If lhs / rhs exceeds 1 + ULPS, moving the entries by LAST_DIGITS must lower the excess to a
quarter. Larger values excuse more violations as rounding."""
SHAKEN = 24
"""The search changes the last digits of at most this many instances with lhs / rhs above one. A
larger number finds more small violations and takes longer."""
TINY = 1e-6
"""Rounded entries may explain the difference of sides below this share of the largest entry (or of
1). A larger share mistakes more violations for rounding."""
SMALL = 1e-3
"""If both sides are at most this share of the terms that they sum, the rounding of the terms may
explain their difference. A larger share mistakes more small violations for rounding."""
LOOSE = 1e-3
"""The sides of an instance clearly differ if lhs / rhs is below one by this amount. A larger amount
finds fewer equalities."""
CONSTANTS = 2.0**-50
"""Rounded constants, such as pi, may explain a violation up to this share of the summands. A larger
share overlooks more tiny violations."""
NO_TOLERANCE = 1e-18
"""Ball arithmetic looks for a violation above this relative size, which is below float64 rounding.
A larger value overlooks more violations."""
NEAR_ONE = "the worst ratio is one in floats, and ball arithmetic finds the claim true there"
"""The verdict's reason for a bound that holds and has no known instance with equal sides."""
AT_POINTS = ", with each supremum or infimum at the point that its search found"
BY_LESS = (
    "and ball arithmetic finds the claim false there by less than rounding. Try a side that is "
    "larger by the rounding, or instances at which floats tell the sides apart"
)
"""The end of a reason if a claim is certainly false, but only by less than floats can show."""
LONGEST = 60
"""The advice proposes an instance with equal sides if its text has at most this many characters. A
larger number proposes longer instances."""


class Cleared(NamedTuple):
    """The finding of ball arithmetic about a bound with a worst ratio of about one.

    Attributes:
        reason: the reason why the bound holds; empty if ball arithmetic cannot decide.
        attained: whether both sides certainly agree at an instance.
        doubt: the reason why the bound certainly is false by less than rounding, or "".
    """

    reason: str = ""
    attained: bool = False
    doubt: str = ""


def cleared(
    bench: Bench, pool: Pool, column: Column, index: int, form: Form, referee: Asked, /
) -> Cleared:
    """Ask ball arithmetic about a bound whose worst ratio is one up to rounding.

    Ball arithmetic must find at each of the worst instances that the claim is true or the sides are
    equal.
    """
    statement, m = bench.statement, column.measured
    if statement.host or statement.unrefutable:
        return Cleared()
    value = np.where(m.counted, m.value, -np.inf)
    if statement.there_is is not None:  # the referee decides nothing about `there_is` entries
        return _in_floats(bench, pool, column, index, value, referee)
    for row in map(int, np.argsort(-value, kind="stable")[:WORST]):
        if value[row] < 1 - statement.tolerance:
            break
        asked = form, pool.instance(row), Size(statement.sizes[column.sizes[row]])
        said = referee(statement, *asked)
        if not said.clears and not clears_at_the_set(statement, *asked, referee):
            exact = referee(replace(statement, tolerance=NO_TOLERANCE, judges=()), *asked)
            undecided = exact.word in ("undecided", "disproved as coded")
            known = exact.word != "disproved" or _exceeds_constants(bench, pool, column, row, index)
            if known and not undecided:
                return Cleared()
            return _in_floats(bench, pool, column, index, value, referee)
    candidates = [*_short(bench, pool, column, value)]
    for instance, size in [*candidates, *plain_equalities(bench, pool, column, index, value)]:
        if agree(bench, instance, size, index, form, referee):
            words = "the worst ratio is one: ball arithmetic finds both sides equal at"
            return Cleared(f"{words} {in_words(instance)}", attained=True)
    return Cleared(NEAR_ONE + AT_POINTS * bool(statement.estimates))


def _is_searched(statement: Statement) -> bool:
    return bool(statement.estimates) or statement.there_is is not None


def _in_floats(
    bench: Bench, pool: Pool, column: Column, index: int, value: np.ndarray, referee: Asked
) -> Cleared:
    """Decide that a bound holds if lhs / rhs in floats reaches one and exceeds it only by rounding.

    The engine calls this function if ball arithmetic cannot decide, for example at a tie of
    singular values. Beside an instance with equal sides, lhs / rhs must be below one. This
    condition does not apply if the sides are equal at every instance, or if an inner search
    estimates a side (a supremum, an infimum or `there_is`). All neighbours may have equal sides if
    the sides clearly differ at another instance.
    """
    m, statement = column.measured, bench.statement
    words = "the worst ratio is one up to rounding: both sides agree in floats at"
    least = np.minimum(np.abs(m.lhs), np.abs(m.rhs))
    equal = (np.abs(value - 1) <= ROUNDED) & (least >= LEAST)
    if statement.there_is is not None:  # zero sides that are equal satisfy the claim
        equal |= m.counted & (m.lhs == m.rhs)
    if doubt := _false_below_rounding(bench, pool, column, np.flatnonzero(equal), index, referee):
        return Cleared(doubt=doubt)
    if not are_rounding(bench, pool, column, index):
        return Cleared()
    if np.all(equal[m.counted]):
        return Cleared(f"{words} every instance")
    near, large = np.flatnonzero(equal), m.counted & (least >= LEAST)
    if not len(near) and np.any(large) and np.all(value[large] < 1 - statement.tolerance):
        return Cleared(f"the ratio is one up to rounding only where a side is below {LEAST:g}")
    if _is_searched(statement) and len(near):
        return Cleared(f"{words} {in_words(pool.instance(int(near[-1])))}")
    apart = np.any(m.counted & (value < 1 - LOOSE))
    for row in map(int, near[np.argsort(np.abs(value[near] - 1), kind="stable")[:IN_FLOATS]]):
        instance, size = pool.instance(row), Size(statement.sizes[column.sizes[row]])
        ratios = beside(bench, instance, size, index)
        falls = np.any(ratios < 1 - statement.tolerance)
        plateau = len(ratios) and np.all(np.abs(ratios - 1) <= ROUNDED) and apart
        if (falls or plateau) and np.all(ratios <= 1 + ROUNDED):
            return Cleared(f"{words} {in_words(instance)}")
    return Cleared()


def are_rounding(bench: Bench, pool: Pool, column: Column, index: int, /) -> bool:
    """Return whether rounding explains why lhs / rhs exceeds one.

    Tiny sides may differ by the rounding of the entries. A larger excess of lhs / rhs over one must
    fall to a quarter at a neighbour of the instance. The neighbours differ in the last digits of
    the entries, or `Statement.project` moves the instance there.
    """
    m, statement = column.measured, bench.statement
    value = np.where(m.counted, m.value, -np.inf)
    least = ROUNDED if _is_searched(statement) else ULPS  # a search ends at equality up to rounding
    order = np.argsort(-value, kind="stable")[: int(np.sum(value > 1 + least))]
    for row in map(int, spread(order, SHAKEN)):
        if column.scale is not None and np.isfinite(column.scale[row]) and m.low[row] <= 1:
            continue  # the error bar covers the rounding of the summands
        instance, size = pool.instance(row), Size(statement.sizes[column.sizes[row]])
        largest = min(float(largest_entry(instance, np)), LARGE)
        if max(abs(m.lhs[row]), abs(m.rhs[row])) <= TINY * (largest + 1):
            if not is_cancellation(m.lhs[row], m.rhs[row], largest):
                return False
            if abs(m.lhs[row] - m.rhs[row]) <= UNITS * largest:
                continue
        terms, sides = terms_at(bench, instance, size, index), np.array([m.lhs[row], m.rhs[row]])
        if np.max(np.abs(sides)) <= SMALL * terms and np.ptp(sides) <= UNITS * terms:
            continue
        shaken = beside(bench, instance, size, index, LAST_DIGITS)
        there = _at_projection(bench, instance, size, index)
        if not np.any(np.append(shaken, there) <= 1 + (value[row] - 1) / 4):
            return False
    return True


def false_at_equality(
    bench: Bench, pool: Pool, column: Column, index: int, referee: Asked, /
) -> str:
    """Return the reason why a bound with a named equality case is false by less than rounding.

    The result is empty if ball arithmetic does not know. The function asks about claims whose sets
    floats hold exactly.
    """
    statement, m = bench.statement, column.measured
    if statement.host or statement.unrefutable or not (statement.over and is_exact(statement)):
        return ""
    with np.errstate(invalid="ignore"):
        rows = np.flatnonzero(m.counted & (np.abs(m.value - 1) <= ROUNDED))
    return _false_below_rounding(bench, pool, column, rows, index, referee)


def _false_below_rounding(
    bench: Bench, pool: Pool, column: Column, rows: np.ndarray, index: int, referee: Asked
) -> str:
    for row in spread(rows, SHORT + 1) if bench.statement.there_is is None else ():
        if _fails_by_less(bench, pool, column, row, index, referee):
            return f"floats find both sides equal at {in_words(pool.instance(int(row)))}, {BY_LESS}"
    return ""


def _fails_by_less(
    bench: Bench, pool: Pool, column: Column, row: int, index: int, referee: Asked
) -> bool:
    statement, instance = bench.statement, pool.instance(int(row))
    if statement.project is not None and not is_exact(statement):
        return False  # rounding may have moved the instance out of its sets
    size = Size(statement.sizes[column.sizes[row]])
    if not _exceeds_constants(bench, pool, column, row, index):
        return False
    return fails_by_less(statement, statement.forms[index], instance, size, referee)


def _exceeds_constants(bench: Bench, pool: Pool, column: Column, row: int, index: int) -> bool:
    """Return whether rounded constants of the claim's program cannot explain a violation."""
    instance, size = pool.instance(row), Size(bench.statement.sizes[column.sizes[row]])
    if not has_rounded_constants(bench, instance, size):
        return True
    least = CONSTANTS * terms_at(bench, instance, size, index)
    return bool(column.measured.lhs[row] - column.measured.rhs[row] > least > 0)


def has_rounded_constants(bench: Bench, instance: Instance, size: Size, /) -> bool:
    """Return whether the claim's program has a constant that floats may hold only rounded.

    The result is also true if NumPy cannot run the program.
    """
    many = take(batch_of(instance), [0] * bench.batch)
    with contextlib.suppress(NotInterpreted):
        return len(long_constants(traced_reading(bench, size, many).jaxpr)) > 0
    return True


def is_exact(statement: Statement, /) -> bool:
    """Return whether floats and integers hold all points of the claim's sets exactly."""
    sets = (statement.over or {}).values()
    return all(isinstance(one, Box | Integers | OneOf | Signs) for one in sets)


def terms_at(bench: Bench, instance: Instance, size: Size, index: int) -> float:
    """Return the size of the summands of both sides at an instance; 0 if the size is unknown."""
    exists = bench.statement.there_is is not None
    given: Any = bench.promises(size).given if exists else bench
    with contextlib.suppress(NotInterpreted):
        return float(np.nan_to_num(sizes_of_terms(given, batch_of(instance), size, index)[0]))
    return 0.0


def on_the_grid(instance: Instance, /) -> bool:
    """Return whether all float entries of an instance are multiples of 1 / GRID up to GRID."""
    floats = [np.ravel(x) for x in jax.tree.leaves(instance) if is_float(x)]
    entries = np.concatenate(floats or [np.zeros(0)])
    with np.errstate(over="ignore", invalid="ignore"):
        whole = entries * GRID == np.round(entries * GRID)
    return bool(np.all(whole & (np.abs(entries) <= GRID)))


def _short(
    bench: Bench, pool: Pool, column: Column, value: np.ndarray
) -> Iterator[tuple[Instance, Size]]:
    """Yield instances with equal float sides and entries of few digits, whose sums are exact."""
    m, found = column.measured, 0
    rows = np.flatnonzero(m.counted & (value == 1) & (m.lhs == m.rhs))
    for row in map(int, rows[:TRIED]):
        instance = pool.instance(row)
        if on_the_grid(instance):
            found += 1
            yield instance, Size(bench.statement.sizes[column.sizes[row]])
        if found == SHORT:
            return


def agree(
    bench: Bench, instance: Instance, size: Size, index: int, form: Form, referee: Asked, /
) -> bool:
    """Return whether both sides are equal at an instance, and not beside it, by ball arithmetic."""
    said = referee(bench.statement, form, instance, size)
    if said.equal:
        return True
    sides = bench.one(instance, size).column(index)
    if min(abs(float(sides.lhs)), abs(float(sides.rhs))) < LEAST or said.is_true:
        return False
    meets = said.meeting or meets_at_the_set(bench.statement, form, instance, size, referee)
    return meets and _falls_beside(bench, instance, size, index)


def _falls_beside(bench: Bench, instance: Instance, size: Size, index: int) -> bool:
    """Return whether lhs / rhs is below one at random instances near the given instance.

    The test fails if the sides only approach each other along a sequence of instances.
    """
    ratios = beside(bench, instance, size, index)
    return bool(len(ratios) and np.all(ratios < 1 - bench.statement.tolerance))


def beside(
    bench: Bench,
    instance: Instance,
    size: Size,
    index: int,
    apart: float = BESIDE,
    *,
    moving: Iterable[str] | None = None,
) -> np.ndarray:
    """Return upper bounds on lhs / rhs at random instances near the given instance.

    The function moves the floats of all entries by about the share `apart` of their largest number.
    If `moving` is given, it moves the floats and integers of these entries, and leaves out the
    instances that their sets move back. The bounds include the errors that `evaluate` states.
    """
    rng, names = np.random.default_rng(0), set(instance if moving is None else moving)

    def moved(leaf: Any, name: str) -> np.ndarray:
        many = np.repeat(np.asarray(leaf)[None], MOVES, axis=0)
        largest = np.max(np.abs(leaf), initial=0.0) or 1.0
        step = apart * largest * rng.normal(size=many.shape)
        if name in names and is_float(many):
            return many + step
        whole = name in names and moving is not None and np.issubdtype(many.dtype, np.integer)
        return many + np.round(step).astype(many.dtype) if whole else many

    def went(leaf: Any, new: Any) -> np.ndarray:
        far = np.abs(np.asarray(new, float) - np.asarray(leaf, float)).reshape(len(new), -1)
        largest = np.max(np.abs(leaf), initial=0.0) or 1.0
        return np.any(far > apart * largest / 4, axis=1)

    near = {
        name: jax.tree.map(functools.partial(moved, name=name), value)
        for name, value in sorted(instance.items())
    }
    there = projected(bench, size)(near)
    m = bench(there, size).column(index)
    kept = np.asarray(m.counted)
    if moving is not None:
        pairs = [jax.tree.leaves(jax.tree.map(went, instance[n], there[n])) for n in names]
        kept = kept & np.any([mask for masks in pairs for mask in masks], axis=0)
    return np.asarray(m.high[kept])


def _at_projection(bench: Bench, instance: Instance, size: Size, index: int) -> np.ndarray:
    project: Any = bench.statement.project
    if project is None:
        return np.zeros(0)
    there = jax.tree.map(np.asarray, project(jax.tree.map(jnp.asarray, instance), size))
    m = bench.one(there, size).column(index)
    return np.atleast_1d(m.high)[np.atleast_1d(m.counted)]


def with_equality(pool: Pool, column: Column, /) -> str:
    """Return a nearly tight bound's reason, which proposes an instance with equal sides."""
    m = column.measured
    with np.errstate(invalid="ignore"):
        near = m.counted & (np.abs(m.value - 1) <= ROUNDED) & (m.rhs != 0)
    said = (in_words(pool.instance(int(row))) for row in np.flatnonzero(near)[-TRIED:])
    short = [words for words in said if len(words) <= LONGEST and "array" not in words]
    if not short:
        return UNNAMED
    return UNNAMED.replace('"x = y"', f'"{min(short, key=len)}"')
