"""Convert text with formulas, such as quotes from papers, to HTML and to plain text.

A text is one formula in LaTeX, or words with formulas between dollar signs, or words with bare
commands of LaTeX. Among words, "_{...}" is an index and "^{...}" is a power.
"""

import contextlib
import re
from typing import NamedTuple
from xml.etree.ElementTree import Element

from jaxbounds.ground.exceptions import Refused
from jaxbounds.report.formula import mathml, tree
from jaxbounds.report.markup import Html, element, joined

_BETWEEN = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
_WORDS = re.compile(r"(?<![\\{A-Za-z])(?:[A-Za-z]{2,}\s+){3}")
"""A pattern that matches three words in a row; formulas contain no three words in a row."""
_BARE = re.compile(r"(\([^()]*\\[A-Za-z][^()]*\)|\S*\\[A-Za-z]\S*)")
_SIZES = re.compile(r"\\(left|right)(?![a-z])\s*")
_INDEX = re.compile(r"([_^])\{([^{}]*)\}")
_ACCENTS = {"^": "_hat", "~": "_tilde", "¯": "_bar", "→": "_vec"}
_SPACED = frozenset("=<>≤≥∣+−-→≠")
_ASCII = {"‖": "||", "∥": "||", "−": "-", "∣": "|", "≤": "<=", "≥": ">=", "∞": "inf"}


class Part(NamedTuple):
    """A part of a text: either words, or a formula in LaTeX without dollar signs."""

    words: str
    is_tex: bool


def parts(words: str, /) -> list[Part]:
    """Return the words and the formulas of a text, in order."""
    if "\\" not in words:  # "$5 and $6"
        return [Part(words, False)]
    if _BETWEEN.search(words):
        pieces = _BETWEEN.split(words)  # words, the formula in $$, the formula in $, words, ...
        found = []
        for i in range(0, len(pieces), 3):
            found.append(Part(pieces[i], False))
            found += [Part(tex, True) for tex in pieces[i + 1 : i + 3] if tex]
    elif _WORDS.search(words):
        found = [Part(p, i % 2 == 1) for i, p in enumerate(_BARE.split(words))]
    else:
        found = [Part(words, True)]
    return [_readable(part) for part in found if part.words]


def _readable(part: Part) -> Part:
    for tex in (part.words, _SIZES.sub("", part.words)) if part.is_tex else ():
        with contextlib.suppress(Refused):
            tree(tex)
            return Part(tex, True)
    return Part(part.words, False)


def indexed(words: str, /) -> Html:
    """Return words as HTML, with "_{...}" as an index and "^{...}" as a power."""
    pieces = _INDEX.split(words)
    shown: list[object] = [pieces[0]]
    for sign, inner, after in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
        shown += [element("sub" if sign == "_" else "sup", inner), after]
    return joined(*shown)


def prose(words: str, /) -> Html:
    """Return a text as HTML, its formulas as MathML."""
    found = parts(words)
    display = "block" if len(found) == 1 else "inline"
    return joined(
        *(mathml(p.words, display=display) if p.is_tex else indexed(p.words) for p in found)
    )


def plain(words: str, /) -> str:
    """Return a text for the terminal, with each formula on one line."""
    return "".join(_said(tree(p.words)) if p.is_tex else p.words for p in parts(words))


def _said(node: Element, index: bool = False) -> str:
    below = [_said(child, index) for child in node[:1]]
    below += [_said(child, index or node.tag.startswith(("msu", "mu"))) for child in node[1:]]
    match node.tag, below:
        case "mfrac", [above, under]:
            return f"{_grouped(above)}/{_grouped(under)}"
        case "msqrt", _:
            return f"sqrt({_in_line(below, index)})"
        case (("msub" | "munder"), [base, low]):
            return f"{base}_{_braced(low)}"
        case "msup", [base, high]:
            return f"{base}^{_braced(high)}"
        case (("msubsup" | "munderover"), [base, low, high]):
            return f"{base}_{_braced(low)}^{_braced(high)}"
        case "mover", [base, accent]:
            return base + _ACCENTS.get(accent.strip(), f"^{_braced(accent)}")
    text = (node.text or "").strip()
    if not below and text:
        if text == "∈":
            return " in "
        word = _ASCII.get(text, text)
        return f" {word} " if text in _SPACED and not index else word
    return _in_line(below, index)


def _in_line(pieces: list[str], index: bool) -> str:
    line = ""
    for piece in pieces:
        ends = line[-1:].isalnum() or line[-1:] in (")", "}")
        line += (" " if ends and piece[:1].isalnum() and not index else "") + piece
        line += " " if piece == "," and not index else ""
    return " ".join(line.split())


def _braced(words: str) -> str:
    return words if len(words) == 1 else f"{{{words}}}"


def _grouped(words: str) -> str:
    return words if re.fullmatch(r"\w+(\([^()]*\))?", words) else f"({words})"
