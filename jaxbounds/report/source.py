"""Where a statement is written, and the code behind it, as one text."""

import ast
import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from jaxbounds.statements import Statement, full_name

_ROOT = Path(__file__).parents[2]


def _plain(function: Any) -> Any:
    """What is written: no decorators, no fixed arguments, of a bound method the function."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(getattr(function, "__func__", function))


def place(function: Any, /) -> str:
    """File and line of a function or class, from the folder above the package; "" if unknown."""
    try:
        file, line = inspect.getsourcefile(_plain(function)), _plain(function).__code__
        return f"{_short(file)}:{line.co_firstlineno}"
    except AttributeError:
        return f"{_short(inspect.getsourcefile(function))}:{inspect.getsourcelines(function)[1]}"
    except (OSError, TypeError):
        return ""


def _short(file: str | None) -> str:
    path = Path(file or "")
    return str(path.relative_to(_ROOT)) if _ROOT in path.parents else str(path)


def summary(function: Any, /) -> str:
    """The first paragraph of its docstring, in one line."""
    return " ".join((inspect.getdoc(_plain(function)) or "").split("\n\n")[0].split())


def _declared(statement: Statement) -> tuple[str, int, str] | None:
    """File, line and text of the assignment that declares the statement."""
    module = inspect.getmodule(_plain(statement.evaluate))
    package = importlib.import_module((module.__package__ if module else "") or "jaxbounds")
    files = [Path(f) for f in (getattr(module, "__file__", None),) if f]
    files += [p for folder in getattr(package, "__path__", ()) for p in Path(folder).glob("*.py")]
    for file in dict.fromkeys(files):
        text = file.read_text(encoding="utf8")
        if f'"{statement.id}"' in text:
            for node in ast.parse(text).body:
                part = ast.get_source_segment(text, node) or ""
                if isinstance(node, ast.Assign | ast.AnnAssign) and f'id="{statement.id}"' in part:
                    return _short(str(file)), node.lineno, part
    return None


def declaration(statement: Statement, /) -> str:
    """File and line of the statement itself; "" if it is not written with its id."""
    found = _declared(statement)
    return f"{found[0]}:{found[1]}" if found else ""


def _named(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _named(inner)


def _used(function: Any) -> Iterator[Any]:
    """The functions and classes of this package, or of the function's own, that it names."""
    plain = _plain(function)
    code = getattr(plain, "__code__", None)
    if code is None:
        return
    names = list(dict.fromkeys(_named(code)))
    cells = [cell.cell_contents for cell in plain.__closure__ or ()]
    held = [plain.__globals__[name] for name in names if name in plain.__globals__] + cells
    for thing in held:
        inside = [thing]
        if isinstance(thing, types.ModuleType) and thing.__name__.startswith("jaxbounds"):
            inside = [vars(thing)[name] for name in names if name in vars(thing)]
        yield from (one for one in inside if isinstance(getattr(one, "__module__", None), str))


def behind(statement: Statement, /) -> list[Any]:
    """The functions and classes of its paper that judging it runs, outermost first."""
    hypotheses = [statement.hypotheses, *(form.hypotheses for form in statement.forms)]
    first: list[Callable | None] = [statement.evaluate, *hypotheses, *statement.samplers.values()]
    waiting = [f for f in (*first, statement.cases, statement.project, *statement.judges) if f]
    room = ".".join(_plain(statement.evaluate).__module__.split(".")[:2])
    found: dict[int, Any] = {}
    while waiting:
        thing = waiting.pop(0)
        plain = _plain(thing)
        mine = str(getattr(plain, "__module__", "")).startswith(room)
        written = inspect.isfunction(plain) or inspect.isclass(plain)
        if mine and written and id(plain) not in found:
            found[id(plain)] = plain
            waiting += _used(plain)
    return list(found.values())


def source(statement: Statement, /) -> Text:
    """The declaration and all code of its paper that judging it runs, each part with its place."""
    text, seen = Text(), set()
    parts = []
    if found := _declared(statement):
        parts.append((f"{found[0]}:{found[1]}", found[2]))
    for thing in behind(statement):
        try:
            parts.append((place(thing), inspect.getsource(thing)))
        except (OSError, TypeError):
            parts.append((full_name(thing), "(no source)"))
    for where, code in parts:
        if where not in seen:
            text.append(f"\n{where}\n", style="bold cyan").append(f"{code.rstrip()}\n")
            seen.add(where)
    return text
