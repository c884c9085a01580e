"""Print certificates of disproofs, and proofs on boxes of instances, as a table."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

STYLES = {
    "disproved": "green",
    "disproved as coded": "cyan",
    "proved on D": "green",
    "false on D": "bold red",
    "undecided": "magenta",
}


def certificates_table(certificates: Sequence[Any], width: int, /) -> Table:
    """Return a row for each form (version of a claim): result, distance of the sides, time."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("statement", width=29, no_wrap=True, overflow="ellipsis")
    table.add_column("form", width=max(12, min(width - 70, 40)), overflow="fold")
    table.add_column("certificate", width=18, no_wrap=True)
    table.add_column("apart by", width=8, justify="right")
    table.add_column("s", width=5, justify="right")
    for c in certificates:
        word = Text(c.word, style=STYLES[c.word])
        gap = getattr(c, "gap", 0.0)
        name = f"{c.form}; D: {c.domain}" if hasattr(c, "domain") else c.form
        table.add_row(c.id, name, word, f"{gap:.2g}" if gap else "-", f"{c.seconds:.1f}")
    return table


def counted(certificates: Sequence[Any], /) -> str:
    """Return a line that counts the certificates of each result, then each certificate's reason."""
    words = Counter(c.word for c in certificates)
    head = ", ".join(f"{count} {word}" for word, count in words.most_common()) or "nothing fails"
    total = sum(c.seconds for c in certificates)
    lines = [f"{len(certificates)} certificates: {head}; {total:.0f} s of work"]
    lines += [f"{c.id} ({c.form}): {c.word}: {c.reason}" for c in certificates if c.reason]
    return "\n".join(lines)
