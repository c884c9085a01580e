"""Check the user's options; an error message names the option, its value and a valid value."""

import operator
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxbounds.ground.exceptions import Refused


def refused(name: str, value: Any, wanted: str, example: str, /) -> Refused:
    """Return the error of an option: its name, its value, the expectation and a valid value."""
    return Refused(f"{name}={shown(value)} is no {wanted}. Try {example}")


def whole(name: str, value: Any, /, *, least: int | None = 1) -> Any:
    """Return an option that is an integer >= `least`; a traced value passes unchecked.

    If `least` is None, any integer is valid.

    Raises:
        Refused: if the value is not an integer >= `least`; a bool or a float does not count as an
            integer.
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
    """Return an option's value; refuse NaN, values up to a bound, and values that are no number.

    Raises:
        Refused: if the value is not a real number above the bound `above`.
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
    """Return the user's option if it can be called, else refuse it.

    `of` names the arguments of the user's function, for the error message.

    Raises:
        Refused: if the user's value is not a function.
    """
    if not callable(value):
        raise refused(name, value, "function", f"a function of {of}")
    return value


def shown(value: Any, /) -> str:
    """Return a value as one line of text for an error message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
