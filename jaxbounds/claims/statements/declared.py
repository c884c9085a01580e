"""Check the types of a declaration's fields; an error names the field in one sentence."""

import dataclasses
import functools
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from jaxbounds.ground.exceptions import Refused

_NUMBERS: dict[Any, tuple[type, ...]] = {float: (int, float), int: (int,)}
EXAMPLES = {"hypotheses": 'lambda i, size: {"x > 0": jnp.all(i["x"] > 0)}'}
"""Examples that error messages show, for fields whose type alone tells a user little."""


@functools.cache
def _fields(kind: type) -> dict[str, tuple[Any, Any]]:
    hints = get_type_hints(kind)
    return {field.name: (hints[field.name], field.default) for field in dataclasses.fields(kind)}


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return value in inner
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        kinds = (
            inner[:1] * len(value) if inner[1:] == (...,) and isinstance(value, tuple) else inner
        )
        return (
            isinstance(value, tuple) and len(value) == len(kinds) and all(map(_fits, value, kinds))
        )
    if hint in _NUMBERS:
        number = isinstance(value, _NUMBERS[hint]) or hasattr(value, "dtype")
        return number and not isinstance(value, bool)
    if origin is Callable or hint is Callable:
        return callable(value)
    if isinstance(origin, type):
        return isinstance(value, origin)
    return not isinstance(hint, type) or isinstance(value, hint)


def _said(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, inner))
    if origin in (Union, types.UnionType):
        return " or ".join(map(_said, inner))
    if origin is tuple:
        return f"a tuple of {_said(inner[0])}"
    if origin is Callable:
        return "a function"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a dict"
    return "None" if hint is type(None) else getattr(hint, "__name__", str(hint))


def refuse_other_types(declared: Any, name: str, /, *given: str) -> None:
    """Refuse a declaration with a field whose value is neither its default nor of its type.

    Without names in `given`, the function checks all fields.

    Raises:
        TypeError: if a field has another type; the message names the field, the type and the value.
        Refused: if a field that accepts only a few words has another word.
    """
    for field, (hint, default) in _fields(declared.__class__).items():
        value = getattr(declared, field)
        if (given and field not in given) or value is default or _fits(value, hint):
            continue
        comma = ""
        if get_origin(hint) is tuple and _fits(value, get_args(hint)[0]):
            comma = "; a single one needs a comma: (..., )"
        comma += f". Try {field}={EXAMPLES[field]}" if field in EXAMPLES else ""
        kind = Refused if get_origin(hint) is Literal else TypeError
        raise kind(
            f"{name}: {field} must be {_said(hint)}, got {value!r:.60} "
            f"({type(value).__name__}){comma}"
        )
