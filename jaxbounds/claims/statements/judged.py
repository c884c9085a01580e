"""Find the full names of judged functions, which are the functions that a verdict is about."""

import sys
from collections.abc import Callable
from typing import Any

from jaxbounds.ground.exceptions import Refused

Judged = Callable[..., Any]
"""A public function whose values a statement checks: the statement's `evaluate` calls it."""


def full_name(function: Judged, /) -> str:
    """Return the module and the name of a function: "package.module.name"."""
    return f"{function.__module__}.{function.__qualname__}"


def owner_of(function: Judged, /) -> tuple[Any, str]:
    """Return the module or class that holds a function, and the function's name there.

    Raises:
        Refused: if the function's module does not hold the function under its own name, as for a
            lambda, a nested function or a partial application.
    """
    try:
        owner: Any = sys.modules[function.__module__]
        *path, name = function.__qualname__.split(".")
        for part in path:
            owner = getattr(owner, part)
        if getattr(owner, name) == function:  # each access makes a new object of a classmethod
            return owner, name
    except (AttributeError, KeyError):
        pass
    raise Refused(
        f"function={function!r} is not an attribute of its module by its own name. Try a function "
        f"that a module defines"
    )
