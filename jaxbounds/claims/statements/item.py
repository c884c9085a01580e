"""Numbered items of a paper's source: theorems, definitions and displays."""

import difflib
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
    """A numbered theorem, definition or display of a paper.

    If a statement has the item's id, the library counts the item as checked.

    Attributes:
        id: "<paper>.<name>", which is also the id of the statement about the item.
        kind: the kind of the item as the paper prints it, "Theorem" or "Equation".
        number: the number as printed, "3.2" or "A.1"; empty for a display without a number.
        label: the label of the item in the LaTeX source, "thm:main".
        title: the title that the paper prints after the number.
        tex: the text of the item in LaTeX, with macros expanded.
        section: the number and the title of the item's section.
        place: the file and the line in the source, "main.tex:31".
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
        refuse_other_types(self, f"item {self.id!r}")

    @property
    def printed(self) -> str:
        """Return the item as a citation: "Theorem 3.2", "Equation (4)"."""
        display = self.kind.startswith("Equation")
        number = f"({self.number})" if display and self.number else self.number
        return f"{self.kind} {number or self.label}".strip()

    @property
    def formula(self) -> str:
        """Return the item's displayed formula; empty if it displays no formula, or several."""
        inner = re.sub(r"\\label\s*\{[^{}]*\}|\\(?:nonumber|notag)(?![A-Za-z])", "", self.tex)
        found = re.findall(_DISPLAY, inner, re.DOTALL)
        whole = [part for parts in found for part in parts if part and not part.isalpha()]
        return whole[0].strip() if len(whole) == 1 else ""

    def claim(self, lhs: Side, relation: Any, rhs: Side, **given: Any) -> Statement:
        """Declare a claim about the item by `jb.claim`, with the item's id, label, source and tex.

        The method passes all arguments to `jb.claim`.
        """
        return claim(self.id, lhs, relation, rhs, **{**self._about(), **given})

    def statement(self, **given: Any) -> Statement:
        """Declare a `Statement` about the item, with its id, label, source and tex.

        The method passes all arguments to `Statement`.
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
    if not item.kind.startswith("Equation"):
        return ()
    return f"{item.kind} {item.number}", f"({item.number})"


_ALL = "[item.label or item.id for item in ITEMS], which lists all names"


class Items(Sequence[Item]):
    """The items of a paper, in the paper's order; `items[...]` finds an item by index or name.

    Args:
        items: the items of the paper, which have different ids.
    """

    is_code = True

    def __init__(self, *items: Item) -> None:
        """Store the items, which the caller gives in the paper's order.

        Raises:
            Refused: if two items of the paper have the same id.
        """
        ids = [item.id for item in items]
        repeated = sorted({name for name in ids if ids.count(name) > 1})
        if repeated:
            raise Refused(
                f"ids={repeated} belong to several items of the paper. Try a different id for each "
                f"item"
            )
        self._items = tuple(items)
        self._names = {name: item for item in items if item.number for name in _cited(item)}
        self._names |= {n: item for item in items for n in (item.label, item.printed, item.id)}
        self._names |= {item.id.partition(".")[2]: item for item in items}

    @overload
    def __getitem__(self, name: int | str, /) -> Item: ...
    @overload
    def __getitem__(self, name: slice, /) -> "Sequence[Item]": ...
    def __getitem__(self, name: int | str | slice, /) -> "Item | Sequence[Item]":
        """Return the item with the given index, id (with or without the paper), label or citation.

        A display has three spellings: "Equation (1.1)", "Equation 1.1" and "(1.1)".

        Raises:
            KeyError: if no item of the paper has that name.
        """
        if not isinstance(name, str):
            return self._items[name]
        if name not in self._names:
            every = [word for word in self._names if word]
            near = difflib.get_close_matches(name, every, 3) or every[:1]
            raise KeyError(
                f"no item has name={name!r}. Try {' or '.join([*map(repr, near), _ALL])}"
            )
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
    """Return the ids of the statements about an item, or the text about it in the paper's `items`.

    The result is empty if no statement and no text is about the item.
    """
    known = {s.id for s in statements}
    about = tuple(s.id for s in statements if s.id == item.id or s.label == item.printed)
    for name in (item.printed, item.id, item.label):
        if name and (words := said.get(name)):
            named = tuple(part for part in re.split(r",\s*", words) if part in known)
            return tuple(dict.fromkeys((*about, *named))) or words
    return about
