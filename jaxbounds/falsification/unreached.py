"""Decide whether the sides of a strict inequality only come close, and are equal nowhere.

The sides may come close at infinity, at a point that the hypotheses exclude, or at a largest ratio
just below one.
"""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification.approached import may_be_equal
from jaxbounds.falsification.bench import Bench, Column, Pool, batch_of, concatenate, spread, take
from jaxbounds.falsification.cancellation import largest_entry
from jaxbounds.falsification.compared import sides_of
from jaxbounds.falsification.discrete import all_points
from jaxbounds.falsification.found_equality import has_rounded_constants, terms_at
from jaxbounds.falsification.measure import UNITS, Measured
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import is_float
from jaxbounds.falsification.second_opinion import Asked
from jaxbounds.falsification.summands import has_jumps
from jaxbounds.falsification.wording import in_words

COMES = "the ratio comes to one only at infinity, at zero, or at excluded points"
"""The reason if the ratio of the sides comes to one along a sequence of instances."""
NEAR, TIMES = 1e-9, 10
"""The distance of lhs/rhs from one up to which an instance must have an explanation, and the factor
by which this distance may exceed the least distance. Larger values leave more claims undecided."""
LAST = 2.0**-50
"""The sides count as equal at an excluded point up to this relative difference, which is rounding.
A larger value counts more excluded points."""
MOST, LOOKED, ASKED = 512, 12, 4
"""Among at most MOST instances with close sides, the search examines the LOOKED instances with the
smallest entries and LOOKED others, and ball arithmetic decides ASKED of them. Larger numbers take
longer."""
DIGITS = range(7)
"""Numbers of decimal places to which the search rounds an instance with close sides. More places
find more excluded points."""
SMALL = (1e-3, 1e-6, 1e-9, 1e-12, 1e-15)
"""Shares of an array's largest entry below which the search replaces entries by zero. More shares
find more excluded points."""
BESIDE = 0.05
"""An excluded point explains the close sides of an instance at most this far away, relative to
1 + the absolute values of its entries. A larger value explains more instances."""
WAY, END = (0.25, 0.5, 0.75), 0.9999
"""The parts of the way to an excluded point at which the search measures lhs/rhs. If the sides are
undefined at the excluded point, they must come close at the part END. More parts and a larger END
leave more claims undecided."""
OUT, BACK = (1.05, 1.2, 1.5, 2.0, 4.0, 16.0, 256.0), tuple(0.5**k for k in (1, 2, 4, 8, 16, 32, 64))
"""Factors that move an array to a limit, and back. More factors leave more claims undecided."""
TINY = 1e-3
"""Rounding may move lhs/rhs by this share of NEAR. A larger share counts more arrays as tending to
infinity."""
FALLS = 1e-6
"""An array that moves back must lower lhs/rhs by this amount, and the way to an excluded point may
lower lhs/rhs by this amount. A larger amount accepts fewer limits and more excluded points."""
STEPS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""Relative distances of the neighbours at which a largest ratio must fall. More distances leave
more claims undecided."""
NEIGHBOURS = 32
"""The number of neighbours at each distance; a larger number leaves more claims undecided."""
SLACK = 0.1
"""A neighbour may be closer to equality by this share of the distance from one. A larger share
counts more points as the largest ratio."""


def unreached(
    bench: Bench, pool: Pool, column: Column, index: int, form: Form, referee: Asked, /
) -> str:
    """Return why no instance reaches equality, as a sentence; empty if an instance may reach it."""
    statement, m = bench.statement, column.measured
    if statement.host or statement.estimates or statement.there_is is not None:
        return ""
    value = np.where(m.counted & np.isfinite(m.value), m.value, -np.inf)
    least = 1 - np.max(value, initial=-np.inf)
    rows = np.flatnonzero(value >= 1 - max(NEAR, TIMES * least))
    rows = rows[np.argsort(-value[rows], kind="stable")]
    if not len(rows):
        return ""
    at = lambda row: (pool.instance(int(row)), Size(statement.sizes[column.sizes[row]]))
    plain = sorted(spread(rows, MOST), key=lambda row: largest_entry(at(row)[0], np))
    chosen = [*plain[:LOOKED], *spread(rows, LOOKED)]  # equality is likelier at small entries
    said = [referee(statement, form, *at(row)) for row in spread(np.array(chosen), ASKED)]
    if any(one.equal or one.word.startswith("disproved") for one in said):
        return ""
    if not any(one.strict for one in said):
        return ""
    if may_be_equal(bench, pool, column, index, form, value, referee):
        return ""
    if _is_finite(statement):
        if has_rounded_constants(bench, *at(rows[0])):
            return ""
        asked = rows if len(rows) <= MOST else rows[:0]
        every = all(referee(statement, form, *at(row)).strict for row in asked)
        return (
            f"the sides differ at the {len(asked)} closest points" if len(asked) and every else ""
        )
    if (
        least > NEAR
        and not _jumps(bench, *at(rows[0]))
        and _is_largest(bench, *at(rows[0]), index, least)
    ):
        return f"the largest lhs/rhs found is 1 - {least:.1g}, and it falls at all neighbours"
    for row in chosen:
        instance, size = at(row)
        if not (
            _leaves_for_a_limit(bench, instance, size, index)
            or _is_beside_an_excluded_point(bench, instance, size, index)
        ):
            return ""
    return COMES


def are_rounding(bench: Bench, pool: Pool, column: Column, index: int, /) -> str:
    """Return a reason if the sides of a strict claim differ by rounding alone at an instance."""
    statement, m = bench.statement, column.measured
    if statement.host or statement.there_is is not None:
        return ""
    gap = np.where(m.counted, np.abs(m.lhs - m.rhs), np.inf)
    row = int(np.argmin(gap))
    instance, size = pool.instance(row), Size(statement.sizes[column.sizes[row]])
    if not 0 < gap[row] <= UNITS * terms_at(bench, instance, size, index):
        return ""
    return f"rounding may explain the difference of the sides at {in_words(instance)}"


def _is_finite(statement: Statement) -> bool:
    """Return whether the engine measured all points of the claim's sets, at each size."""
    sets = [all_points(statement, size) for size in map(Size, statement.sizes)]
    return all(one is not None and one.every(size) is not None
               for one, size in zip(sets, map(Size, statement.sizes), strict=True))  # fmt: skip


