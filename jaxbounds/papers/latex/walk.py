r"""Walk through a document: find sections, theorems and displays with their printed numbers."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers.latex.counters import Counters
from jaxbounds.papers.latex.pieces import Pieces
from jaxbounds.papers.latex.theorems import LISTED, Theorem

MISSING = "reading LaTeX needs pylatexenc, of the extra 'latex'. Try pip install 'jaxbounds[latex]'"
SECTIONS = ("chapter", "section", "subsection", "subsubsection")
ONE_NUMBER = ("equation", "multline", "dmath")
ROWS = ("align", "gather", "eqnarray", "alignat", "flalign", "xalignat")
_LISTS = ("enumerate", "itemize", "description", "proof")
_COUNTS = ("setcounter", "addtocounter", "stepcounter", "refstepcounter")
_RENEWS = ("renewcommand", "newcommand", "providecommand")


@dataclass
class Found:
    r"""A numbered item of the document.

    The number of a display without a number is "". In `text`, macros are not expanded.
    """

    kind: str
    name: str
    number: str
    start: int
    label: str = ""
    title: str = ""
    text: str = ""
    section: str = ""


@dataclass
class Walk:
    """One pass through a LaTeX document that numbers the items of the document."""

    pieces: Pieces
    theorems: dict[str, Theorem]
    counters: Counters
    found: list[Found] = field(default_factory=list)
    labels: dict[str, tuple[str, str]] = field(default_factory=dict)
    section: str = ""
    _later: dict[str, tuple[Found, Theorem]] = field(default_factory=dict)
    _seen: int = 0

    def document(self) -> list[Found]:
        """Return the document's numbered items, in the order of the text.

        Raises:
            ModuleNotFoundError: if pylatexenc is missing.
            Refused: if the source cannot be read to its end.
        """
        text = self.pieces.text
        try:
            nodes = _nodes(text, self.theorems)
            self.nodes(nodes, None)
        except RecursionError as problem:
            raise Refused(
                f"the TeX groups of a source with characters={len(text)} are nested too deep. Try "
                f"a simpler source"
            ) from problem
        names = "|".join(map(re.escape, self.theorems)) or "theorem"
        begun, ended = (
            len(re.findall(rf"\\{word}\s*\{{(?:{names}|restatable\*?)\}}", text))
            for word in ("begin", "end")
        )
        if self._seen < begun or begun != ended:
            raise Refused(
                f"environments of theorems: begun={begun}, ended={ended}, readable="
                f"{self._seen}, expected equal numbers. Try to compile the source, since a \\begin "
                "may lack its \\end"
            )
        return self.found

    def nodes(self, nodes: Iterable[Any], inside: Found | None) -> None:
        """Visit nodes of the parsed LaTeX; labels in these nodes belong to the item `inside`."""
        for node in nodes:
            if node is None:
                continue
            kind = type(node).__name__
            if kind == "LatexEnvironmentNode":
                self._environment(node, inside)
            elif kind == "LatexMacroNode":
                self._macro(node, inside)
            elif kind == "LatexMathNode":
                self._plain_display(node, inside)
            elif kind == "LatexGroupNode":
                self.nodes(node.nodelist, inside)

    def _between(self, nodes: Sequence[Any]) -> str:
        there = [node for node in nodes if node is not None]
        if not there:
            return ""
        return self.pieces.text[there[0].pos : there[-1].pos + there[-1].len]

    def _environment(self, node: Any, inside: Found | None) -> None:
        name = node.environmentname
        bare = name.removesuffix("*")
        if bare == "restatable":
            self._seen += 1
            given = _given(node)
            theorem = self.theorems.get(given[1])
            if theorem is not None:
                self._theorem(node, theorem, given[0], "" if bare == name else given[2])
                return
        if name in self.theorems:
            self._seen += 1
            self._theorem(node, self.theorems[name], _given(node)[0], "")
        elif bare == "subequations":
            self._subequations(node)
        elif bare in ONE_NUMBER or bare in ROWS:
            self._display(node, bare, starred=bare != name)
        elif bare == "appendices":
            self._appendix()
            self.nodes(node.nodelist, inside)
        elif bare in _LISTS:
            self.nodes(node.nodelist, None)
        else:
            self.nodes(node.nodelist, inside)

    def _theorem(self, node: Any, theorem: Theorem, title: str, later: str) -> None:
        numbered = bool(theorem.counter)
        number = self.counters.step(theorem.counter) if numbered and not later else ""
        item = Found(theorem.kind, theorem.printed, number, node.pos, title=title)
        item.text, item.section = self._between(node.nodelist), self.section
        if later:
            self._later[later] = item, theorem
        if numbered and theorem.kind in LISTED:
            self.found.append(item)
        self.nodes(node.nodelist, item)

    def _label(self, name: str, item: Found | None) -> None:
        if item is None:
            return
        item.label = item.label or name
        self.labels.setdefault(name, (item.name, item.number))

    def _macro(self, node: Any, inside: Found | None) -> None:
        name, given = node.macroname, _given(node)
        if name == "label":
            self._label(given[-1], inside)
        elif name in SECTIONS:
            star, _, title = given
            words = _one_line(title)
            if star:
                self.section = words
            elif name in self.counters.values:
                number = self.counters.step(name)
                self.section = f"{number} {words}"
        elif name == "appendix":
            self._appendix()
        elif name in _COUNTS:
            self._count(name, given)
        elif name in _RENEWS and re.fullmatch(r"\\?the[A-Za-z@]+", given[1].strip()):
            self.counters.print_as(given[1].strip().lstrip("\\")[3:], given[-1])
        elif name in self._later:
            item, theorem = self._later.pop(name)
            item.number = self.counters.step(theorem.counter)
            if item.label:
                self.labels[item.label] = (item.name, item.number)
        else:
            arguments = getattr(node.nodeargd, "argnlist", None) or ()
            self.nodes(arguments, inside)

    def _appendix(self) -> None:
        top = "chapter" if "chapter" in self.counters.values else "section"
        self.counters.appendix(top)

    def _count(self, name: str, given: list[str]) -> None:
        if name in ("stepcounter", "refstepcounter"):
            self.counters.step(given[0])
        elif re.fullmatch(r"\s*-?\d{1,6}\s*", given[1]):
            change = self.counters.put if name == "setcounter" else self.counters.add
            change(given[0], int(given[1]))

    def _subequations(self, node: Any) -> None:
        number = self.counters.step("equation")
        whole = Found("display", "Equations", number, node.pos, section=self.section)
        whole.text = self._between(node.nodelist)
        before, printed = self.counters.values["equation"], self.counters.as_printed("equation")
        self.counters.put("equation", 0)
        self.counters.print_as("equation", f"{number}\\alph{{equation}}")
        place = len(self.found)
        self.nodes(node.nodelist, whole)
        self.counters.put("equation", before)
        self.counters.restore("equation", printed)
        if whole.label:
            self.found.insert(place, whole)

    def _display(self, node: Any, bare: str, *, starred: bool) -> None:
        text = self._between(node.nodelist)
        parts = [text] if bare in ONE_NUMBER else rows(text)
        start = node.nodelist[0].pos if node.nodelist else node.pos
        named = list[Found]()
        for part in parts:
            item = self._line(part, start, numbered=not starred)
            named.append(item)
            start += len(part) + 2  # and the two backslashes
        many = sum(bool(item.number) for item in named) > 1
        environment = self.pieces.text[node.pos : node.pos + node.len]
        for item in named:
            item.text = item.text if many and bare in ROWS else environment
            if item.label:
                self.found.append(item)

    def _line(self, text: str, start: int, *, numbered: bool) -> Found:
        tag = re.search(r"\\tag\*?\s*\{([^{}]*)\}", text)
        label = re.search(r"\\label\s*\{([^{}]*)\}", text)
        number = tag[1].strip() if tag else ""
        if numbered and not tag and not re.search(r"\\(?:nonumber|notag)(?![A-Za-z])", text):
            number = self.counters.step("equation")
        item = Found("display", "Equation", number, start, section=self.section, text=text)
        if label:
            self._label(label[1].strip(), item)
        return item

    def _plain_display(self, node: Any, inside: Found | None) -> None:
        if node.displaytype != "display":
            self.nodes(node.nodelist, inside)
            return
        text = self.pieces.text[node.pos : node.pos + node.len]
        if "\\label" in text:
            self.found.append(self._line(text, node.pos, numbered=False))


def rows(text: str, /) -> list[str]:
    r"""Return the rows of a display, split at each `\\` outside of groups and environments."""
    found, depth, last = list[str](), 0, 0
    token = re.compile(r"\\(begin|end)\s*\{[^{}]*\}|\\\\|\\[^\\]|[{}]")
    for one in token.finditer(text):
        if one[1] == "begin" or one[0] == "{":
            depth += 1
        elif one[1] == "end" or one[0] == "}":
            depth -= 1
        elif one[0] == "\\\\" and depth == 0:
            found.append(text[last : one.start()])
            last = one.end()
    return [*found, text[last:]]


def _given(node: Any) -> list[str]:
    arguments = getattr(node.nodeargd, "argnlist", None) or [None]
    return [_bare(one.latex_verbatim()) if one is not None else "" for one in arguments]


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1].strip() if text[:1] + text[-1:] in ("{}", "[]") else text


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"\\(?:label|texorpdfstring)\s*\{[^{}]*\}", "", text).split())


def _nodes(text: str, theorems: Iterable[str]) -> list[Any]:
    try:
        from pylatexenc import macrospec
        from pylatexenc.latexwalker import LatexWalker, get_default_latex_context_db
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(MISSING, name="pylatexenc") from problem
    macros = [macrospec.MacroSpec(name, "*[{") for name in SECTIONS]
    macros += [macrospec.MacroSpec(name, "{{") for name in _COUNTS[:2]]
    macros += [macrospec.MacroSpec(name, "{") for name in (*_COUNTS[2:], "label")]
    macros += [macrospec.MacroSpec(name, "*{[[{") for name in _RENEWS]
    own = [macrospec.EnvironmentSpec(name, "[") for name in theorems]
    own += [macrospec.EnvironmentSpec(f"restatable{star}", "[{{") for star in ("", "*")]
    context = get_default_latex_context_db()
    context.add_context_category("paper", macros=macros, environments=own, prepend=True)
    walker = LatexWalker(text, latex_context=context, tolerant_parsing=True)
    return walker.get_latex_nodes(pos=0)[0]
