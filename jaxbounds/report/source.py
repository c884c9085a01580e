"""Find the file and line of a statement, and return the code that judges it as one text."""

import ast
import contextlib
import functools
import hashlib
import inspect
import sys
import sysconfig
import textwrap
import tokenize
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.text import Text

from jaxbounds.claims.statements import Statement

_ROOT = Path(__file__).parents[2]


class Piece(NamedTuple):
    """A part of a module's source: its file, first line, text, and the name of the module."""

    file: str
    line: int
    text: str
    module: str

    @property
    def place(self) -> str:
        """Return "file:line"; the path starts at the folder that contains the package."""
        path = Path(self.file)
        short = path.relative_to(_ROOT) if _ROOT in path.parents else path
        return f"{short}:{self.line}"


def _plain(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(getattr(function, "__func__", function))


def _piece(thing: Any) -> Piece | None:
    """Return the source of a function or class; for a closure, of the function that made it.

    The source of a module's lambda belongs to its assignment, so the result is None.
    """
    plain = _plain(thing)
    if getattr(plain, "__name__", "") == "<lambda>" and "<locals>" not in plain.__qualname__:
        return None
    module = sys.modules.get(getattr(plain, "__module__", None) or "")
    outer, _, inner = getattr(plain, "__qualname__", "").partition(".<locals>")
    if module and inner:
        with contextlib.suppress(AttributeError):  # the maker was deleted from its module
            plain = _plain(functools.reduce(getattr, outer.split("."), module))
    try:
        lines, first = inspect.getsourcelines(plain)
        file = inspect.getsourcefile(plain) or ""
    except (OSError, TypeError):
        return None
    return Piece(file, first, textwrap.dedent("".join(lines)), plain.__module__)


def place(function: Any, /) -> str:
    """Return the file and line of a function or class; "" if it has no readable source."""
    found = _piece(function)
    return found.place if found else ""


def summary(function: Any, /) -> str:
    """Return the first paragraph of a function's docstring, on one line."""
    return " ".join((inspect.getdoc(_plain(function)) or "").split("\n\n")[0].split())


class _Source(NamedTuple):
    file: str
    lines: list[str]
    body: list[ast.stmt]


def _file_of(module: types.ModuleType) -> str:
    file = getattr(module, "__file__", None) or ""
    return file if file.endswith(".py") else ""


def _text(file: str | Path) -> str:
    try:
        with tokenize.open(file) as source:
            return source.read()
    except (OSError, SyntaxError, ValueError):
        return ""


def _body(text: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return None


def _source(module: str) -> _Source:
    file = _file_of(sys.modules[module])
    text = _text(file) if file else ""
    return _Source(file, text.split("\n"), _body(text) or [])


@functools.lru_cache
def _assigned(module: str) -> dict[str, Piece]:
    source, found = _source(module), dict[str, Piece]()
    for node in source.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            written = "\n".join(source.lines[node.lineno - 1 : node.end_lineno]).rstrip()
            part = Piece(source.file, node.lineno, written, module)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (
                n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)
            )
            found |= dict.fromkeys(names, part)
    return found


@functools.lru_cache
def _imported(module: str) -> dict[str, tuple[str, str]]:
    """Return a dict from each name that a module imports to (exporting module, name there)."""
    body = _source(module).body
    froms = [node for node in body if isinstance(node, ast.ImportFrom) and node.module]
    return {a.asname or a.name: (str(n.module), a.name) for n in froms for a in n.names}


def _value(module: str, name: str) -> Piece | None:
    for _ in range(5):
        if module not in sys.modules:
            return None
        if name in _assigned(module):
            return _assigned(module)[name]
        if name not in _imported(module):
            return None
        module, name = _imported(module)[name]
    return None


@functools.lru_cache
def _ids(module: str) -> dict[str, Piece]:
    return {
        name: part
        for part in dict.fromkeys(_assigned(module).values())
        for top in _body(part.text) or ()
        for node in _outside_items(top)
        if (name := _id_in(node)) is not None
    }


def _outside_items(top: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a syntax tree, but skip calls of `Item`, which list a paper's items."""
    if isinstance(top, ast.Call) and _called(top) == "Item":
        return
    yield top
    for node in ast.iter_child_nodes(top):
        yield from _outside_items(node)


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def _id_in(node: ast.AST) -> str | None:
    value: Any = None
    if isinstance(node, ast.keyword) and node.arg == "id":
        value = node.value
    elif isinstance(node, ast.Call) and node.args:
        value = node.args[0] if _called(node) == "claim" else None
    return str(value.value) if isinstance(value, ast.Constant) else None


def _declared(statement: Statement) -> Piece | None:
    return _by_id(statement) or _by_line(statement)


def _by_line(statement: Statement) -> Piece | None:
    at = statement.written_at
    if at is None or at.module not in sys.modules:
        return None
    for piece in dict.fromkeys(_assigned(at.module).values()):
        if piece.line <= at.line <= piece.line + piece.text.count("\n"):
            return piece
    return None


def _by_id(statement: Statement) -> Piece | None:
    module = getattr(_plain(statement.evaluate), "__module__", None) or ""
    for name in [module, *_beside(module)]:
        if name in sys.modules and statement.id in _ids(name):
            return _ids(name)[statement.id]
    return None


def _beside(module: str) -> list[str]:
    package = module.rpartition(".")[0]
    siblings = [name for name in [*sys.modules] if name.rpartition(".")[0] == package]
    if package:
        return siblings
    folder = lambda name: Path(_file_of(sys.modules[name]) or "/none/none").resolve().parent
    here = folder(module) if module in sys.modules else None
    return [name for name in siblings if folder(name) == here]


def declaration(statement: Statement, /) -> str:
    """Return the file and line of a statement's declaration; "" if unknown."""
    at = statement.written_at
    if at is not None and Path(at.file).is_file():
        return Piece(at.file, at.line, "", at.module).place
    found = _declared(statement)
    return found.place if found else ""


def _named(piece: Piece, room: str) -> Iterator[Piece]:
    known = vars(sys.modules[piece.module]) if piece.module in sys.modules else {}
    for node in (node for top in _body(piece.text) or () for node in ast.walk(top)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner, name = known.get(node.value.id), node.attr
            inside = isinstance(owner, types.ModuleType) and owner.__name__.startswith(room)
            owner = owner if inside else None
        elif isinstance(node, ast.Name) and node.id in known:
            owner, name = sys.modules[piece.module], node.id
        else:
            continue
        if owner is None or name not in vars(owner):
            continue
        thing = _plain(vars(owner)[name])
        written = inspect.isfunction(thing) or inspect.isclass(thing)
        found = _piece(thing) if written else _value(owner.__name__, name)
        if found and f"{found.module}.".startswith(f"{room}."):
            yield found


def _room(statement: Statement) -> str:
    parts = _plain(statement.evaluate).__module__.split(".")
    return ".".join(parts[:2]) if parts[0] == "jaxbounds" else parts[0]


def behind(statement: Statement, /) -> list[Piece]:
    """Return a statement's declaration, then the paper's code that the declaration uses.

    The code that computes the compared sides comes before the code that makes the instances.
    """
    room = _room(statement)
    of_forms = [f for form in statement.forms for f in (form.hypotheses, form.counterexample)]
    tests = [getattr(f, "meets", f) for f in of_forms if f]
    sides = [side for side in getattr(statement.evaluate, "sides", ()) if callable(side)]
    first = [statement.evaluate, *sides, *statement.judges, statement.hypotheses, *tests]
    witness = statement.witness if callable(statement.witness) else None
    last = [statement.project, statement.cases, witness, *statement.samplers.values()]
    found: dict[str, Piece] = {}
    roots = [_declared(statement), *(_piece(thing) for thing in (*first, *last) if thing)]
    waiting = [piece for piece in roots if piece]
    while waiting:
        piece = waiting.pop(0)
        inside = f"{piece.module}.".startswith(f"{room}.")
        if inside and piece.place not in found:
            found[piece.place] = piece
            waiting += _named(piece, room)
    return list(found.values())


def source(statements: Sequence[Statement], /) -> Text:
    """Return the papers' code that judges the given statements, each function once."""
    text = Text()
    for where, piece in {p.place: p for s in statements for p in behind(s)}.items():
        text.append(f"\n{where}\n", style="bold cyan").append(f"{piece.text.rstrip()}\n")
    return text


def own_files() -> dict[Path, str]:
    """Return the files of loaded modules outside of installed packages, each with its module."""
    libraries = {Path(path).resolve() for path in sysconfig.get_paths().values()}
    files = {getattr(m, "__file__", "") or "": name for name, m in sys.modules.copy().items()}
    found = {Path(file).resolve(): name for file, name in files.items() if file.endswith(".py")}
    return {f: name for f, name in found.items() if not libraries & set(f.parents)}


@functools.lru_cache
def _code_outside(room: str) -> str:
    """Return the code of `own_files`; from modules in `room`, only code that defines no name."""
    parts = []
    for file, module in sorted(own_files().items()):
        text = _text(file)
        body = _body(text) if f"{module}.".startswith(f"{room}.") else None
        if body is not None:
            defined = (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
            loose = [node for node in body if not isinstance(node, defined)]
            said = lambda node: isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            text = "\n".join(ast.unparse(node) for node in loose if not said(node))
        parts.append(f"{file}\n{text}")
    return "\n".join(parts)


def code_digest(statement: Statement, /) -> str:
    """Return a SHA-256 of code that includes all code on which a statement's verdicts depend."""
    pieces = [piece.text for piece in behind(statement)]
    if _by_id(statement) is None:  # for example a statement that a loop makes
        pieces += [_text(file) for file in own_files()]
    whole = "\n".join([*pieces, _code_outside(_room(statement))])
    return hashlib.sha256(whole.encode(errors="surrogatepass")).hexdigest()
