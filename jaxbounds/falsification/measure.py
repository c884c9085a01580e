"""The measurement of one statement on one instance: the ratio of each form, and whether it counts.

A program computes the sides and the hypotheses, a `Reading`. A comparison of the sides involves a
few numbers for each instance, of all forms at once. Nothing is compiled for the comparison where
instances are NumPy arrays.
"""

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification.evaluation import (
    Flags,
    Reading,
    Reals,
    Xp,
    all_finite,
    of_form,
    read,
    refuse_other_sides,
)
from jaxbounds.ground.jax_internals import enable_x64


class Measured(NamedTuple):
    """The measurements of a statement's forms, in order, then of its control, on one instance.

    For `<=` the value is lhs/rhs, at most one where the form is true. For `>=` the value is
    rhs/lhs: lhs here is always the side claimed to be the smaller one. For `=` the value is the
    largest difference relative to the largest entry; for a limit the value is that difference
    itself. `low` and `high` enclose the value, given `Sides.error`. `low` is -inf where a search
    supports no violation.

    Attributes:
        value: the ratio or the discrepancy.
        low: the least value compatible with the stated error.
        high: the greatest value compatible with the stated error.
        counted: the hypotheses are met and the sides are not both below the error.
        lhs: the left side (for `=`: NaN).
        rhs: the right side (for `=`: NaN).
        trivial: the form does not beat the trivial bound on this instance.
        met: the hypotheses are met; `counted` also asks whether the error decides nothing.
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
        """Return one form alone, without the last axis."""
        return Measured(*(field[..., index] for field in self))


@contextlib.contextmanager
def float64_on_cpu() -> Iterator[None]:
    """Use float64 on the CPU with full matmul precision, for the length of a `with` block."""
    with (
        enable_x64(True),
        jax.default_device(jax.devices("cpu")[0]),
        jax.default_matmul_precision("highest"),
    ):
        yield


def ratio(lhs: Any, rhs: Any, xp: Xp = jnp, /) -> Any:
    """Return a number that is at most one exactly where lhs <= rhs: lhs/rhs for positive rhs.

    For rhs <= 0 it is 1 + (lhs - rhs) / (|lhs| + |rhs|), and 0 <= 0 gives zero. An infinite side
    beside another side is larger or smaller than it; two equal infinities give NaN.
    """
    positive = rhs > 0
    spread = xp.abs(lhs) + xp.abs(rhs)
    quotient = lhs / xp.where(positive, rhs, 1.0)
    shifted = 1.0 + (lhs - rhs) / xp.where(spread > 0, spread, 1.0)
    found = xp.where(positive, quotient, xp.where(spread > 0, shifted, 0.0 * spread))
    ordered = xp.isnan(found) & xp.isinf(spread) & (lhs != rhs)
    return xp.where(ordered, 1.0 + xp.sign(lhs - rhs), found)


Compared = tuple[Any, Any, Any, Any, Any, Any]
"""The value, low, high, whether the error leaves the comparison open, lhs and rhs."""


def _inequality(
    lhs: Any, rhs: Any, error: Any, tolerance: float, xp: Xp, axes: int = 0
) -> Compared:
    informative = ~((error > 0) & (error >= xp.maximum(xp.abs(lhs), xp.abs(rhs))))
    low, high = ratio(lhs - error, rhs, xp), ratio(lhs + error, rhs, xp)
    return ratio(lhs, rhs, xp), low, high, informative, lhs, rhs


def _largest(side: Any, xp: Xp, axes: int) -> Any:
    return xp.max(xp.abs(side), axis=tuple(range(axes, side.ndim)), initial=0.0)


def _identity(lhs: Any, rhs: Any, error: Any, tolerance: float, xp: Xp, axes: int = 0) -> Compared:
    largest = xp.maximum(_largest(lhs, xp, axes), _largest(rhs, xp, axes))
    difference = _largest(lhs - rhs, xp, axes)
    relative = lambda amount: amount / xp.where(largest > 0, largest, 1.0)
    low = relative(xp.maximum(difference - error, 0.0))
    nothing = xp.full(largest.shape, xp.nan)
    # With an error above the tolerance the instance decides nothing.
    informative = ~(error > tolerance / 2 * largest)
    return relative(difference), low, relative(difference + error), informative, nothing, nothing


def _distance(lhs: Any, rhs: Any, error: Any, tolerance: float, xp: Xp, axes: int = 0) -> Compared:
    far = _largest(lhs - rhs, xp, axes)
    low, high = xp.maximum(far - error, 0.0), far + error
    sides = _largest(lhs, xp, axes), _largest(rhs, xp, axes)
    return far, low, high, xp.ones(far.shape, bool), *sides


_COMPARE: dict[str, Callable[..., Compared]] = {
    "=": _identity,
    "<=": _inequality,
    ">=": _inequality,
    "->": _distance,
}


def compared(relation: str, lhs: Any, rhs: Any, error: Any, /) -> tuple[float, float]:
    """Return one form's ratio (or discrepancy), and the least value that the error allows."""
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    refuse_other_sides(relation, lhs, rhs)
    if relation == "=" and lhs.size > 1:  # entry by entry, as balls compare them
        each = [_identity(*pair, np.max(error), 1.0, np)[:2] for pair in zip(lhs.flat, rhs.flat)]
        value, low = (float(np.max(part)) for part in zip(*each))
        return value, low
    value, low, *_ = _COMPARE[relation](lhs, rhs, np.max(error), 1.0, np)
    return float(value), float(low)


