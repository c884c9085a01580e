"""Functions as they are written, with all they name: from a notebook's line to a module."""

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def written(sides: Mapping[str, Callable[..., Any] | float], /) -> str:
    """A module that holds the functions under new names, and what they use.

    Args:
        sides: functions, lambdas too, or numbers, by the names that they get.

    Returns:
        Python; empty where the code of one of them, or of what it names, cannot be read.
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
    """A side by its name; of a lambda its body as it is written, of a number its digits."""
    if not callable(side):
        return repr(side)
    name = getattr(side, "__name__", type(side).__name__)
    if name != "<lambda>":
        return str(name)
    try:
        return _source(side).partition(":")[2].strip()
    except (OSError, TypeError, SyntaxError):
        return "a lambda"


def _as_function(name: str, side: Any, found: dict[str, str]) -> str:
    if not callable(side):
        return f'def {name}():\n    """A number."""\n    return {side!r}'
    text = _source(side)
    for other, value in _named(side):
        _define(other, value, found)
    known = inspect.signature(side).parameters.values()
    given = ", ".join(p.name if p.default is p.empty else f"{p.name}={_literal(p)}" for p in known)
    if getattr(side, "__name__", "") == "<lambda>":
        body = text.partition(":")[2].strip()
        return f'def {name}({given}):\n    """As in the line that it is from."""\n    return {body}'
    (tree,) = ast.parse(text).body
    if any(isinstance(node, ast.Name) for node in _defaults(tree)):
        raise LookupError(name)  # a name that was looked up when the function was made
    found.setdefault(side.__name__, text)
    head = f'def {name}({given}):\n    """As in the line that it is from."""\n'
    return f"{head}    return {side.__name__}({', '.join(p.name for p in known)})"


def _defaults(function: Any) -> Iterator[ast.AST]:
    own = function.args
    for default in filter(None, (*own.defaults, *own.kw_defaults)):
        yield from ast.walk(default)


def _literal(argument: inspect.Parameter) -> str:
    """The value that an argument has by itself.

    Raises:
        LookupError: if it is no number.
    """
    if not isinstance(argument.default, int | float):
        raise LookupError(argument.name)
    return repr(argument.default)


def _source(function: Any) -> str:
    text = textwrap.dedent(inspect.getsource(function)).strip()
    if function.__name__ != "<lambda>":
        return text
    for attempt in (text, f"({text})", f"f({text})", f"f({text}", f"{{{text}}}"):
        try:
            tree = ast.parse(attempt)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Lambda):
                piece = ast.get_source_segment(attempt, node) or ""
                code = compile(f"({piece})", "", "eval").co_consts[0]
                if _told(code) == _told(function.__code__):
                    return " ".join(piece.split())
    raise OSError("the lambda is not found in its line")


def _told(code: types.CodeType) -> tuple[Any, ...]:
    """Return the names and constants that tell one lambda of a line from another."""
    names = sorted({*code.co_names, *code.co_freevars})
    plain = [const for const in code.co_consts if not isinstance(const, types.CodeType)]
    return code.co_varnames, names, plain


def _named(function: Any) -> Iterator[tuple[str, Any]]:
    """The values that a function takes from outside, by name."""
    given = inspect.getclosurevars(function)
    yield from {**given.globals, **given.nonlocals}.items()


def _define(name: str, value: Any, found: dict[str, str]) -> None:
    if name in found:
        return
    if isinstance(value, types.ModuleType):
        module = value.__name__
        found[name] = f"import {module}" if module == name else f"import {module} as {name}"
    elif isinstance(value, bool | int | float | str):
        found[name] = f"{name} = {value!r}"
    elif inspect.isfunction(value) and value.__module__ == "__main__":
        found[name] = ""  # it may name itself
        text = _source(value)
        for other, inner in _named(value):
            _define(other, inner, found)
        del found[name]
        found[name] = text if value.__name__ != "<lambda>" else f"{name} = {text}"
    elif getattr(value, "__module__", None) and hasattr(value, "__qualname__"):
        found[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
    else:
        raise LookupError(f"{name} is none that can be written")
