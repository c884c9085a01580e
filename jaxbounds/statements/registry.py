"""Finding papers and statements: those shipped here, and the user's own by file or module."""

import difflib
import fnmatch
import importlib
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from jaxbounds.statements.paper import Paper
from jaxbounds.statements.statement import Statement

PAPERS = ("multihead", "seqlength", "smapprox", "qstr")
"""The papers shipped with the library: subpackages that hold `statements.PAPER`."""


def _import(where: str) -> ModuleType:
    """A module by name, file or folder; the working folder and a file's own folder are searched."""
    path = Path(where)
    if path.is_dir():
        path, where = path.resolve(), path.name
        folder = path.parent
    elif where.endswith(".py"):
        if not path.is_file():
            raise ValueError(f"no file {where}: give a Python file, a folder or a module")
        path = path.resolve()
        folder, where = path.parent, path.stem
        while (folder / "__init__.py").is_file():
            folder, where = folder.parent, f"{folder.name}.{where}"
        where = where.removesuffix(".__init__")
    else:
        folder = Path.cwd()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(where)
        if not hasattr(module, "PAPER") and hasattr(module, "__path__"):
            module = importlib.import_module(f"{where}.statements")
    except ModuleNotFoundError as error:
        if error.name and (where == error.name or where.startswith(error.name + ".")):
            near = difflib.get_close_matches(where, PAPERS, 1)
            hint = (
                f"did you mean {near[0]}?" if near else "give a Python file, a folder or a module"
            )
            raise ValueError(f"no module {where!r}: {hint}") from error
        if error.name == f"{where}.statements":
            return module
        raise
    return module


def load_module(where: str, /) -> ModuleType:
    """A module of the user's, executed.

    Args:
        where: a module name ("mypackage.claims"), a Python file ("claims.py"), or a folder that is
            a package, of which the module `statements` is meant where there is one.

    Raises:
        ValueError: if there is no such module, or it cannot be executed.
    """
    try:
        return _import(where)
    except ValueError as problem:
        named = str(where) in str(problem)
        raise ValueError(str(problem) if named else f"{where}: {problem}") from problem
    except (TypeError, NameError, AttributeError, ImportError, SyntaxError, KeyError) as problem:
        raise ValueError(f"{where} cannot be loaded: {origin(problem)}") from problem


def load_paper(where: str, /) -> Paper:
    """The `PAPER` of a module.

    Args:
        where: a shipped paper ("multihead"), or a module as `load_module` takes it.

    Raises:
        ValueError: if there is no such module, it cannot be executed, or it defines no `PAPER`.
    """
    module = load_module(f"jaxbounds.{where}.statements" if where in PAPERS else where)
    paper = getattr(module, "PAPER", None)
    if not isinstance(paper, Paper):
        raise ValueError(
            f"{where} defines no PAPER: add "
            "PAPER = Paper(id=..., title=..., statements=(...,)) at module level"
        )
    return paper


def origin(problem: BaseException, /) -> str:
    """An exception in one line: its type, its message, and the user's line that raised it."""
    library = Path(__file__).parents[1]
    frames = [
        frame
        for frame in traceback.extract_tb(problem.__traceback__)
        if library not in Path(frame.filename).parents
        and "site-packages" not in frame.filename
        and "importlib" not in frame.filename
    ]
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    text = f"{type(problem).__name__}: {lines[0] if lines else ''}"
    if frames:
        text += f" ({Path(frames[-1].filename).name}:{frames[-1].lineno}, in {frames[-1].name})"
    if "Tracer" in type(problem).__name__:
        text += "; samplers and evaluate are traced by JAX: use jnp, and jnp.where for if"
    return text


def load_papers(extra: Iterable[str] = ()) -> tuple[Paper, ...]:
    """The shipped papers, then those of the modules or files in `extra`.

    Raises:
        ValueError: if two papers share an id, or a module in `extra` cannot be loaded.
    """
    papers = tuple(load_paper(where) for where in (*PAPERS, *extra))
    ids = [paper.id for paper in papers]
    repeated = sorted({i for i in ids if ids.count(i) > 1})
    if repeated:
        raise ValueError(f"more than one paper is called {', '.join(repeated)}: rename yours")
    return papers


def select(statements: Iterable[Statement], patterns: Iterable[str] = ()) -> tuple[Statement, ...]:
    """The statements whose id equals, starts with or (as a shell pattern) matches one pattern.

    Raises:
        ValueError: if a pattern matches nothing; the message names the nearest ids.
    """
    statements, patterns = tuple(statements), tuple(patterns)
    if not patterns:
        return statements

    def matches(s: Statement, pattern: str) -> bool:
        return s.id.startswith(pattern + ".") or fnmatch.fnmatchcase(s.id, pattern)

    for pattern in patterns:
        if not any(matches(s, pattern) for s in statements):
            names = dict.fromkeys([s.paper for s in statements] + [s.id for s in statements])
            near = difflib.get_close_matches(pattern, names, 3, 0.4)
            hint = f"did you mean {', '.join(near)}?" if near else "see `jaxbounds list`"
            if pattern.split(".")[0] not in names:
                hint += " (statements of your own need --import FILE)"
            raise ValueError(f"no statement matches {pattern!r}; {hint}")
    return tuple(s for s in statements if any(matches(s, p) for p in patterns))
