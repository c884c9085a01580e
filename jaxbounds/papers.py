"""Which papers there are; finding their statements and experiments, and those of the user's own."""

import difflib
import fnmatch
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from jaxbounds.experiments import Experiment
from jaxbounds.statements import Paper, Statement

PAPERS = ("multihead", "seqlength", "smapprox", "qstr")
"""The papers shipped with the library: subpackages with `statements.PAPER` and `experiments`."""


def _from_file(file: Path) -> ModuleType:
    """A module or package from its file, under a name that nothing else has."""
    package = file.name == "__init__.py"
    name = (file.parent.name if package else file.stem).replace(".", "_")
    known = getattr(sys.modules.get(name), "__file__", None)
    if known != str(file):
        found = importlib.util.find_spec(name) if name not in sys.modules else None
        if name in sys.modules or (found and found.origin != str(file)):  # as json.py
            name = f"{name}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    inside = [str(file.parent)] if package else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=inside)
    assert spec and spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import(where: str) -> ModuleType:
    """A module by name, file or folder; what stands beside a file can be imported by it."""
    path = Path(where)
    if not (path.is_dir() or where.endswith(".py")):
        if "" not in sys.path:
            sys.path.append("")
        return _by_name(where, where)
    if path.is_dir():
        inside = (path / name for name in ("__init__.py", "statements.py"))
        path = next((file for file in inside if file.is_file()), path / "__init__.py")
    if not path.is_file():
        raise ValueError(f"no file {path}: give a Python file, a folder or a module")
    path = path.resolve()
    inner = () if path.name == "__init__.py" else (path.stem,)
    folder = path.parent
    if not (folder / "__init__.py").is_file():
        sys.path += [str(folder)] * (str(folder) not in sys.path)
        return _from_file(path)
    while (folder.parent / "__init__.py").is_file():
        inner, folder = (folder.name, *inner), folder.parent
    sys.path += [str(folder.parent)] * (str(folder.parent) not in sys.path)
    package = _from_file(folder / "__init__.py")
    return _by_name(".".join([package.__name__, *inner]), where)


def _by_name(name: str, where: str) -> ModuleType:
    """An importable module; of a package that holds no PAPER its `statements`, if it has one."""
    try:
        module = importlib.import_module(name)
        if not hasattr(module, "PAPER") and hasattr(module, "__path__"):
            module = importlib.import_module(f"{name}.statements")
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            near = difflib.get_close_matches(where, PAPERS, 1)
            hint = (
                f"did you mean {near[0]}?" if near else "give a Python file, a folder or a module"
            )
            raise ValueError(f"no module {where!r}: {hint}") from error
        if error.name == f"{name}.statements":
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
    library = Path(__file__).parent
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
    if "Tracer" in type(problem).__name__ or "Concretization" in type(problem).__name__:
        text += "; samplers and evaluate are traced by JAX: use jnp, and jnp.where for if"
    if "RESOURCE_EXHAUSTED" in text:
        text += "; a batch of its instances does not fit: choose smaller sizes, or a smaller budget"
    return text


def load_papers(extra: Iterable[str] = (), /, *, patterns: Iterable[str] = ()) -> tuple[Paper, ...]:
    """The shipped papers, then those of the modules or files in `extra`.

    Args:
        extra: modules or files of the user's.
        patterns: what will be looked for; of the shipped papers only those are loaded that these
            name, where each of them begins with a paper's name.

    Raises:
        ValueError: if two papers share an id, or a module in `extra` cannot be loaded.
    """
    own = [load_paper(where) for where in extra]
    named = {pattern.split(".")[0] for pattern in patterns}
    known = named <= {*PAPERS, *(paper.id for paper in own)}
    shipped = [name for name in PAPERS if not (named and known) or name in named]
    papers = (*map(load_paper, shipped), *own)
    ids = [*PAPERS, *(paper.id for paper in own)]
    repeated = sorted({i for i in ids if ids.count(i) > 1})
    if repeated:
        raise ValueError(f"more than one paper is called {', '.join(repeated)}: rename yours")
    return papers


