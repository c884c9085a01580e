"""Make Markdown from values, with every text escaped; convert it to HTML with MathML."""

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
"""A pattern for characters that Markdown interprets: in tags, in links, and underscores at the ends
of words."""
_STARTS = re.compile(r"^([#>+=-]|\d+[.)])")


def text(words: object, /) -> str:
    """Return words on one line, with the characters of Markdown escaped."""
    escaped = _MARKS.sub(lambda found: "\\" + found[0], " ".join(str(words).split()))
    return _STARTS.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], escaped)


def code(words: object, /) -> str:
    """Return code on one line between backticks, more of them if the code contains backticks."""
    words = " ".join(str(words).split())
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    space = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{ticks}{space}{words}{space}{ticks}"


def block(words: str, /, kind: str = "") -> str:
    """Return a fenced block of code; in a "math" block, LaTeX keeps only its links to web pages."""
    words = without_links(words) if kind == "math" else words
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", words)), default=0))
    return f"{ticks}{kind}\n{words}\n{ticks}"


def quoted(words: str, /) -> str:
    """Return a quote as Markdown: a block of math, or words with each formula between $` and `$."""
    found = parts(words)
    if [part.is_tex for part in found] == [True]:
        return block(found[0].words, "math")
    inline = (f"${code(without_links(p.words))}$" if p.is_tex else _spaced(p.words) for p in found)
    return "> " + "".join(inline).strip()


def _spaced(words: str) -> str:
    before, after = words[:1].isspace(), words[-1:].isspace()
    return " " * before + text(words) + " " * after


def anchor(title: str, /) -> str:
    """Return the anchor of a heading: the part of a link's address after the #."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def link(words: str, target: str, /) -> str:
    """Return a link to a heading, nearby file or web page; for other targets, only the words."""
    return f"[{text(words)}]({target})" if may_lead(target) else text(words)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], /) -> str:
    """Return a Markdown table; the given cells must be Markdown already."""
    line = lambda cells: "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"
    return "\n".join([line(head), "|" + " --- |" * len(head), *map(line, rows)])


def bullets(items: Sequence[str], /) -> str:
    """Return a Markdown list of the items; further lines of an item are indented."""
    return "\n".join("- " + item.replace("\n", "\n  ") for item in items)


def to_html(markdown: str, /) -> Html:
    """Return the HTML of Markdown; HTML tags in the Markdown become text.

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
    for token in state.tokens:
        children = token.children or []
        for before, formula, after in zip(children, children[1:], children[2:]):
            ends = before.content.endswith("$") and after.content.startswith("$")
            if formula.type != "code_inline" or {before.type, after.type} != {"text"} or not ends:
                continue
            with contextlib.suppress(Refused):  # an unreadable formula stays code
                formula.content = mathml(formula.content, display="inline")
                formula.type = "html_inline"
                before.content, after.content = before.content[:-1], after.content[1:]
