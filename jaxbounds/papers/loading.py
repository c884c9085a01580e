"""Load the shipped papers and a user's own papers; the library executes the user's files."""

import dataclasses
import difflib
import hashlib
import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from jaxbounds.claims.refused import collecting
from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.two_sides import FLOATS
from jaxbounds.ground import recording, surroundings
from jaxbounds.ground.exceptions import Refused

PAPERS = ("multihead", "seqlength", "smapprox", "qstr")
"""The names of the shipped papers; each is a subpackage with `statements.PAPER` and
`experiments`."""


def _from_file(file: Path) -> ModuleType:
    package = file.name == "__init__.py"
    name = (file.parent.name if package else file.stem).replace(".", "_")
    known = getattr(sys.modules.get(name), "__file__", None)
    if known != str(file):
        found = importlib.util.find_spec(name) if name not in sys.modules else None
        if name in sys.modules or (found and found.origin != str(file)):  # for example json.py
            name = f"{name}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    inside = [str(file.parent)] if package else None
    loader = recording.FromText(name, str(file))
    spec = importlib.util.spec_from_file_location(
        name, file, loader=loader, submodule_search_locations=inside
    )
    assert spec and spec.loader
    recording.note_file(file)
    if not recording.is_installed(str(file)):
        recording.executed(name)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import(where: str) -> ModuleType:
    path = Path(where)
    if not (path.is_dir() or where.endswith(".py")):
        if "" not in sys.path:
            sys.path.append("")
        return _by_name(where, where)
    if path.is_dir():
        inside = (path / name for name in ("__init__.py", "statements.py"))
        path = next((file for file in inside if file.is_file()), path / "__init__.py")
    if not path.is_file():
        raise Refused(
            f"where={where!r} names no file {path}. Try a Python file, a folder or a module"
        )
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
    try:
        module = importlib.import_module(name)
        if not hasattr(module, "PAPER") and hasattr(module, "__path__"):
            module = importlib.import_module(f"{name}.statements")
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            near = difflib.get_close_matches(where, PAPERS, 1)
            hint = near[0] if near else "a Python file, a folder or a module"
            raise Refused(f"no module has name={where!r}. Try {hint}") from error
        if error.name == f"{name}.statements":
            return module
        raise
    return module


_loaded_in: dict[str, str] = {}
"""The environment variables and settings under which this process executed the user's modules."""


def _now() -> dict[str, str]:
    return surroundings.for_users() | {"jax": surroundings.jax_settings()}


def _refresh() -> None:
    """Forget the user's executed modules if a file or setting that they depend on has changed.

    A run therefore uses the present code of the files, in a notebook too.
    """
    names = recording.outdated()
    if not names and _loaded_in and _now() != _loaded_in:
        names = recording.forget()
    for name in names:
        sys.modules.pop(name, None)
    recording.loaded_before()


def load_module(where: str, /) -> ModuleType:
    """Execute a user's module, and execute it again if its files have changed.

    Args:
        where: a module name ("mypackage.claims"), a Python file ("claims.py"), or a folder that is
            a package. If a package has a module `statements`, the function executes this module.

    Raises:
        Refused: if the module is missing, or cannot be executed.
    """
    try:
        return _import(where) if where.startswith("jaxbounds.") else _load_own(where)
    except ValueError as problem:
        named = str(where) in str(problem)
        raise Refused(str(problem) if named else f"{where}: {problem}") from problem
    except (TypeError, NameError, AttributeError, ImportError, SyntaxError, KeyError) as problem:
        raise Refused(
            f"where={str(where)!r} cannot be loaded: {origin(problem)}. Try to run the file with "
            "Python"
        ) from problem


def _load_own(where: str) -> ModuleType:
    _refresh()
    with collecting(), recording.watching(_load_own.__code__, loading=True):
        module = _import(where)
    _loaded_in.update(_now())
    return module


def _folder_of(module: ModuleType) -> Path | None:
    if not getattr(module, "__file__", None):
        return None
    file = Path(str(module.__file__)).resolve()
    if file.stem not in ("__init__", "statements"):
        return file.with_name(f"{file.stem}-records")
    folder = file.parent
    inner = file.stem == "__init__" and folder.name == "statements"
    return (folder.parent if inner else folder) / "records"


def load_paper(where: str) -> Paper:
    """Return the object `PAPER` that a module defines.

    Args:
        where: the name of a shipped paper ("multihead"), or a module as for `load_module`.

    Raises:
        Refused: if the module is missing, cannot be executed, or defines no `PAPER`.
    """
    module = load_module(f"jaxbounds.{where}.statements" if where in PAPERS else where)
    paper = getattr(module, "PAPER", None)
    if not isinstance(paper, Paper):
        raise Refused(
            f"{where} defines no PAPER, got module={where!r}. Try to add PAPER = "
            "Paper(id=..., title=..., statements=(...,)) at module level"
        )
    return dataclasses.replace(paper, folder=paper.folder or _folder_of(module))


def origin(problem: BaseException, /) -> str:
    """Describe an exception: its type, its message, and the line of the user's code."""
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
    if "Tracer" in type(problem).__name__ or "Concretization" in type(problem).__name__:
        text += "; JAX traces samplers and evaluate. Try jnp, and jnp.where for if"
    if isinstance(problem, OverflowError):
        text += f"; no array of JAX holds the number. Try {FLOATS}"
    if "RESOURCE_EXHAUSTED" in text:
        text += "; a batch of instances exceeds the memory. Try smaller sizes, or a smaller budget"
    return text
