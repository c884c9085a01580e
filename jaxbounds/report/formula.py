"""A statement's formula on the page: its LaTeX set as MathML, when the page is built."""

import html
from xml.etree.ElementTree import Element

from jaxbounds.report.markup import Html, element
from jaxbounds.statements import Statement


def _html(node: Element) -> Html:
    """The element and what it holds; texts, which hold character references, are escaped anew."""
    children: list[object] = [html.unescape(node.text or "")]
    for child in node:
        children += [_html(child), html.unescape(child.tail or "")]
    return element(node.tag, *children, **{k: html.unescape(v) for k, v in node.attrib.items()})


def mathml(tex: str, /) -> Html:
    """LaTeX as MathML.

    Raises:
        ValueError: if it cannot be read.
    """
    from latex2mathml.converter import convert_to_element  # slow to import

    try:
        return _html(convert_to_element(tex, display="block"))
    except Exception as problem:  # its errors have no common class
        raise ValueError(f"tex cannot be read ({type(problem).__name__}: {problem})") from problem


def formula(statement: Statement, /) -> Html:
    """The formula as MathML; where no LaTeX is given, its plain text as it was written.

    Raises:
        ValueError: if the LaTeX cannot be read.
    """
    if not statement.tex:
        return element("code", statement.formula)
    try:
        return mathml(statement.tex)
    except ValueError as problem:
        raise ValueError(f"{statement.id}: {problem}") from problem
