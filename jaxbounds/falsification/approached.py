"""Find suprema of lhs / rhs that a sequence of instances approaches without reaching them.

The search starts from an instance whose sides nearly agree, and builds sequences that scale arrays
or bring two arrays together. The ratio lhs / rhs must tend to one along the sequence, and fall in
the opposite direction. Ball arithmetic must prove that the sides differ at the sequence's last
instance.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Size
from jaxbounds.falsification.bench import (
    Bench,
    Column,
    Pool,
    batch_of,
    concatenate,
    length,
    take,
)
from jaxbounds.falsification.measure import UNITS
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import is_float
from jaxbounds.falsification.scales import judged, sizes_of_terms
from jaxbounds.falsification.second_opinion import Asked, Referee, meets_at_the_set
from jaxbounds.programs.interpreted import NotInterpreted

STEPS = (1, 2, 4, 8)
"""Binary logarithms of the factors that scale an instance's arrays. More factors find slower
approaches to equal sides."""
BACK = (1, 4, 8, 16, 24, 48, 96, 192, 384)
"""Binary logarithms of the factors that move arrays away from a limit with equal sides. More
factors find slower approaches."""
CLOSE, FALLS = 1e-6, 1e-5
"""Distances from 1. The last values of lhs / rhs must lie within CLOSE of 1, and inverse scale
factors must lower lhs / rhs by FALLS. A larger FALLS finds fewer approaches to equal sides."""
CLOSER = 0.9
"""The last ratio's distance from one must be at most this share of the first ratio's distance. A
larger share accepts more sequences on which lhs / rhs does not tend to one."""
FLOOR = 1e-13
"""Rounding may move lhs / rhs this far from one at an endpoint of a set. A larger value counts more
endpoints as instances with equal sides."""
ROUNDED = 1e-12
"""The sides count as equal if lhs / rhs differs from 1 by at most this value. A larger value
accepts more instances."""
EQUAL, MOST = 1e-15, 512
"""Floats find sides equal if lhs / rhs is within EQUAL of one; the search compares the entries of
at most MOST of these instances. A larger EQUAL asks about more instances, and a larger MOST
takes longer."""
POWERS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Powers of the absolute entries; the first powers move the entries nearest to one. More powers
find instances at which the sides differ more, and take longer."""
ALL = 8
"""A claim is an equality at some shapes if this many instances of these shapes have equal sides. A
larger ALL counts fewer claims as equalities at some shapes."""
LEAST = 1e-154
"""The search ignores an instance if both sides are below LEAST, about the square root of the least
normal float64. A larger value ignores more instances near zero."""
ENDS = 3
"""Ball arithmetic compares the sides at the ends of at most this many sequences. Each comparison
takes seconds, so a larger number takes longer."""
TRIED = 64
"""The search examines at most this many instances with equal sides. A larger number takes longer.
"""
PLAIN = 1e6
"""Bound on the nonzero entries of a plain instance, whose absolute values lie between 1 / PLAIN and
PLAIN. A larger value counts more instances as plain."""
FAR = 2.0 ** (max(STEPS) - 1)
"""An array tends to 0 or infinity if a sequence changes it by at least this factor. A larger value
counts more arrays as stopped by the set that the claim declares."""
LEAVES = 6
"""If an instance has at most this many float arrays, the search also scales each array alone. A
larger number tries more sequences."""


