"""The bench measures instances with few compiled programs; the pool stores all measurements."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Budget, Form, Instance, Sampler, Size, Statement
from jaxbounds.claims.statements.statement import ALONE
from jaxbounds.falsification.deadline import looking
from jaxbounds.falsification.evaluation import Reading, all_finite, joined, met, read
from jaxbounds.falsification.measure import (
    Measured,
    as_arrays,
    float64_on_cpu,
    measure,
    measured,
)
from jaxbounds.falsification.noted_values import NotedAt, Row, noted, of_judged, rows_of
from jaxbounds.falsification.programs import MANY, Programs, compiled
from jaxbounds.falsification.promised import Promises
from jaxbounds.falsification.trace_watch import TraceWatch
from jaxbounds.ground.exceptions import Refused
from jaxbounds.programs.interpreted import once

STORED = 2
"""Number of batches that the engine expects for the shapes of a stored instance. A larger number
makes the engine compile programs more often."""


WIDE = 8
"""If the claim says that entries exist, the bench uses batches that are this many times larger. A
larger value takes more memory."""
BESIDE = 32
"""For a claim about a mean, the engine expects this many batches in addition to the random draws. A
larger number makes the engine compile programs more often."""


def calls_of(statement: Statement, budget: Budget, /) -> int:
    """Estimate how many batches of instances the engine measures for each choice of shapes."""
    draws = max(1, len(statement.samplers)) * -(-budget.samples // budget.batch)
    beside = BESIDE if statement.kind == "expectation" else 0
    return draws + beside + (budget.steps if is_searched(statement, budget) else 0)


def is_searched(statement: Statement, budget: Budget, /) -> bool:
    """Return whether the engine also searches for instances worse than those it drew."""
    return statement.search != "none" and bool(budget.restarts and budget.steps)


def cases_of(statement: Statement, size: Size, /) -> Any:
    """Return a statement's hand-written instances (`cases`) for given shapes, as arrays.

    Raises:
        Refused: if the instances are not stacked along a leading axis.
    """
    assert statement.cases is not None
    found = as_arrays(statement.cases(size))
    shapes = {name: kind.shape for name, kind in _kinds(found).items()}
    if len({shape[:1] for shape in shapes.values()}) > 1 or () in shapes.values():
        said = ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
        raise Refused(
            f"the arrays of the cases of {statement.id} at size={size!r} must have leading axes of "
            f"equal length, got {said}. Try jaxbounds.claims.statements.stacked"
        )
    return found


ROOM = 2**30
"""The random draws of one sampler at one size may take at most this many bytes. A larger value
draws more instances if the instances are large, and fills more memory."""


def fitting(each: float, /) -> int:
    """Return the number of instances of `each` bytes that fit into `ROOM`, but at least one."""
    return int(max(1, ROOM // max(each, 1)))


def length(batch: Any, /) -> int:
    """Return the number of instances stacked in a batch."""
    return len(jax.tree.leaves(batch)[0])


def take(batch: Any, index: Any, /) -> Any:
    """Return the chosen instances (rows) of a batch."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], batch)


def labelled(batch: Instance, /) -> np.ndarray:
    """Return an integer for each instance of a batch, equal for instances with equal bits."""
    rows = length(batch)
    flat = [
        np.ascontiguousarray(leaf).reshape(rows, -1).view(np.uint8).reshape(rows, -1)
        for leaf in jax.tree.leaves(batch)
        if np.size(leaf)
    ]
    if not flat:
        return np.zeros(rows, int)
    return np.array([hash(row.tobytes()) for row in np.hstack(flat)])


def batch_of(instance: Any, /) -> Any:
    """Return a batch that contains one instance."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], instance)


def concatenate(batches: list[Any], /) -> Any:
    """Join batches (or measurements) along their leading axis."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *batches)


class Kind(NamedTuple):
    """The shape and the type of a leaf (array) of an instance."""

    shape: tuple[int, ...]
    dtype: Any


