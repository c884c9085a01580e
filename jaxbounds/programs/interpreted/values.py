"""Helpers that rules share."""

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]
"""From the operands of an equation and its parameters, as keywords, to its result or results."""


class NotInterpreted(Exception):
    """NumPy gives something else here than the compiler might, or there is no rule."""