def find_statement(name: str, /, *, imports: Iterable[str] = ()) -> Statement:
    """The statement of exactly that id; of the shipped papers only its own is imported.

    Args:
        name: its id, as "multihead.cor1.3".
        imports: modules or files of the user's that hold a `PAPER`.

    Raises:
        ValueError: if there is none; the message names the nearest ids.
    """
    paper = name.split(".")[0]
    known = [load_paper(where) for where in imports]
    if paper in PAPERS:
        known.append(load_paper(paper))
    named = {s.id: s for one in known for s in one.statements}
    if name not in named:
        near = difflib.get_close_matches(name, named, 3, 0.4)
        hint = f"did you mean {', '.join(near)}?" if near else "see `jaxbounds list`"
        raise ValueError(f"no statement {name!r}; {hint}")
    return named[name]


def paper_of(statement: Statement, /, *, imports: Iterable[str] = ()) -> Paper:
    """The paper that a statement belongs to."""
    papers = load_papers(imports, patterns=[statement.paper])
    return next(paper for paper in papers if paper.id == statement.paper)


def judging(statements: Iterable[Statement], name: str, /) -> tuple[Statement, ...]:
    """The statements that judge a function.

    Args:
        statements: to look through.
        name: the function's full name, or its end ("linear_bounds.lemma_3_4_explicit").

    Raises:
        ValueError: if none does; the message names the nearest functions that are judged.
    """
    statements = tuple(statements)
    meant = lambda judged: judged == name or judged.endswith(f".{name}")
    found = tuple(s for s in statements if any(map(meant, s.judged)))
    if not found:
        by_end = {judged.rsplit(".", 1)[-1]: judged for s in statements for judged in s.judged}
        near = difflib.get_close_matches(name.rsplit(".", 1)[-1], sorted(by_end), 3)
        near = [by_end[end] for end in near]
        hint = f"did you mean {', '.join(near)}?" if near else "see `jaxbounds show ID`"
        raise ValueError(f"no statement judges {name!r}; {hint}")
    return found


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


def named_in_print(name: str, /) -> tuple[str, ...]:
    """The ids of the statements about an item as a shipped paper numbers it; else the name itself.

    Args:
        name: "seqlength Theorem 4.1", or "Theorem 4.1" for all papers that have one; or the label
            of a statement, "Corollary 1 (3)".

    Raises:
        ValueError: if no statement is about that item; the message says what is.
    """
    first, _, rest = name.partition(" ")
    item, where = (rest, (first,)) if first in PAPERS else (name, PAPERS)
    if " " not in name.strip():
        return (name,)
    papers = [load_paper(paper) for paper in where]
    about = {paper.id: paper.items for paper in papers}
    labelled = tuple(s.id for paper in papers for s in paper.statements if s.label == item)
    if labelled and not any(item in items for items in about.values()):
        return labelled
    texts = [items[item] for items in about.values() if item in items]
    ids = (part.strip() for text in texts for part in text.split(","))
    found = tuple(i for i in ids if i.split(".")[0] in PAPERS)
    if texts and not found:
        raise ValueError(f"no statement is about {name!r}; {'; '.join(texts)}")
    if not texts:
        known = {label: None for items in about.values() for label in items}
        near = difflib.get_close_matches(item, known, 3, 0.6)
        hint = f"did you mean {', '.join(near)}?" if near else "see `jaxbounds list`"
        raise ValueError(f"no paper numbers {item!r}; {hint}")
    return found


def _experiments_of(paper: str) -> dict[str, Experiment]:
    name = f"jaxbounds.{paper}.experiments"
    if importlib.util.find_spec(name) is None:
        return {}
    return {e.id: e for e in importlib.import_module(name).EXPERIMENTS}


def experiments() -> dict[str, Experiment]:
    """The experiments of the shipped papers by id: `jaxbounds.<paper>.experiments.EXPERIMENTS`."""
    return {name: found for paper in PAPERS for name, found in _experiments_of(paper).items()}


def find_experiment(name: str, /, *, imports: Iterable[str] = ()) -> Experiment:
    """The experiment of that id; of the shipped papers only its own is imported.

    Args:
        name: its id.
        imports: modules or files of the user's, executed first. Theirs are in their `EXPERIMENTS`;
            they may also register what experiments can name (an architecture).

    Raises:
        ValueError: if there is none, with the names of those that there are, or a module cannot be
            loaded.
    """
    modules = [load_module(where) for where in imports]
    own = {e.id: e for module in modules for e in getattr(module, "EXPERIMENTS", ())}
    paper = name.split(".")[0]
    shipped = _experiments_of(paper) if paper in PAPERS else experiments()
    known = own if name in own else own | shipped
    if name not in known:
        raise ValueError(f"no experiment {name!r}; there are: {', '.join(known) or 'none yet'}")
    return known[name]
