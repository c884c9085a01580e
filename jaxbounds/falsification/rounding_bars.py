"""How far noted values may move by rounding alone, on any platform.

The size of the terms that a value sums, times some units of rounding. NumPy finds that size where
it runs the program (`summands`). A program on the host, or a long one, is run a few times more: on
instances beside the noted ones, and with the processor rounding up, down and towards zero.
"""

import contextlib
import ctypes
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Instance, Statement
from jaxbounds.falsification.bench import STORED, Bench, batch_of, take
from jaxbounds.falsification.evaluation import Reading, is_floating
from jaxbounds.falsification.measure import float64_on_cpu
from jaxbounds.falsification.noted_values import DRAWN, Numbers, Row, noted, values_of
from jaxbounds.falsification.noting import Few, noted_rows
from jaxbounds.falsification.programs import MANY, UNKEPT, Programs
from jaxbounds.falsification.scales import SHAKES, UNITS
from jaxbounds.falsification.summands import GRID, MOVED, has_jumps, shaken, terms
from jaxbounds.programs.interpreted import NotInterpreted
from jaxbounds.programs.traces import equations, executed

PRINTED = 1e-13
"""Relative: by how much a value on record may be off, as it is written with 13 digits."""
LONGEST, MOST = 100_000, 2**22
"""Equations that run, and numbers in an array, of a program whose terms NumPy finds: a longer one
takes minutes, and is moved instead."""
HIDDEN = 1e300
"""The size of terms where a run met no number: nothing can be said about such a value."""
OFTEN = 1e-8
"""Relative: the least bar of a program that NumPy does not run step by step. Its solvers and long
runs stop at about 1e-9, at another point on each processor. A larger bar hides smaller changes of a
formula."""
WORST, RESIDUAL = 1e6, 1e-12
"""How much larger than the sides the terms of a program on the host may be; and a move that is
rounding in any case, as sides that cancel are. Larger numbers take more steps for rounding."""
_MODES = (0x400, 0x800, 0xC00)
"""Modes of C's `fesetround` on x86: down, up, towards zero."""
_NEAREST = 0


class Bars(NamedTuple):
    """Noted values of one form, by instance and name, and how far each may move.

    Attributes:
        values: as `Verdict.values` has them.
        bars: the same containers; infinite where a rounding decides the value.
    """

    values: dict[str, dict[str, Numbers]]
    bars: dict[str, dict[str, Numbers]]


@contextlib.contextmanager
def _rounding(mode: int) -> Iterator[None]:
    """For the length of a `with` block this thread rounds otherwise, where the platform lets it."""
    try:
        turn = ctypes.CDLL(None).fesetround
    except (OSError, AttributeError, TypeError):
        yield
        return
    turn(mode)
    try:
        yield
    finally:
        turn(_NEAREST)


def _beside(instance: Instance, seed: int, way: int) -> Instance:
    """An instance whose floats are off by `MOVED`; those of few digits mean themselves."""
    rng = np.random.default_rng(seed)

    def moved(leaf: Any) -> Any:
        leaf = np.asarray(leaf) if not hasattr(leaf, "dtype") else leaf
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended) or not is_floating(leaf.dtype):
            return leaf
        leaf = np.asarray(leaf)
        short = ~np.isfinite(leaf) | (leaf * GRID == np.round(leaf * GRID))
        part = rng.uniform(0.5, 1.0, leaf.shape) * rng.choice((-1.0, 1.0), leaf.shape)
        return np.where(short, leaf, leaf * (1 + way * MOVED * part)).astype(leaf.dtype)

    return jax.tree.map(moved, instance)


Run = Callable[[Instance], Reading]


def _moves(run: Run, instance: Instance) -> Iterator[tuple[Reading, float]]:
    """Readings beside that of an instance, and by how much each step was off, relatively.

    A program may refuse what is beside an instance: that says nothing about rounding.
    """
    for seed, way in ((1, 1), (1, -1), (2, 1), (2, -1)):
        with contextlib.suppress(Exception):
            yield run(_beside(instance, seed, way)), MOVED
    for mode in _MODES:
        with contextlib.suppress(Exception), _rounding(mode):
            yield run(instance), 2.0**-53


Found = list[tuple[Row, Row]]
"""The values of each noted row, and the sizes of their terms."""


def _joined(one: Row, other: Row, join: Callable[[float, float], float]) -> Row:
    """The values of two rows joined one by one; what the first alone has is left as it is."""

    def both(a: dict[str, Numbers], b: dict[str, Numbers]) -> dict[str, Numbers]:
        fits = lambda n: n in b and len(b[n]) == len(a[n])
        return {n: tuple(map(join, a[n], b[n])) if fits(n) else a[n] for n in a}

    forms = tuple(map(both, one.of_forms, other.of_forms))
    return one._replace(of_forms=forms, judged=both(one.judged, other.judged))


def _apart(a: float, b: float) -> float:
    return abs(a - b) if math.isfinite(a) and math.isfinite(b) else 0.0


def _largest(row: Row) -> Row:
    """The absolute values of a row."""
    return _joined(row, row, lambda a, _: abs(a) if math.isfinite(a) else 0.0)


