"""Measure a statement on one instance: each form's ratio, and whether the instance is evidence.

A form is one version of the claim. An instance counts as evidence if it meets the hypotheses, and
the sides exceed the error that `evaluate` states.
"""

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

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

UNITS = 256 * 2.0**-53
"""Error bar relative to the size of the terms: 256 units in the last place, the largest rounding
error of a sum of 256 terms. A larger bar hides larger violations."""


class Measured(NamedTuple):
    """The measurements of a claim's versions and of a deliberately false variant, on one instance.

    `lhs` is always the side claimed to be smaller. `low` and `high` enclose the value up to the
    stated rounding error.

    Attributes:
        value: for a bound, lhs/rhs, which is at most one if the claim is true. For `=`, the largest
            difference relative to the largest entry; for a limit, the difference itself.
        low: the least value that the stated error allows; -inf if the violation depends on a
            search's estimate.
        high: the greatest value that the stated error allows.
        counted: whether the instance meets the hypotheses, and a side exceeds the stated error.
        lhs: the side claimed to be smaller (for `=`: NaN).
        rhs: the side claimed to be larger (for `=`: NaN).
        trivial: whether the bound is no better than the trivial bound on this instance.
        met: whether the instance meets the hypotheses.
        error: the stated error of lhs - rhs; NaN if it is negative.
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
        """Return the measurements of one claim version, without the axis of versions."""
        return Measured(*(field[..., index] for field in self))


@contextlib.contextmanager
def float64_on_cpu() -> Iterator[None]:
    """Use float64 on the CPU, full matmul precision and one BLAS thread in a `with` block.

    BLAS threads round sums in another order, and wait busily for each other in small matrices.
    """
    with (
        threadpool_limits(1, user_api="blas"),
        enable_x64(True),
        jax.default_device(jax.devices("cpu")[0]),
        jax.default_matmul_precision("highest"),
    ):
        yield


def ratio(lhs: Any, rhs: Any, xp: Xp = jnp, /) -> Any:
    """Return a number that is at most one if and only if lhs <= rhs: lhs/rhs for positive rhs.

    For rhs <= 0 the number is 1 + (lhs - rhs) / (|lhs| + |rhs|), and 0 for lhs = rhs = 0. An
    infinite side is larger or smaller than any finite side; two equal infinities give NaN.
    """
    positive = rhs > 0
    spread = xp.abs(lhs) + xp.abs(rhs)
    quotient = lhs / xp.where(positive, rhs, 1.0)
    shifted = 1.0 + (lhs - rhs) / xp.where(spread > 0, spread, 1.0)
    found = xp.where(positive, quotient, xp.where(spread > 0, shifted, 0.0 * spread))
    ordered = xp.isnan(found) & xp.isinf(spread) & (lhs != rhs)
    return xp.where(ordered, 1.0 + xp.sign(lhs - rhs), found)


def ranked(m: "Measured", bound: bool, /) -> Any:
    """Return the number by which searches rank each instance; a larger number is worse.

    The number is usually lhs / rhs. If the sides of a bound have opposite signs, or one is zero,
    the number lies between -1 and 0 and depends on lhs - rhs.
    """
    if not bound:
        return m.value
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.asarray(m.lhs) - np.asarray(m.rhs)
        opposite = (m.lhs <= 0) & (m.rhs >= 0) & np.isfinite(gap) & ~np.isnan(m.value)
        return np.where(opposite, gap / (1 + np.abs(gap)), m.value)


Compared = tuple[Any, Any, Any, Any, Any, Any]
"""The tuple (value, low, high, informative, lhs, rhs), as in `Measured`. The flag `informative`
says whether the stated error is small enough to decide the claim."""


def _inequality(
    lhs: Any, rhs: Any, error: Any, tolerance: float, xp: Xp, axes: int = 0
) -> Compared:
    informative = ~((error > 0) & (error >= xp.maximum(xp.abs(lhs), xp.abs(rhs))))
    low, high = ratio(lhs - error, rhs, xp), ratio(lhs + error, rhs, xp)
    return ratio(lhs, rhs, xp), low, high, informative, lhs, rhs


def _largest(side: Any, xp: Xp, axes: int) -> Any:
    return xp.max(xp.abs(side), axis=tuple(range(axes, side.ndim)), initial=0.0)


def _only(side: Any, xp: Xp, axes: int) -> Any:
    """Return the only entry of a side with its sign, or the largest absolute entry of many."""
    if math.prod(side.shape[axes:]) == 1:
        return xp.reshape(side, side.shape[:axes])
    return _largest(side, xp, axes)


def _identity(lhs: Any, rhs: Any, error: Any, tolerance: float, xp: Xp, axes: int = 0) -> Compared:
    largest = xp.maximum(_largest(lhs, xp, axes), _largest(rhs, xp, axes))
    difference = _largest(lhs - rhs, xp, axes)
    relative = lambda amount: amount / xp.where(largest > 0, largest, 1.0)
    low = relative(xp.maximum(difference - error, 0.0))
    nothing = xp.full(largest.shape, xp.nan)
    # An instance whose error exceeds the tolerance decides nothing.
    informative = ~(error > tolerance / 2 * largest)
    return relative(difference), low, relative(difference + error), informative, nothing, nothing


def _distance(lhs: Any, rhs: Any, error: Any, tolerance: float, xp: Xp, axes: int = 0) -> Compared:
    far = _largest(lhs - rhs, xp, axes)
    low, high = xp.maximum(far - error, 0.0), far + error
    sides = _only(lhs, xp, axes), _only(rhs, xp, axes)
    return far, low, high, xp.ones(far.shape, bool), *sides


_COMPARE: dict[str, Callable[..., Compared]] = {
    "=": _identity,
    "<=": _inequality,
    ">=": _inequality,
    "->": _distance,
}


def compared(relation: str, lhs: Any, rhs: Any, error: Any, /) -> tuple[float, float]:
    """Return two sides' ratio (or relative difference), and the least that `error` allows."""
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    refuse_other_sides(relation, lhs, rhs)
    if relation == "=" and lhs.size > 1:  # compare entry by entry, as ball arithmetic does
        each = [_identity(*pair, np.max(error), 1.0, np)[:2] for pair in zip(lhs.flat, rhs.flat)]
        value, low = (float(np.max(part)) for part in zip(*each))
        return value, low
    value, low, *_ = _COMPARE[relation](lhs, rhs, np.max(error), 1.0, np)
    return float(value), float(low)


