"""Find the functions that a statement's `evaluate` may call, without running its code."""

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def may_call(
    function: Callable, among: Iterable[Callable], /, *, room: tuple[str, ...] = ("jaxbounds",)
) -> set[Callable]:
    """Return the functions in `among` that the code of `function` may call.

    The search follows names through globals, closures, containers, classes, partial applications
    and modules of the packages `room`. The search follows a name even if the line that uses the
    name never runs.
    """
    wanted = {_plain(one).__code__: one for one in among}
    found, left, seen = set(), [function], set()
    while left:
        plain = _plain(left.pop())
        code = getattr(plain, "__code__", None)
        if code is None or code in seen or not str(plain.__module__).startswith(room):
            continue
        seen.add(code)
        if code in wanted:
            found.add(wanted[code])
        names = set(_names(code))
        for name in names & set(plain.__globals__):
            value = plain.__globals__[name]
            if isinstance(value, types.ModuleType):
                left += [vars(value)[inner] for inner in names & set(vars(value))]
            else:
                left += _held(value)
        for cell in plain.__closure__ or ():
            left += _held(cell.cell_contents)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    return inspect.unwrap(value) if callable(value) else value


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


def _held(value: Any) -> list[Any]:
    if isinstance(value, functools.partial):
        return [value.func]
    if isinstance(value, dict):
        return [*value.values()]
    if isinstance(value, tuple | list):
        return [*value]
    if isinstance(value, type):
        return [*vars(value).values()]
    return [value]
