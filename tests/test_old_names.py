"""Names from before the house had floors: each imports, warns, and hands on the new one."""

import importlib
import pickle
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import jaxbounds as jb
from jaxbounds.ground import moved
from jaxbounds.version import __version__

CHANGES = Path(jb.__file__).parent / "guide" / "changes.md"


def _rows():
    """The rows of the guide's tables of old names; later sections are about other changes."""
    names, _, _ = CHANGES.read_text(encoding="utf8").partition("## Signatures and packages")
    for line in names.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and "---" not in line and not cells[0].startswith("was"):
            yield [re.findall(r"`([^`]+)`", cell) for cell in cells]


@pytest.mark.parametrize("old", moved.MODULES)
def test_an_old_module_hands_on_the_new_one_and_says_so(old):
    new = moved.MODULES[old]
    words = re.escape(f"jaxbounds.{old} is now called jaxbounds.{new};")
    sys.modules.pop(f"jaxbounds.{old}", None)
    with pytest.warns(DeprecationWarning, match=words):
        found = importlib.import_module(f"jaxbounds.{old}")
    there = importlib.import_module(f"jaxbounds.{new}")
    assert found.__doc__ == there.__doc__ and dir(found) == dir(there)
    for name in found.__all__:
        assert getattr(found, name) is getattr(there, name)


INSIDE = [(module, old) for module, names in moved.NAMES.items() for old in names]


@pytest.mark.slow_cases(
    "constants.problem-alone",
    "constants.on_host-doubt",
    "falsification.explore-Far",
    "multihead.stability-kept",
)
@pytest.mark.parametrize(("module", "old"), INSIDE)
def test_an_old_name_is_the_new_one_and_says_so(module, old):
    place, _, new = moved.NAMES[module][old].rpartition(":")
    home = f"jaxbounds.{place or module}"
    was = next((was for was, new in moved.MODULES.items() if new == module), None)
    words = re.escape(f"jaxbounds.{module}.{old} is now called {home}.{new};")
    if was is None:  # the tests' import hook stands before the finder
        text = f"import jaxbounds.{module} as m, {home} as h; assert m.{old} is h.{new}"
        done = subprocess.run([sys.executable, "-W", "always", "-c", text],
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0 and re.search(words, done.stderr), done.stderr
        return
    with pytest.warns(DeprecationWarning, match=words):
        found = getattr(importlib.import_module(f"jaxbounds.{was}"), old)
    assert found is getattr(importlib.import_module(home), new)


def test_each_old_name_is_in_the_guide_and_the_other_way_round():
    rows = [cell for row in _rows() for cell in row]
    said = {name.rstrip("/").split(".")[-1].split("/")[-1] for cell in rows for name in cell}
    names = {name for names in moved.NAMES.values() for name in names}
    old = {module.split(".")[-1] for module in moved.MODULES} | names
    assert old - said == set()
    tables = [row for row in _rows() if len(row) == 3]
    for place, *names in tables:
        if not place:  # the heads, and methods
            continue
        (was,), (becomes,) = names
        room = place[0].rstrip("/")
        if f"{room}.{was}" in moved.MODULES:
            assert moved.MODULES[f"{room}.{was}"] == f"{room}.{becomes}"
        else:
            module = "multihead.stability" if room == "stability" else room
            assert moved.NAMES[module][was] == becomes


def test_no_old_name_hides_a_module_that_exists():
    package = Path(jb.__file__).parent
    for old in moved.MODULES:
        place = package.joinpath(*old.split("."))
        assert not place.is_dir() and not place.with_suffix(".py").is_file(), old


def test_parts_of_a_moved_room_are_not_loaded_twice():
    with pytest.warns(DeprecationWarning):
        from jaxbounds.sets.vectors import Ball
        from jaxbounds.statements.form import Form
    assert Form is jb.Form and Ball is jb.Ball
    assert "jaxbounds.statements.nothing" not in sys.modules
    with pytest.raises(ModuleNotFoundError, match=r"claims\.statements\.nothing"):
        importlib.import_module("jaxbounds.statements.nothing")


def test_an_old_pickle_finds_its_class():
    made = jb.Form(name="printed")
    data = pickle.dumps(made, protocol=0)
    assert b"jaxbounds.claims.statements.form" in data
    old = data.replace(b"jaxbounds.claims.statements.form", b"jaxbounds.statements.form")
    sys.modules.pop("jaxbounds.statements.form", None)
    with pytest.warns(DeprecationWarning):
        assert pickle.loads(old) == made


def test_the_new_names_import_without_a_word():
    places = [*moved.MODULES.values(), *moved.NAMES]
    text = "import sys, jaxbounds\n" + "\n".join(f"import jaxbounds.{place}" for place in places)
    text += f"\nold = {[f'jaxbounds.{old}' for old in moved.MODULES]}"
    text += "\nassert not sys.modules.keys() & {*old}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_second_call_adds_no_second_finder():
    before = list(sys.meta_path)
    moved.serve_old_names()
    assert sys.meta_path == before


def test_modules_of_others_are_left_alone():
    assert moved.new_place("jaxbounds.multihead.bounds") is None
    assert moved.new_place("jaxbounds") is None
    assert find_spec("json").loader.__class__.__name__ == "SourceFileLoader"


def test_the_old_names_go_with_the_version_that_they_name():
    series = tuple(map(int, __version__.split(".")[:2]))
    assert series <= tuple(map(int, moved.LAST.split("."))), "delete ground/moved.py and this file"
