"""Suprema that the ratio approaches along a scale and that no instance reaches.

The search starts from an instance whose sides nearly agree. The search scales arrays up and down
and brings them together. The supremum lies at the end of a way under three conditions. The ratio
stays on the way and falls on the way back, no end of the way has equal sides, and the sides at the
end certainly differ.
"""

import contextlib
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Size
from jaxbounds.falsification.bench import Bench, Column, Pool, batch_of, concatenate, take
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import is_float
from jaxbounds.falsification.scales import judged
from jaxbounds.falsification.second_opinion import Asked, Referee, meets_at_the_set
from jaxbounds.programs.interpreted import NotInterpreted

STEPS = (1, 2, 4, 8)
"""Binary logarithms of the scales that are looked at on each way; more see slower approaches."""
BACK = (1, 4, 8, 16, 24, 48, 96, 192, 384)
"""Binary logarithms of the scales tried on each way back; more scales see slower approaches."""
CLOSE, FALLS = 1e-6, 1e-5
"""How near one a ratio stays, and how far below one it falls; a larger gap between the two takes
more approaches for equality cases."""
FLOOR = 1e-13
"""Relative difference to one that rounding leaves at an end of a set. A larger value takes more
ends for equality cases."""
ROUNDED = 1e-12
"""Relative difference to one that rounding leaves at the point of a set beside the end of a way. A
larger value takes more such points for equality cases."""
LEAST = 1e-154
"""The least side, in the units of the claim, whose ratio is trusted on a way: the square root of
the least normal float64. A larger value trusts fewer instances near zero."""
ENDS = 3
"""Ends at which the referee is asked whether the sides agree; more take seconds each."""
TRIED = 64
"""Instances with equal sides that are looked through for plain ones; more take longer."""
PLAIN = 1e6
"""Largest absolute value, and inverse of the least, of the entries of a plain instance other than
zeros. The referee encloses both sides of a plain instance unless one is undefined. A larger value
asks at more instances.
"""
LEAVES = 6
"""Arrays of floats at most for which each array is also scaled alone. A larger number tries more
ways.
"""


class _Way(NamedTuple):
    """A way along a scale through an instance.

    Attributes:
        words: the description of the way in print.
        out: the instances on the way.
        back: the instances on the way back.
        end: the instance at the end of the way; None where the way has no end.
    """

    words: str
    out: list[Instance]
    back: list[Instance]
    end: Instance | None


def _ways(instance: Instance) -> Iterator[_Way]:
    paths, structure = jax.tree_util.tree_flatten_with_path(dict(instance))
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
    leaves = [np.asarray(leaf) for _, leaf in paths]
    moving = [i for i, leaf in enumerate(leaves) if is_float(leaf) and np.any(leaf)]

    def rebuilt(changed: dict[int, np.ndarray]) -> Instance:
        return jax.tree.unflatten(structure, [changed.get(i, v) for i, v in enumerate(leaves)])

    def scaled(group: list[int], factor: float) -> Instance:
        return rebuilt({i: leaves[i] * factor for i in group})

    def closer(i: int, j: int, factor: float) -> Instance:
        middle, half = (leaves[i] + leaves[j]) / 2, (leaves[i] - leaves[j]) / 2
        return rebuilt({i: middle + factor * half, j: middle - factor * half})

    alone = [[i] for i in moving] if 1 < len(moving) <= LEAVES else []
    for group in [*alone, moving] if moving else []:
        named = ", ".join(names[i] for i in group)
        up = lambda m, group=group: scaled(group, 2.0**m)
        yield _Way(f"{named} to infinity", list(map(up, STEPS)), [up(-m) for m in BACK], None)
        end = scaled(group, 0.0)
        yield _Way(f"{named} to 0", [up(-m) for m in STEPS], list(map(up, BACK)), end)
    for i, j in itertools.combinations(moving[:LEAVES], 2):
        if leaves[i].shape == leaves[j].shape:
            at = lambda m, i=i, j=j: closer(i, j, 2.0**m)
            out, back, end = [at(-m) for m in STEPS], list(map(at, BACK)), closer(i, j, 0.0)
            yield _Way(f"{names[i]} - {names[j]} to 0", out, back, end)


