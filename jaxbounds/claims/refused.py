"""Placeholders for ill-formed declarations, so that a file of claims can still be loaded."""

import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
REFUSALS = (TypeError, ValueError)
"""The exceptions that a constructor raises when it refuses its arguments."""
_collecting: contextvars.ContextVar[bool] = contextvars.ContextVar("collecting", default=False)


@contextlib.contextmanager
def collecting() -> Iterator[None]:
    """Let constructors return placeholders for arguments that they refuse, in a `with` block."""
    token = _collecting.set(True)
    try:
        yield
    finally:
        _collecting.reset(token)


def is_collecting() -> bool:
    """Whether a file of claims is being loaded."""
    return _collecting.get()


class Careful(type):
    """Metaclass: while a file is loaded, a constructor that refuses returns a placeholder instead.

    Declarations and sets use this metaclass. Each class defines `refused_as(problem, given)`, which
    makes the placeholder. Outside of a block of `collecting`, the constructor raises an exception.
    """

    @property
    def __signature__(cls) -> inspect.Signature:
        """The constructor's signature, because `__call__` would hide it from `help` and editors."""
        init = cls.__init__  # type: ignore[misc]
        _, *arguments = inspect.signature(init).parameters.values()
        return inspect.Signature(arguments)

    def __call__(cls, *given: Any, **named: Any) -> Any:
        """Construct the object, or a placeholder if the class refuses while a file is loaded."""
        try:
            return super().__call__(*given, **named)
        except REFUSALS as problem:
            if not is_collecting():
                raise
            with alone():
                return cls.refused_as(problem, named)  # type: ignore[attr-defined]


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Make constructors raise exceptions in a `with` block, even inside a block of `collecting`."""
    token = _collecting.set(False)
    try:
        yield
    finally:
        _collecting.reset(token)


def careful(placeholder: Callable[..., Any], /) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function that makes a declaration, so that a refusal returns a placeholder.

    Args:
        placeholder: a function that makes the placeholder from the exception and the arguments of
            the refused call. The decorated function calls `placeholder` only while a file is
            loaded.
    """

    def decorated(make: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(make)
        def made(*given: P.args, **named: P.kwargs) -> T:
            try:
                return make(*given, **named)
            except REFUSALS as problem:
                if not is_collecting():
                    raise
                with alone():
                    return placeholder(problem, *given, **named)

        return made

    return decorated
