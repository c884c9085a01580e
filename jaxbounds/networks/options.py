"""Options that somebody gives: each check names the option, its value and what would do."""

import operator
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxbounds.ground.exceptions import Refused


def refused(name: str, value: Any, wanted: str, example: str, /) -> Refused:
    """The error of an option: its name, its value, the expectation, and what would do."""
    return Refused(f"{name}={shown(value)} is no {wanted}. Try {example}")


def whole(name: str, value: Any, /, *, least: int | None = 1) -> Any:
    """An integer, at least so large; what is traced is let through.

    Args:
        name: of the option.
        value: that somebody gave.
        least: the smallest value that makes sense; None for any integer.

    Raises:
        Refused: if the value is another thing, a bool or a float included.
    """
    if isinstance(value, jax.core.Tracer):
        return value
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        found = None
    if found is None or (least is not None and found < least):
        wanted = "integer" if least is None else f"integer from {least} on"
        raise refused(name, value, wanted, str(max(least or 0, 1)))
    return found


def number(name: str, value: Any, /, *, above: float = -np.inf, example: str) -> float:
    """A real number above a bound, not NaN.

    Args:
        name: of the option.
        value: that somebody gave.
        above: what the value must exceed.
        example: a value that would do, for the message.

    Raises:
        Refused: if the value is another thing.
    """
    try:
        if isinstance(value, str | bytes | bool | np.bool_):
            raise TypeError
        found = float(value)
    except (TypeError, ValueError):
        found = float("nan")
    if not found > above:
        wanted = "number" if above == -np.inf else f"number above {above:g}"
        raise refused(name, value, wanted, example)
    return found


def function(name: str, value: Any, of: str, /) -> Callable[..., Any]:
    """Something that can be called.

    Args:
        name: of the option.
        value: that somebody gave.
        of: what the function takes and gives, for the message.

    Raises:
        Refused: if the value cannot be called.
    """
    if not callable(value):
        raise refused(name, value, "function", f"a function of {of}")
    return value


def shown(value: Any, /) -> str:
    """A value in a message, in one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
