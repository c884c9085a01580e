"""Error bars of recorded values: bounds on the changes that rounding alone causes on any platform.

An error bar is a few units in the last place of the sum of a value's absolute terms. For a long
program, or a program outside JAX, repeated runs with perturbed instances and other rounding modes
estimate the size of the terms.
"""

import contextlib
import ctypes
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
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
"""Relative error of a recorded value, which keeps 13 digits. A larger value hides larger changes of
a formula."""
LONGEST, MOST = 100_000, 2**22
"""NumPy runs a program step by step if it executes at most LONGEST equations, and each array has at
most MOST entries. If a limit is larger, one run may take minutes."""
HIDDEN = 1e300
"""The assumed size of terms if a run gave NaN, so that every change lies within the error bar. A
smaller size would leave some changes outside."""
OFTEN = 1e-8
"""Least relative error bar of a long program, because iterative solvers differ by 1e-9 between
processors. A larger bar hides larger changes."""
WORST, RESIDUAL = 1e6, 1e-12
"""If a program outside JAX changes a value by at most WORST times the perturbation, or RESIDUAL,
rounding explains the change. Larger values mistake more jumps for rounding."""
_MODES = (0x400, 0x800, 0xC00)
"""Modes of C's `fesetround` on x86: round down, up, towards zero."""
_NEAREST = 0
"""The x86 mode of C's `fesetround` that rounds to nearest; larger numbers are other modes."""


class Bars(NamedTuple):
    """The recorded values of one version of the claim, with their error bars.

    Attributes:
        values: the values, keyed by instance and then by name, as in `Verdict.values`.
        bars: the rounding error of each value, in the same containers as `values`; infinite if the
            value jumps when the summands are rounded differently.
    """

    values: dict[str, dict[str, Numbers]]
    bars: dict[str, dict[str, Numbers]]


@contextlib.contextmanager
def _rounding(mode: int) -> Iterator[None]:
    """Change this thread's rounding mode in a `with` block, if the platform supports it."""
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
    for seed, way in ((1, 1), (1, -1), (2, 1), (2, -1)):
        with contextlib.suppress(Exception):
            yield run(_beside(instance, seed, way)), MOVED
    for mode in _MODES:
        with contextlib.suppress(Exception), _rounding(mode):
            yield run(instance), 2.0**-53


Found = list[tuple[Row, Row]]
"""For each recorded instance, two rows: the recorded values, and the sizes of their terms."""


def _joined(one: Row, other: Row, join: Callable[[float, float], float]) -> Row:

    def both(a: dict[str, Numbers], b: dict[str, Numbers]) -> dict[str, Numbers]:
        fits = lambda n: n in b and len(b[n]) == len(a[n])
        return {n: tuple(map(join, a[n], b[n])) if fits(n) else a[n] for n in a}

    forms = tuple(map(both, one.of_forms, other.of_forms))
    return one._replace(of_forms=forms, judged=both(one.judged, other.judged))


def _apart(a: float, b: float) -> float:
    return abs(a - b) if math.isfinite(a) and math.isfinite(b) else 0.0


def _largest(row: Row) -> Row:
    return _joined(row, row, lambda a, _: abs(a) if math.isfinite(a) else 0.0)


def _by_moves(bench: Bench, few: Few) -> Found:
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
    """Return the sizes of terms that explain how a perturbation changes values.

    A change too large for rounding gets the size zero. A perturbation may cross a jump, such as
    ceil(log2(x)) at x = 4, but rounding on another platform does not.
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
    """Run the program in NumPy, and return its values with the sizes of their terms.

    Raises:
        NotInterpreted: if NumPy cannot run the program, or the run would take long.
    """
    batch = jax.device_put(few.batch)
    bench.watch.notes = True
    traced = jax.jit(jax.vmap(bench.watch.calls(bench.reader(few.size)))).trace(batch)
    if _is_long(traced.jaxpr.jaxpr):
        raise NotInterpreted(
            f"a program of more than equations={LONGEST} takes too long in NumPy. Try to estimate "
            f"the rounding from slightly changed inputs"
        )
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
    return HIDDEN if moved > UNITS * scale else scale


def _bar(value: float, scale: float) -> float:
    if scale >= HIDDEN / 2:
        return math.inf
    return UNITS * scale + PRINTED * (abs(value) if math.isfinite(value) else 0.0)


def noted_with_bars(
    statement: Statement, /, *, seed: int = 0, programs: Programs = UNKEPT
) -> tuple[Bars, ...]:
    """Return the recorded values of each version of the claim, with their error bars."""
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
