"""Statements that a loop or a function makes, in a single file: shown, and watched."""

import importlib
import json
import sys

import pytest

from jaxbounds.cli import main
from jaxbounds.papers import load_paper

source = importlib.import_module("jaxbounds.report.source")  # the package has a function so

HEAD = '''# -*- coding: {encoding} -*-
import jax.numpy as jnp
import jaxbounds as jb


def right(k):
    """The right side, as Gauß has it."""
    return 1.0 * k


def declared(name, evaluate):
    return jb.Statement(
        id=name, label="1", formula="f", kind="inequality", evaluate=evaluate, judges=(right,),
        over={{"x": jb.Box(0, 1)}}, control="c", forms=(jb.Form(name="printed"),),
        sizes=({{"d": 1}},), budget=jb.Budget(samples=16, restarts=0, steps=0, batch=16),
    )
'''
LOOP = """
MADE = []
for k in (1, 2):
    def evaluate(i, size, k=k):
        return jb.Sides(lhs=k * i["x"], rhs={{"printed": right(k), "control": 0.1}})

    MADE.append(declared(f"{name}.s{{k}}", evaluate))
"""
FUNCTION = """
def made(k):
    def evaluate(i, size):
        return jb.Sides(lhs=k * i["x"], rhs={{"printed": right(k), "control": 0.1}})

    return declared(f"{name}.s{{k}}", evaluate)


MADE = [made(k) for k in (1, 2)]
"""
NAMELESS = FUNCTION + "\ndel made\n"
LAMBDA = """
def made(k):
    return declared(f"{name}.s{{k}}", lambda i, size: jb.Sides(
        lhs=k * i["x"], rhs={{"printed": right(k), "control": 0.1}}))


MADE = list(map(made, (1, 2)))
"""
PAPER = 'PAPER = jb.Paper(id="{name}", title="t", statements=tuple(MADE))\n'
WAYS = {"loop": LOOP, "function": FUNCTION, "nameless": NAMELESS, "lambda": LAMBDA}


@pytest.fixture(params=WAYS)
def made(request, tmp_path, monkeypatch):
    """A file of statements that are made in one way, and its name."""
    name = f"made_{request.param}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    text = (HEAD + WAYS[request.param] + PAPER).format(name=name, encoding="utf-8")
    (tmp_path / f"{name}.py").write_text(text, encoding="utf8")
    yield tmp_path / f"{name}.py"
    sys.modules.pop(name, None)
    for cached in (source._assigned, source._imported, source._ids):
        cached.cache_clear()
    source._code_outside.cache_clear()


def test_it_is_shown_with_its_code(made, capsys):
    assert main(["show", f"{made.stem}.s2", "--code", "--import", made.name]) == 0
    printed = capsys.readouterr().out
    assert f"{made.stem}.s2" in printed and "def right(k):" in printed
    assert f"{made.name}:" in printed and "written in" in printed
    assert main(["show", made.stem, "--json", "--import", made.name]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)] == [
        f"{made.stem}.s1", f"{made.stem}.s2",
    ]  # fmt: skip


def test_its_digest_follows_its_file(made, monkeypatch):
    """What `--watch` asks."""
    # The library's own files may be edited while this runs, and are many.
    monkeypatch.setattr(source, "own_files", lambda: {made.resolve(): made.stem})
    digests = []
    for edit in ("", "# a comment", ""):
        made.write_text(made.read_text(encoding="utf8") + edit, encoding="utf8")
        for cached in (source._assigned, source._imported, source._ids):
            cached.cache_clear()
        source._code_outside.cache_clear()
        paper = load_paper(made.name)
        digests.append([source.code_digest(one) for one in paper.statements])
        assert all(made.name in source.declaration(one) for one in paper.statements)
    assert digests[0] != digests[1] == digests[2]


@pytest.mark.slow_cases("cp1252")
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8-sig"])
def test_files_name_their_encoding(encoding, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    name = "made_" + encoding.replace("-", "_").replace("utf_8", "utf")
    text = (HEAD + FUNCTION + PAPER).format(name=name, encoding=encoding.removesuffix("-sig"))
    (tmp_path / f"{name}.py").write_text(text, encoding=encoding)
    try:
        assert main(["show", f"{name}.s1", "--code", "--import", f"{name}.py"]) == 0
        source.code_digest(load_paper(f"{name}.py").statements[0])
    finally:
        sys.modules.pop(name, None)
    assert "as Gauß has it" in capsys.readouterr().out


def test_a_module_that_is_no_python_has_no_source():
    for name in ("math", "sys", "numpy.linalg._umath_linalg"):
        importlib.import_module(name)
        assert source._source(name).body == [] and source._ids(name) == {}
    assert source._text("/nowhere.py") == "" and source._body("def (") is None
