"""Presets of statements are typed functions: mypy sees each option of each declaration."""

import ast
import inspect
from pathlib import Path

import jaxbounds
from jaxbounds.claims.statements import Statement
from jaxbounds.multihead.statements.common import on_loss

ROOT = Path(jaxbounds.__file__).parent
FILES = {
    file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf8"))
    for file in sorted(ROOT.glob("*/statements/*.py"))
    if file.parent.parent.name != "claims"
}


def _at_import(node):
    """Yield the calls that run as the module is imported; bodies of functions run later."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield from _at_import(child)


WORDS = ("functools.partial", "partial")


def _is_partial(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) in WORDS


PRESETS = {
    target.id
    for tree in FILES.values()
    for node in tree.body
    if isinstance(node, ast.Assign) and _is_partial(node.value)
    for target in node.targets
}


def _calls():
    return ((f"{name}:{call.lineno}", call) for name in FILES for call in _at_import(FILES[name]))


def test_papers_have_presets():
    assert {"on_loss", "searched", "random_search_on_host", "in_c2"} <= PRESETS


def test_no_declaration_hides_options_in_a_dict():
    hidden = [where for where, call in _calls() if any(k.arg is None for k in call.keywords)]
    assert hidden == [], "write a preset: on_loss = functools.partial(Statement, sample=...)"


def test_no_preset_is_a_partial_of_a_preset():
    """mypy checks the options of `functools.partial(Statement, ...)` alone."""
    blind = [
        where
        for where, call in _calls()
        if _is_partial(call) and ast.unparse(call.args[0]).rpartition(".")[2] in PRESETS
    ]
    assert blind == [], "give all settings to functools.partial(Statement, ...)"


def test_presets_show_the_options_of_a_statement():
    """`help(on_loss)` lists each option, and the settings of the preset as its defaults."""
    shown, options = (inspect.signature(one).parameters for one in (on_loss, Statement))
    assert {"id", "evaluate", "forms", "sizes"} <= {*options} == {*shown}
    assert shown["kind"].default == "inequality"
    assert shown["label"].default is inspect.Parameter.empty