def _along(
    bench: Bench, instance: Instance, size: Size, form: int, value: float
) -> tuple[str, list[Instance]]:
    """Return the way along which the ratio stays, and before which the ratio falls.

    The words are empty where there is no such way. The list holds the ends of all ways at which the
    ratio is near one.
    """
    with np.errstate(all="ignore"):
        ways = list(_ways(instance))
    every = [one for way in ways for one in (*way.out, *way.back, way.end or instance)]
    if not every:
        return "", []
    batch = projected(bench, size)(concatenate(list(map(batch_of, every))))
    m = bench(batch, size).column(form)
    both = (m.lhs != 0) | (m.rhs != 0)
    # Products of three small numbers underflow, and the ratio of an equality case then falls.
    sound = np.maximum(np.abs(m.lhs), np.abs(m.rhs)) >= LEAST
    ratios = np.where(m.counted & ~np.isnan(m.value) & sound, m.value, np.nan)
    each = len(STEPS) + len(BACK) + 1
    entries = sum(np.size(leaf) for leaf in jax.tree.leaves(instance))
    words, at_ends = "", list[Instance]()
    for k, way in enumerate(ways):
        first = k * each
        out = ratios[first : first + len(STEPS)]
        back = ratios[first + len(STEPS) : first + each - 1]
        last = first + each - 1
        ends = way.end is not None and both[last] and ratios[last] >= 1 - CLOSE
        ends = ends and _are_equal(way.end or {}, take(batch, last))
        stuck = _are_equal(instance, take(batch, first))
        # The set may have its own point there, at which both sides are equal up to rounding.
        if way.end is not None and both[last] and not ends and ratios[last] >= 1 - ROUNDED:
            at_ends.insert(0, take(batch, last))
        # Beside other numbers an end of a set may be an equality case that is not met exactly.
        if ends:
            at_ends.append(take(batch, last))
        if words or ends or (stuck and entries > 1 and not abs(value - 1) <= FLOOR):
            continue
        stays = np.all(np.isnan(out) | (out >= 1 - CLOSE)) and not np.all(np.isnan(out))
        if stays and np.nanmin(back, initial=np.inf) < 1 - FALLS:
            words = way.words
    return words, at_ends


def _are_equal(one: Instance, other: Instance) -> bool:
    leaves = zip(jax.tree.leaves(dict(one)), jax.tree.leaves(dict(other)), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


def _is_plain(instance: Instance) -> bool:
    leaves = [x for x in jax.tree.leaves(instance) if is_float(x)]
    sizes = np.concatenate([np.abs(np.ravel(x)) for x in leaves] or [np.zeros(0)])
    sizes = sizes[sizes > 0]
    return bool(np.all((sizes >= 1 / PLAIN) & (sizes <= PLAIN)))


def plain_equalities(
    bench: Bench, pool: Pool, column: Column, index: int, value: np.ndarray, /
) -> Iterator[tuple[Instance, Size]]:
    """Yield a few plain instances at which floats give equal sides: they may be equality cases.

    Two sides that are zero count for a bound by zero, where the terms of the sides are larger.
    """
    m, found = column.measured, 0
    by_zero = any(np.all(side[m.counted] == 0) for side in (m.lhs, m.rhs))
    zeros = m.counted & (m.lhs == 0) & (m.rhs == 0)
    gap = np.where(zeros, 0.0 if by_zero else np.inf, np.abs(value - 1))
    rows = np.flatnonzero(gap <= ROUNDED)
    for row in map(int, rows[np.argsort(gap[rows], kind="stable")[:TRIED]]):
        instance, size = pool.instance(row), Size(bench.statement.sizes[column.sizes[row]])
        if not _is_plain(instance):
            continue
        if m.lhs[row] == 0 and m.rhs[row] == 0:
            with contextlib.suppress(NotInterpreted):
                if judged(bench, batch_of(instance), size, index).scale[0] > 0:
                    found += 1
                    yield instance, size
        else:
            found += 1
            yield instance, size
        if found == ENDS:
            return


def approached(
    bench: Bench, pool: Pool, column: Column, index: int, form: Form, referee: Asked, /
) -> str:
    """Return the way along which a form's ratio comes to one.

    The words are empty where an instance may reach one.

    Args:
        bench: the bench that measures.
        pool: the pool of instances.
        column: the form's column.
        index: the form's index.
        form: a bound whose ratio comes near one.
        referee: the referee who decides whether the sides certainly differ.
    """
    statement, m = bench.statement, column.measured
    if statement.host or not statement.is_bound or statement.there_is is not None:
        return ""
    value = np.where(m.counted & ~np.isnan(m.value), m.value, -np.inf)
    near = np.flatnonzero((value >= 1 - CLOSE) & ((m.lhs != 0) | (m.rhs != 0)))
    if not len(near):
        return ""
    for instance, size in plain_equalities(bench, pool, column, index, value):
        found = referee(statement, form, instance, size)
        if found.equal or not (found.strict or found.meeting):
            return ""
    # Far out balls cannot tell the sides apart, near by they can: where the ratio is less.
    words, said = "", list[Referee]()
    for row in (int(near[np.argmax(value[near])]), int(near[np.argmin(value[near])])):
        instance, size = pool.instance(row), Size(statement.sizes[column.sizes[row]])
        words, at_ends = _along(bench, instance, size, index, float(value[row]))
        # An end of another way may be an equality case: the same one, where scales do not matter.
        strict = lambda end, size=size: (
            referee(statement, form, end, size).strict
            and not meets_at_the_set(statement, form, end, size, referee)
        )
        if not words or not all(map(strict, at_ends[:ENDS])):
            return ""
        said.append(referee(statement, form, instance, size))
    return words if said[1].strict and not said[0].equal else ""