def _by_moves(bench: Bench, few: Few) -> Found:
    """Of a program that is run a few times more."""
    reader = bench.reader(few.size)
    run: Run = bench.watch.calls(reader)
    if not bench.statement.host:
        many = bench.programs(reader, "noted", few.size, calls=MANY, watch=bench.watch)
        run = lambda one: jax.tree.map(lambda leaf: np.asarray(leaf)[0], many(batch_of(one)))
    bench.watch.notes, found = True, []
    note = lambda reading, row: noted(bench.statement, [reading], few.at, [row])[0]
    for i, row in enumerate(few.rows):
        instance = take(few.batch, i)
        value = note(jax.tree.map(np.asarray, run(instance)), row)
        scale = _joined(_largest(value), value, lambda size, _: max(size, size * OFTEN / UNITS))
        for reading, step in _moves(run, instance):
            other = note(jax.tree.map(np.asarray, reading), row)
            other = _joined(value, _joined(value, other, lambda _, b: b), _apart)
            scale = _joined(scale, _without_steps(value, other, step), max)
        found.append((value, scale))
    return found


def _without_steps(value: Row, moved: Row, step: float) -> Row:
    """The sizes of terms by which values moved; a move too large for any rounding counts as none.

    A program on the host takes steps at exact numbers, as ceil(log2(4)) is one. Beside them it
    takes others, which no platform does.

    Args:
        value: of the instance.
        moved: by how much each number moved.
        step: by how much the program was off, relatively.
    """

    def sizes(numbers: dict[str, Numbers], far: dict[str, Numbers]) -> dict[str, Numbers]:
        finite = [abs(x) for row in numbers.values() for x in row if math.isfinite(x)]
        most = max(WORST * step * max(finite, default=0.0), RESIDUAL)
        return {n: tuple(x / step if x <= most else 0.0 for x in row) for n, row in far.items()}

    forms = tuple(map(sizes, value.of_forms, moved.of_forms))
    alone = {n: sizes({n: value.judged[n]}, {n: far})[n] for n, far in moved.judged.items()}
    return moved._replace(of_forms=forms, judged=alone)


def _is_long(program: Any) -> bool:
    arrays = (v for eqn in equations(program) for v in eqn.outvars)
    most = max((math.prod(getattr(v.aval, "shape", ())) for v in arrays), default=0)
    return most > MOST or executed(program) > LONGEST


def _by_terms(bench: Bench, few: Few) -> Found:
    """Of a program that NumPy runs.

    Raises:
        NotInterpreted: if NumPy does not run it, or would take long.
    """
    batch = jax.tree.map(jnp.asarray, few.batch)
    bench.watch.notes = True
    traced = jax.jit(jax.vmap(bench.watch.calls(bench.reader(few.size)))).trace(batch)
    if _is_long(traced.jaxpr.jaxpr):
        raise NotInterpreted("a program that runs too long in NumPy")
    measured = terms(traced, batch)

    def known(value: Any, scale: Any) -> np.ndarray:
        value, scale = np.asarray(value), np.asarray(scale, float)
        finite = np.isfinite(np.asarray(value, float))
        return np.where(finite & ~np.isfinite(scale), HIDDEN, scale)

    def rows_in(reading: Reading) -> list[Row]:
        one = lambda i: jax.tree.map(lambda leaf: np.asarray(leaf)[i], reading)
        read = [one(i) for i in range(len(few.rows))]
        return noted(bench.statement, read, few.at, few.rows)

    values = rows_in(measured.values)
    scales = rows_in(jax.tree.map(known, measured.values, measured.sizes))
    if has_jumps(traced.jaxpr):
        for seed in range(1, 1 + SHAKES):
            others = rows_in(shaken(traced, batch, seed))
            scales = [
                _joined(scale, _joined(value, other, _apart), _unless_decided)
                for value, other, scale in zip(values, others, scales)
            ]
    return list(zip(values, map(_largest, scales)))


def _unless_decided(scale: float, moved: float) -> float:
    """The size of the terms, unless a rounding moved the value by more than that explains."""
    return HIDDEN if moved > UNITS * scale else scale


def _bar(value: float, scale: float) -> float:
    if scale >= HIDDEN / 2:
        return math.inf
    return UNITS * scale + PRINTED * (abs(value) if math.isfinite(value) else 0.0)


def noted_with_bars(
    statement: Statement, /, *, seed: int = 0, programs: Programs = UNKEPT
) -> tuple[Bars, ...]:
    """For each form its noted values, and how far each may move by rounding.

    Args:
        statement: any statement.
        seed: of the draws.
        programs: compiles, and may keep what was drawn.
    """
    values: list[Row] = []
    bars: list[Row] = []
    with float64_on_cpu():
        bench = Bench(statement, DRAWN, programs, calls=STORED)
        for few in noted_rows(bench, seed):
            try:
                found = _by_moves(bench, few) if statement.host else _by_terms(bench, few)
            except NotInterpreted:
                found = _by_moves(bench, few)
            values += [value for value, _ in found]
            bars += [_joined(value, scale, _bar) for value, scale in found]
    return tuple(
        Bars(values_of(statement, values, i), values_of(statement, bars, i))
        for i in range(len(statement.forms))
    )
