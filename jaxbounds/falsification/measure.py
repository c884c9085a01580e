"""One statement on one instance: what each form measures, and whether it may count."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jaxtyping import Array, Bool, Float

from jaxbounds.sets import Over
from jaxbounds.sets.inner import best_point, estimates_made
from jaxbounds.statements import CONTROL, Form, Hypotheses, Instance, Sides, Size, Statement

Xp = Any
"""The array module of a comparison: `jax.numpy` where it is traced, NumPy on the host, where a
`jax.numpy` operation on a few numbers takes a hundred times as long."""
Reals = Float[Array | np.ndarray, "..."]
Flags = Bool[Array | np.ndarray, "..."]


class Measured(NamedTuple):
    """The forms of a statement, in order, then its control, on one instance.

    For `<=` the value is lhs/rhs, at most one where the form is true, and for `>=` rhs/lhs: what is
    called lhs here is always the side claimed to be the smaller one. For `=` the value is the
    largest difference relative to the largest entry, for a limit that difference itself. `low` and
    `high` enclose it, given `Sides.error`; `low` is -inf where a search supports no violation.

    Attributes:
        value: the ratio or the discrepancy.
        low: its least value compatible with the stated error.
        high: its greatest value compatible with the stated error.
        counted: the hypotheses are met and the sides are not both below the error.
        lhs: the left side (for `=`: NaN).
        rhs: the right side (for `=`: NaN).
        trivial: the form does not beat the trivial bound on this instance.
        met: the hypotheses are met; `counted` where the error leaves something to say as well.
        error: the stated error; NaN where it is negative.
    """

    value: Reals
    low: Reals
    high: Reals
    counted: Flags
    lhs: Reals
    rhs: Reals
    trivial: Flags
    met: Flags
    error: Reals

    def column(self, index: int, /) -> "Measured":
        """One form alone, without the last axis."""
        return Measured(*(field[..., index] for field in self))


export.register_namedtuple_serialization(
    Measured, serialized_name="jaxbounds.falsification.Measured"
)


@contextlib.contextmanager
def float64_on_cpu() -> Iterator[None]:
    """Float64 on the CPU with full matmul precision, for the length of a `with` block."""
    with (
        jax.enable_x64(True),
        jax.default_device(jax.devices("cpu")[0]),
        jax.default_matmul_precision("highest"),
    ):
        yield


def form_names(statement: Statement, /) -> tuple[str, ...]:
    """The order of the entries of `Measured`: the forms, then the control."""
    return (*(form.name for form in statement.forms), CONTROL)


def ratio(lhs: Any, rhs: Any, xp: Xp = jnp, /) -> Any:
    """A number that is at most one exactly where lhs <= rhs: lhs/rhs for positive rhs.

    For rhs <= 0 it is 1 + (lhs - rhs) / (|lhs| + |rhs|), and 0 <= 0 gives zero.
    """
    positive = rhs > 0
    spread = xp.abs(lhs) + xp.abs(rhs)
    quotient = lhs / xp.where(positive, rhs, 1.0)
    shifted = 1.0 + (lhs - rhs) / xp.where(spread > 0, spread, 1.0)
    return xp.where(positive, quotient, xp.where(spread > 0, shifted, 0.0 * spread))


def pick(side: Any, name: str, which: str, statement: Statement, /) -> Any:
    """One form's side, where forms have sides of their own.

    Raises:
        ValueError: if there is none for that form.
    """
    if not isinstance(side, Mapping):
        return side
    if name not in side:
        raise ValueError(
            f"evaluate of {statement.id} returned no {which} for {name!r}; it returned "
            f"{', '.join(side)}"
        )
    return side[name]


def in_order(statement: Statement, sides: Sides, /) -> Sides:
    """The sides of a bound with that which is claimed to be the smaller one on the left."""
    if statement.relation != ">=":
        return sides
    names = list(sides.rhs)
    larger = {name: pick(sides.lhs, name, "lhs", statement) for name in names}
    return sides._replace(lhs=dict(sides.rhs), rhs=larger)


def _inequality(lhs, rhs, error, tolerance, xp):
    if lhs.shape or rhs.shape or error.shape:
        shapes = f"{lhs.shape} and {rhs.shape}, with an error of shape {error.shape}"
        raise ValueError(f"both sides of a <= must be scalars, got {shapes}")
    informative = ~((error > 0) & (error >= xp.maximum(xp.abs(lhs), xp.abs(rhs))))
    low, high = ratio(lhs - error, rhs, xp), ratio(lhs + error, rhs, xp)
    return ratio(lhs, rhs, xp), low, high, informative, lhs, rhs


def _identity(lhs, rhs, error, tolerance, xp):
    if lhs.shape != rhs.shape:
        raise ValueError(f"both sides of a = must have one shape, got {lhs.shape} and {rhs.shape}")
    both = xp.stack([lhs.ravel(), rhs.ravel()])
    largest = xp.max(xp.abs(both), initial=0.0)
    difference = xp.max(xp.abs(both[0] - both[1]), initial=0.0)
    relative = lambda amount: amount / xp.where(largest > 0, largest, 1.0)
    low = relative(xp.maximum(difference - error, 0.0))
    nothing = xp.full((), xp.nan)
    # With an error above the tolerance the instance could decide nothing.
    informative = ~(error > tolerance / 2 * largest)
    return relative(difference), low, relative(difference + error), informative, nothing, nothing


def _distance(lhs, rhs, error, tolerance, xp):
    if lhs.shape != rhs.shape:
        raise ValueError(f"both sides of a limit have one shape, got {lhs.shape} and {rhs.shape}")
    far = xp.max(xp.abs(lhs - rhs), initial=0.0)
    size = lambda side: xp.max(xp.abs(side), initial=0.0)
    low, high = xp.maximum(far - error, 0.0), far + error
    return far, low, high, xp.bool_(True), size(lhs), size(rhs)


_COMPARE = {"=": _identity, "<=": _inequality, ">=": _inequality, "->": _distance}


def compared(relation: str, lhs: Any, rhs: Any, error: Any, /) -> tuple[float, float]:
    """One form's ratio (or discrepancy), and its least value that the stated error allows."""
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    value, low, *_ = _COMPARE[relation](lhs, rhs, np.max(error), 1.0, np)
    return float(value), float(low)