def _kinds(tree: Any, skip: int = 0) -> dict[str, Kind]:
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    typed = lambda leaf: leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
    kind = lambda leaf: Kind(np.shape(leaf)[skip:], typed(leaf).dtype)
    return {jax.tree_util.keystr(path): kind(leaf) for path, leaf in leaves}


def refuse_other_shapes(
    statement: Statement, form: Form, instance: Instance, size: Size, /
) -> None:
    """Refuse an instance with other entries or shapes than the samplers draw at its size.

    Raises:
        Refused: if an entry, its shape or its type differs from a random instance's entry. The
            message names the entries that differ.
    """
    stored = form.counterexample
    if stored is not None and stored.meets is not None and size not in statement.sizes:
        return  # at another size the counterexample's own check of all hypotheses is enough
    shapes = lambda kinds: {name: kind.shape for name, kind in kinds.items()}
    found, usual = shapes(_kinds(instance)), shapes(_usual_kinds(statement, size))
    if not usual or found == usual:  # without draws the usual shapes are unknown
        return
    apart = [n for n in {**usual, **found} if usual.get(n) != found.get(n)]
    has = ", ".join(f"{n} of shape {found[n]}" for n in apart if n in found) or "fewer entries"
    takes = ", ".join(f"{n} of shape {usual[n]}" for n in apart if n in usual) or "no further entry"
    raise Refused(
        f"the instance given for form={form.name!r} has {has}; expected {takes}, as "
        f"instances of {statement.id} at size={dict(size)}. Try arrays of these shapes"
    )


def refuse_other_kinds(statement: Statement, form: Form, drawn: Any, size: Any, /) -> None:
    """Refuse a map into instances with other entries, shapes or types than random instances.

    Raises:
        Refused: if an entry, its shape or its type differs from a random instance's entry. The
            message names the entries that differ.
    """
    refuse_other_shapes(statement, form, drawn, Size(dict(size)))
    usual, found = _usual_kinds(statement, Size(dict(size))), _kinds(drawn)
    for name in usual:
        if name in found and found[name].dtype != usual[name].dtype:
            raise Refused(
                f"the chart of form={form.name!r}, which maps points to instances, gives {name} as "
                f"{found[name].dtype}; "
                f"expected {usual[name].dtype}, as in instances of {statement.id}. Try "
                f"{name}.astype({str(usual[name].dtype)!r})"
            )


def fitted(statement: Statement, form: Form, instance: Instance, size: Size, /) -> Any:
    """Cast an instance to the number types that the samplers draw, if the array shapes agree.

    Raises:
        Refused: if `refuse_other_shapes` refuses the instance, or a number does not fit the
            drawn type.
    """
    refuse_other_shapes(statement, form, instance, size)
    usual = _usual_kinds(statement, size)

    def cast(path: Any, leaf: Any) -> Any:
        name = jax.tree_util.keystr(path)
        wanted = usual[name].dtype if name in usual else leaf.dtype
        if leaf.dtype == wanted or jax.dtypes.issubdtype(wanted, jax.dtypes.extended):
            return leaf
        with np.errstate(all="ignore"):
            plain = np.asarray(leaf)
            there = plain.astype(wanted)
            kept = np.array_equal(there.astype(plain.dtype), plain)
        if not kept or (plain.dtype.kind in "iuf" and np.any((plain < 0) != (there < 0))):
            raise Refused(
                f"the instance given for form={form.name!r} has an array {name} with "
                f"dtype={plain.dtype} and entries {plain.ravel()[:3]}; expected dtype={wanted}, as "
                f"in instances of {statement.id}. Try numbers that {wanted} can represent"
            )
        return there if isinstance(leaf, np.ndarray) else jnp.asarray(there)

    return jax.tree_util.tree_map_with_path(cast, instance)


