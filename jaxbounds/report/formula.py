"""Formulas on the page: LaTeX converted to MathML when the page is built.

The package latex2mathml converts the structure of a formula. The module `formula` adds the spaces
of TeX: thin spaces around names of functions, wide spaces around relations, and no spaces around
bars and fences and in indices.
"""

import html
import re
from xml.etree.ElementTree import Element

from jaxbounds.claims.statements import Statement
from jaxbounds.ground.exceptions import Refused
from jaxbounds.report.markup import Html, element
from jaxbounds.report.quantifiers import in_one_line

_THIN, _WIDE = "0.1667em", "0.2778em"
_NAMES = frozenset(("argmax", "argmin", "exp", "inf", "ln", "log", "max", "min", "sup", "Pr"))
_RELATIONS = {":": ":", "~": "∼", "⟹": "⟹", "⟺": "⟺"}
_TIGHT = frozenset("|‖/⟨⟩⌊⌋⌈⌉")
_LETTERS = frozenset("∞∅⊤")
_SIGNS, _SYMBOLS = frozenset("+−"), frozenset(("mo", "mspace"))
_OPENS, _CLOSES = frozenset("([{⟨⌊⌈"), frozenset(")]}⟩⌋⌉|‖")
_UNDER_OR_OVER = frozenset(("msub", "msup", "msubsup", "munder", "mover", "munderover"))


def _core(node: Element) -> Element:
    return _core(node[0]) if node.tag in _UNDER_OR_OVER else node


def _closed(before: Element | None) -> bool:
    """Tell whether a MathML node ends an expression; a sign after the node is then binary."""
    return before is not None and (before.tag not in _SYMBOLS or before.text in _CLOSES)


def _space(node: Element, before: Element | None, after: Element | None, index: bool) -> None:
    text = node.text or ""
    spaces: tuple[str, str] | None = None
    if node.tag not in ("mi", "mo"):
        return
    if text in _LETTERS:
        node.tag = "mi"
        node.attrib.clear()
    elif text in _NAMES:
        opens = after is None or (after.tag == "mo" and after.text in _OPENS)
        spaces = (_THIN if _closed(before) else "0", "0" if opens else _THIN)
    elif text in _TIGHT:
        node.attrib.setdefault("stretchy", "false")
        spaces = ("0", "0")
    elif text in _RELATIONS:
        node.text = _RELATIONS[text]
        spaces = (_WIDE, _WIDE)
    elif text == ";":
        spaces = ("0", _THIN)
    elif text in _SIGNS and not _closed(before):
        spaces = ("0", "0")
    if index and (spaces or node.tag == "mo") and text not in _NAMES:
        spaces = ("0", "0")
    if spaces:
        node.tag = "mo"
        node.set("lspace", spaces[0])
        node.set("rspace", spaces[1])


def _typeset(node: Element, index: bool = False) -> None:
    cores = [_core(child) for child in node]
    if node.tag not in _UNDER_OR_OVER:
        for i, core in enumerate(cores):
            after = cores[i + 1] if i + 1 < len(cores) else None
            _space(core, cores[i - 1] if i else None, after, index)
    for i, child in enumerate(node):
        _typeset(child, index or (node.tag in _UNDER_OR_OVER and i > 0))
        if node.tag in _UNDER_OR_OVER and i > 0:
            _space(child, None, None, True)


def _read(node: Element) -> None:
    for part in node.iter():
        part.text = html.unescape(part.text or "")
        part.tail = html.unescape(part.tail or "")
        part.attrib = {name: html.unescape(value) for name, value in part.attrib.items()}


def _html(node: Element) -> Html:
    children: list[object] = [node.text]
    for child in node:
        children += [_html(child), child.tail]
    return element(node.tag, *children, **node.attrib)


_LINK = re.compile(r"\\(?:href|url)\s*(?=\{)")


def without_links(tex: str, /) -> str:
    """Remove links from LaTeX, except links to web pages; the words of a removed link stay."""
    kept, rest = "", tex
    while found := _LINK.search(rest):
        end = _closing(rest, found.end())
        target = rest[found.end() + 1 : end - 1]
        whole = re.match(r"\s*https?://", target) is not None
        kept += rest[: end if whole else found.start()]
        rest = rest[end:]
    return kept + rest


def _closing(tex: str, at: int) -> int:
    depth = 0
    for place in range(at, len(tex)):
        depth += {"{": 1, "}": -1}.get(tex[place], 0)
        if not depth:
            return place + 1
    return len(tex)


def tree(tex: str, /, *, display: str = "block") -> Element:
    """Return LaTeX without dollar signs as a tree of MathML.

    The layout `display` is "block", or "inline" for a formula among words.

    Raises:
        Refused: if the LaTeX of the formula cannot be read.
    """
    from latex2mathml.converter import convert_to_element  # slow to import

    try:
        root = convert_to_element(tex, display=display)
    except Exception as problem:  # the errors of the converter have no common class
        raise Refused(
            f"tex cannot be read ({type(problem).__name__}: {problem}), got "
            f"tex={tex!r:.80}. Try simpler LaTeX"
        ) from problem
    _read(root)
    return root


def mathml(tex: str, /, *, display: str = "block") -> Html:
    """Return LaTeX without dollar signs as MathML.

    The layout `display` is "block", or "inline" for a formula among words.

    Raises:
        Refused: if the LaTeX of the formula cannot be read.
    """
    root = tree(tex, display=display)
    _typeset(root)
    return _html(root)


def formula(statement: Statement, /) -> Html:
    """Return the formula of a statement as MathML, or as plain text if it has no LaTeX.

    Raises:
        Refused: if the LaTeX cannot be read.
    """
    if not statement.tex:
        return element("code", in_one_line(statement))
    try:
        return mathml(statement.tex)
    except Refused as problem:
        cause = str(problem).split(". Try ")[0]
        raise Refused(f"statement={statement.id}: {cause}. Try simpler LaTeX in tex=") from problem
