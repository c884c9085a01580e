"""Tables and descriptions for the terminal."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from jaxbounds.claims.statements import Paper, Statement
from jaxbounds.falsification import Verdict
from jaxbounds.report.columns import COLUMNS, Column
from jaxbounds.report.headline import fails_as_printed, plural, weights_in_words

STYLES = {
    "holds": "green",
    "consistent": "green",
    "fails": "yellow",
    "inconsistent": "yellow",
    "vacuous": "blue",
    "inconclusive": "magenta",
    "error": "bold red",
}


def grouped(verdicts: Iterable[Verdict], /) -> dict[str, list[Verdict]]:
    """Group verdicts by statement; the groups keep the order of the given verdicts."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.id, []).append(verdict)
    return groups


USUAL = 100
"""Number of characters in a line, if the width of the screen is unknown. If this number of
characters is larger, tables are wider."""


class VerdictRows:
    """The table of verdicts, printed statement by statement; 80 columns show each status in full.

    The columns have fixed widths, so that rows can be printed before later rows are known.
    """

    def __init__(self, width: int = USUAL, /) -> None:
        shown = [c for c in COLUMNS if c.width is not None and width >= c.screen]
        given = sum(c.width or 0 for c in shown) + 3 * (len(shown) - 1)
        rest = min(max(width - given, 9), 34)
        self._columns = [(column, column.width or rest) for column in shown]
        self._begun = False

    def table(self, groups: Iterable[Sequence[Verdict]], *, header: bool = True) -> Table:
        """Return a row for each statement, with a line for each form (version of a claim).

        A sign marks each verdict that differs from the record.
        """
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=header)
        for column, width in self._columns:
            table.add_column(
                column.name,
                width=width,
                justify="right" if column.right else "left",
                no_wrap=column.name in ("statement", "kind", "samples"),
                overflow="ellipsis" if column.name == "statement" else "fold",
            )
        for group in groups:
            for line, verdict in enumerate(group):
                table.add_row(*(_cell(column, line, verdict) for column, _ in self._columns))
        return table

    def of(self, verdicts: Sequence[Verdict], /) -> Iterator[Table]:
        """Yield the rows of one statement; the first call also yields the names of the columns."""
        if verdicts:
            yield self.table([verdicts], header=not self._begun)
            self._begun = True


def _cell(column: Column, line: int, verdict: Verdict) -> Text:
    if column.name == "verdict":
        status = Text(verdict.status, style=STYLES[verdict.status])
        rest = column.text(verdict).removeprefix(verdict.status)
        return status.append(rest, style="bold red") if rest else status
    if line and column.name == "statement":
        return Text(verdict.label if line == 1 else "", "dim")
    return Text("" if line and column.name == "kind" else column.text(verdict))


def verdict_table(verdicts: Sequence[Verdict], /, *, width: int = USUAL) -> Table:
    """Return the table of all verdicts."""
    return VerdictRows(width).table(grouped(verdicts).values())


PAPER_COLUMNS = ("paper", "statements", "a printed form fails", "sharpened", "median looseness")
"""The columns of the table of papers. The third column counts, for each class of erratum, the
statements that fail as printed. The classes are separate because a typo also makes a printed claim
fail.
"""


def paper_rows(papers: Iterable[Paper], verdicts: Sequence[Verdict], /) -> Iterator[list[str]]:
    """Yield a row for each paper: the findings about its printed claims, and their looseness."""
    for paper in papers:
        own = [v for v in verdicts if v.paper == paper.id]
        if not own:
            continue
        loose = [
            1 / v.worst_ratio
            for v in own
            if v.form.startswith("printed") and v.status == "holds"
            if v.relation in ("<=", ">=") and v.worst_ratio > 0
        ]
        sharper = {v.id for v in own if v.form.startswith("sharpened") and v.status == "holds"}
        wrong = weights_in_words(fails_as_printed(paper, own))
        median = f"x{np.median(loose):.3g}" if loose else "-"
        yield [paper.id, str(len({v.id for v in own})), wrong, str(len(sharper)), median]


def paper_table(
    papers: Iterable[Paper], verdicts: Sequence[Verdict], /, *, width: int = USUAL
) -> Table:
    """Return the table of papers with verdicts (`paper_rows`); a narrow screen hides columns."""
    names = PAPER_COLUMNS if width >= USUAL else PAPER_COLUMNS[:3]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in names:
        words = name in ("paper", "a printed form fails")
        table.add_column(name, justify="left" if words else "right")
    for row in paper_rows(papers, verdicts):
        table.add_row(*row[: len(names)])
    return table


def summary(verdicts: Sequence[Verdict], /, *, changed: int = 0) -> str:
    """Return the numbers of statements, of forms with each status, and of unexpected verdicts.

    A form is one version of a statement. A verdict is unexpected if it differs from the record. The
    values of `changed` forms differ from the record.
    """
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.status] = counts.get(verdict.status, 0) + 1
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
    things = f"{plural(len(grouped(verdicts)), 'statement')}, {plural(len(verdicts), 'form')}"
    return "; ".join([": ".join(filter(None, (things, statuses))), *_ending(verdicts, changed)])


def _ending(verdicts: Sequence[Verdict], changed: int) -> Iterator[str]:
    known = [v for v in verdicts if v.recorded]
    moved = sum(not v.as_expected for v in known)
    if known and not changed:
        yield f"{moved} NOT as recorded" if moved else "all as recorded"
    elif changed:
        yield from [f"{moved} NOT as recorded"] * bool(moved)
        yield f"values of {plural(changed, 'form')} NOT as recorded"
    twins = [v for v in verdicts if v.is_twin]
    lost = sum(v.status == "error" for v in twins)
    stand = sum(not v.as_expected for v in twins) - lost
    of = f"of {plural(len(twins), 'false twin')}"
    yield from [f"{stand} {of} NOT refuted"] * bool(stand)
    yield from [f"{lost} {of} NOT judged"] * bool(lost)
    if twins and not stand and not lost:
        yield "every false twin refuted"
    open_ones = sum(not v.as_expected for v in verdicts if not (v.recorded or v.is_twin))
    if open_ones:
        yield f"{plural(open_ones, 'form')} NOT shown to hold"


def statement_table(statements: Iterable[Statement], /, *, width: int = USUAL) -> Table:
    """Return a table of statements: id, label, kind and forms (versions of the claim).

    The columns have fixed widths, because Rich computes widths slowly.
    """
    usual = ("holds", "consistent")
    rows = [
        (
            s.id,
            s.label,
            s.kind,
            "; ".join(
                f"{f.name} [{f.expected}]" if f.expected not in usual else f.name for f in s.forms
            ),
        )
        for s in statements
    ]
    names = ("statement", "label", "kind", "forms")
    longest = [max(map(len, column)) for column in zip(names, *rows)]
    longest[1] = min(longest[1], width // 4)
    longest[3] = min(longest[3], max(width - sum(longest[:3]) - 9, len("inconsistent")))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, columns in zip(names, longest):
        table.add_column(name, width=columns, no_wrap=name == "statement")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
