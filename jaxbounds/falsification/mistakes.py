"""Mistakes that a test plants in a function: they make its results slightly or grossly wrong."""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.numerics.arrays import array_module


def off(value: Any, factor: Any, /) -> Any:
    """Return a slightly wrong version of a function's result.

    The mistake multiplies real numbers by `factor`. In a result without real numbers, the mistake
    adds one to integers and negates booleans. In an object that is not a pytree (a compiled
    network), the mistake changes one entry of the first suitable field. If the result is a
    function, the mistake changes that function's results.

    Raises:
        TypeError: if the function's result holds neither a number nor a boolean, so that no mistake
            changes it.
    """
    if _is_function(value):
        return functools.wraps(value)(lambda *given, **named: off(value(*given, **named), factor))
    leaves, structure = jax.tree.flatten(value)
    for kind, change in (
        (np.inexact, lambda x: x * factor),
        (np.integer, lambda x: x + 1),
        (np.bool_, lambda x: not x if isinstance(x, bool) else ~x),
    ):
        wrong = [change(leaf) if is_of(leaf, kind) else leaf for leaf in leaves]
        if any(is_of(leaf, kind) for leaf in leaves):
            return jax.tree.unflatten(structure, wrong)
    changed = with_one_entry_off(value)
    if changed is None:
        raise TypeError(
            f"the result has type={type(value).__name__} and holds no number, expected arrays or "
            f"numbers. Try a judged function that returns arrays"
        )
    return changed


def _is_function(value: Any) -> bool:
    fields = dataclasses.is_dataclass(value) or isinstance(value, tuple)
    return callable(value) and not fields


def is_of(leaf: Any, kind: type) -> bool:
    """Return whether a leaf is a number or an array of a NumPy kind, such as `np.inexact`."""
    if isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex)):
        return jax.numpy.issubdtype(jax.numpy.result_type(leaf), kind)
    return False


def with_one_entry_off(value: Any, at: int = 0) -> Any:
    """Return a copy of an object with its entry number `at` changed; None without this entry."""
    return next(itertools.islice(_copies(value), at, None), None)


def _copies(value: Any) -> Iterator[Any]:
    """Yield copies of an object with one changed entry; skip changes that the object refuses."""
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
                with contextlib.suppress(ValueError, TypeError):  # the object refuses the entry
                    yield dataclasses.replace(value, **{field.name: changed})
    elif isinstance(value, tuple | list):
        for index, entry in enumerate(value):
            for changed in _copies(entry):
                entries = [*value[:index], changed, *value[index + 1 :]]
                yield type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)


def _moved(change: Callable[[Any], Any]) -> Callable[[Any], Any]:

    def wrong(value: Any) -> Any:
        if _is_function(value):
            return functools.wraps(value)(lambda *given, **named: wrong(value(*given, **named)))
        arrays = lambda leaf: is_of(leaf, np.inexact) and getattr(leaf, "ndim", 0) > 0
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
"""Mistakes other than factors. A factor keeps zeros and orders, so only these mistakes can falsify
claims about zeros or orders."""


def _each(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that changes real numbers' absolute values by `change`, not the signs."""

    def wrong(value: Any) -> Any:
        if _is_function(value):
            return functools.wraps(value)(lambda *given, **named: wrong(value(*given, **named)))
        signed = lambda x: array_module(x).sign(x) * change(abs(x))
        return jax.tree.map(lambda x: signed(x) if is_of(x, np.inexact) else x, value)

    return wrong


def _discrete(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a mistake that changes integers by `change` and negates booleans."""

    def wrong(value: Any) -> Any:
        if _is_function(value):
            return functools.wraps(value)(lambda *given, **named: wrong(value(*given, **named)))
        return jax.tree.map(changed, value)

    def changed(leaf: Any) -> Any:
        if is_of(leaf, np.bool_):
            return not leaf if isinstance(leaf, bool) else ~leaf
        return change(leaf) if is_of(leaf, np.integer) else leaf

    return wrong


ENTRIES = 12
"""The library makes at most this many copies of an object, such as a circuit, each with one wrong
entry. A larger number takes longer."""


def _of_an_object(at: int) -> Callable[[Any], Any]:
    """Return a map that alters one entry of an object without arrays, such as a circuit's wire."""

    def wrong(value: Any) -> Any:
        if any(is_of(leaf, np.number) for leaf in jax.tree.leaves(value)):
            return value
        changed = with_one_entry_off(value, at)
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
"""Large mistakes in a function; a claim about the function should fail under at least one mistake.
"""
