"""Join texts from several files, and remember the file and line of each character."""

import bisect
import itertools
from collections.abc import Iterable
from typing import NamedTuple


class Piece(NamedTuple):
    """A part of the text of one LaTeX file.

    Attributes:
        line: the line of the piece's first character in its file.
        moved: whether the text is the expansion of a macro, so that all characters have the line
            `line`.
    """

    text: str
    file: str
    line: int
    moved: bool = False

    def part(self, start: int, end: int) -> "Piece":
        """Return the characters from offset `start` to just before `end` as a new `Piece`."""
        lines = 0 if self.moved else self.text.count("\n", 0, start)
        return self._replace(text=self.text[start:end], line=self.line + lines)


class Pieces:
    """A text that is the sequence of some pieces (parts of files)."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.pieces = [piece for piece in pieces if piece.text]
        self.text = "".join(piece.text for piece in self.pieces)
        lengths = (len(piece.text) for piece in self.pieces)
        self._starts = [0, *itertools.accumulate(lengths)]

    def place(self, offset: int, /) -> str:
        """Return the file and line of a character as text, such as "main.tex:12"."""
        if not self.pieces:
            return ""
        index = min(bisect.bisect_right(self._starts, offset) - 1, len(self.pieces) - 1)
        piece = self.pieces[index]
        at = piece.part(offset - self._starts[index], len(piece.text))
        return f"{at.file}:{at.line}"

    def part(self, start: int, end: int, /) -> list[Piece]:
        """Return the text's characters from the offset `start` to just before `end`, as pieces."""
        found = []
        first = max(bisect.bisect_right(self._starts, start) - 1, 0)
        for index in range(first, len(self.pieces)):
            piece, at = self.pieces[index], self._starts[index]
            if at >= end:
                break
            found.append(piece.part(max(start - at, 0), min(end - at, len(piece.text))))
        return found

    def replaced(self, changes: Iterable[tuple[int, int, "str | Pieces"]], /) -> "Pieces":
        """Return the text with some ranges replaced; the ranges do not overlap.

        Each change is (start, end, replacement); the caller sorts the changes by start.
        """
        found, last = list[Piece](), 0
        for start, end, instead in changes:
            found += self.part(last, start)
            if isinstance(instead, Pieces):
                found += instead.pieces
            elif instead:
                here = self.part(start, max(end, start + 1)) or self.pieces[-1:]
                found.append(here[0]._replace(text=instead, moved=True))
            last = end
        return Pieces([*found, *self.part(last, len(self.text))])
