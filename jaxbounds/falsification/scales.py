"""Compare the sides of a claim relative to the size of the terms that they sum.

Rounding determines the digits of a side that is small relative to its terms. `summands` computes
the size of the terms; the error bar is a few units of rounding of this size.
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from jaxbounds.claims.statements import ON_AVERAGE, Instance, Size, Statement
from jaxbounds.falsification.bench import Bench, Column, Pool, batch_of, length, spread, take
from jaxbounds.falsification.cancellation import largest_entry
from jaxbounds.falsification.decide import edge, violation
from jaxbounds.falsification.evaluation import Reading, of_form, read
from jaxbounds.falsification.fixed_points import best_points, with_points
from jaxbounds.falsification.measure import UNITS, Measured
from jaxbounds.falsification.summands import MOVED, has_jumps, shaken, terms
from jaxbounds.programs.interpreted import NotInterpreted
from jaxbounds.programs.traces import equations, executed

LONGEST = 10_000
"""The engine computes the terms of a program that executes at most this many operations. A larger
number allows programs that take seconds."""
TOO_LONG = (
    f"a program of more than equations={LONGEST} takes too long in NumPy. Try a shorter evaluate"
)
MOST = 2**21
"""The engine computes the terms only if each array has at most this many numbers. A larger limit
takes more memory, because the engine holds five runs at once."""
FIRST = 64
"""The engine first checks this many of the largest violations. If one violation is more than
rounding, the engine skips the smaller violations. A larger number takes longer."""
MANY = 512
"""The engine measures instances with a NaN side again if there are at most this many. A larger
number takes longer."""
TINY = 1e-9
"""Both sides may be rounding if they are below this share of 1 + the largest entry. A larger share
measures more instances again."""
ROWS = 16
"""For an identity, the engine compares the sides entry by entry on this many instances. A larger
number finds more wrong entries and takes longer."""
NEARLY = 0.99
"""The sides of an instance count as equal if their ratio is above this value. A larger value counts
fewer instances as having equal sides."""
SHAKES = 16
"""If the program has jumps, a violation must persist in this many runs with other roundings. A
larger number excludes more violations that are only rounding."""
NEARBY = 1e-6
"""A difference of the sides above this multiple of 1 + the largest entry is more than rounding, if
rhs is positive. A larger multiple measures more violations again."""


class Judged(NamedTuple):
    """The compared sides of a claim version on some instances, relative to their terms.

    Attributes:
        value: the comparison of the sides (their ratio, for a bound), as in `Measured.value`.
        low: the least value that the errors allow.
        high: the greatest value that the errors allow.
        tells: whether the comparison decides the claim, because the error that `evaluate` states is
            small relative to the terms.
        scale: the size of the terms of both sides; for an identity, the largest over all entries.
        jumped: whether the sides violate the claim only by a jump that rounding may decide.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    tells: np.ndarray
    scale: np.ndarray
    jumped: np.ndarray


def is_looked_at(statement: Statement, /) -> bool:
    """Return whether the engine measures how large the summands of the claim's two sides are."""
    return _has_terms(statement) and statement.there_is is None


def _has_terms(statement: Statement) -> bool:
    exact = statement.relation in ("=", "<=", ">=") and statement.kind not in ON_AVERAGE
    return exact and not statement.host


def _is_long(program: Any) -> bool:
    work, arrays = executed(program), (v for eqn in equations(program) for v in eqn.outvars)
    most = max((math.prod(getattr(v.aval, "shape", ())) for v in arrays), default=0)
    return most > MOST or (math.isfinite(work) and work > LONGEST)


def traced_reading(bench: Bench, size: Size, batch: Instance) -> Any:
    """Trace the program that evaluates a batch of instances.

    Raises:
        NotInterpreted: if the program has too many operations for a run in NumPy.
    """
    key = "terms", size
    if key not in bench.traces:
        traced = jax.jit(jax.vmap(read(bench.statement, size))).trace(batch)
        bench.traces[key] = None if _is_long(traced.jaxpr.jaxpr) else traced
    if bench.traces[key] is None:
        raise NotInterpreted(TOO_LONG)
    return bench.traces[key]


