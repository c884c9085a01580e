"""Markdown from values, every text escaped; and the HTML of it, with formulas as MathML."""

import contextlib
import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt

from jaxbounds.ground.exceptions import Refused
from jaxbounds.report.formula import mathml, without_links
from jaxbounds.report.markup import Html, element, may_lead
from jaxbounds.report.tex import indexed, parts

_MARKS = re.compile(r"[\\`*$~&]|<(?=[A-Za-z/!?])|\](?=[\[(:])|(?<![^\W_])_|_(?![^\W_])")
"""Characters with a meaning in Markdown: tags, links, underscores that are not inside words."""
_STARTS = re.compile(r"^([#>+=-]|\d+[.)])")


def text(words: object, /) -> str:
    """Return words with escaped marks, in one line."""
    escaped = _MARKS.sub(lambda found: "\\" + found[0], " ".join(str(words).split()))
    return _STARTS.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], escaped)


def code(words: object, /) -> str:
    """Return a piece of code in one line; backticks in it make longer ones around it."""
    words = " ".join(str(words).split())
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    space = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{ticks}{space}{words}{space}{ticks}"


def block(words: str, /, kind: str = "") -> str:
    """Return unchanged lines; of kind "math" they are LaTeX, without links that lead elsewhere."""
    words = without_links(words) if kind == "math" else words
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", words)), default=0))
    return f"{ticks}{kind}\n{words}\n{ticks}"


def quoted(words: str, /) -> str:
    """Return a quote; its LaTeX is a block of math, or stands between $` and `$ among words."""
    found = parts(words)
    if [part.is_tex for part in found] == [True]:
        return block(found[0].words, "math")
    inline = (f"${code(without_links(p.words))}$" if p.is_tex else _spaced(p.words) for p in found)
    return "> " + "".join(inline).strip()


def _spaced(words: str) -> str:
    """Return words between formulas, with the spaces at both ends that `text` takes away."""
    before, after = words[:1].isspace(), words[-1:].isspace()
    return " " * before + text(words) + " " * after


def anchor(title: str, /) -> str:
    """Return the name of a heading in links."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def link(words: str, target: str, /) -> str:
    """Return a link to a heading, a file beside the page, or a page; other links become words."""
    return f"[{text(words)}]({target})" if may_lead(target) else text(words)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], /) -> str:
    """Return a table; its cells are Markdown already."""
    line = lambda cells: "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"
    return "\n".join([line(head), "|" + " --- |" * len(head), *map(line, rows)])


def bullets(items: Sequence[str], /) -> str:
    """Return a list; further lines of an item belong to it."""
    return "\n".join("- " + item.replace("\n", "\n  ") for item in items)


def to_html(markdown: str, /) -> Html:
    """Return the HTML of Markdown; tags in it are text.

    Raises:
        Refused: if a formula cannot be read.
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.validateLink = may_lead  # type: ignore[assignment, method-assign]
    reader.add_render_rule("fence", _fence)
    reader.add_render_rule("heading_open", _heading)
    reader.add_render_rule("text", _text)
    reader.core.ruler.push("math", _inline_math)
    return Html(reader.render(markdown))


def _fence(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    return mathml(token.content) if token.info == "math" else element("pre", token.content)


def _heading(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    words = "".join(part.content for part in tokens[index + 1].children)
    return f'<{tokens[index].tag} id="{anchor(words)}">'


def _text(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    return indexed(tokens[index].content)


def _inline_math(state: Any) -> None:
    """Turn code between dollar signs, as `quoted` leaves it, into a formula."""
    for token in state.tokens:
        children = token.children or []
        for before, formula, after in zip(children, children[1:], children[2:]):
            ends = before.content.endswith("$") and after.content.startswith("$")
            if formula.type != "code_inline" or {before.type, after.type} != {"text"} or not ends:
                continue
            with contextlib.suppress(Refused):  # it stays code
                formula.content = mathml(formula.content, display="inline")
                formula.type = "html_inline"
                before.content, after.content = before.content[:-1], after.content[1:]
