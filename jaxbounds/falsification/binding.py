"""The binding of a statement to the functions that it judges: plant a mistake in one and look.

A verdict is about the function that people call only if a slightly wrong function changes it.
"""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import (
    FITTED,
    Budget,
    Instance,
    Judged,
    Size,
    Statement,
    full_name,
    owner_of,
)
from jaxbounds.claims.statements.form import REJECTED
from jaxbounds.falsification.bench import (
    Bench,
    Column,
    Pool,
    as_arrays,
    calls_of,
    concatenate,
    one_by_one,
    take,
)
from jaxbounds.falsification.decide import decide
from jaxbounds.falsification.evidence import bounded_mean
from jaxbounds.falsification.explore import draw
from jaxbounds.falsification.measure import Measured, float64_on_cpu, measure
from jaxbounds.falsification.programs import UNKEPT, compiled
from jaxbounds.falsification.trace_watch import forget, modules
from jaxbounds.numerics.arrays import array_module
from jaxbounds.papers import Named, the_statement

FEW = Budget(samples=48, restarts=0, steps=0, batch=48)
"""The budget of a search for a binding: draws and cases, no search for worse instances."""


def off(value: Any, factor: Any, /) -> Any:
    """Return a slightly wrong version of a function's result.

    Real numbers are multiplied by `factor`. A result without real numbers has its integers raised
    by one and its booleans negated. An object that is no pytree (a compiled network) changes one
    entry of its first suitable field. A returned function gets results that are off in the same
    way.

    Raises:
        TypeError: if the result holds no number and no boolean.
    """
    if _is_function(value):
        return functools.wraps(value)(lambda *given, **named: off(value(*given, **named), factor))
    leaves, structure = jax.tree.flatten(value)
    for kind, change in (
        (np.inexact, lambda x: x * factor),
        (np.integer, lambda x: x + 1),
        (np.bool_, lambda x: not x if isinstance(x, bool) else ~x),
    ):
        wrong = [change(leaf) if _is(leaf, kind) else leaf for leaf in leaves]
        if any(_is(leaf, kind) for leaf in leaves):
            return jax.tree.unflatten(structure, wrong)
    changed = _with_one_entry_off(value)
    if changed is None:
        raise TypeError(
            f"type={type(value).__name__} holds no number that could be off; expected "
            "arrays or numbers. Try a judged function that returns them"
        )
    return changed


def _is_function(value: Any) -> bool:
    """Whether a value is a function, and not an object with fields that can be called."""
    fields = dataclasses.is_dataclass(value) or isinstance(value, tuple)
    return callable(value) and not fields


def _is(leaf: Any, kind: type) -> bool:
    if isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex)):
        return jax.numpy.issubdtype(jax.numpy.result_type(leaf), kind)
    return False


def _with_one_entry_off(value: Any, at: int = 0) -> Any:
    """A copy of an object in which one entry is another, or None if it has no such entry.

    Args:
        value: any object.
        at: how many entries are left as they are before the one that is changed.
    """
    return next(itertools.islice(_copies(value), at, None), None)


def _copies(value: Any) -> Iterator[Any]:
    """For each entry of an object, in turn, a copy in which it is another; none that is refused."""
    if isinstance(value, np.ndarray | jax.Array) and value.size:
        array = np.array(value)
        at = np.unravel_index(np.argmax(np.abs(array)), array.shape)
        array[at] = ~array[at] if array.dtype == bool else array[at] + 1
        yield array if isinstance(value, np.ndarray) else jax.numpy.asarray(array)
    elif isinstance(value, bool | np.bool_):
        yield not value
    elif isinstance(value, int | float | np.number):
        yield value + 1
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from (type(value)({**value, name: changed}) for changed in _copies(entry))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            for changed in _copies(getattr(value, field.name)) if field.init else ():
                with contextlib.suppress(ValueError, TypeError):  # the object refuses it
                    yield dataclasses.replace(value, **{field.name: changed})
    elif isinstance(value, tuple | list):
        for index, entry in enumerate(value):
            for changed in _copies(entry):
                entries = [*value[:index], changed, *value[index + 1 :]]
                yield type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)