def _traced(bench: Bench, size: Size, batch: Instance) -> tuple[Any, Any]:
    """Trace the program that evaluates a batch; a supremum may become a value at a point.

    Raises:
        NotInterpreted: if the program has too many operations for a run in NumPy.
    """
    with contextlib.suppress(NotInterpreted):
        return traced_reading(bench, size, batch), batch
    given = batch, best_points(bench.statement, batch, size)
    key = "terms at points", size
    if given[1] and key not in bench.traces:
        at = lambda i, points: read(with_points(bench.statement, points), size)(i)
        traced = jax.jit(jax.vmap(at)).trace(*given)
        bench.traces[key] = None if _is_long(traced.jaxpr.jaxpr) else traced
    if bench.traces.get(key) is None:
        raise NotInterpreted(TOO_LONG)
    return bench.traces[key], given


def parts_of(bench: Bench, batch: Instance) -> Iterator[tuple[Instance, int]]:
    """Yield padded parts of equal length, each with its number of unpadded instances."""
    total = length(batch)
    for start in range(0, total, bench.batch):
        index = np.minimum(np.arange(start, start + bench.batch), total - 1)
        yield take(batch, index), min(bench.batch, total - start)


def _joined(parts: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _flat(x: Any) -> np.ndarray:
    x = np.asarray(x, float)
    return x.reshape(len(x), -1)


def flat_sides(part: Reading, form: int, /) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both sides of a claim version, shape (instances, entries), and the stated errors."""
    left, right, error = (_flat(of_form(side, form)) for side in part[:3])
    return left, right, np.max(error, axis=1, initial=0.0)


def _compared(
    statement: Statement,
    sides: tuple[np.ndarray, np.ndarray],
    size: np.ndarray,
    error: np.ndarray,
    spread: Any = 0.0,
) -> Judged:
    """Compare the sides of many instances relative to the size of their terms, entry by entry.

    The array `spread` holds the changes of lhs - rhs if each operation rounds differently.
    """
    (left, right), stated = sides, error[:, None]
    bar = UNITS * size + stated + spread
    least = 2 * UNITS / statement.tolerance * size if statement.tolerance else size
    own = np.maximum(np.abs(left), np.abs(right))
    scale = np.maximum(own, np.minimum(least, size))
    if statement.relation == "=":
        allowed = (statement.tolerance or 1.0) / 2
        scale = np.maximum(scale, np.where(bar <= allowed * size, bar / allowed, 0.0))
        gap = np.abs(left - right)
        scale = np.where(gap <= bar, np.maximum(scale, size), scale)
        scale = np.where(scale > 0, scale, 1.0)
        most = lambda x: np.max(x, axis=1, initial=0.0)
        low = np.maximum(gap - bar, 0.0) / scale
        tells = np.all(stated <= allowed * np.maximum(own, size), axis=1)
        none = np.zeros(len(gap), bool)
        return Judged(
            most(gap / scale), most(low), most((gap + bar) / scale), tells, most(size), none
        )
    gap, plain = left - right, right >= np.maximum(np.minimum(least, size), bar)
    scale = np.where(gap <= bar, np.maximum(scale, size), scale)
    scale = np.where(scale > 0, scale, 1.0)
    over, zero = np.where(plain, right, scale), np.where(plain, 0.0, 1.0)
    above = np.where(plain, left, gap)
    of = lambda amount: (zero + amount / over)[:, 0]
    tells = (stated < np.maximum(own, size))[:, 0]
    none = np.zeros(len(gap), bool)
    return Judged(of(above), of(above - bar), of(above + bar), tells, size[:, 0], none)


def _unless(one: Judged, again: Judged, statement: Statement) -> Judged:
    apart = (one.low > edge(statement)) & ~(again.low > edge(statement))
    return Judged(*(np.where(apart, new, own) for new, own in zip(again, one)))


def sizes_of_terms(bench: Bench, batch: Instance, size: Size, form: int, /) -> np.ndarray:
    """Return the size of the terms that the sides sum on some instances; NaN if a run gave NaN.

    Raises:
        NotInterpreted: if NumPy cannot run the claim's program.
    """
    found = []
    # A move must exceed the rounding of the coarsest operation.
    amount = max(MOVED, math.sqrt(bench.watch.coarsest)) if bench.watch.narrow else MOVED
    for part, count in parts_of(bench, batch):
        left, right, _ = flat_sides(terms(*_traced(bench, size, part), amount).sizes, form)
        found.append(np.max(left + right, axis=1, initial=0.0)[:count])
    return np.concatenate(found)


def judged(bench: Bench, batch: Instance, size: Size, form: int, /) -> Judged:
    """Measure one claim version on some instances, relative to the size of the sides' terms.

    Rounding may decide a jump, such as a floor or a comparison. A violation therefore counts only
    if it persists under other roundings.

    Raises:
        NotInterpreted: if NumPy cannot run the claim's program.
    """
    statement, found = bench.statement, []
    with np.errstate(all="ignore"):
        for part, count in parts_of(bench, batch):
            traced, given = _traced(bench, size, part)
            measured = terms(traced, given)
            left, right, error = flat_sides(measured.values, form)
            of_left, of_right, _ = flat_sides(measured.sizes, form)
            sizes = of_left + of_right
            first = one = _compared(statement, (left, right), sizes, error)
            if np.any(one.low > edge(statement)) and has_jumps(traced.jaxpr):
                least = most = left - right
                for seed in range(1, 1 + SHAKES):
                    other = flat_sides(shaken(traced, given, seed), form)
                    gap = other[0] - other[1]
                    least, most = np.fmin(least, gap), np.fmax(most, gap)
                    again = _compared(statement, other[:2], sizes, other[2])
                    one = _unless(one, again, statement)
                again = _compared(statement, (left, right), sizes, error, most - least)
                one = _unless(one, again, statement)
                lost = (first.low > edge(statement)) & ~(one.low > edge(statement))
                one = one._replace(jumped=lost)
            found.append(Judged(*(field[:count] for field in one)))
    return _joined(found)


def _doubtful(statement: Statement, m: Measured, batch: Instance, large: bool) -> np.ndarray:
    if statement.relation == "=":
        return np.asarray(m.counted & (m.value > statement.tolerance))
    largest = largest_entry(batch, np, axes=1)
    with np.errstate(all="ignore"):
        small = (m.rhs <= 0) | (np.abs(m.lhs - m.rhs) <= NEARBY * (largest + 1.0))
        finite = np.isfinite(m.lhs - m.rhs)
    seems = m.counted & (m.value > 1 + statement.tolerance) & finite
    return np.asarray(seems & (small | large))


def _lost(m: Measured) -> np.ndarray:
    """Choose instances with a NaN side, which rounding may have put outside a function's domain."""
    return np.flatnonzero(m.counted & np.isnan(m.value) & (np.isnan(m.lhs) | np.isnan(m.rhs)))


def _noisy(
    statement: Statement, fields: dict[str, np.ndarray], m: Measured, batch: Instance
) -> np.ndarray:
    """Choose instances whose sides are so small that both may be rounding; a ratio says nothing."""
    if not statement.is_bound or statement.strict:
        return np.zeros(0, int)
    with np.errstate(all="ignore"):
        sides = np.maximum(np.abs(m.lhs), np.abs(m.rhs))
        tiny = (sides > 0) & (sides <= TINY * (largest_entry(batch, np, axes=1) + 1.0))
    rows = np.flatnonzero(fields["counted"] & tiny & (fields["value"] <= edge(statement)))
    return rows[np.argsort(-fields["value"][rows], kind="stable")[:MANY]]


def _zero(statement: Statement, form: int, m: Measured) -> np.ndarray:
    """Choose instances with one zero side and a small other side, if no instance has equal sides.

    A share of a zero side is zero, so only a share of the side's terms can make the claim false.
    """
    reached = np.any(m.counted & (m.value >= NEARLY))
    zeros = not np.any(m.counted & ((m.lhs != 0) | (m.rhs != 0)))
    sharp = bool(statement.forms[form].equality)
    if statement.relation == "=" or not (sharp or zeros) or reached:
        return np.zeros(0, int)
    rows = np.flatnonzero(m.counted & ((m.rhs == 0) | (m.lhs == 0)) & (m.value <= 1))
    other = np.maximum(np.abs(m.lhs[rows]), np.abs(m.rhs[rows]))
    return rows[np.argsort(other, kind="stable")[:FIRST]]


def _entries(bench: Bench, batch: Instance, size: Size, form: int, m: Measured) -> np.ndarray:
    rows = np.flatnonzero(m.counted & (m.value <= bench.statement.tolerance))
    if not len(rows):
        return rows
    rows = spread(rows, bench.batch)
    left, right, _ = flat_sides(bench.reading(take(batch, rows), size), form)
    if left.shape[1] < 2:
        return rows[:0]
    own = np.maximum(np.abs(left), np.abs(right))
    apart = np.sum(np.abs(left - right) > bench.statement.tolerance * own, axis=1)
    order = np.argsort(-apart, kind="stable")[:ROWS]
    return rows[order[apart[order] > 0]]


def _looked_at(
    bench: Bench, batch: Instance, size: Size, form: int, m: Measured, large: bool = False
) -> tuple[Measured, np.ndarray, np.ndarray]:
    """Measure doubtful (or all) violations relative to the terms; return the terms' sizes.

    The third result is the violation of an identity that a jump explains, if rounding may decide
    the jump; else -inf.
    """
    scale, searched = np.full(len(m.value), np.nan), np.isneginf(m.low)
    jumped = np.full(len(m.value), -np.inf)
    if bench.statement.there_is is not None:  # the sides belong to the best `there_is` entries
        promises = bench.promises(size)
        bench, batch = cast(Bench, promises.given), promises.filled(batch, form)
    statement = bench.statement
    fields = {name: np.array(getattr(m, name)) for name in ("value", "low", "high", "counted")}

    def take_over(rows: np.ndarray, new: Judged, kept: Any) -> None:
        rows, new = rows[kept], Judged(*(field[kept] for field in new))
        for name in ("value", "low", "high"):
            fields[name][rows] = getattr(new, name)
        fields["counted"][rows] = new.tells

    doubtful = np.flatnonzero(_doubtful(statement, m, batch, large))
    doubtful = doubtful[np.argsort(-m.value[doubtful], kind="stable")]
    for rows in (doubtful[:FIRST], doubtful[FIRST:]):
        if len(rows):
            new = judged(bench, take(batch, rows), size, form)
            # A violation that is more than rounding keeps the ratio of its own sides.
            # No violation of an estimated side counts, and its ratio stays above one.
            stands = (new.low > edge(statement)) & (
                (m.low[rows] > edge(statement)) | searched[rows]
            )
            if statement.is_bound:  # tiny sides decide nothing, unless one is zero
                gap, exact = m.lhs[rows] - m.rhs[rows], (m.lhs[rows] == 0) | (m.rhs[rows] == 0)
                tells = exact | (np.abs(gap) > UNITS * new.scale)
                new = new._replace(tells=new.tells & tells)
            take_over(rows, new, np.isfinite(new.scale) & ~stands)
            scale[rows] = new.scale
            if statement.relation == "=":
                jumped[rows] = np.where(new.jumped, m.value[rows] - edge(statement), -np.inf)
            if np.any(new.low > edge(statement)):
                break
    if 0 < len(rows := _lost(m)) <= MANY:
        new = judged(bench, take(batch, rows), size, form)
        take_over(rows, new, np.isfinite(new.scale) & (new.low <= edge(statement)))
        scale[rows] = new.scale
    if len(rows := _noisy(statement, fields, m, batch)) > 0:
        new = judged(bench, take(batch, rows), size, form)
        sides = np.maximum(np.abs(m.lhs[rows]), np.abs(m.rhs[rows]))
        dropped = rows[np.isfinite(new.scale) & (sides <= UNITS * new.scale)]
        left = fields["counted"].copy()
        left[dropped] = False
        if np.any(left & ((m.lhs != 0) | (m.rhs != 0))):
            fields["counted"] = left
    if len(rows := _zero(statement, form, m)):
        new = judged(bench, take(batch, rows), size, form)
        scale[rows] = new.scale
        zero = (m.rhs[rows] == 0) & (m.lhs[rows] != 0)
        take_over(rows, new, zero & np.isfinite(new.scale))
    if not np.any(m.counted) and np.any(m.met):  # the stated error exceeds all sides
        rows = np.flatnonzero(m.met)[:FIRST]
        new = judged(bench, take(batch, rows), size, form)
        take_over(rows, new, np.isfinite(new.scale))
        scale[rows] = new.scale
    # A search finds entries of `there_is` only to a few digits of the largest entry.
    rows = _entries(bench, batch, size, form, m) if statement.relation == "=" else rows[:0]
    if len(rows := rows[~searched[rows]]):
        new = judged(bench, take(batch, rows), size, form)
        take_over(rows, new, new.low > statement.tolerance)
    return m._replace(**fields), scale, jumped


def second_look(bench: Bench, pool: Pool, columns: list[Column], /) -> list[Column]:
    """Measure doubtful instances again, with errors relative to the terms that both sides sum.

    All measurements stay unchanged if NumPy cannot run the claim's program.
    """
    if bench.statement.relation == "->" and not bench.statement.host:
        return [_of_limit(bench, pool, column, form) for form, column in enumerate(columns)]
    if not _has_terms(bench.statement):
        return columns
    forms = range(len(bench.statement.forms))
    looked = [_of_form(bench, pool, columns[form], form, large=False) for form in forms]
    return [*looked, *columns[len(looked) :]]


def _of_limit(bench: Bench, pool: Pool, column: Column, form: int) -> Column:
    """Measure the size of the terms of a limit's sides, at the worst instance of each size.

    Terms that cancel may have larger rounding errors than the sides themselves.
    """
    scale, m = np.full(len(column.sizes), np.nan), column.measured
    for index, size in enumerate(map(Size, bench.statement.sizes)):
        here = np.flatnonzero((column.sizes == index) & m.counted & ~np.isnan(m.value))
        if len(here) and form < len(bench.statement.forms):
            row = int(here[np.argmax(m.value[here])])
            instance = pool.instance(row)
            with contextlib.suppress(NotInterpreted), np.errstate(all="ignore"):
                scale[row] = sizes_of_terms(bench, batch_of(instance), size, form)[0]
                moved = _size_with_moving_axis(bench.statement, instance, size, form)
                scale[row] = np.fmax(scale[row], moved)
    return column._replace(scale=scale)


def _size_with_moving_axis(
    statement: Statement, instance: Instance, size: Size, form: int
) -> float:
    """Return how large the summands are in the sides of a claim about a limit.

    The limit's parameter is an argument of the traced program, because Python would compute sums
    over a static parameter before the trace. The result is NaN if `evaluate` needs the parameter as
    a number.
    """
    (axis, _), *_ = statement.towards.items()

    def reading(x: jax.Array) -> Reading:
        return read(statement, Size({**size, axis: x}))(instance)

    given = np.array([float(size[axis])])
    try:
        traced = jax.jit(jax.vmap(reading)).trace(given)
        left, right, _ = flat_sides(terms(traced, given).sizes, form)
    except NotInterpreted:
        raise
    except Exception:  # a user's function may refuse a traced number in any way
        return math.nan
    return float(np.max(left + right, initial=0.0))


def look_at_large_violations(bench: Bench, pool: Pool, column: Column, form: int, /) -> Column:
    """Measure all violations of a claim version relative to the terms of the sides."""
    if not is_looked_at(bench.statement):
        return column
    return _of_form(bench, pool, column, form, large=True)


def _of_form(bench: Bench, pool: Pool, column: Column, form: int, *, large: bool) -> Column:
    for index, size in enumerate(map(Size, bench.statement.sizes)):
        here = np.flatnonzero(column.sizes == index)
        if not len(here):
            continue
        batch, _ = pool.of_size(index)
        measured = Measured(*(np.asarray(field)[here] for field in column.measured))
        try:
            new, scale, jumped = _looked_at(bench, batch, size, form, measured, large)
        except NotInterpreted:
            continue
        fields = [np.array(field) for field in column.measured]
        for old, other in zip(fields, new):
            old[here] = other
        known = np.full(len(column.sizes), np.nan) if column.scale is None else column.scale.copy()
        known[here] = np.where(np.isnan(scale), known[here], scale)
        rounding = np.full(len(column.sizes), -np.inf) if column.rounding is None else (
            column.rounding.copy())  # fmt: skip
        if bench.statement.is_bound:
            before, after = violation(bench.statement, measured), violation(bench.statement, new)
            rounding[here] = np.where((before > 0) & ~(after > 0), before, rounding[here])
        else:
            rounding[here] = np.maximum(rounding[here], jumped)
        column = column._replace(measured=Measured(*fields), scale=known, rounding=rounding)
    return column


def measured_again(bench: Bench, instance: Instance, size: Size, form: int, /) -> Measured:
    """Measure a claim version on an instance; if in doubt, relative to the terms of the sides."""
    batch = batch_of(instance)
    m = first = Measured(*(np.atleast_1d(field) for field in bench(batch, size).column(form)))
    if is_looked_at(bench.statement):
        with contextlib.suppress(NotInterpreted):
            m, *_ = _looked_at(bench, batch, size, form, m)
    if np.isnan(m.value[0]):  # the sizes of the terms may overflow where the sides do not
        m = first
    return Measured(*(field[0] for field in m))