def measured(
    statement: Statement, reading: Reading, instance: Instance, xp: Xp = np, /, *, axes: int = 0
) -> Measured:
    """Compare the sides in a reading, for each form; in many readings, over leading axes.

    Args:
        statement: the statement that was read.
        reading: the reading of the instance.
        instance: the instance, of which all floats must be finite.
        xp: the array module of all arrays here.
        axes: the number of leading axes.
    """
    kind, compare = jax.dtypes.canonicalize_dtype(float), _COMPARE[statement.relation]
    own = lambda leaf: tuple(range(axes, leaf.ndim))

    def met(flags: Mapping[str, Flags], common: Flags) -> Flags:
        every = [xp.all(flag, axis=own(flag)) for flag in flags.values()]
        return functools.reduce(operator.and_, every, common)

    def row(part: Sequence[Any]) -> Any:
        """Stack the numbers of the forms along a last axis.

        A number shared by all forms is repeated.
        """
        return xp.stack(xp.broadcast_arrays(*part), axis=-1)

    def floats(part: Sequence[Any]) -> list[Any]:
        return [xp.asarray(side).astype(kind) for side in part]

    common = met(reading.met[0], all_finite(instance, xp, axes))
    meets = row([*(met(flags, common) for flags in reading.met[1:]), common])
    lhs, rhs, stated = map(floats, reading[:3])
    stated = row([xp.max(error, axis=own(error), initial=-xp.inf) for error in stated])
    error = xp.where(stated >= 0, stated, xp.nan)
    with np.errstate(all="ignore"):  # infinities are compared like other numbers
        if statement.is_bound:
            compared = compare(row(lhs), row(rhs), error, statement.tolerance, xp)
        else:  # sides have another shape for each form
            errors = [error[..., i] for i in range(error.shape[-1])]
            each = [
                compare(*(of_form(part, i) for part in (lhs, rhs, errors)), statement.tolerance,
                        xp, axes)
                for i in range(len(reading.met))
            ]  # fmt: skip
            compared = tuple(map(row, zip(*each)))
        value, low, high, informative, left, right = compared
        beaten = xp.asarray(False)
        if reading.trivial is not None:
            (trivial,) = floats([reading.trivial])
            # The trivial bound of a >= is from below as well.
            beaten = (
                left <= trivial[..., None] if statement.relation == ">="
                else right >= trivial[..., None]
            )  # fmt: skip
    if statement.unrefutable:  # the control, the last column, is refuted all the same
        low = xp.where(xp.arange(len(reading.met)) < len(statement.forms), -xp.inf, low)
    return Measured(
        *xp.broadcast_arrays(
            value, low, high, informative & meets, left, right, beaten, meets, error
        )
    )


def counts_for(
    statement: Statement, reading: Reading, instances: Instance, forms: np.ndarray, /
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tell for many readings of a bound, each for one form, whether it counts; return its sides.

    The result agrees with `measured`, which compares all forms.

    Args:
        statement: the statement that was read.
        reading: the readings of the instances, stacked.
        instances: the instances, stacked.
        forms: the index of each instance's form.
    """
    each, axes = np.arange(len(forms)), lambda flag: tuple(range(1, flag.ndim))
    own = lambda part: np.asarray(np.stack(part)[forms, each] if len(part) > 1 else part[0], float)
    lhs, rhs, error = map(own, reading[:3])
    counts = all_finite(instances, np, axes=1) & np.ones(len(forms), bool)
    for flag in reading.met[0].values():
        counts = counts & np.all(flag, axis=axes(flag))
    for index, flags in enumerate(reading.met[1:]):
        for flag in flags.values():
            counts = counts & (np.all(flag, axis=axes(flag)) | (forms != index))
    hidden = (error > 0) & (error >= np.maximum(np.abs(lhs), np.abs(rhs)))
    return counts & ~hidden, lhs, rhs


def measure(statement: Statement, size: Size, /) -> Callable[[Instance], Measured]:
    """Return the function from an instance of that size to its `Measured`.

    Pure; `jit` and `vmap` it, unless the statement is run on the host. Entries that `there_is`
    promises are measured as the instance has them: nothing is sought.

    Raises:
        Refused: at trace time, if `evaluate` misses a form or returns sides of wrong shapes.
        TypeError: at trace time, if it returns complex numbers.
    """
    reading, xp = read(statement, size), np if statement.host else jnp
    return lambda instance: measured(statement, reading(instance), instance, xp)


def hypothesis_names(
    statement: Statement, form: Form | None = None, instance: Instance | None = None
) -> tuple[str, ...]:
    """Return the names of the hypotheses, by evaluating them on an instance of the smallest size.

    Args:
        statement: the statement whose hypotheses are named.
        form: a form whose own hypotheses are added.
        instance: the instance to evaluate them on; the first that can be drawn unless given.
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
            # Hypotheses on the host look at numbers; other hypotheses need no device.
            instance = jax.tree.map(np.asarray, draw()) if statement.host else jax.eval_shape(draw)
        return tuple(named(instance) if statement.host else jax.eval_shape(named, instance))
