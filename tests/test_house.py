"""The house: floors, ground first. Nothing imports upward, nothing in a circle, papers stand apart.

Read from the imports of the files, those inside of functions and for types too.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from jaxbounds.papers import PAPERS

ROOT = Path(__file__).parents[1] / "jaxbounds"
FLOORS = (
    {"version", "ground"},
    {"numerics"},
    {"programs"},
    {"networks"},
    {"experiments"},
    {"claims"},
    {"papers"},
    {"falsification"},
    {"certification"},
    {"constants"},
    {*PAPERS},
    {"bounds"},
    {"report"},
    {"runs"},
    {"cli", "pytest_plugin", "testing", "__main__", "__init__"},
)  # fmt: skip
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
LOOSE = {
    "__init__.py", "__init__.pyi", "__main__.py", "version.py", "pytest_plugin.py", "testing.py",
    "py.typed",
}  # fmt: skip
"""The files that stand beside the rooms; `testing` may still come."""
BY_NAME = {
    "claims/statements/sections.py",
    "ground/moved.py",
    "papers/loading.py",
    "papers/lookup.py",
    "cli/__init__.py",
    "cli/schema.py",
    "falsification/rules.py",
}
"""Modules that import by names that are data: old names, papers, commands."""


def _module(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


FILES = {_module(file): file for file in sorted(ROOT.rglob("*.py"))}
FILES = {module: file for module, file in FILES.items() if module[0] != "template"}  # a user's


def _target(name):
    """The module of the package that an import of `jaxbounds.a.b` reaches, if it is one."""
    parts = tuple(name.split("."))[1:]
    while parts and parts not in FILES:
        parts = parts[:-1]
    return parts or None


def _imports(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports say where from"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name == "jaxbounds" or name.startswith("jaxbounds."):
                yield _target(name) or ("__init__",)


@pytest.fixture(scope="module")
def arrows():
    """{module: the modules that it imports}."""
    return {module: {*_imports(file)} - {module} for module, file in FILES.items()}


def test_every_room_has_a_floor():
    rooms = {module[0] for module in FILES}
    assert rooms <= set(FLOOR) and set(FLOOR) - rooms <= {"testing"}


def test_beside_the_rooms_stands_the_face_only():
    loose = {path.name for path in ROOT.iterdir() if path.is_file()}
    assert loose <= LOOSE and LOOSE - loose <= {"testing.py"}


def test_nothing_imports_upward_and_papers_stand_apart(arrows):
    up = [
        (".".join(a), ".".join(b))
        for a, targets in arrows.items()
        for b in targets
        if FLOOR[b[0]] > FLOOR[a[0]] or (a[0] != b[0] and {a[0], b[0]} <= set(PAPERS))
    ]
    assert up == []


def test_no_file_imports_in_a_circle(arrows):
    """A package stands for what its `__init__` hands on, and is not in its own parts' way."""
    inner = {a: {b for b in targets if a[: len(b)] != b} for a, targets in arrows.items()}
    try:
        TopologicalSorter(inner).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(".".join(module) for module in circle.args[1]))


def test_modules_are_imported_by_statements():
    """An import by `importlib` would be an arrow that nobody sees."""
    for file in FILES.values():
        hidden = re.search(r"import_module\((?!\"(?!jaxbounds))", file.read_text(encoding="utf8"))
        inside = file.relative_to(ROOT).as_posix()
        assert not hidden or inside in BY_NAME, inside


def test_commands_do_not_call_each_other(arrows):
    """One command's file may be another's help only where it is no command."""
    from jaxbounds.cli import COMMANDS

    commands = {("cli", module) for module, _, _ in COMMANDS.values()}
    shared = {("cli", "run"), ("cli", "plot")}  # `finish` of merge; what draws a result
    calls = [(a, b) for a in commands for b in arrows[a] & commands - shared]
    assert calls == []
