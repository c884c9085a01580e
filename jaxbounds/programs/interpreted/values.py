"""Define `Rule`, a function that runs an equation of JAX in NumPy, and `NotInterpreted`."""

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]
"""A function from an equation's operands and parameters (passed as keywords) to its results."""


class NotInterpreted(Exception):
    """Raised if NumPy has no rule for a program, or may give another result than JAX."""