def _holders(function: Judged) -> Iterator[tuple[Any, str]]:
    """Yield every place (holder, name) through which modules of the function's package reach it."""
    owner, name = owner_of(function)
    if isinstance(owner, type):
        yield owner, name
        return
    for module in modules(function.__module__):
        for key, held in list(vars(module).items()):
            if held is function:
                yield module, key
            elif type(held) is dict:
                yield from ((held, inner) for inner, entry in held.items() if entry is function)


_FACTORS: dict[str, Any] = {}
"""The factor by which each planted function is off at the moment."""
_STATIC: set[str] = set()
"""Planted functions whose values a trace must know; these functions take no tracers."""


@contextlib.contextmanager
def _replaced(function: Judged) -> Iterator[None]:
    """Put a wrapper in the function's place for a `with` block.

    `_FACTORS` decides how far it is off.
    """
    owner, at = owner_of(function)
    kept, name = vars(owner)[at], full_name(function)
    method = kept if isinstance(kept, classmethod | staticmethod) else None
    plain = method.__func__ if method else kept

    @functools.wraps(plain)
    def wrong(*given: Any, **named: Any) -> Any:
        value, factor = plain(*given, **named), _FACTORS.get(name)
        if factor is None:
            return value
        if callable(factor):
            return factor(value)
        leaves = jax.tree.leaves(value)
        traced = [x for x in leaves if isinstance(x, jax.Array) and _is(x, np.inexact)]
        if isinstance(factor, jax.core.Tracer) and not traced:
            _STATIC.add(name)
            return value
        return off(value, factor)

    replacement = type(method)(wrong) if method else wrong
    holders = list(_holders(function))
    put = lambda holder, key, what: (
        holder.__setitem__(key, what) if isinstance(holder, dict) else setattr(holder, key, what)
    )
    for holder, key in holders:
        put(holder, key, replacement)
    try:
        yield
    finally:
        for holder, key in holders:
            put(holder, key, kept)


@contextlib.contextmanager
def planted(function: Judged, wrong: float | Callable[[Any], Any], /) -> Iterator[None]:
    """Make the function wrong for a `with` block, wherever its package holds it.

    Args:
        function: a public function of a module.
        wrong: the factor by which the function is off, or a change of each of its values.
    """
    with _replaced(function):
        forget(function.__module__)
        _FACTORS[full_name(function)] = wrong
        try:
            yield
        finally:
            _FACTORS.clear()
            forget(function.__module__)


def _side_by_side(
    statement: Statement, size: Size, batch: Instance, functions: Sequence[Judged], factor: float
) -> list[Measured]:
    """Measure unchanged, then with each function off, in one program with the factors as data."""
    names = [full_name(function) for function in functions]
    factors = 1 + (factor - 1) * np.vstack([np.zeros(len(names)), np.eye(len(names))])

    def one(instance: Instance, row: jax.Array) -> Measured:
        _FACTORS.update({name: row[i] for i, name in enumerate(names) if name not in _STATIC})
        try:
            return measure(statement, size)(instance)
        finally:
            _FACTORS.clear()

    with contextlib.ExitStack() as stack:
        for function in functions:
            stack.enter_context(_replaced(function))
        forget(functions[0].__module__)
        try:
            program = compiled(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))
            found = jax.tree.map(np.asarray, program(batch, jnp.asarray(factors)))
        finally:
            forget(functions[0].__module__)
    return [jax.tree.map(lambda leaf, i=i: leaf[:, i], found) for i in range(len(names) + 1)]


def _one_at_a_time(
    statement: Statement, size: Size, batch: Instance, functions: Sequence[Judged], factor: float
) -> list[Measured | None]:
    """Measure unchanged, then with one function planted after the other.

    None where `evaluate` breaks.
    """
    run = one_by_one if statement.host else lambda f: compiled(jax.vmap(f))
    found: list[Measured | None] = [run(measure(statement, size))(batch)]
    for function in functions:
        with planted(function, factor):
            try:
                found.append(run(measure(statement, size))(batch))
            except Exception:
                found.append(None)
    return found


