"""List the numbered items of a paper's LaTeX source (theorems, displays), with their verdicts."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.item import Item, covering
from jaxbounds.falsification import Verdict
from jaxbounds.ground.exceptions import Refused
from jaxbounds.report.formula import mathml, without_links
from jaxbounds.report.markup import Html, element, joined

NOT_COVERED = "not yet covered"
DECLARED = "with a statement that this run did not judge"
UNDECIDED = ("inconclusive", "error")
"""The statuses of verdicts that leave an item's claim undecided."""
_MATH = re.compile(
    r"\\\[(?P<a>.*?)\\\]|\$\$(?P<b>.*?)\$\$|\\\((?P<c>.*?)\\\)|(?<!\\)\$(?P<d>.+?)(?<!\\)\$"
    r"|\\begin\{(?P<name>equation|align|gather|multline|eqnarray|alignat|flalign|dmath|displaymath"
    r"|math)\*?\}(?P<e>.*?)\\end\{(?P=name)\*?\}",
    re.DOTALL,
)
_ALIGNED = ("align", "gather", "multline", "eqnarray", "alignat", "flalign")
_WORDS = (
    (
        r"\\(?:emph|textbf|textit|textsc|texttt|text|textrm|mbox|footnote|underline)\s*\{([^{}]*)\}",
        r"\1",
    ),
    (r"\\cite[a-z]*\*?\s*(?:\[[^\]]*\])*\s*\{([^{}]*)\}", r"[\1]"),
    (r"\\begin\s*\{[^{}]*\}\s*(?:\[[^\]]*\])?|\\end\s*\{[^{}]*\}", " "),
    (r"\\item\s*(?:\[([^\]]*)\])?", r" • \1 "),
    (r"\\[A-Za-z]+\*?\s*", " "),
    (r"\\([%&#_$])", r"\1"),
    (r"\\.|[{}]|~", " "),
    (r"---?", "–"),
    (r"``|''", '"'),
)


class Covered(NamedTuple):
    """An item of a paper's LaTeX source (a theorem or display), with the statements that check it.

    Attributes:
        words: the verdicts on these statements, the reason why there is no verdict, or
            `NOT_COVERED`.
        decided: whether at least one verdict on these statements is neither inconclusive nor an
            error.
    """

    item: Item
    ids: tuple[str, ...]
    words: str
    decided: bool = False


def coverage(paper: Paper, verdicts: Sequence[Verdict], /) -> list[Covered]:
    """Return each item of a paper's LaTeX source with its verdicts.

    A display without a verdict of its own gets the verdict of the theorem that contains the
    display. A theorem without a verdict of its own has the verdicts on its displays, if every
    labelled display in the theorem has a verdict.
    """
    found = list[Covered]()
    around: Covered | None = None
    for item in paper.contents:
        one = _covered(item, paper, verdicts)
        if not item.kind.startswith("Equation"):
            around = one
        elif one.words == NOT_COVERED and around and around.ids and _stands_in(item, around.item):
            words = f"in {around.item.printed}: {around.words}"
            one = Covered(item, around.ids, words, around.decided)
        found.append(one)
    return [_by_displays(one, found) for one in found]


def _by_displays(one: Covered, found: Sequence[Covered]) -> Covered:
    if one.words != NOT_COVERED or one.item.kind.startswith("Equation"):
        return one
    inside = [
        other
        for other in found
        if other.item.kind.startswith("Equation")
        and other.item.label
        and _stands_in(other.item, one.item)
    ]
    if not inside or not all(other.ids and not other.words.endswith(DECLARED) for other in inside):
        return one
    ids = tuple(dict.fromkeys(name for other in inside for name in other.ids))
    words = "; ".join(f"in {other.item.printed}: {other.words}" for other in inside)
    return Covered(one.item, ids, words, all(other.decided for other in inside))


def _stands_in(display: Item, around: Item) -> bool:
    return bool(_bare(display)) and _bare(display) in _bare(around)


def _bare(item: Item) -> str:
    text = item.tex
    if item.kind.startswith("Equation"):
        text = re.sub(r"^\s*\\begin\{[a-z]+\*?\}|\\end\{[a-z]+\*?\}\s*$", "", text)
    return re.sub(r"\s+", "", text)


