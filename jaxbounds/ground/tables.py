"""Display a result as a short table, in a terminal and in a notebook."""

import html
import io
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from jaxbounds.ground.text import printable

MOST = 30
"""A displayed table has at most this many rows; a larger number allows longer tables."""


class Table(NamedTuple):
    """The table that displays a result; a table without rows displays only its title."""

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    def _more(self) -> str:
        return f"... and {len(self.rows) - MOST} more" if len(self.rows) > MOST else ""

    def text(self) -> str:
        """Return the table as text for a terminal, with lines of at most 100 characters."""
        if not self.rows:
            return printable(self.title)
        from rich import box, console, table  # slow to import
        from rich.text import Text

        shown = table.Table(
            box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=any(self.columns)
        )
        for name in self.columns:
            shown.add_column(name, overflow="fold")
        for row in self.rows[:MOST]:
            shown.add_row(*map(Text, row))
        page = console.Console(file=io.StringIO(), width=100, highlight=False, color_system=None)
        page.print(self.title, markup=False)
        page.print(shown)
        page.print(self._more(), markup=False, end="")
        lines = page.file.getvalue().rstrip().split("\n")  # type: ignore[attr-defined]
        return printable("\n".join(line.rstrip() for line in lines))

    def html(self) -> str:
        """Return the table as HTML for a notebook."""
        cells = lambda kind, row: "".join(f"<{kind}>{html.escape(c)}</{kind}>" for c in row)
        body = "".join(f"<tr>{cells('td', row)}</tr>" for row in self.rows[:MOST])
        head = (
            "" if not any(self.columns) else f"<thead><tr>{cells('th', self.columns)}</tr></thead>"
        )
        table = f"<table>{head}<tbody>{body}</tbody></table>" if self.rows else ""
        return f"<p>{html.escape(self.title)}</p>{table}<p>{self._more()}</p>"


Result = TypeVar("Result", bound=type)


def with_table(result: Result, /) -> Result:
    """Decorate a class: `print` and notebooks display its instances by their method `_table()`."""
    found: Any = result
    found.__repr__ = lambda self: self._table().text()
    found._repr_html_ = lambda self: self._table().html()
    return result


def number(value: Any, /) -> str:
    """Return a number as text with six significant digits, and any other value as `str`."""
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value)


def yes(flag: Any, /) -> str:
    """Return "yes" or "NO" for a boolean; return any value without a truth value as `str`."""
    try:
        return "yes" if flag else "NO"
    except (TypeError, ValueError):
        return str(flag)
