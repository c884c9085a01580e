"""Test whether the measured program agrees with the source code and computes accurately."""

import time
from collections.abc import Iterator

import numpy as np

from jaxbounds.claims.statements import Size
from jaxbounds.falsification.bench import Bench, Column, Pool
from jaxbounds.falsification.trace_watch import TraceWatch
from jaxbounds.programs.traces import APPROXIMATE

CHANGES = (
    "evaluate returns different values when it is called again on one instance; it may draw "
    "random numbers or change a Python state. Try to draw all random numbers in the sampler"
)
SECONDS = 1.0
"""Seconds after which the engine repeats no further measurement. A larger value notices more
functions whose results change, and takes longer."""


def repeats(bench: Bench, pool: Pool, columns: list[Column]) -> bool:
    """Return whether the first and the worst instances give equal ratios when measured again.

    Two measurements agree if their error bars overlap, or if neither counts as evidence.
    """
    rows = [(0, i) for i in range(len(columns))]
    every, began = np.arange(len(columns[0].sizes)), time.perf_counter()
    rows += [(column.worst(every), i) for i, column in enumerate(columns)]
    for row in dict.fromkeys(row for row, _ in rows):
        instance = pool.instance(row)
        size = Size(bench.statement.sizes[columns[0].sizes[row]])
        first = {
            name: np.array([getattr(column.measured, name)[row] for column in columns])
            for name in ("value", "low", "high", "counted")
        }
        for _ in range(2):
            again = bench.one(instance, size)
            equal = np.isclose(again.value, first["value"], rtol=1e-9, atol=0, equal_nan=True)
            overlap = (first["low"] <= again.high) & (again.low <= first["high"])
            silent = ~first["counted"] & ~again.counted
            if not np.all(equal | (overlap & np.isfinite(first["low"])) | silent):
                return False
            if time.perf_counter() - began > SECONDS:
                return True
    return True


def unfit(watch: TraceWatch, /) -> Iterator[str]:
    """Yield the reasons why the measured program may differ from the program in the source."""
    if watch.narrow:
        more = f" and {len(watch.narrow) - 1} more" if len(watch.narrow) > 1 else ""
        yield (
            f"the engine measures in float64, but evaluate rounds in {watch.narrow[0]}{more}. "
            f"{_cure(watch)}"
        )
    if watch.fixed is False:
        yield CHANGES
    if watch.writes:
        yield (
            "evaluate changes its instance in place. Try x = np.array(x) before the first change"
        )
    if watch.never:
        yield f"the field judges names {', '.join(watch.never)}, which evaluate never calls"


def _cure(watch: TraceWatch) -> str:
    if not watch.constants:
        if all(one.startswith(("reduce_sum", "div")) for one in watch.narrow):
            return "A mean of booleans has the type float32. Try jnp.mean(jnp.where(x, 1.0, 0.0))"
        return "Try to leave out astype and dtype= there"
    return (
        f"A constant is {watch.constants[0]}, as jnp.array makes it while a file is loaded. Try "
        "np.array for the constant, and jnp.asarray of it inside the function"
    )


def rounds_coarsely(watch: TraceWatch) -> str:
    """If the program rounds coarsely, return the reason why a small violation is no evidence."""
    if watch.narrow:
        return next(unfit(watch))
    named = " and ".join(f"{name} (about {APPROXIMATE[name]:g})" for name in watch.approximate)
    return (
        f"the violation may be the error of JAX's {named}. Try a function that is accurate to "
        "float64, such as scipy.linalg's with host=True"
    )