def _jumps(bench: Bench, instance: Instance, size: Size) -> bool:
    """Return whether the program of the sides jumps, or is too long for a test of its jumps."""
    program, runs = sides_of(bench, size, take(batch_of(instance), [0] * bench.batch))
    return not runs or has_jumps(program)


def _largest(leaf: Any) -> float:
    return float(np.max(np.abs(leaf), initial=0.0))


def _changed(instance: Instance, new: dict[int, np.ndarray]) -> Instance:
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, dict(instance)))
    return jax.tree.unflatten(structure, [new.get(i, x) for i, x in enumerate(leaves)])


def _measured(bench: Bench, many: list[Instance], size: Size, index: int) -> Measured:
    return bench(concatenate(list(map(batch_of, many))), size).column(index)


def _leaves_for_a_limit(bench: Bench, instance: Instance, size: Size, index: int) -> bool:
    """Return whether the sides only come closer as arrays go to infinity, or to zero."""
    leaves = [np.asarray(x) for x in jax.tree.leaves(dict(instance))]
    floats = [i for i, x in enumerate(leaves) if is_float(x) and np.any(x)]
    groups = [[i] for i in floats] + [floats] * (len(floats) > 1)
    return any(
        _comes_closer(bench, instance, size, index, group, power)
        for group in groups
        for power in (1, -1)
    )


def _comes_closer(
    bench: Bench, instance: Instance, size: Size, index: int, group: list[int], power: int
) -> bool:
    """Return whether the sides come closer if some arrays grow (power 1), or shrink (-1)."""
    leaves = [np.asarray(x) for x in jax.tree.leaves(dict(instance))]
    factors = np.array([1.0, *OUT, *BACK]) ** power
    with np.errstate(all="ignore"):
        moved = [_changed(instance, {i: leaves[i] * f for i in group}) for f in factors]
    there = projected(bench, size)(concatenate(list(map(batch_of, moved))))
    for i in group:  # a set may stop an array
        last, wanted = _largest(jax.tree.leaves(there)[i][len(OUT)]), _largest(leaves[i])
        if not 0.5 <= last / (wanted * factors[len(OUT)] or 1.0) <= 2:
            return False
    m = bench(there, size).column(index)
    gap = np.where(m.counted, 1 - m.value, np.nan)
    out, back = gap[: 1 + len(OUT)], gap[1 + len(OUT) :]
    closer = np.all(np.diff(out) <= NEAR * TINY) and not np.isnan(out).any()
    return bool(closer and np.nanmax(back, initial=-np.inf) > FALLS)


