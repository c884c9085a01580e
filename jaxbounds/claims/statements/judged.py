"""Functions that a statement judges, by their full names."""

import sys
from collections.abc import Callable
from typing import Any

from jaxbounds.ground.exceptions import Refused

Judged = Callable[..., Any]
"""A public function that a statement calls and whose values its verdict is about."""


def full_name(function: Judged, /) -> str:
    """Module and name of a function, as one would import it."""
    return f"{function.__module__}.{function.__qualname__}"


def owner_of(function: Judged, /) -> tuple[Any, str]:
    """The module or class that holds a function, and the name it has there.

    Raises:
        Refused: if it cannot be found under its own name: a lambda, a nested function, a partial
            application.
    """
    try:
        owner: Any = sys.modules[function.__module__]
        *path, name = function.__qualname__.split(".")
        for part in path:
            owner = getattr(owner, part)
        if getattr(owner, name) == function:  # classmethods are made anew at each look
            return owner, name
    except (AttributeError, KeyError):
        pass
    raise Refused(f"{function!r} is not found under its own name: judge a module's function")