def counterexample_of(statement: Statement, form: Form, /) -> tuple[Instance, Size]:
    """Return a form's stored counterexample, in the types of random instances, and its size.

    Raises:
        Refused: if the form stores no counterexample, or `fitted` refuses the counterexample.
    """
    stored = form.counterexample
    if stored is None:
        raise Refused(
            f"counterexample=None in {statement.id} ({form.name}): expected a stored "
            "instance. Try jb.Form(counterexample=...)"
        )
    size, given = Size(stored.size), dict(stored.instance)
    if not given and ALONE in _usual_kinds_by_name(statement):
        given = {ALONE: np.zeros((), int)}
    return fitted(statement, form, as_arrays(given), size), size


def _usual_kinds_by_name(statement: Statement) -> list[str]:
    if statement.cases is None or statement.samplers:
        return []
    return list(statement.cases(Size(statement.sizes[0])))


@functools.lru_cache(maxsize=256)
def _drawn_kinds(sampler: Sampler, size: Size) -> dict[str, Kind]:
    with float64_on_cpu():
        return _kinds(jax.eval_shape(lambda key: sampler(key, size), jax.random.key(0)))


def _usual_kinds(statement: Statement, size: Size) -> dict[str, Kind]:
    if statement.samplers:
        return _drawn_kinds(next(iter(statement.samplers.values())), size)
    if statement.cases is not None and size in statement.sizes:
        return _kinds(as_arrays(statement.cases(size)), skip=1)
    return {}


