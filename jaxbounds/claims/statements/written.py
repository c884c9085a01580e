"""Copy functions from a notebook into the text of a module, with everything that they use."""

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def written(sides: Mapping[str, Callable[..., Any] | float], /) -> str:
    """Return the text of a module that defines functions under new names.

    Args:
        sides: functions, lambdas or numbers, by their new names.

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
    """Return the default of an argument as text.

    Raises:
        LookupError: if the default is not a number.
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
    raise OSError(
        f"code={function.__code__} was not found in a lambda of its source line. Try a def"
    )


def _told(code: types.CodeType) -> tuple[Any, ...]:
    """Return the names and constants that distinguish two lambdas on one line of code."""
    names = sorted({*code.co_names, *code.co_freevars})
    plain = [const for const in code.co_consts if not isinstance(const, types.CodeType)]
    return code.co_varnames, names, plain


def _named(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the global and nonlocal variables that a function uses, by name."""
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
        found[name] = ""  # the function may call itself
        text = _source(value)
        for other, inner in _named(value):
            _define(other, inner, found)
        del found[name]
        found[name] = text if value.__name__ != "<lambda>" else f"{name} = {text}"
    elif getattr(value, "__module__", None) and hasattr(value, "__qualname__"):
        found[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
    else:
        raise LookupError(f"name={name} has no Python text. Try a number or a function")
