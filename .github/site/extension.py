"""Additions of the site to Sphinx: MathML, docstrings in Markdown, questions in the search.

Each part uses a documented extension point of Sphinx.
"""

import re
from typing import Any

from docutils import nodes
from jax.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.util import logging
from sphinx.util.typing import stringify_annotation

import jaxbounds as jb
from jaxbounds.report.formula import mathml

LOGGER = logging.getLogger(__name__)
ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")
"""Seven types between bars, as a signature would write them."""
QUESTION = (
    "am an can do does for from get have how i is it me mine my of on or our the this to what when "
    "where which who why with you your"
)
"""The words that only make a question of some words."""


class SearchQuestions(SearchEnglish):
    """English, without the words that only make a question of some words."""

    stopwords = frozenset({*SearchEnglish.stopwords, *QUESTION.split()})


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), display="inline"))
    raise nodes.SkipNode


def _display(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{mathml(node.astext())}</div>')
    raise nodes.SkipNode


def restructured(lines: list[str], /) -> list[str]:
    """A docstring in Markdown as reStructuredText: code blocks, lists, and signs as they are.

    Args:
        lines: of the docstring, without its indentation.
    """
    made, fence, before = list[str](), "", ""
    for line in lines:
        bare, indent = line.strip(), line[: len(line) - len(line.lstrip())]
        if bare.startswith("```"):
            fence = "" if fence else indent + "   "
            made += ["", f"{indent}.. code-block:: {bare[3:] or 'text'}", ""] if fence else [""]
        elif fence:
            made.append(f"   {line}" if bare else "")
        else:
            starts = bare.startswith("- ") and not before.startswith("- ") and before != ""
            made += ["", _escaped(line)] if starts else [_escaped(line)]
        before = bare
    return made


def _escaped(line: str) -> str:
    """The signs that reStructuredText reads, as they are; code stays code."""
    signs = r"([|\\]|_(?=\W|$))" if re.match(r"\s*\*+\w", line) else r"([|*\\]|_(?=\W|$))"
    pieces = re.split(r"(`[^`]+`)", line)
    return "".join(p if p.startswith("`") else re.sub(signs, r"\\\1", p) for p in pieces)


def _docstring(app: Sphinx, what: str, name: str, it: Any, options: Any, lines: list[str]) -> None:
    lines[:] = restructured(lines)


def _signature(
    app: Sphinx, what: str, name: str, it: Any, options: Any, given: str | None, gives: str | None
) -> tuple[str | None, str | None]:
    """Write JAX's union of all that is like an array by its name."""
    short = lambda words: words and words.replace(ARRAY_LIKE, "ArrayLike")
    return short(given), short(gives)


def _skipped(app: Sphinx, what: str, name: str, it: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what Python says of a named tuple's fields; the class describes its fields."""
    alias = str(getattr(it, "__doc__", "")).startswith("Alias for field number")
    return True if alias else None


def _public(app: Sphinx, env: Any, node: Any, content: nodes.Node) -> nodes.Node | None:
    """A type by its place in the package is the public name, where there is one."""
    target = str(node.get("reftarget", ""))
    name = target.rpartition(".")[2]
    if node.get("refdomain") != "py" or not target.startswith("jaxbounds.") or name not in dir(jb):
        return None
    python = env.get_domain("py")
    place = node.get("refdoc")
    return python.resolve_xref(env, place, app.builder, "obj", f"jaxbounds.{name}", node, content)


def _complete(app: Sphinx, env: Any) -> None:
    """Warn of each public name without a reference, or without a docstring."""
    there = {name for name, *_ in env.get_domain("py").get_objects()}
    for name in dir(jb):
        if f"jaxbounds.{name}" not in there and not name.startswith("_"):
            LOGGER.warning("public name without reference: jaxbounds.%s", name)
        elif not (getattr(jb, name).__doc__ or "").strip():
            LOGGER.warning("public name without docstring: jaxbounds.%s", name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the parts."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.add_search_language(SearchQuestions)
    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _skipped)
    app.connect("missing-reference", _public)
    app.connect("env-check-consistency", _complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
