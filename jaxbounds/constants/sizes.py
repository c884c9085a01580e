"""Parse and combine the sizes of a search for a constant, and check their memory."""

import contextlib
import itertools
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import Size, Statement
from jaxbounds.constants.problem import with_one_form
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.falsification.measure import measure
from jaxbounds.ground.exceptions import Refused

MOST_SIZES = 64
"""The largest number of sizes in one call; a call with more sizes takes longer."""
SHARE = 0.5
"""The share of the machine's memory that one batch of instances may take.

A larger share allows larger sizes.
"""


def parse(words: Sequence[str], /) -> dict[str, tuple[float, ...]]:
    """Parse axes from words such as "T=2,4,8" or "R=.5,1"; an integer value becomes an int.

    Raises:
        Refused: if a word is not an axis, an equals sign and numbers.
    """
    axes: dict[str, tuple[float, ...]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        numbers = [v.strip() for v in values.split(",") if v.strip()]
        values_of = [_number(n) for n in numbers]
        if not equals or not name or not numbers or None in values_of:
            raise Refused(
                f"--sizes={word!r}, expected a size's name with its values. Try T=2,4,8 or R=.5,1"
            )
        if name in axes:
            raise Refused(
                f"--sizes names {name} twice, got {name}={words}. Try {name} once, with all "
                "its values"
            )
        axes[name] = tuple(dict.fromkeys(value for value in values_of if value is not None))
    return axes


def _number(word: str) -> float | None:
    if word.isdecimal():
        return int(word)
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", word):
        return None
    return float(word) if math.isfinite(float(word)) else None


Sizes = Mapping[str, Sequence[float]] | Sequence[Mapping[str, float]]
"""Sizes: a dict from axes to values (all combinations are sizes), or a list of sizes."""


def grid(statement: Statement, axes: Sizes, /) -> tuple[Size, ...]:
    """Return sizes for a statement: all combinations of the given values of its axes (n, d, ...).

    An axis (such as d) without given values keeps its value from the statement's first size. If
    `axes` is empty, the function returns the sizes that the statement declares.

    Raises:
        Refused: if the statement lacks a given axis, or the result has too many sizes. The error
            also occurs if the statement's values of an axis are integers, and a given value is not
            a positive integer.
    """
    declared = tuple(map(Size, statement.sizes))
    if not axes:
        return declared
    base = dict(declared[0])
    if not isinstance(axes, Mapping):
        if any(set(size) != set(base) for size in axes):
            raise Refused(
                f"each dict in sizes of {statement.id} must have a value for {', '.join(base)}, "
                f"got sizes={list(axes)}. Try {{{', '.join(f'{name!r}: 2' for name in base)}}}"
            )
        return tuple(map(Size, axes))
    unknown = [axis for axis in axes if axis not in base]
    if unknown:
        known = ", ".join(base) or "none"
        raise Refused(
            f"{statement.id} has no axis {unknown[0]!r}, got axes={list(axes)}, expected some of "
            f"its axes: {known}. Try one of these axes"
        )
    for axis, values in axes.items():
        whole = all(isinstance(size[axis], int) for size in declared)
        if not values or any(isinstance(v, bool) or not math.isfinite(v) for v in values):
            raise Refused(
                f"{axis}={list(values)}, expected finite numbers as the values of a size. Try "
                f"{axis}=2,4"
            )
        if whole and any(v != int(v) or v < 1 for v in values):
            raise Refused(
                f"{axis}={list(values)}, expected whole numbers from 1 on as the values of this "
                f"size. Try {axis}=2,4, or write the statement's own values as floats, such as 1.0"
            )
    total = math.prod(map(len, axes.values()))
    if total > MOST_SIZES:
        raise Refused(
            f"the axes give sizes={total} combinations, expected at most {MOST_SIZES}. Try fewer "
            "values of the axes"
        )
    chosen = itertools.product(*axes.values())
    own = lambda axis, v: int(v) if isinstance(base[axis], int) and v == int(v) else float(v)
    return tuple(
        Size(base | {axis: own(axis, v) for axis, v in zip(axes, values)}) for values in chosen
    )


def _memory() -> float:
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names:
        return math.inf
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _largest(jaxpr: Any) -> int:
    found = 0
    for eqn in jaxpr.eqns:
        for variable in eqn.outvars:
            dtype = getattr(variable.aval, "dtype", None)
            width = np.dtype(dtype).itemsize if isinstance(dtype, np.dtype) else 8
            found = max(found, math.prod(getattr(variable.aval, "shape", ())) * width)
        for inner in jax.tree.leaves(list(eqn.params.values())):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                found = max(found, _largest(inner))
    return found


def check(statement: Statement, form: str, size: Size, /) -> None:
    """Refuse a size at which instances cannot be drawn or measured, or do not fit into memory.

    The function traces the programs without running them.

    Raises:
        Refused: if the size fails a test; the message gives the reason.
    """
    if statement.host or not statement.sample or size in statement.sizes:
        return
    one = with_one_form(statement, form, size)
    sampler, key = next(iter(one.samplers.values())), jax.random.key(0)
    with float64_on_cpu():
        try:
            drawn = jax.eval_shape(lambda k: sampler(k, size), key)
            program = jax.make_jaxpr(measure(one, size))(drawn)
        except Exception as problem:  # a statement may raise anything at unknown shapes
            line = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
            raise Refused(
                f"{statement.id} (form={form!r}) cannot be measured at {size!r}; its program "
                f"raised: {line}. Try other sizes"
            ) from problem
    floats = sum(math.prod(leaf.shape) * 8 for leaf in jax.tree.leaves(drawn))
    need = statement.budget.batch * max(floats, _largest(program.jaxpr))
    if need > SHARE * _memory():
        raise Refused(
            f"{statement.id} (form={form!r}) at {size!r} does not fit into memory: one array of a "
            f"batch of {statement.budget.batch} needs {need / 2**30:.3g} GiB, and this machine has "
            f"{_memory() / 2**30:.3g} GiB. Try smaller sizes"
        )


def grown(statement: Statement, form: str, /) -> tuple[Size, ...]:
    """Return the statement's sizes, and copies of the first size with one axis doubled.

    The doubled sizes show on which axes a constant depends. The function omits a doubled size that
    `check` refuses. If a statement has no gradient search, the result is the statement's own sizes.
    """
    declared = tuple(map(Size, statement.sizes))
    if statement.search != "gradient":
        return declared
    base, found = declared[0], [declared[0]]
    for axis in base:
        size = Size(dict(base) | {axis: 2 * base[axis]})
        with contextlib.suppress(Refused):
            check(statement, form, size)
            found.append(size)
    return tuple(dict.fromkeys([*found, *declared[1:]]))
