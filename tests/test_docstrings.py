"""Every public name says what it is: the reference documentation is the docstrings."""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap

import jaxbounds

MODULES = [
    importlib.import_module(info.name)
    for info in pkgutil.walk_packages(jaxbounds.__path__, "jaxbounds.")
]


def _public(module):
    """Functions and classes defined in the module, and the methods of those classes."""
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(thing) or inspect.isclass(thing):
            yield f"{module.__name__}.{name}", thing
        if inspect.isclass(thing):
            for method, member in vars(thing).items():
                if inspect.isfunction(member) and not method.startswith("_"):
                    yield f"{module.__name__}.{name}.{method}", member


def test_every_public_name_is_documented():
    silent = [m.__name__ for m in MODULES if not (m.__doc__ or "").strip()]
    for module in MODULES:
        silent += [name for name, thing in _public(module) if not _said(thing)]
    assert not silent, silent


def _said(thing):
    text = (thing.__doc__ or "").strip()
    generated = inspect.isclass(thing) and text.startswith(f"{thing.__name__}(")
    return bool(text) and not generated


def _raises(function):
    """Whether its own body raises, nested functions left out."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    waiting = list(definition.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise) and node.exc is not None:
            return True
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return False


def test_every_public_function_that_raises_says_so():
    # Commands turn errors into a line and an exit status, which their docstrings give.
    modules = [module for module in MODULES if not module.__name__.startswith("jaxbounds.cli")]
    functions = [pair for m in modules for pair in _public(m) if inspect.isfunction(pair[1])]
    unsaid = [pair for pair in functions if "Raises:" not in (pair[1].__doc__ or "")]
    silent = [name for name, function in unsaid if _raises(inspect.unwrap(function))]
    assert not silent, silent


def _stray_bullets(text):
    """Lines of a paragraph that begin with an operator, which a site takes for a list."""
    lines = text.split("\n")
    listed = False
    for before, line in zip(["", *lines], lines):
        bullet = re.match(r"\s*[-+*] ", line)
        if bullet and before.strip() and not before.rstrip().endswith(":") and not listed:
            yield line.strip()
        listed = bool(line.strip()) and (listed or bool(bullet))


def test_no_line_of_a_paragraph_begins_with_an_operator():
    assert list(_stray_bullets("One\n- two")) == ["- two"]
    assert not list(_stray_bullets("One:\n- two\n- three\n\n* four"))
    said = {"": [m.__doc__ for m in MODULES]}
    for module in MODULES:
        said |= {name: [thing.__doc__] for name, thing in _public(module)}
    stray = {
        name: found
        for name, texts in said.items()
        if (found := [line for text in texts for line in _stray_bullets(text or "")])
    }
    assert not stray
