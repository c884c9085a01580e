"""Read the numbered items of a paper from its LaTeX."""

import re
from pathlib import Path
from typing import NamedTuple

from jaxbounds.claims.statements.item import Item, Items
from jaxbounds.papers.latex.counters import Counters
from jaxbounds.papers.latex.gather import gather, main_file
from jaxbounds.papers.latex.macros import (
    Macro,
    argument,
    group_end,
    with_structure,
    without_definitions,
    written_out,
)
from jaxbounds.papers.latex.theorems import LISTED, of_the_class, theorems_in
from jaxbounds.papers.latex.walk import Found, Walk

BOOKS = ("book", "report", "memoir", "scrbook", "scrreprt")
LONGEST_TEX = 20_000
"""An item's text has at most this many characters; `items_in` cuts a longer text.

A larger limit makes the files with the items larger.
"""
_REFERS = re.compile(r"\\(ref|eqref|cref|Cref|autoref|thref|hyperref)\*?\s*\{([^{}]*)\}")
_NAMES = "(?:equation|align|gather|multline|eqnarray)"
_OPENS = (
    (r"\\\(", r"\\\)"),
    (r"\\\[", r"\\\]"),
    (rf"\\begin\{{{_NAMES}", rf"\\end\{{{_NAMES}"),
)
"""The delimiters of a formula, other than the dollar sign."""
_GONE = re.compile(r"\\label\s*\{[^{}]*\}|\\(?:xspace|protect|normalfont)(?![A-Za-z])")


class Source(NamedTuple):
    """The title, the numbered items and the main file of one paper, as read from its LaTeX."""

    title: str
    items: Items
    file: Path


def items_in(path: str | Path, paper: str, /) -> Source:
    r"""Read the numbered theorems, lemmas, ..., and labelled displays of a paper from its LaTeX.

    The function executes no code of the source, and reads no file outside its folder.

    Args:
        path: the paper's main .tex file, or a folder that holds exactly one LaTeX document.
        paper: the id of the paper, with which the ids of the items begin.

    Raises:
        ModuleNotFoundError: if the extra `latex` is missing.
        Refused: if a file is missing, outside the folder or too large, or the source cannot be
            read to its end.
    """
    file = main_file(Path(path))
    pieces, defined = without_definitions(gather(file))
    pieces = with_structure(pieces, defined)
    style = re.search(r"\\documentclass\s*(?:\[[^\]]*\])?\s*\{([^{}]*)\}", pieces.text)
    counters = Counters(chapters=style is not None and style[1].strip() in BOOKS)
    theorems = theorems_in(pieces.text, counters)
    theorems |= of_the_class(pieces.text, theorems, counters)
    walk = Walk(pieces, theorems, counters)
    found = walk.document()
    named = list[Item]()
    for one in found:
        taken = {item.id for item in named}
        named.append(
            Item(
                id=_id(paper, one, taken), kind=one.name, number=one.number, label=one.label,
                title=_readable(one.title, defined.macros, walk),
                tex=_readable(one.text, defined.macros, walk), section=_words(one.section),
                place=pieces.place(one.start),
            )
        )  # fmt: skip
    return Source(_title(pieces.text, defined.macros), Items(*named), file)


def _id(paper: str, found: Found, taken: set[str]) -> str:
    short = "eq" if found.kind == "display" else LISTED[found.kind]
    plain = lambda words: re.sub(r"[^a-z0-9.\-]+", "-", words.lower()).strip(".-")
    slug = plain(found.number) or plain(found.label.rpartition(":")[2]) or "x"
    joins = "" if slug[0].isdigit() else "-"
    slug = re.sub(r"\.{2,}", ".", slug)
    name = first = f"{paper}.{short}{joins}{slug}"[:80].rstrip(".")
    count = 2
    while name in taken:
        name, count = f"{first}-{count}", count + 1
    return name


def _readable(text: str, macros: dict[str, Macro], walk: Walk) -> str:
    whole = written_out(text, macros)

    def printed(found: re.Match[str]) -> str:
        names = [walk.labels.get(name.strip(), ("", "??")) for name in found[2].split(",")]
        if found[1] == "eqref":
            return ", ".join(f"({number})" for _, number in names)
        if found[1] == "ref":
            return ", ".join(number for _, number in names)
        return ", ".join(f"{kind}~{number}".lstrip("~") for kind, number in names)

    return _ensured(_REFERS.sub(printed, _GONE.sub("", whole))).strip()[:LONGEST_TEX]


def _ensured(text: str) -> str:
    at, word = 0, "\\ensuremath"
    while (start := text.find(word, at)) >= 0:
        end = group_end(text, start + len(word))
        if end < 0:
            at = start + len(word)
            continue
        inner = text[start + len(word) + 1 : end - 1]
        before = re.sub(r"\\[\\$]", "", text[:start])
        opened = before.count("$") % 2 or any(
            len(re.findall(begins, before)) > len(re.findall(ends, before))
            for begins, ends in _OPENS
        )
        text = f"{text[:start]}{f'{{{inner}}}' if opened else f'${inner}$'}{text[end:]}"
        at = start
    return text


def _words(text: str) -> str:
    return " ".join(re.sub(r"\\[A-Za-z]+\s*|[{}~$]", " ", text).split())


def _title(text: str, macros: dict[str, Macro]) -> str:
    found = re.search(r"\\(?:title|icmltitle)(?![A-Za-z])\s*(?:\[[^\]]*\])?", text)
    title = argument(text, found.end()) if found else None
    return _words(written_out(title[0].replace("\\\\", " "), macros))[:200] if title else ""