def _refuse_low_precision(statement: Statement, instance: Instance) -> None:
    wanted = jax.dtypes.canonicalize_dtype(float)
    for path, leaf in jax.tree_util.tree_leaves_with_path(instance):
        if jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.dtype != wanted:
            where = jax.tree_util.keystr(path)
            raise ValueError(
                f"{statement.id}: instance{where} is {leaf.dtype}, but statements are measured in "
                f"{wanted}: let the sampler use the default float type"
            )


def asked(
    hypotheses: Hypotheses | None, instance: Instance, size: Size, xp: Xp = jnp, /
) -> dict[str, Flags]:
    """Each hypothesis by name, as a boolean scalar.

    Raises:
        TypeError: at trace time, if `hypotheses` returns no dict of booleans.
    """
    named = hypotheses(instance, size) if hypotheses else {}
    if not isinstance(named, Mapping):
        raise TypeError(f"hypotheses must return a dict of booleans by name, got {type(named)}")
    for name, flags in named.items():
        kind = flags.dtype if hasattr(flags, "dtype") else np.asarray(flags).dtype
        if kind != np.bool_:
            raise TypeError(f"the hypothesis {name!r} must be a boolean, not {kind}: compare them")
    # NumPy's `all` gives no array.
    return {name: xp.asarray(xp.all(xp.asarray(flags))) for name, flags in named.items()}


def joined(*tables: Mapping[str, Flags]) -> dict[str, Flags]:
    """Hypotheses from several places; those of one name must all be met."""
    found: dict[str, Flags] = {}
    for name, flag in itertools.chain.from_iterable(table.items() for table in tables):
        found[name] = found[name] & flag if name in found else flag
    return found


def met(
    hypotheses: Hypotheses | None, instance: Instance, size: Size, xp: Xp = jnp, /
) -> dict[str, Flags]:
    """Each hypothesis by name, as a boolean scalar; plus finiteness of the instance.

    Raises:
        TypeError: at trace time, if `hypotheses` returns no dict of booleans.
    """
    floats = [x for x in jax.tree.leaves(instance) if jnp.issubdtype(x.dtype, jnp.floating)]
    finite = xp.bool_(True)
    for leaf in floats:
        finite = finite & xp.all(xp.isfinite(leaf))
    return joined({"finite": xp.asarray(finite)}, asked(hypotheses, instance, size, xp))


def measure(statement: Statement, size: Size, /) -> Callable[[Instance], Measured]:
    """The function from an instance of that size to its `Measured`.

    Pure; `jit` and `vmap` it, unless the statement is run on the host.

    Raises:
        ValueError: at trace time, if `evaluate` misses a form or returns sides of wrong shapes.
        TypeError: at trace time, if it returns complex numbers.
    """
    xp = np if statement.host else jnp
    compare = _COMPARE[statement.relation]
    if statement.there_is is not None:
        return _with_promised(statement, size)

    def one(instance: Instance) -> Measured:
        _refuse_low_precision(statement, instance)
        with estimates_made() as made:
            sides = in_order(statement, _checked(statement, _evaluated(statement, instance, size)))
        if set(made) - set(statement.estimates.values()):
            raise ValueError(
                f"evaluate of {statement.id} has a supremum or infimum that is only estimated: say "
                f'on which side, as estimates={{"lhs": "{made[0]}"}}'
            )

        def as_float(side: Any, which: str) -> Any:
            found = xp.asarray(pick(side, name, which, statement))
            if jnp.issubdtype(found.dtype, jnp.complexfloating):
                raise TypeError(
                    f"{statement.id} ({name}): {which} is complex: compare real numbers, such as "
                    "real and imaginary parts, stacked"
                )
            return found.astype(jax.dtypes.canonicalize_dtype(float))

        common = met(statement.hypotheses, instance, size, xp)
        columns = []
        for name in form_names(statement):
            lhs, rhs = as_float(sides.lhs, "lhs"), as_float(sides.rhs, "rhs")
            stated = as_float(sides.error, "error")
            error = xp.where(stated >= 0, stated, xp.nan)
            try:
                with np.errstate(all="ignore"):  # infinities are compared like other numbers
                    compared = compare(lhs, rhs, error, statement.tolerance, xp)
            except ValueError as problem:
                raise ValueError(f"{statement.id} ({name}): {problem}") from None
            value, low, high, informative, left, right = compared
            if statement.unrefutable and name != CONTROL:
                low = xp.full((), -xp.inf)
            own = None if name == CONTROL else statement.form(name).hypotheses
            required = joined(common, asked(own, instance, size, xp))
            meets = xp.all(xp.stack(list(required.values())))
            # Of a >= the trivial bound is from below as well.
            beaten = xp.bool_(False) if sides.trivial is None else (
                left <= sides.trivial if statement.relation == ">=" else right >= sides.trivial
            )  # fmt: skip
            largest = xp.max(error, initial=0.0)
            columns.append(
                (value, low, high, informative & meets, left, right, beaten, meets, largest)
            )
        return Measured(*(xp.stack(column) for column in zip(*columns)))

    return one


