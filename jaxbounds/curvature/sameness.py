"""When two functions are the same one, so that a compiled program may stand for both.

A loss written in a notebook reads data that are replaced between two calls: as an object it is the
same function, and a program compiled before is wrong for it. A lambda written inside of a loop is a
new object each time, and nothing has changed. So a function is known by its code and by what that
code refers to.
"""

import dataclasses
import dis
import functools
import types
from collections.abc import Hashable
from typing import Any

_PLAIN = (bool, int, float, complex, str, bytes, type(None))

_NONE = types.SimpleNamespace(frozen=False)


class Same:
    """An object that is equal to itself only; held, so that no other takes its place in memory."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value


@functools.lru_cache(maxsize=256)
def _names(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The names that code may read from its module, and those of outer variables that it writes."""
    read = set(code.co_names)
    written = {
        i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_GLOBAL", "STORE_DEREF")
    }
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more_read, more_written = _names(inner)
            read, written = read | more_read, written | more_written
    return frozenset(read), frozenset(written)


def _variables(function: types.FunctionType, module: dict[str, Any]) -> dict[str, Any]:
    """What it reads from outside; a counter that it writes itself is no part of what it is."""
    read, written = _names(function.__code__)
    found = {}
    if function.__globals__ is module:
        found = {name: module[name] for name in sorted(read) if name in module}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return {name: value for name, value in found.items() if name not in written}


def meaning(value: Any, /) -> Hashable:
    """Equal for two functions with the same code that refer to the same things.

    Numbers, texts and tuples are compared by value, partial functions, methods and frozen
    dataclasses (`Composite`) by their parts, all else (arrays, containers, modules) by identity.
    Global variables are looked at in the module of the function itself, also through its helpers
    there. Not seen: a container or array changed in place, an attribute of an object, what its
    methods read.
    """
    return _meaning(value, None, {})


def _meaning(value: Any, module: dict[str, Any] | None, seen: dict[int, Any]) -> Hashable:
    if isinstance(value, _PLAIN):
        return type(value), value
    if id(value) in seen:
        return "again", seen[id(value)][0]
    seen[id(value)] = len(seen), value  # held, so that no other object gets its id meanwhile
    of = lambda part: _meaning(part, module, seen)
    if isinstance(value, tuple):
        return type(value), *map(of, value)
    if isinstance(value, functools.partial):
        return of(value.func), of(value.args), *((k, of(v)) for k, v in value.keywords.items())
    if isinstance(value, types.MethodType):
        module = {}
        return of(value.__func__), of(value.__self__)
    if isinstance(value, types.FunctionType):
        module = value.__globals__ if module is None else module
        parts = _variables(value, module) | (value.__kwdefaults__ or {})
        pairs = ((name, of(part)) for name, part in parts.items())
        return value.__code__, of(value.__defaults__), *pairs
    if getattr(type(value), "__dataclass_params__", _NONE).frozen:
        fields = (getattr(value, field.name, None) for field in dataclasses.fields(value))
        return type(value), *map(of, fields)
    return Same(value)
