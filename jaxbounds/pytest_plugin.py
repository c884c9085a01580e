"""Statements as tests: pytest judges the statements of the modules in `jaxbounds_statements`.

    [tool.pytest.ini_options]
    jaxbounds_statements = ["mypaper", "claims.py", "mypackage.claims"]

Each entry is an argument of `--import` or the name of a shipped paper. Paths are relative to the
folder of the settings file. Each statement is a test with the marker `jaxbounds` and an id such as
`claims.py::mine.cauchy-schwarz`. A test passes if every verdict equals the recorded verdict. If you
give pytest files or ids, it judges only their statements.
"""

import fnmatch
import importlib.util
import os
import shlex
import tempfile
from collections.abc import Generator, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

OPTION = "jaxbounds_statements"
_MODULES = pytest.StashKey[dict[Path, str]]()


class NotAsRecorded(Exception):
    """A verdict on a statement differs from the recorded verdict, or a declaration has a fault."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting `jaxbounds_statements` and the option for the seed of all draws."""
    about = "modules, files or folders that hold a PAPER, whose statements are tests"
    parser.addini(OPTION, about, type="args", default=[])
    group = parser.getgroup("jaxbounds")
    group.addoption("--statement-seed", type=int, default=0, help="seed of all draws (default: 0)")


def pytest_configure(config: pytest.Config) -> None:
    """Find the files of the configured modules; pytest collects them if it gets no arguments."""
    config.addinivalue_line("markers", "jaxbounds: a statement, judged by jaxbounds")
    root = config.inipath.parent if config.inipath else config.rootpath
    modules = dict(_found(where, root) for where in config.getini(OPTION))
    config.stash[_MODULES] = modules
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        given = {Path(config.invocation_params.dir, argument).resolve() for argument in config.args}
        config.args += [str(file) for file in modules if not given & {file, *file.parents}]


def _found(where: str, root: Path) -> tuple[Path, str]:
    paths = [root / where, root / where.replace(".", "/"), root / f"{where.replace('.', '/')}.py"]
    path = next((path.resolve() for path in paths if path.exists()), None)
    if path is None:
        found = _spec(f"jaxbounds.{where}.statements") or _spec(where)
        if found is None or not found.origin:
            raise pytest.UsageError(
                f"{OPTION} names {where=}, which is no file, folder or module. Try its path"
            )
        path = Path(found.origin)
        path = path.parent if path.name == "__init__.py" else path
    else:
        where = os.path.relpath(path)
    if path.is_dir():
        inside = ("statements.py", "statements/__init__.py", "__init__.py")
        path = next((path / name for name in inside if (path / name).is_file()), path)
    return path.resolve(), where


def _spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[Any], list[Any]]:
    """Collect the statements of a file, in addition to the tests that pytest finds in the file."""
    found = yield
    where = parent.config.stash[_MODULES].get(file_path.resolve())
    if where is None:
        return found
    patterns = parent.config.getini("python_files")
    tests = found if any(fnmatch.fnmatch(file_path.name, p) for p in patterns) else []
    return [*tests, StatementFile.from_parent(parent, path=file_path, where=where)]


class StatementFile(pytest.File):
    """The statements of one module."""

    def __init__(self, *, where: str, **given: Any) -> None:
        super().__init__(**given)
        self.where = where

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the rules of the paper, then one test for each statement.

        Raises:
            CollectError: if the module cannot be loaded, or defines no PAPER.
        """
        from jaxbounds.ground.exceptions import Refused
        from jaxbounds.papers import load_paper

        try:
            paper = load_paper(self.where)
        except Refused as problem:
            raise self.CollectError(str(problem)) from problem
        yield RulesItem.from_parent(self, name="rules", paper=paper)
        for statement in paper.statements:
            yield StatementItem.from_parent(
                self, name=statement.id, statement=statement, where=self.where
            )


class RulesItem(pytest.Item):
    """A test item that checks the rules for the declarations of a paper."""

    def __init__(self, *, paper: Any, **given: Any) -> None:
        super().__init__(**given)
        self.paper = paper
        self.add_marker("jaxbounds")

    def runtest(self) -> None:
        """Check that the declarations in the paper's file have no faults.

        Raises:
            NotAsRecorded: if a declaration has a fault.
        """
        from jaxbounds.falsification import problems_of

        if problems := problems_of(self.paper):
            raise NotAsRecorded("\n".join(problems))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *given: Any) -> Any:
        """Return the faults of the paper, each on a line."""
        if isinstance(excinfo.value, NotAsRecorded):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *given)


class StatementItem(pytest.Item):
    """A test item of pytest that checks one statement."""

    def __init__(self, *, statement: Any, where: str, **given: Any) -> None:
        super().__init__(**given)
        self.statement, self.where = statement, where
        self.add_marker("jaxbounds")
        self.extra_keyword_matches |= {statement.kind, statement.label, *statement.judged}

    def runtest(self) -> None:
        """Judge the statement; the run first tries the counterexamples that earlier runs found.

        Raises:
            NotAsRecorded: if a form has another verdict than recorded.
        """
        from jaxbounds.report.remarks import remarks
        from jaxbounds.runs.cache import examples
        from jaxbounds.runs.falsify import falsify

        seed = self.config.getoption("--statement-seed")
        with tempfile.TemporaryDirectory() as store:
            found = falsify(self.statement, seed=seed, store=store, examples=examples(False))
            if all(verdict.as_expected for verdict in found):
                return
            place = Path(store).joinpath
            lines = [
                f"{v.form}: {v.status}" + (f", {v.aside}" if v.aside else "")
                for v in found
                if not v.as_expected
            ]
            lines += remarks(found, place, self.statement.judged)
        raise NotAsRecorded("\n".join([f"{self.name}: {self.statement.formula}", *lines]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *given: Any) -> Any:
        """Return the verdicts that differ from the records, and a command to repeat them."""
        if not isinstance(excinfo.value, NotAsRecorded):
            return super().repr_failure(excinfo, *given)
        own = [] if self.path.is_relative_to(Path(__file__).parent) else ["--import", self.where]
        seed = ["--seed", str(self.config.getoption("--statement-seed"))]
        return f"{excinfo.value}\n{shlex.join(['jaxbounds', 'verify', self.name, *seed, *own])}"

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the file of the statement, and the title that pytest prints above a failure."""
        return self.path, None, f"{self.name}  {self.statement.label}"
