"""Plant a mistake in a function that a claim is about, in every module that holds the function."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import Judged, full_name, owner_of
from jaxbounds.falsification.mistakes import is_of, off
from jaxbounds.falsification.trace_watch import forget, modules


def _holders(function: Judged) -> Iterator[tuple[Any, str]]:
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


FACTORS: dict[str, Any] = {}
"""A dictionary from a wrong function's full name to the factor that multiplies its results."""
STATIC: set[str] = set()
"""The names of functions whose results JAX does not trace; a traced factor cannot change such
results."""


@contextlib.contextmanager
def replaced(function: Judged) -> Iterator[None]:
    """Multiply a function's results by the function's factor in `FACTORS`, in a `with` block."""
    owner, at = owner_of(function)
    kept, name = vars(owner)[at], full_name(function)
    method = kept if isinstance(kept, classmethod | staticmethod) else None
    plain = method.__func__ if method else kept

    @functools.wraps(plain)
    def wrong(*given: Any, **named: Any) -> Any:
        value, factor = plain(*given, **named), FACTORS.get(name)
        if factor is None:
            return value
        if callable(factor):
            return factor(value)
        leaves = jax.tree.leaves(value)
        traced = [x for x in leaves if isinstance(x, jax.Array) and is_of(x, np.inexact)]
        if isinstance(factor, jax.core.Tracer) and not traced:
            STATIC.add(name)
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
    """Make a function wrong in a `with` block, in every module of its package.

    Args:
        function: a public function of a Python module.
        wrong: the factor that multiplies the function's results, or a function that changes them.
    """
    with replaced(function):
        forget(function.__module__)
        FACTORS[full_name(function)] = wrong
        try:
            yield
        finally:
            FACTORS.clear()
            forget(function.__module__)
