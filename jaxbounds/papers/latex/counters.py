"""Imitate the counters of LaTeX: steps, resets and printed numbers."""

import re
from collections.abc import Callable, Mapping

_PRINTS = re.compile(
    r"\\(arabic|Alph|alph|Roman|roman)\s*\*?\{\s*([A-Za-z@]+)\s*\}|\\the([A-Za-z@]+)|\\[A-Za-z]+\s*|[{}~]"
)
DEPTH = 20
"""The function `printed` expands templates of counters inside other templates to at most this
depth.

A larger number makes a circular definition take longer.
"""


def _letters(number: int) -> str:
    text = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text or "0"


def _roman(number: int) -> str:
    text = ""
    for value, sign in (
        (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
        (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
    ):  # fmt: skip
        many, number = divmod(max(number, 0), value)
        text += sign * min(many, 100)
    return text


STYLES: Mapping[str, Callable[[int], str]] = {
    "arabic": str,
    "Alph": _letters,
    "alph": lambda number: _letters(number).lower(),
    "Roman": _roman,
    "roman": lambda number: _roman(number).lower(),
}


class Counters:
    """The counters of a LaTeX document.

    Args:
        chapters: whether sections are numbered within chapters, as in books.
    """

    def __init__(self, *, chapters: bool) -> None:
        self.values: dict[str, int] = {}
        self._within: dict[str, str] = {}
        self._printed: dict[str, str] = {}
        self._same: dict[str, str] = {}
        levels = ["chapter"] * chapters + ["section", "subsection", "subsubsection", "paragraph"]
        for above, level in zip(["", *levels], levels):
            self.declare(level, above)
        self.declare("equation", "chapter" if chapters else "")

    def name(self, counter: str, /) -> str:
        """Return the counter to which a name refers; several names may refer to one counter."""
        for _ in range(DEPTH):
            if counter not in self._same:
                break
            counter = self._same[counter]
        return counter

    def declare(self, counter: str, within: str = "", /) -> None:
        """Declare a new counter.

        If `within` is given, each step of the counter `within` sets the new counter to zero. The
        new counter's number is then printed after the number of `within`.
        """
        self._same.pop(counter, None)
        self.values.setdefault(counter, 0)
        self._within.pop(counter, None)
        if within:
            self.within(counter, within)

    def share(self, counter: str, other: str, /) -> None:
        """Let a new name stand for an existing counter, as in LaTeX's shared counters."""
        if self.name(other) != counter:
            self._same[counter] = other

    def within(self, counter: str, above: str, /, *, printed: bool = True) -> None:
        """Set a counter to zero whenever the counter `above` increases."""
        if self.name(counter) == self.name(above):
            return
        self._within[self.name(counter)] = self.name(above)
        if printed:
            self._printed.pop(self.name(counter), None)

    def print_as(self, counter: str, template: str, /) -> None:
        r"""Set the template that prints a counter, such as "\\thesection.\\arabic{equation}"."""
        self._printed[self.name(counter)] = template

    def as_printed(self, counter: str, /) -> str | None:
        """Return the template that prints a LaTeX counter; None means the default template."""
        return self._printed.get(self.name(counter))

    def restore(self, counter: str, template: str | None, /) -> None:
        """Give a counter the template that an earlier call of `as_printed` returned."""
        self._printed.pop(self.name(counter), None)
        if template is not None:
            self.print_as(counter, template)

    def put(self, counter: str, value: int, /) -> None:
        """Set the value of a counter."""
        self.values[self.name(counter)] = value

    def add(self, counter: str, amount: int, /) -> None:
        """Add a number to a counter, and leave the counters that depend on it unchanged."""
        self.values[self.name(counter)] = self.values.get(self.name(counter), 0) + amount

    def step(self, counter: str, /) -> str:
        """Add one to a counter, reset the counters that depend on it, return its printed number."""
        self.add(counter, 1)
        self._reset(self.name(counter), 0)
        return self.printed(counter)

    def _reset(self, above: str, depth: int) -> None:
        for counter, within in self._within.items():
            if within == above and depth < DEPTH:
                self.values[counter] = 0
                self._reset(counter, depth + 1)

    def appendix(self, top: str, /) -> None:
        """Number all later sections (or chapters) by letters."""
        self.put(top, 0)
        self._reset(top, 0)
        self.print_as(top, f"\\Alph{{{top}}}")

    def printed(self, counter: str, depth: int = 0, /) -> str:
        """Return the number of a LaTeX counter as TeX prints it, such as "3.2"."""
        counter = self.name(counter)
        if depth > DEPTH:
            return "?"
        if counter in self._printed:
            return self._filled(self._printed[counter], depth)
        number = str(self.values.get(counter, 0))
        above = self._within.get(counter)
        return f"{self.printed(above, depth + 1)}.{number}" if above else number

    def _filled(self, template: str, depth: int) -> str:
        def said(found: re.Match[str]) -> str:
            if found[1]:
                return STYLES[found[1]](self.values.get(self.name(found[2]), 0))
            return self.printed(found[3], depth + 1) if found[3] else ""

        return _PRINTS.sub(said, template)[:40].strip()