class Bench:
    """Measures the instances of one statement, in batches that all have the same length.

    The bench compiles one program for each choice of shapes. The engine always measures with this
    program, so equal instances get bit for bit equal measurements. If a statement runs outside JAX,
    the bench measures one instance at a time.

    Args:
        statement: the statement to measure.
        batch: the number of instances in a batch.
        programs: the compiler of the measuring programs, which may keep traced programs.
        calls: the expected number of batches; the bench compiles a program only if it expects many.
    """

    def __init__(
        self, statement: Statement, batch: int, programs: Programs, *, calls: int = MANY
    ) -> None:
        self.statement, self.programs, self._calls = statement, programs, calls
        self.watch = TraceWatch(statement)
        self.batch = batch
        self._runs: dict[tuple[str, Size], Callable] = {}
        self.traces: dict[tuple[str, Size], Any] = {}
        self._promises: dict[Size, Promises] = {}
        self._read: tuple[Any, Any] = None, None  # the last batch, and its sides and hypotheses
        self._returned = lambda xp: of_judged(self.watch.returned, xp)

    def mapped(self, function: Callable[[Instance], Any], what: str, size: Size) -> Callable:
        """Return `function` vectorised over a batch: a compiled program, or a loop outside JAX."""
        if (what, size) not in self._runs:
            name = (self.statement.id, what, tuple(size.items()))
            watch = self.watch if what == "measure" else None
            if self.statement.host:
                run = one_by_one(looking(function if watch is None else watch.calls(function)))
            else:
                calls = self._calls if size in self.statement.sizes else STORED
                run = self.programs(function, *name, calls=calls, watch=watch)
            self._runs[what, size] = looking(run)
        return self._runs[what, size]

    def __call__(self, batch: Instance, size: Size) -> Measured:
        """Measure stacked instances of equal shapes."""
        statement = self.statement
        # On the host the sides of an identity may differ in shape between instances.
        if statement.there_is is not None:
            return self.promises(size)(batch)
        if statement.host and not statement.is_bound:
            return self._run(measure(statement, size), size, batch)
        return measured(statement, self.reading(batch, size), batch, axes=1)

    def promises(self, size: Size) -> Promises:
        """Return the search for the `there_is` entries, which the claim says exist."""
        if size not in self._promises:
            given = Bench(self.statement.as_given(), WIDE * self.batch, self.programs)
            given.watch = self.watch
            self._promises[size] = Promises(self.statement, given, size)
        return self._promises[size]

    def reading(self, batch: Instance, size: Size) -> Reading:
        """Return the sides and the hypotheses of each instance of a batch, without a comparison."""
        reading = self._run(self.reader(size), size, batch)
        self._read = batch, reading
        return reading

    def reader(self, size: Size) -> Callable[[Instance], Reading]:
        """Return a program that evaluates an instance and records the claim's functions."""
        return read(self.statement, size, self._returned)

    def noted(
        self, batch: Instance, size: Size, at: NotedAt, total: int
    ) -> tuple[Measured, list[Row]]:
        """Measure a batch; record the results of the claim's functions on a few instances.

        The source of the instances (such as a sampler) made `total` instances, perhaps in several
        batches.
        """
        statement, own = self.statement, range(at.start, at.start + length(batch))
        rows = [row - at.start for row in rows_of(at.source, total) if row in own]
        if statement.there_is is not None:
            return self(batch, size), []
        if statement.host:
            found, kept = self._on_host(batch, size, rows)
            return found, noted(statement, kept, at, rows)
        found, reading = self(batch, size), self._read[1]
        kept = [jax.tree.map(lambda leaf, row=row: np.asarray(leaf)[row], reading) for row in rows]
        return found, noted(statement, kept, at, rows)

    def _on_host(
        self, batch: Instance, size: Size, rows: Sequence[int]
    ) -> tuple[Measured, list[Reading]]:
        run, found, kept, met = looking(self.watch.calls(self.reader(size))), [], [], []
        for row in range(length(batch)):
            self.watch.notes = row in rows
            reading = jax.tree.map(np.asarray, run(instance := take(batch, row)))
            kept += [reading] * (row in rows)
            met.append(reading.met)
            found.append(measured(self.statement, reading, instance))
        self.watch.notes = False
        stack = lambda *leaves: np.stack(leaves)
        self._read = batch, Reading((), (), (), None, jax.tree.map(stack, *met), {})
        return jax.tree.map(stack, *found), kept

    def _run(self, function: Callable[[Instance], Any], size: Size, batch: Instance) -> Any:
        run = self.mapped(function, "measure", size)
        return run(batch) if self.statement.host else self.in_parts(run, batch)

    def in_parts(self, run: Callable[[Instance], Any], batch: Instance, /) -> Any:
        """Run a compiled program on equally long parts of a batch, and join the results."""
        total, parts = length(batch), []
        step = min(self.batch, fitting(sum(leaf.nbytes for leaf in jax.tree.leaves(batch)) / total))
        for start in range(0, total, step):
            index: Any = slice(start, start + step)
            if start + step > total:
                index = np.minimum(np.arange(start, start + step), total - 1)
            parts.append(take(run(take(batch, index)), slice(total - start)))
        return parts[0] if len(parts) == 1 else concatenate(parts)

    def one(self, instance: Instance, size: Size) -> Measured:
        """Measure a single instance."""
        first = batch_of(instance)
        return jax.tree.map(lambda column: column[0], self(first, size))

    def unbatched(self, size: Size) -> Callable[[Instance], Measured]:
        """Return a program that measures one instance, for a caller that runs it once or twice."""
        if ("unbatched", size) not in self._runs:
            function = measure(self.statement, size)
            self._runs["unbatched", size] = once(function, compiled(function))
        return self._runs["unbatched", size]

    def _hypotheses(self, batch: Instance, size: Size) -> dict[str, Any]:
        known, reading = self._read
        if known is batch:
            own = lambda flag: np.all(flag, axis=tuple(range(1, flag.ndim)))
            finite = all_finite(batch, np, axes=1) & np.ones(length(batch), bool)
            flags = {name: own(flag) for name, flag in reading.met[0].items()}
            return dict(sorted(joined({"finite": finite}, flags).items()))
        hypotheses, xp = self.statement.hypotheses, np if self.statement.host else jnp
        flags_of = lambda instance: met(hypotheses, instance, size, xp)
        if self.statement.host:
            return one_by_one(flags_of)(batch)
        many = jax.vmap(flags_of)  # a call or two is not worth a compilation
        return once(many, compiled(many))(batch)

    def excluded(self, batch: Instance, size: Size, measured: Measured) -> dict[str, int]:
        """Return, for each reason of rejection, the number of rejected instances of a batch."""
        table = self._hypotheses(batch, size)
        reasons = {name: int(np.sum(~ok)) for name, ok in table.items()}
        meets_all = np.all(np.stack(list(table.values())), axis=0)
        reasons["below the numerical error"] = int(np.sum(meets_all & ~measured.counted[:, -1]))
        return {name: count for name, count in reasons.items() if count}