def _covered(item: Item, paper: Paper, verdicts: Sequence[Verdict]) -> Covered:
    about = covering(item, paper.statements, paper.items)
    if isinstance(about, str):
        id_like = re.fullmatch(rf"{re.escape(paper.id)}\.\S+", about) is not None
        lost = f"{NOT_COVERED}: no statement has the id {about!r}"
        return Covered(item, (), lost if id_like else about)
    own = [v for v in verdicts if v.id in about and not v.is_twin]
    if own:
        words = "; ".join(f"{v.form}: {v.status}" for v in own)
        decided = any(v.status not in UNDECIDED for v in own)
        return Covered(item, tuple(dict.fromkeys(v.id for v in own)), words, decided)
    return Covered(item, about, DECLARED if about else NOT_COVERED)


def in_short(covered: Sequence[Covered], /) -> str:
    """Return a line that counts the items with a verdict, not covered, and excused."""
    declared = sum(one.words.endswith(DECLARED) for one in covered)
    judged = sum(bool(one.ids) for one in covered) - declared
    undecided = judged - sum(one.decided for one in covered)
    left = sum(one.words.startswith(NOT_COVERED) for one in covered)
    excused = sum(not one.ids for one in covered) - left
    words = f"{judged} of {len(covered)} items of the source have a verdict"
    words += f" ({undecided} undecided)" if undecided else ""
    words += f"; {left} {NOT_COVERED}" + (f"; {declared} {DECLARED}" if declared else "")
    return f"{words}; {excused} excused with a reason" if excused else words


def tex_as_html(tex: str, /, *, display: bool = False) -> Html:
    """Return a text in LaTeX as HTML: the formulas as MathML, the words without commands.

    If `display` is true, the text itself is a formula, or a row of formulas.
    """
    found = list(_MATH.finditer(tex))
    if display and not found:
        return _formula(tex, aligned=True)
    pieces, last = list[object](), 0
    for one in found:
        pieces.append(_plain(tex[last : one.start()]))
        body = next(one[name] for name in "abcde" if one[name] is not None)
        inline = one["c"] is not None or one["d"] is not None
        pieces.append(_formula(body, aligned=one["name"] in _ALIGNED, inline=inline))
        last = one.end()
    return joined(*pieces, _plain(tex[last:]))


def _formula(tex: str, *, aligned: bool, inline: bool = False) -> Html:
    bare = re.sub(r"\\(?:nonumber|notag)(?![A-Za-z])|\\label\s*\{[^{}]*\}", "", tex)
    bare = re.sub(r"\\tag\*?\s*\{([^{}]*)\}", r"\\quad (\1)", bare).strip()
    bare = re.sub(r"(?<!\\)\\\\\s*\[[^\]]*\]", r"\\\\", without_links(bare))
    bare = re.sub(r"\\operatorname\s*\*", r"\\operatorname", bare)
    if aligned and ("&" in bare or "\\\\" in bare):
        columns = 1 + max(row.count("&") for row in bare.split("\\\\"))
        bare = rf"\begin{{array}}{{{('rl' * columns)[:columns]}}}{bare}\end{{array}}"
    try:
        return mathml(bare, display="inline" if inline else "block")
    except Refused:
        return element("code", bare)


def _plain(text: str) -> str:
    for pattern, instead in _WORDS:
        text = re.sub(pattern, instead, text)
    return re.sub(r"\s+", " ", text)


def items_section(papers: Sequence[Paper], verdicts: Sequence[Verdict], /) -> Html | None:
    """Return the items of the papers' sources, each with its text and its verdicts."""
    parts = [
        element(
            "div",
            element("h3", paper.title),
            element("p", f"{in_short(found)}.", class_="summary"),
            *map(_card, found),
            data_paper=paper.id,
        )
        for paper in papers
        if (found := coverage(paper, verdicts))
    ]
    title = element("h2", "Items of the source")
    return element("section", title, *parts, id="items") if parts else None


def _card(covered: Covered) -> Html:
    item = covered.item
    links = [element("a", name, href=f"#{name}") for name in covered.ids]
    where = "; ".join(part for part in (item.section, item.place, item.label) if part)
    return element(
        "article",
        element(
            "h4",
            element("span", tex_as_html(item.printed), class_="number"),
            f" {_plain(item.title)} " if item.title else " ",
            element("span", covered.words, class_="tag"),
        ),
        element("p", tex_as_html(item.tex, display=item.kind.startswith("Equation"))),
        element("p", *joined_with(links), where, class_="small"),
        id=f"item.{item.id}",
        class_="card",
    )


def joined_with(links: Sequence[Html]) -> Iterator[object]:
    """Yield links, each with a space behind it."""
    for link in links:
        yield link
        yield " "
