"""A numbered item of a paper, as its source has it: what a claim is to be about."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from jaxbounds.claims.statements.claim import claim
from jaxbounds.claims.statements.declared import refuse_other_types
from jaxbounds.claims.statements.statement import Statement
from jaxbounds.claims.statements.two_sides import Side
from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True, kw_only=True)
class Item:
    """A numbered theorem, definition or display of a paper; a statement about it covers it.

    Attributes:
        id: "<paper>.<name>", the id of the statement about it.
        kind: in print, "Theorem" or "Equation".
        number: as printed, "3.2" or "A.1"; "" of a display with a label and without a number.
        label: the name that the source gives it with a label, "thm:main".
        title: that stands behind the number in print.
        tex: the text in LaTeX, macros written out.
        section: number and title of the section in which it stands.
        place: file and line of the source, "main.tex:31".
    """

    id: str
    kind: str
    number: str = ""
    label: str = ""
    title: str = ""
    tex: str = ""
    section: str = ""
    place: str = ""

    def __post_init__(self) -> None:
        """Refuse fields of other types."""
        refuse_other_types(self, f"item {self.id!r}")

    @property
    def printed(self) -> str:
        """Return kind and number as in a citation: "Theorem 3.2", "Equation (4)"."""
        display = self.kind.startswith("Equation")
        number = f"({self.number})" if display and self.number else self.number
        return f"{self.kind} {number or self.label}".strip()

    @property
    def formula(self) -> str:
        """The only display of the text, or the text where it is one, without a number; else ""."""
        inner = re.sub(r"\\label\s*\{[^{}]*\}|\\(?:nonumber|notag)(?![A-Za-z])", "", self.tex)
        found = re.findall(_DISPLAY, inner, re.DOTALL)
        whole = [part for parts in found for part in parts if part and not part.isalpha()]
        return whole[0].strip() if len(whole) == 1 else ""

    def claim(self, lhs: Side, relation: Any, rhs: Side, **given: Any) -> Statement:
        """The item as `jb.claim` states it: id, label, source and tex are the item's.

        Args:
            lhs: as in `jb.claim`.
            relation: as in `jb.claim`.
            rhs: as in `jb.claim`.
            given: the other arguments of `jb.claim`.
        """
        return claim(self.id, lhs, relation, rhs, **{**self._about(), **given})

    def statement(self, **given: Any) -> Statement:
        """Return the item as a `Statement`, with id, label, source and tex of the item.

        Args:
            given: the other arguments of `Statement`.
        """
        return Statement(id=self.id, **{"formula": self.printed, **self._about(), **given})

    def _about(self) -> dict[str, Any]:
        words = [word for word in (self.section and f"Section {self.section}", self.place) if word]
        return {"label": self.printed, "tex": self.formula, "source": ", ".join(words)}


_DISPLAY = (
    r"\\\[(.*?)\\\]|\$\$(.*?)\$\$"
    r"|\\begin\{(equation|displaymath|multline)\*?\}(.*?)\\end\{(?:equation|displaymath|multline)\*?\}"
)


def _cited(item: Item) -> tuple[str, ...]:
    """The further spellings of a numbered display."""
    if not item.kind.startswith("Equation"):
        return ()
    return f"{item.kind} {item.number}", f"({item.number})"


class Items(Sequence[Item]):
    """The items of a paper in its order; found by number or by name, too.

    Args:
        items: each with an id of its own.
    """

    is_code = True

    def __init__(self, *items: Item) -> None:
        """Take the items.

        Raises:
            Refused: if two items have one id.
        """
        ids = [item.id for item in items]
        repeated = sorted({name for name in ids if ids.count(name) > 1})
        if repeated:
            raise Refused(f"more than one item is called {', '.join(repeated)}")
        self._items = tuple(items)
        self._names = {name: item for item in items if item.number for name in _cited(item)}
        self._names |= {n: item for item in items for n in (item.label, item.printed, item.id)}
        self._names |= {item.id.partition(".")[2]: item for item in items}

    @overload
    def __getitem__(self, name: int | str, /) -> Item: ...
    @overload
    def __getitem__(self, name: slice, /) -> "Sequence[Item]": ...
    def __getitem__(self, name: int | str | slice, /) -> "Item | Sequence[Item]":
        """An item by its place, its id, the part of it behind the paper, its label, or in print.

        A display has three spellings: "Equation (1.1)", "Equation 1.1" and "(1.1)".

        Raises:
            KeyError: if there is no such item.
        """
        if not isinstance(name, str):
            return self._items[name]
        if name not in self._names:
            known = ", ".join(item.id.partition(".")[2] for item in self)
            raise KeyError(f"no item {name!r}; there are: {known:.300}")
        return self._names[name]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __repr__(self) -> str:
        return f"Items({', '.join(map(repr, self._items))})"


def covering(
    item: Item, statements: Sequence[Statement], said: Mapping[str, str], /
) -> tuple[str, ...] | str:
    """The ids of the statements about an item; or the words of the paper's `items` on it; or ().

    Args:
        item: of a paper.
        statements: of that paper.
        said: the paper's `items`.
    """
    known = {s.id for s in statements}
    about = tuple(s.id for s in statements if s.id == item.id or s.label == item.printed)
    for name in (item.printed, item.id, item.label):
        if name and (words := said.get(name)):
            named = tuple(part for part in re.split(r",\s*", words) if part in known)
            return tuple(dict.fromkeys((*about, *named))) or words
    return about