def _variants(
    statement: Statement, size: Size, batch: Instance, functions: Sequence[Judged], factor: float
) -> list[Measured | None]:
    """Measure unchanged, then with each function off."""
    if statement.host:
        return _one_at_a_time(statement, size, batch, functions, factor)
    found: list[Measured | None] = []
    _STATIC.clear()
    try:
        found += _side_by_side(statement, size, batch, functions, factor)
    except Exception:  # some value is needed by the trace itself
        return _one_at_a_time(statement, size, batch, functions, factor)
    still = [function for function in functions if full_name(function) in _STATIC]
    if still:
        apart = iter(_one_at_a_time(statement, size, batch, still, factor)[1:])
        for i, function in enumerate(functions):
            if function in still:
                found[i + 1] = next(apart)
    return found


def _few(statement: Statement, budget: Budget) -> Bench:
    return Bench(statement, budget.batch, UNKEPT, calls=calls_of(statement, budget))


def _whole(bench: Bench, pool: Pool, index: int) -> Instance:
    """The instances of one size, with the entries that `there_is` promises the first form."""
    batch = take(pool.of_size(index)[0], slice(None))
    if bench.statement.there_is is None:
        return batch
    return bench.promises(Size(bench.statement.sizes[index])).filled(batch, 0)


def bindings(
    statement: Statement,
    functions: Sequence[Judged],
    /,
    *,
    factor: float = 1.25,
    budget: Budget = FEW,
) -> list[bool]:
    """Tell for each function whether a verdict or a ratio of the statement changes when it is off.

    A ratio changes if it moves by more than the statement's tolerance: the worst, the mean over the
    draws that is recorded (`Verdict.drawn`), or a counterexample's. An evaluation that breaks
    changes the verdict. Instances are those of the unchanged functions.

    Args:
        statement: any statement.
        functions: functions that it judges.
        factor: by which real values are off.
        budget: how many instances are drawn.
    """
    with float64_on_cpu():
        bench, pool = (
            _few(statement, budget),
            Pool(),
        )
        draw(bench, pool, budget, 0)
        at = {i: Size(size) for i, size in enumerate(statement.sizes)}
        parts = [_variants(statement, at[i], _whole(bench, pool, i), functions, factor) for i in at]
        sizes = np.repeat(list(at), [len(p[0].counted) for p in parts if p[0] is not None])
        stored = [
            _variants(
                statement, Size(c.size),
                jax.tree.map(lambda leaf: leaf[None], as_arrays(dict(c.instance))),
                functions, factor,
            ) if c else None
            for c in (form.counterexample for form in statement.forms)
        ]  # fmt: skip
    answers = []
    for variant in range(1, len(functions) + 1):
        before, after = (
            _judgement(statement, [p[v] for p in parts], [s and s[v] for s in stored], sizes)
            for v in (0, variant)
        )
        answers.append(
            after is None or any(_differ(a, b, statement) for a, b in zip(before or (), after))
        )
    return answers


def _judgement(statement: Statement, parts: list, stored: list, sizes: np.ndarray):
    """Return the status and ratio of each form and stored counterexample; None if broken."""
    if any(part is None for part in parts):
        return None
    table = Measured(*concatenate(parts))
    judged: list[tuple[str, float]] = []
    for index, form in enumerate(statement.forms):
        every = np.arange(len(sizes))
        column = Column(table.column(index), sizes, np.repeat("", len(sizes)), every)
        decision = decide(statement, form, column)
        judged.append((decision.status, decision.ratio))
        counted = column.measured.value[column.measured.counted]
        judged.append(("", bounded_mean(counted) or 0.0))
        if form.counterexample:
            if stored[index] is None:
                return None
            judged.append(("", float(stored[index].value[0, index])))
    return tuple(judged)