def one_by_one(function: Callable[[Instance], Any]) -> Callable:
    """Map a function over a batch by a Python loop."""

    def run(batch: Instance) -> Any:
        rows = [jax.tree.map(np.asarray, function(take(batch, i))) for i in range(length(batch))]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)

    return run


class Column(NamedTuple):
    """The measurements of one claim version, or of a deliberately false one, on all instances.

    Attributes:
        sizes: for each instance, the index of its shapes.
        sources: the source of each instance: the name of a sampler, "cases" or "search".
        labels: a number for each instance, equal for equal instances.
        reach: the least and the largest difference of the sides at instances near the random draws;
            NaN if the engine measured no instance other than the draws.
        scale: for each instance, the largest absolute term in the computation of both sides; NaN at
            an instance without computed terms. None until the engine computes the terms.
        rounding: each instance's violation if rounding may explain it, else -inf. For an identity,
            rounding may decide a jump. None until the engine computes the terms.
    """

    measured: Measured
    sizes: np.ndarray
    sources: np.ndarray
    labels: np.ndarray
    reach: tuple[float, float] = (np.nan, np.nan)
    scale: np.ndarray | None = None
    rounding: np.ndarray | None = None

    def worst(self, rows: np.ndarray) -> int:
        """Return the index of the largest ratio (or of a NaN) among the given rows."""
        value = self.measured.value[rows]
        score = np.where(np.isnan(value), np.inf, value)
        return int(rows[np.argmax(np.where(self.measured.counted[rows], score, -np.inf))])


def spread(rows: np.ndarray, count: int, /) -> np.ndarray:
    """Return at most `count` of some rows: the first, the last, and rows evenly between them."""
    last = max(len(rows) - 1, 0)
    return rows[np.unique(np.linspace(0, last, count).astype(int))[: len(rows)]]


def with_worst(column: Column, row: int, /) -> Column:
    """Return the measurements with all other ratios below the ratio of one row."""
    value, m = column.measured.value, column.measured
    below = np.minimum(value, np.nextafter(value[row], -np.inf))
    value = np.where(np.arange(len(value)) == row, value, below)
    return column._replace(measured=m._replace(value=value))


class Pool:
    """All instances so far, with their measurements, sources and shapes."""

    def __init__(self) -> None:
        self.instances: list[Instance] = []
        self.measured: list[Measured] = []
        self.sources: list[str] = []
        self.sizes: list[int] = []
        self.noted: list[Row] = []

    def add(self, source: str, size: int, batch: Instance, measured: Measured) -> None:
        """Append a batch of measured instances."""
        self.instances.append(batch)
        self.measured.append(measured)
        self.sources.append(source)
        self.sizes.append(size)

    def of_size(self, size: int) -> tuple[Instance, Measured]:
        """Return the instances and measurements for one entry of the statement's `sizes`."""
        chosen = [i for i, s in enumerate(self.sizes) if s == size]
        return (
            concatenate([self.instances[i] for i in chosen]),
            concatenate([self.measured[i] for i in chosen]),
        )

    def columns(self) -> list[Column]:
        """Return a `Column` of measurements for each claim version and for the false variant."""
        lengths = [len(m.counted) for m in self.measured]
        table = concatenate(self.measured)
        sources, sizes = np.repeat(self.sources, lengths), np.repeat(self.sizes, lengths)
        labels = np.concatenate([labelled(batch) for batch in self.instances])
        forms = range(table.value.shape[-1])
        return [Column(table.column(i), sizes, sources, labels) for i in forms]

    def instance(self, index: int) -> Instance:
        """Return the instance at an index, counted over all batches.

        Raises:
            IndexError: if the pool has at most `index` instances.
        """
        for batch in self.instances:
            if index < length(batch):
                return take(batch, index)
            index -= length(batch)
        raise IndexError(index)