def _evaluated(statement: Statement, instance: Instance, size: Size) -> Sides:
    try:
        with np.errstate(all="ignore"):  # an instance that the hypotheses leave out may be anything
            return statement.evaluate(instance, size)
    except KeyError as missing:
        name = missing.args[0] if missing.args else None
        if not isinstance(name, str) or name in instance or name in size:
            raise
        raise ValueError(
            f"evaluate of {statement.id} asks for {name!r}; an instance has {', '.join(instance)}"
        ) from missing


def promised(statement: Statement, size: Size, index: int, /) -> Callable[[Instance], Instance]:
    """An instance with the entries that `there_is` promises, as the inner search finds them best.

    Args:
        statement: with `there_is`.
        size: of the instance.
        index: of the form, or of the control, whose ratio is made small.
    """
    sets, given = Over(statement.there_is or {}), measure(statement.as_given(), size)

    def filled(instance: Instance) -> Instance:
        outer = jax.lax.stop_gradient(dict(instance))
        smallness = lambda point: -jnp.asarray(given(outer | point).column(index).value)
        found = best_point(smallness, sets, size, given=outer)
        return dict(instance) | jax.lax.stop_gradient(found.point)

    return filled


def _with_promised(statement: Statement, size: Size) -> Callable[[Instance], Measured]:
    """Each form, and the control, with the entries that suit it best."""
    given, sets = measure(statement.as_given(), size), Over(statement.there_is or {})
    fills = [promised(statement, size, i) for i in range(len(statement.forms) + 1)]
    exact = sets.every(size) is not None

    def one(instance: Instance) -> Measured:
        columns = [given(fill(instance)).column(i) for i, fill in enumerate(fills)]
        if not exact:  # a search that finds nothing proves no absence
            none = jnp.full((), -jnp.inf)
            columns = [*(column._replace(low=none) for column in columns[:-1]), columns[-1]]
        return jax.tree.map(lambda *fields: jnp.stack(fields), *columns)

    return one


def _checked(statement: Statement, sides: Sides) -> Sides:
    if not isinstance(sides, Sides):
        raise TypeError(f"evaluate of {statement.id} must return Sides, got {type(sides)}")
    if not isinstance(sides.rhs, Mapping):
        raise TypeError(
            f"the rhs of {statement.id} must be a dict with a value for each of "
            f"{', '.join(form_names(statement))}, got {type(sides.rhs)}"
        )
    extra = set(sides.rhs) - set(form_names(statement))
    if extra:
        names = ", ".join(sorted(extra))
        raise ValueError(f"evaluate of {statement.id} returned rhs for unknown forms: {names}")
    return sides


def hypothesis_names(
    statement: Statement, form: Form | None = None, instance: Instance | None = None
) -> tuple[str, ...]:
    """The names of the hypotheses, by evaluating them on an instance of the smallest size.

    Args:
        statement: whose hypotheses.
        form: its own are added.
        instance: to evaluate them on; the first that can be drawn where none is given.
    """
    wanted = [h for h in (statement.hypotheses, form and form.hypotheses) if h]
    if not wanted:
        return ()
    size = Size(statement.sizes[0])
    named = lambda drawn: {k: ok for h in wanted for k, ok in h(drawn, size).items()}
    with float64_on_cpu():
        if instance is None and statement.cases is not None:
            instance = jax.tree.map(lambda leaf: np.asarray(leaf)[0], dict(statement.cases(size)))
        elif instance is None:
            sampler = next(iter(statement.samplers.values()))
            draw = lambda: sampler(jax.random.key(0), size)
            # On the host hypotheses look at numbers; else nothing needs a device.
            instance = jax.tree.map(np.asarray, draw()) if statement.host else jax.eval_shape(draw)
        return tuple(named(instance) if statement.host else jax.eval_shape(named, instance))