class _Way(NamedTuple):
    """A sequence of instances in which arrays grow, shrink or meet from step to step.

    Attributes:
        words: a function from the names of the moved arrays to a name such as "x to 0".
        moved: a function from an instance to the size of each array that moves, by name.
        out: the instances of the sequence.
        back: instances in the opposite direction.
        end: the limit of the sequence; None if arrays tend to infinity.
    """

    words: Callable[[list[str]], str]
    moved: Callable[[Instance], dict[str, float]]
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

    def sizes(group: list[int], one: Instance) -> dict[str, float]:
        new = jax.tree.leaves(dict(one))
        return {names[i]: float(np.max(np.abs(new[i]))) for i in group}

    def apart(i: int, j: int, one: Instance) -> dict[str, float]:
        new = jax.tree.leaves(dict(one))
        return {f"{names[i]} - {names[j]}": float(np.max(np.abs(new[i] - new[j])))}

    alone = [[i] for i in moving] if 1 < len(moving) <= LEAVES else []
    for group in [*alone, moving] if moving else []:
        of = lambda one, group=group: sizes(group, one)
        up = lambda m, group=group: scaled(group, 2.0**m)
        yield _Way(_to_infinity, of, list(map(up, STEPS)), [up(-m) for m in BACK], None)
        end = scaled(group, 0.0)
        yield _Way(_to_zero, of, [up(-m) for m in STEPS], list(map(up, BACK)), end)
    for i, j in itertools.combinations(moving[:LEAVES], 2):
        if leaves[i].shape == leaves[j].shape:
            at = lambda m, i=i, j=j: closer(i, j, 2.0**m)
            out, back, end = [at(-m) for m in STEPS], list(map(at, BACK)), closer(i, j, 0.0)
            distance = functools.partial(apart, i, j)
            yield _Way(_to_zero, distance, out, back, end)


def _to_infinity(names: list[str]) -> str:
    return f"{', '.join(names)} to infinity"


def _to_zero(names: list[str]) -> str:
    return f"{', '.join(names)} to 0"


def _said(way: _Way, start: Instance, last: Instance, *, stops: bool) -> str:
    before, after = way.moved(start), way.moved(last)
    with np.errstate(all="ignore"):
        moves = {n: max(after[n] / before[n], before[n] / after[n]) >= FAR if after[n] else True
                 for n in before if before[n]}  # fmt: skip
    if arrived := [name for name, moved in moves.items() if moved]:
        return (
            f"the ratio comes to one with {way.words(arrived)}, and no measured instance reaches it"
        )
    where = " and ".join(before)
    place = f"at an end of the set of {where}" if stops else f"as the search scales {where}"
    return f"the ratio comes close to one {place}, and no measured instance reaches it"


def _along(
    bench: Bench, instance: Instance, size: Size, form: int, value: float, *, is_worst: bool
) -> tuple[str, list[Instance]]:
    """Find a sequence of instances on which lhs / rhs comes closer to one.

    If `is_worst` is false, lhs / rhs need only stay near one. The function returns a description of
    the sequence (or ""), and the sequences' limits at which lhs / rhs is near one.
    """
    with np.errstate(all="ignore"):
        ways = list(_ways(instance))
    every = [one for way in ways for one in (*way.out, *way.back, way.end or instance)]
    if not every:
        return "", []
    batch = projected(bench, size)(concatenate(list(map(batch_of, every))))
    m = bench(batch, size).column(form)
    both = (m.lhs != 0) | (m.rhs != 0)
    # Products of small numbers may underflow, and the ratio of an equality case then falls. Sides
    # that are rounding of their terms have no ratio.
    sound = np.maximum(np.abs(m.lhs), np.abs(m.rhs)) >= np.maximum(
        LEAST, _rounding(bench, batch, size, form)
    )
    ratios = np.where(m.counted & ~np.isnan(m.value) & sound, m.value, np.nan)
    each = len(STEPS) + len(BACK) + 1
    tolerance = bench.statement.tolerance
    left = max(tolerance, CLOSER * (1 - value)) if is_worst else CLOSE
    # A single number may stop at the end of its set, where the ratio is one up to the tolerance.
    entries = sum(np.size(leaf) for leaf in jax.tree.leaves(instance))
    stops = tolerance if is_worst else CLOSE
    at_end = abs(value - 1) <= (FLOOR if entries > 1 else stops)
    words, at_ends = "", list[Instance]()
    for k, way in enumerate(ways):
        first = k * each
        out = ratios[first : first + len(STEPS)]
        back = ratios[first + len(STEPS) : first + each - 1]
        last = first + each - 1
        ends = way.end is not None and both[last] and ratios[last] >= 1 - CLOSE
        ends = ends and _are_equal(way.end or {}, take(batch, last))
        stuck = _are_equal(instance, take(batch, first))
        # The projection of the end may be a point at which both sides agree up to rounding.
        if way.end is not None and both[last] and not ends and ratios[last] >= 1 - ROUNDED:
            at_ends.insert(0, take(batch, last))
        # The end may be an equality case that floats reach only up to rounding.
        if ends:
            at_ends.append(take(batch, last))
        if words or ends or (stuck and not at_end):
            continue
        measured = out[~np.isnan(out)]
        tends = len(measured) > 0 and np.all(measured >= 1 - CLOSE) and measured[-1] >= 1 - left
        if tends and np.nanmin(back, initial=np.inf) < 1 - FALLS:
            counted = int(np.flatnonzero(~np.isnan(out))[-1])
            final = first + len(STEPS) - 1
            stops = _are_equal(take(batch, final), take(batch, final - 1))
            words = _said(way, instance, take(batch, first + counted), stops=stops)
    return words, at_ends