def _moved(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a mistake in the arrays of real numbers, as large as moving entries allows."""

    def wrong(value: Any) -> Any:
        if _is_function(value):
            return functools.wraps(value)(lambda *given, **named: wrong(value(*given, **named)))
        arrays = lambda leaf: _is(leaf, np.inexact) and getattr(leaf, "ndim", 0) > 0
        return jax.tree.map(lambda leaf: change(leaf) if arrays(leaf) else leaf, value)

    return wrong


def _transposed(x: Any) -> Any:
    return x.swapaxes(-1, -2) if x.ndim > 1 and x.shape[-1] == x.shape[-2] else x


OTHER_MISTAKES: dict[str, Callable[[Any], Any]] = {
    "sign": lambda value: off(value, -1.0),
    "shifted by one along the last axis": _moved(lambda x: jnp.roll(x, 1, -1)),
    "shifted by one along the first axis": _moved(lambda x: jnp.roll(x, 1, 0)),
    "reversed": _moved(lambda x: x[::-1]),
    "transposed": _moved(_transposed),
    "the last entries dropped": _moved(lambda x: x.at[..., -1].set(0) if hasattr(x, "at") else x),
    "the mean added: no entry is left out": _moved(lambda x: x + x.mean()),
}
"""Mistakes beside a factor, for claims about zeros or orders, which a factor does not change."""


def is_bound_to(
    statement: Named, function: Judged, *, factor: float = 1.25, budget: Budget | None = None
) -> bool:
    """Tell whether a verdict or a ratio of the statement changes when a function is slightly wrong.

    The mistake is a factor. If no verdict notices it, each of `OTHER_MISTAKES` is tried.

    Args:
        statement: a statement, or its id.
        function: a function that the statement judges.
        factor: the factor by which the function is off.
        budget: of draws and searches; 48 draws and no search unless given.
    """
    budget = FEW if budget is None else budget
    statement = the_statement(statement)
    if bindings(statement, [function], factor=factor, budget=budget)[0]:
        return True
    return any(_notices(statement, function, wrong, budget) for wrong in OTHER_MISTAKES.values())


def _notices(
    statement: Statement, function: Judged, wrong: Callable[[Any], Any], budget: Budget
) -> bool:
    """Tell whether one mistake changes a decision, or a ratio, on a few draws."""

    def found() -> tuple:
        with float64_on_cpu():
            bench, pool = (
                _few(statement, budget),
                Pool(),
            )
            draw(bench, pool, budget, 0)
        pairs = [(decide(statement, f, c), c) for f, c in zip(statement.forms, pool.columns())]
        means = (bounded_mean(c.measured.value[c.measured.counted]) or 0.0 for _, c in pairs)
        return tuple(p for (d, _), m in zip(pairs, means) for p in ((d.status, d.ratio), ("", m)))

    before = found()
    try:
        with planted(function, wrong):
            after = found()
    except Exception:  # it breaks: seen
        return True
    return any(_differ(a, b, statement) for a, b in zip(before, after))


def _each(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a mistake in every real number that keeps its sign: another order of growth."""

    def wrong(value: Any) -> Any:
        if _is_function(value):
            return functools.wraps(value)(lambda *given, **named: wrong(value(*given, **named)))
        signed = lambda x: array_module(x).sign(x) * change(abs(x))
        return jax.tree.map(lambda x: signed(x) if _is(x, np.inexact) else x, value)

    return wrong


def _discrete(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a mistake in integers and negate truths; the other mistakes leave both by real numbers.

    Args:
        change: the mistake in an integer.
    """

    def wrong(value: Any) -> Any:
        if _is_function(value):
            return functools.wraps(value)(lambda *given, **named: wrong(value(*given, **named)))
        return jax.tree.map(changed, value)

    def changed(leaf: Any) -> Any:
        if _is(leaf, np.bool_):
            return not leaf if isinstance(leaf, bool) else ~leaf
        return change(leaf) if _is(leaf, np.integer) else leaf

    return wrong


ENTRIES = 12
"""Entries of an object, such as a circuit, that are changed one by one; more entries find more."""


def _of_an_object(at: int) -> Callable[[Any], Any]:
    """A mistake in one entry of an object that holds no arrays of its own, as a circuit's wires."""

    def wrong(value: Any) -> Any:
        if any(_is(leaf, np.number) for leaf in jax.tree.leaves(value)):
            return value
        changed = _with_one_entry_off(value, at)
        return value if changed is None else changed

    return wrong


LARGE_MISTAKES: dict[str, Callable[[Any], Any]] = {
    "a thousand times": lambda value: off(value, 1e3),
    "a thousandth": lambda value: off(value, 1e-3),
    "the square": _each(lambda x: x**2),
    "the root": _each(lambda x: x**0.5),
    "the logarithm": _each(lambda x: array_module(x).log1p(x)),
    **OTHER_MISTAKES,
    "integers one larger, truths negated": _discrete(lambda n: n + 1),
    "integers halved, truths negated": _discrete(lambda n: n // 2),
    **{f"entry {at} of an object changed": _of_an_object(at) for at in range(ENTRIES)},
}
"""Large mistakes; a claim about a function should fail under one of them."""


def can_fail(statement: Named, /, *, budget: Budget = FEW) -> str:
    """Find a mistake in a judged function that makes a form fail which is expected to stand.

    A form of a rate fails also where its exponent leaves the band that it states. A statement that
    survives every one of `LARGE_MISTAKES` compares sides that its construction fixes, such as a
    lower bound with a width that is chosen above it. The first size is tried before all of them,
    for one size costs a fraction of all.

    Args:
        statement: a statement, or its id.
        budget: the budget of draws.

    Returns:
        The function, the mistake and the form; empty if the statement cannot fail.
    """
    statement = the_statement(statement)
    several = len(statement.sizes) > 1 and statement.kind not in FITTED
    first = [dataclasses.replace(statement, sizes=statement.sizes[:1])] if several else []
    for part in (*first, statement):
        for wrong_by, wrong in LARGE_MISTAKES.items():
            for function in part.judges:
                if failing := _failing(part, function, wrong, budget):
                    return f"{full_name(function)} {wrong_by}: {failing[0]}"
    return ""


def forms_that_cannot_fail(statement: Named, /, *, budget: Budget = FEW) -> tuple[str, ...]:
    """The forms that survive every one of `LARGE_MISTAKES` in every judged function.

    `can_fail` asks for one form of a statement; a form beside it may compare two sides that no
    judged function moves. Forms that are expected to fail are left out.

    Args:
        statement: or its id.
        budget: of draws.
    """
    statement = the_statement(statement)
    left = [form.name for form in statement.forms if form.expected not in REJECTED]
    for wrong in LARGE_MISTAKES.values():
        for function in statement.judges:
            if left:
                failing = _failing(statement, function, wrong, budget)
                left = [name for name in left if name not in failing]
    return tuple(left)


def _failing(
    statement: Statement, function: Judged, wrong: Callable[[Any], Any], budget: Budget
) -> list[str]:
    """The forms that fail with this mistake and are expected not to."""
    try:
        with planted(function, wrong), float64_on_cpu():
            bench, pool = _few(statement, budget), Pool()
            draw(bench, pool, budget, 0)
            columns = pool.columns()
            found = [decide(statement, f, c).status for f, c in zip(statement.forms, columns)]
    except Exception:  # the mistake breaks the evaluation, which is no verdict
        return []
    outside = lambda form, status: statement.kind == "rate" and status != form.expected
    return [
        form.name
        for form, status in zip(statement.forms, found)
        if form.expected not in REJECTED and (status in REJECTED or outside(form, status))
    ]


def _differ(before: tuple[str, float], after: tuple[str, float], statement: Statement) -> bool:
    """Tell whether a status or a ratio moved; a discrepancy below the tolerance is rounding."""
    (status, a), (other, b) = before, after
    allowed = statement.tolerance * (1.0 if statement.relation == "=" else abs(a))
    same = a == b or (a != a and b != b) or abs(a - b) <= allowed
    return status != other or not same