def _is_beside_an_excluded_point(bench: Bench, instance: Instance, size: Size, index: int) -> bool:
    """Return whether the sides stay close up to an excluded point near the instance.

    The excluded point misses a hypothesis. Its sides are equal, or come closer on the way to it.
    """
    many = list(_nearby(bench, instance, size))
    if not many:
        return False
    m = _measured(bench, [instance, *many], size, index)
    with np.errstate(invalid="ignore"):
        gap = np.abs(m.lhs - m.rhs)
        equal = gap <= LAST * np.maximum(np.abs(m.lhs), np.abs(m.rhs))
    unknown = ~np.isfinite(gap)  # such as 0 / 0
    for at in np.flatnonzero((~m.met & (equal | unknown))[1:]):
        way = [jax.tree.map(lambda x, y, f=f: x + f * (y - x), instance, many[at])
               for f in (*WAY, END)]  # fmt: skip
        *apart, last = 1 - _measured(bench, way, size, index).value
        own = 1 - m.value[0]
        if equal[1 + at] and np.all(np.array(apart) <= max(FALLS, own)):
            return True
        comes = np.all(np.diff([own, *apart, last]) <= 0) and last <= (1 - END) * TIMES * own
        if unknown[1 + at] and comes:
            return True
    return False


def _nearby(bench: Bench, instance: Instance, size: Size) -> Iterator[Instance]:
    """Yield points near the instance: with rounded entries, zeros, or entries at ends of sets."""
    leaves = [np.asarray(x) for x in jax.tree.leaves(dict(instance))]
    floats = [i for i, x in enumerate(leaves) if is_float(x) and x.size]
    groups = [[i] for i in floats] + [floats] * (len(floats) > 1)
    beside = lambda new, i: np.all(np.abs(new - leaves[i]) <= BESIDE * (1 + np.abs(leaves[i])))
    for group in groups:
        options = [{i: np.round(leaves[i], places) for i in group} for places in DIGITS]
        large = lambda i, share: np.abs(leaves[i]) > share * _largest(leaves[i])
        options += [{i: leaves[i] * large(i, share) for i in group} for share in SMALL]
        for sign in (1, -1):
            steps = {i: sign * BESIDE * (1 + np.abs(leaves[i])) for i in group}
            pushed = _changed(instance, {i: leaves[i] + steps[i] for i in group})
            back = [x[0] for x in jax.tree.leaves(projected(bench, size)(batch_of(pushed)))]
            stopped = lambda i, back=back, steps=steps: (
                np.abs(back[i] - leaves[i]) < np.abs(steps[i]) / 2
            )
            options.append({i: np.where(stopped(i), back[i], leaves[i]) for i in group})
        for new in options:
            if all(beside(x, i) for i, x in new.items()) and any(
                not np.array_equal(x, leaves[i]) for i, x in new.items()
            ):
                yield _changed(instance, new)


def _is_largest(bench: Bench, instance: Instance, size: Size, index: int, least: float) -> bool:
    """Return whether the ratio is not larger at any of many neighbours of the instance."""
    rng, leaves = np.random.default_rng(0), [np.asarray(x) for x in jax.tree.leaves(dict(instance))]
    floats = [i for i, x in enumerate(leaves) if is_float(x) and x.size]
    if not floats:
        return False

    def neighbour(step: float) -> Instance:
        apart = lambda x: step * (_largest(x) or 1.0) * rng.normal(size=x.shape)
        return _changed(instance, {i: leaves[i] + apart(leaves[i]) for i in floats})

    many = [neighbour(step) for step in STEPS for _ in range(NEIGHBOURS)]
    there = projected(bench, size)(concatenate(list(map(batch_of, many))))
    m = bench(there, size).column(index)
    larger = m.counted & (m.value > 1 - least * (1 - SLACK))
    return bool(np.any(m.counted)) and not np.any(larger)