def _rounding(bench: Bench, batch: Instance, size: Size, form: int) -> np.ndarray:
    """Return sizes above which rounding hardly changes the ratio of the sides, one per instance."""
    with contextlib.suppress(NotInterpreted):
        return np.nan_to_num(sizes_of_terms(bench, batch, size, form)) * UNITS / CLOSE
    return np.zeros(length(batch))


def _are_equal(one: Instance, other: Instance) -> bool:
    leaves = zip(jax.tree.leaves(dict(one)), jax.tree.leaves(dict(other)), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


def _is_plain(instance: Instance) -> bool:
    leaves = [x for x in jax.tree.leaves(instance) if is_float(x)]
    sizes = np.concatenate([np.abs(np.ravel(x)) for x in leaves] or [np.zeros(0)])
    sizes = sizes[sizes > 0]
    return bool(np.all((sizes >= 1 / PLAIN) & (sizes <= PLAIN)))


def _of_size_one(bench: Bench, instance: Instance, size: Size) -> Instance:

    def scaled(leaf: np.ndarray) -> np.ndarray:
        largest = float(np.max(np.abs(leaf), initial=0.0)) if is_float(leaf) else 0.0
        sound = 0 < largest < np.inf
        return np.round(np.ldexp(leaf, 3 - int(np.log2(largest)))) / 8 if sound else leaf

    one = jax.tree.map(lambda leaf: scaled(np.asarray(leaf)), dict(instance))
    return take(projected(bench, size)(batch_of(one)), 0)


def plain_equalities(
    bench: Bench, pool: Pool, column: Column, index: int, value: np.ndarray, /
) -> Iterator[tuple[Instance, Size]]:
    """Yield a few plain instances (see `PLAIN`) at which the sides are equal in floats.

    Two zero sides count only if one side is always zero and the computation adds nonzero terms.
    """
    m, found = column.measured, 0
    by_zero = any(np.all(side[m.counted] == 0) for side in (m.lhs, m.rhs))
    zeros = m.counted & (m.lhs == 0) & (m.rhs == 0)
    gap = np.where(zeros, 0.0 if by_zero else np.inf, np.abs(value - 1))
    rows = np.flatnonzero(gap <= ROUNDED)
    for row in map(int, rows[np.argsort(gap[rows], kind="stable")[:TRIED]]):
        instance, size = pool.instance(row), Size(bench.statement.sizes[column.sizes[row]])
        if not _is_plain(instance):
            instance = _of_size_one(bench, instance, size)
            again = bench.one(instance, size).column(index)
            close = bool(again.counted) and abs(float(again.value) - 1) <= ROUNDED
            if not (close and _is_plain(instance)):
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


def _is_equality_at_a_size(column: Column, value: np.ndarray) -> bool:
    each = [value[(column.sizes == size) & np.isfinite(value)] for size in np.unique(column.sizes)]
    return any(len(part) >= ALL and np.max(np.abs(part - 1)) <= ROUNDED for part in each)


def may_be_equal(
    bench: Bench,
    pool: Pool,
    column: Column,
    index: int,
    form: Form,
    value: np.ndarray,
    referee: Asked,
    /,
) -> bool:
    """Return whether ball arithmetic cannot tell sides apart that floats find equal.

    The function asks at instances whose entries are near one in logarithms, because sides that only
    come close differ most there. Sides that are equal on a whole region stay equal there.
    """
    m = column.measured
    near = np.flatnonzero((value >= 1 - EQUAL) & ((m.lhs != 0) | (m.rhs != 0)))

    def apart(row: int) -> float:
        leaves = [np.ravel(x) for x in jax.tree.leaves(pool.instance(row)) if is_float(x)]
        entries = np.abs(np.concatenate(leaves or [np.zeros(0)]))
        return float(np.max(np.abs(np.log(entries[entries > 0])), initial=0.0))

    for row in sorted(map(int, near[:MOST]), key=apart)[:ENDS]:
        size = Size(bench.statement.sizes[column.sizes[row]])
        instance = _nearest_to_one(bench, pool.instance(row), size, index)
        if not referee(bench.statement, form, instance, size).strict:
            return True
    return False


def _nearest_to_one(bench: Bench, instance: Instance, size: Size, index: int) -> Instance:
    """Move entries towards one (or minus one) as far as floats find the sides equal."""

    def moved(leaf: np.ndarray, power: float) -> np.ndarray:
        return np.sign(leaf) * np.abs(leaf) ** power if is_float(leaf) else leaf

    many = [jax.tree.map(lambda x, p=p: moved(np.asarray(x), p), dict(instance)) for p in POWERS]
    there = projected(bench, size)(concatenate(list(map(batch_of, many))))
    m = bench(there, size).column(index)
    equal = m.counted & (m.value >= 1 - EQUAL) & ((m.lhs != 0) | (m.rhs != 0))
    return take(there, int(np.flatnonzero(equal)[0])) if np.any(equal) else instance


def approached(
    bench: Bench, pool: Pool, column: Column, index: int, form: Form, referee: Asked, /
) -> str:
    """Describe a sequence of instances on which lhs / rhs approaches one without reaching it.

    The result is empty if lhs / rhs may be one at an instance.
    """
    statement, m = bench.statement, column.measured
    if statement.host or not statement.is_bound or statement.there_is is not None:
        return ""
    if statement.estimates:  # an estimate may miss a supremum that attains equality
        return ""
    value = np.where(m.counted & ~np.isnan(m.value), m.value, -np.inf)
    near = np.flatnonzero((value >= 1 - CLOSE) & ((m.lhs != 0) | (m.rhs != 0)))
    if not len(near):
        return ""
    if _is_equality_at_a_size(column, value):
        return ""
    if may_be_equal(bench, pool, column, index, form, value, referee):
        return ""
    for instance, size in plain_equalities(bench, pool, column, index, value):
        found = referee(statement, form, instance, size)
        if found.equal or not (found.strict or found.meeting):
            return ""
    # Ball arithmetic can tell the sides apart where the ratio is smaller, but not at the end of a
    # way.
    words, way, said = "", "", list[Referee]()
    for row in (int(near[np.argmax(value[near])]), int(near[np.argmin(value[near])])):
        is_worst = not said
        instance, size = pool.instance(row), Size(statement.sizes[column.sizes[row]])
        words, at_ends = _along(bench, instance, size, index, float(value[row]), is_worst=is_worst)
        # The end of another way may be an equality case.
        strict = lambda end, size=size: (
            referee(statement, form, end, size).strict
            and not meets_at_the_set(statement, form, end, size, referee)
        )
        if not words or not all(map(strict, at_ends[:ENDS])):
            return ""
        way = way or words
        said.append(referee(statement, form, instance, size))
    return way if said[1].strict and not said[0].equal else ""
