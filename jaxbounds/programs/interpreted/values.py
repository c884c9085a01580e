"""The type of NumPy's rules, and their exception."""

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]
"""A function from the operands and parameters (as keywords) of an equation to its results."""


class NotInterpreted(Exception):
    """NumPy has no rule, or may give another result than the compiler."""
