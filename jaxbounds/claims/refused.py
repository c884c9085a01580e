"""Placeholders for ill-formed declarations, so that a file of claims can still be loaded."""

import contextlib
import contextvars
import difflib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
REFUSALS = (TypeError, ValueError)
"""The exceptions that a constructor raises for invalid arguments."""
_collecting: contextvars.ContextVar[bool] = contextvars.ContextVar("collecting", default=False)


@contextlib.contextmanager
def collecting() -> Iterator[None]:
    """Make constructors return placeholders for invalid arguments, in a `with` block."""
    token = _collecting.set(True)
    try:
        yield
    finally:
        _collecting.reset(token)


def is_collecting() -> bool:
    """Whether a file of claims is being loaded."""
    return _collecting.get()


def named_better(
    problem: Exception, name: str, signature: inspect.Signature, given: Mapping[str, Any], /
) -> Exception:
    """Return an exception that lists the arguments of a callable, if a call names a wrong one.

    The function returns any other exception unchanged.
    """
    any_name = any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())
    wrong = [key for key in given if key not in signature.parameters]
    if not isinstance(problem, TypeError) or any_name or not wrong:
        return problem
    known = list(signature.parameters)
    near = difflib.get_close_matches(wrong[0], known, n=1) or known[:1]
    return TypeError(
        f"jb.{name} has no argument={wrong[0]!r}; expected names: {', '.join(known)}. "
        f"Try {near[0]}="
    )


class Careful(type):
    """Metaclass: while a file loads, a constructor returns a placeholder for invalid arguments.

    Each class defines `refused_as(problem, given)`, which makes the placeholder.
    """

    @property
    def __signature__(cls) -> inspect.Signature:
        """The constructor's signature, because `__call__` would hide it from `help` and editors."""
        init = cls.__init__  # type: ignore[misc]
        _, *arguments = inspect.signature(init).parameters.values()
        return inspect.Signature(arguments)

    def __call__(cls, *given: Any, **named: Any) -> Any:
        """Construct the object, or a placeholder for invalid arguments while a file is loaded."""
        try:
            return super().__call__(*given, **named)
        except REFUSALS as raised:
            problem = named_better(raised, cls.__name__, cls.__signature__, named)
            if not is_collecting():
                raise problem from None if problem is not raised else raised.__cause__
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
        placeholder: makes the placeholder from the exception and the call's arguments, while a file
            loads.
    """

    def decorated(make: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(make)
        def made(*given: P.args, **named: P.kwargs) -> T:
            try:
                return make(*given, **named)
            except REFUSALS as raised:
                name, signature = make.__name__, inspect.signature(make)
                problem = named_better(raised, name, signature, named)
                if not is_collecting():
                    raise problem from None if problem is not raised else raised.__cause__
                with alone():
                    return placeholder(problem, *given, **named)

        return made

    return decorated