def measured(
    statement: Statement, reading: Reading, instance: Instance, xp: Xp = np, /, *, axes: int = 0
) -> Measured:
    """Compare the sides of each claim version, on one instance or on stacked instances.

    Args:
        statement: the statement whose sides the reading holds.
        reading: the evaluated sides and hypotheses of the instance.
        instance: the instance; it counts only if all its floats are finite.
        xp: the array module (NumPy or `jax.numpy`) of all arguments.
        axes: the number of leading axes of the stacked instances.
    """
    kind, compare = jax.dtypes.canonicalize_dtype(float), _COMPARE[statement.relation]
    own = lambda leaf: tuple(range(axes, leaf.ndim))

    def met(flags: Mapping[str, Flags], common: Flags) -> Flags:
        every = [xp.all(flag, axis=own(flag)) for flag in flags.values()]
        return functools.reduce(operator.and_, every, common)

    def row(part: Sequence[Any]) -> Any:
        return xp.stack(xp.broadcast_arrays(*part), axis=-1)

    def floats(part: Sequence[Any]) -> list[Any]:
        return [xp.asarray(side).astype(kind) for side in part]

    common = met(reading.met[0], all_finite(instance, xp, axes))
    meets = row([*(met(flags, common) for flags in reading.met[1:]), common])
    lhs, rhs, stated = map(floats, reading[:3])
    stated = row([xp.max(error, axis=own(error), initial=-xp.inf) for error in stated])
    error = xp.where(stated >= 0, stated, xp.nan)
    with np.errstate(all="ignore"):  # infinities compare like other numbers
        if statement.is_bound:
            compared = compare(row(lhs), row(rhs), error, statement.tolerance, xp)
        else:  # the sides of the forms differ in shape
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
            # For a claim >=, the trivial bound is a lower bound, too.
            beaten = (
                left <= trivial[..., None] if statement.relation == ">="
                else right >= trivial[..., None]
            )  # fmt: skip
    if statement.unrefutable:  # only the control, the last column, may be refuted
        low = xp.where(xp.arange(len(reading.met)) < len(statement.forms), -xp.inf, low)
    return Measured(
        *xp.broadcast_arrays(
            value, low, high, informative & meets, left, right, beaten, meets, error
        )
    )


def counts_for(
    statement: Statement, reading: Reading, instances: Instance, forms: np.ndarray, /
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return whether each instance counts as evidence, and both sides of its claim version.

    The instances and their `reading` (sides and hypotheses) are stacked along a leading axis.
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
    """Return the function from an instance of the given size to its `Measured`.

    JAX can `jit` and `vmap` the function, unless the statement runs outside JAX. The function
    measures the instance's own values of the entries that the claim says exist (`there_is`),
    without a search for better values.

    Raises:
        Refused: at trace time, if `evaluate` misses a form or returns sides of wrong shapes.
        TypeError: at trace time, if `evaluate` returns complex numbers.
    """
    reading, xp = read(statement, size), np if statement.host else jnp
    return lambda instance: measured(statement, reading(instance), instance, xp)


def as_arrays(instance: Any, /) -> Any:
    """Convert the lists and numbers of a stored instance to NumPy arrays."""
    if isinstance(instance, Mapping):
        return {name: as_arrays(value) for name, value in instance.items()}
    return np.asarray(instance)


def hypothesis_names(
    statement: Statement, form: Form | None = None, instance: Instance | None = None
) -> tuple[str, ...]:
    """Return the names of a statement's hypotheses by evaluating them on one instance.

    Args:
        statement: the statement, which declares the claim as data.
        form: a version of the claim; the result then includes the version's own hypotheses.
        instance: the instance to evaluate on; the default is a random or hand-written instance of
            the first size.
    """
    wanted = [h for h in (statement.hypotheses, form and form.hypotheses) if h]
    if not wanted:
        return ()
    size = Size(statement.sizes[0])
    named = lambda drawn: {k: ok for h in wanted for k, ok in h(drawn, size).items()}
    with float64_on_cpu():
        if instance is None and statement.cases is not None:
            instance = jax.tree.map(lambda leaf: leaf[0], as_arrays(statement.cases(size)))
        elif instance is None:
            sampler = next(iter(statement.samplers.values()))
            draw = lambda: sampler(jax.random.key(0), size)
            # Hypotheses on the host need numbers; other hypotheses need only shapes.
            instance = jax.tree.map(np.asarray, draw()) if statement.host else jax.eval_shape(draw)
        return tuple(named(instance) if statement.host else jax.eval_shape(named, instance))
