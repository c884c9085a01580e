"""Copy functions from a notebook into the text of a module, with everything that they use."""

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jaxbounds.claims.statements.lambdas import lambda_of, same_function


def written(sides: Mapping[str, Callable[..., Any] | float], /) -> str:
    """Return the text of a module that defines functions under new names.

    Returns:
        Python code with the functions and everything that they use; empty if the code of a
        function, or of an object that it uses, is unreadable.
    """
    found: dict[str, str] = {}
    try:
        bodies = [_as_function(name, side, found) for name, side in sides.items()]
    except (OSError, TypeError, SyntaxError, LookupError):
        return ""
    imports = sorted({line for line in found.values() if line.startswith(("import ", "from "))})
    rest = [text for text in found.values() if text not in imports]
    return "\n".join(imports) + "\n\n\n" + "\n\n\n".join([*rest, *bodies]) + "\n"


def in_words(side: Callable[..., Any] | float, /) -> str:
    """Return the text of a side: a function's name, a lambda's body, or a number's digits."""
    if not callable(side):
        return _digits(side)
    name = str(getattr(side, "__name__", type(side).__name__))
    if "<lambda>" not in name:
        return name
    try:
        return lambda_of(side)[1]
    except (OSError, TypeError):
        return "a lambda"


def _digits(value: float) -> str:
    return repr(value if type(value) in (int, float) else float(value))


def _as_function(name: str, side: Any, found: dict[str, str]) -> str:
    if not callable(side):
        return f'def {name}():\n    """A number."""\n    return {_digits(side)}'
    is_lambda = getattr(side, "__name__", "") == "<lambda>"
    text, body = lambda_of(side) if is_lambda else (_source(side), "")
    for other, value in _named(side):
        _define(other, value, found)
    known = inspect.signature(side).parameters.values()
    given = ", ".join(p.name if p.default is p.empty else f"{p.name}={_literal(p)}" for p in known)
    if is_lambda:
        return f'def {name}({given}):\n    """The side as the call gave it."""\n    return {body}'
    (tree,) = ast.parse(text).body
    if any(isinstance(node, ast.Name) for node in _defaults(tree)):
        raise LookupError(name)  # a default that names a variable has no text here
    found.setdefault(side.__name__, text)
    head = f'def {name}({given}):\n    """The side as the call gave it."""\n'
    return f"{head}    return {side.__name__}({', '.join(p.name for p in known)})"


def _defaults(function: Any) -> Iterator[ast.AST]:
    own = function.args
    for default in filter(None, (*own.defaults, *own.kw_defaults)):
        yield from ast.walk(default)


def _literal(argument: inspect.Parameter) -> str:
    if not isinstance(argument.default, int | float):
        raise LookupError(argument.name)
    return repr(argument.default)


def _source(function: Any) -> str:
    if getattr(function, "__name__", "") == "<lambda>":
        return lambda_of(function)[0]
    text = textwrap.dedent(inspect.getsource(function)).strip()
    if same_function(function) is None and not text.startswith("@"):
        raise OSError(f"function={function!r:.60} wraps another function. Try to write it with def")
    return text


def _named(function: Any) -> Iterator[tuple[str, Any]]:
    given = inspect.getclosurevars(same_function(function) or function)
    yield from {**given.globals, **given.nonlocals}.items()


def _define(name: str, value: Any, found: dict[str, str]) -> None:
    if name in found:
        return
    if isinstance(value, types.ModuleType):
        module = value.__name__
        found[name] = f"import {module}" if module == name else f"import {module} as {name}"
    elif isinstance(value, bool | int | float | str):
        found[name] = f"{name} = {value!r}"
    elif inspect.isfunction(value) and _has_no_import(value):
        found[name] = ""  # the function may call itself
        text = _source(value)
        for other, inner in _named(value):
            _define(other, inner, found)
        del found[name]
        found[name] = text if value.__name__ != "<lambda>" else f"{name} = {text}"
    elif getattr(value, "__module__", None) and hasattr(value, "__qualname__"):
        found[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
    else:
        raise LookupError(
            f"name={name} has a value that cannot be written as Python. Try a number or a function"
        )


def _has_no_import(function: Any) -> bool:
    return function.__module__ == "__main__" or "<" in function.__qualname__
