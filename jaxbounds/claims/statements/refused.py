"""A declaration that is ill formed costs only itself while a file of claims is loaded."""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

REFUSALS = (TypeError, ValueError)
"""The exceptions of a constructor that refuses its arguments."""
_collecting: contextvars.ContextVar[bool] = contextvars.ContextVar("collecting", default=False)


@contextlib.contextmanager
def collecting() -> Iterator[None]:
    """For the length of a `with` block constructors put a refusal into what they make."""
    token = _collecting.set(True)
    try:
        yield
    finally:
        _collecting.reset(token)


def is_collecting() -> bool:
    """Whether a file of claims is being loaded."""
    return _collecting.get()


class Careful(type):
    """Constructors that raise on their own, and while a file is loaded make a placeholder instead.

    A class says by `refused_as(problem, given)` what stands in the place of what it refuses.
    """

    def __call__(cls, *given: Any, **named: Any) -> Any:
        """The object that the class makes of its arguments, or a placeholder."""
        try:
            return super().__call__(*given, **named)
        except REFUSALS as problem:
            if not is_collecting():
                raise
            with alone():
                return cls.refused_as(problem, named)  # type: ignore[attr-defined]


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """For the length of a `with` block constructors raise again."""
    token = _collecting.set(False)
    try:
        yield
    finally:
        _collecting.reset(token)
