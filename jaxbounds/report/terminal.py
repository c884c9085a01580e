"""Tables and descriptions for the terminal."""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from jaxbounds.claims.statements import Paper, Statement
from jaxbounds.falsification import Verdict
from jaxbounds.falsification.evidence import CLOSE
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


def number(value: float, /) -> str:
    """A ratio in at most eight characters, never rounded to one when it is not one."""
    if value is None or math.isnan(value):
        return "-"
    if 0 < abs(value) < 1e-3 or abs(value) >= 1e4:
        return f"{value:.2g}"
    if value != 1 and abs(value - 1) < 5e-4:
        return f"1{value - 1:+.0e}"
    return f"{value:.3f}"


def grouped(verdicts: Iterable[Verdict], /) -> dict[str, list[Verdict]]:
    """Verdicts by statement, in the order given."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.id, []).append(verdict)
    return groups


def closeness(verdict: Verdict, /) -> str:
    """The worst ratio in words, by kind: how loose, how exact, which exponent, how often."""
    ratio = verdict.worst_ratio
    if math.isnan(ratio):
        return "-"
    if verdict.kind == "rate":
        return f"exponent {ratio:.2f}"
    if verdict.kind == "limit":
        return f"{number(ratio)} apart"
    if verdict.kind == "probability":
        return f"{number(ratio)} of the level"
    if verdict.relation == "=":
        if verdict.status == "fails" or ratio >= 0.1:
            return f"off by {ratio:.1%}" if ratio < 10 else f"off x{ratio:.2g}"
        return "exact" if ratio == 0 else f"{-math.log10(ratio):.0f} digits"
    if math.isinf(ratio):
        return "unbounded"
    if ratio <= 0:
        smaller = "right" if verdict.relation == ">=" else "left"
        return f"{smaller} side 0" if ratio == 0 else f"{smaller} side < 0"
    if verdict.status == "holds" and verdict.near and abs(ratio - 1) <= CLOSE:
        return "attained"
    factor = ratio if ratio > 1 else 1 / ratio
    words = f"{factor:.3g}" if factor < 1e4 else f"1e{math.log10(factor):.0f}"
    if factor < 1.005:
        words = f"(1{factor - 1:+.0e})"
    beyond = "short" if verdict.relation == ">=" else "over"
    return f"x{words} {beyond if ratio > 1 else 'loose'}"


USUAL = 100
"""Columns where nothing is known of the screen."""
_WIDTHS = {
    "statement": 29, "kind": 12, "form": 0, "verdict": 12, "how close": 16, "evidence": 10,
    "samples": 8,
}  # fmt: skip
_FROM = {"evidence": 100, "samples": 112, "kind": 124}
"""Columns of the screen from which these are shown."""


class VerdictRows:
    """The table of verdicts, a statement at a time: each status whole from 80 columns on.

    The widths are fixed, so that rows can be printed as they are judged.

    Args:
        width: of the screen, in columns.
    """

    def __init__(self, width: int = USUAL, /) -> None:
        names = [name for name in _WIDTHS if width >= _FROM.get(name, 0)]
        self._widths = {name: _WIDTHS[name] for name in names}
        given = sum(self._widths.values()) + 3 * (len(names) - 1)
        self._widths["form"] = min(max(width - given, 9), 34)
        self._begun = False

    def table(self, groups: Iterable[Sequence[Verdict]], *, header: bool = True) -> Table:
        """One row a statement, one line a form; what is not as recorded is marked."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=header)
        for name, width in self._widths.items():
            right = name in ("how close", "samples")
            table.add_column(
                name,
                width=width,
                justify="right" if right else "left",
                no_wrap=name in ("statement", "kind", "samples"),
                overflow="ellipsis" if name == "statement" else "fold",
            )
        for group in groups:
            for line, verdict in enumerate(group):
                cells = self._cells(line, verdict)
                table.add_row(*(cells[name] for name in self._widths))
        return table

    @staticmethod
    def _cells(line: int, verdict: Verdict) -> dict[str, Text]:
        status = Text(verdict.status, style=STYLES[verdict.status])
        if not verdict.as_expected:
            status.append(f" (recorded: {verdict.expected})", style="bold red")
        lead = Text(verdict.id) if line == 0 else Text(verdict.label if line == 1 else "", "dim")
        return {
            "statement": lead,
            "kind": Text(verdict.kind if line == 0 else ""),
            "form": Text(verdict.form),
            "verdict": status,
            "how close": Text(closeness(verdict)),
            "evidence": Text(verdict.evidence),
            "samples": Text(str(verdict.instances)),
        }

    def of(self, verdicts: Sequence[Verdict], /) -> Iterator[Table]:
        """The rows of one statement; before the first ones the names of the columns."""
        if verdicts:
            yield self.table([verdicts], header=not self._begun)
            self._begun = True


def verdict_table(verdicts: Sequence[Verdict], /, *, width: int = USUAL) -> Table:
    """The whole table.

    Args:
        verdicts: those of a statement follow one another.
        width: of the screen, in columns.
    """
    return VerdictRows(width).table(grouped(verdicts).values())


PAPER_COLUMNS = ("paper", "statements", "a printed form fails", "sharpened", "median looseness")
"""What is said of each paper. A printed form that fails is no false statement yet: by the weight of
the errata, how many are false, have a gap, can be read otherwise, ..., or stand in an early version
alone."""


def paper_rows(papers: Iterable[Paper], verdicts: Sequence[Verdict], /) -> Iterator[list[str]]:
    """For each paper what was found about what it prints, and how loose it is."""
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
    """`paper_rows` for the terminal, a line a paper: on narrow screens without the last two.

    Args:
        papers: those of the verdicts, or more.
        verdicts: on their statements.
        width: of the screen, in columns.
    """
    names = PAPER_COLUMNS if width >= USUAL else PAPER_COLUMNS[:3]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in names:
        words = name in ("paper", "a printed form fails")
        table.add_column(name, justify="left" if words else "right")
    for row in paper_rows(papers, verdicts):
        table.add_row(*row[: len(names)])
    return table


def summary(verdicts: Sequence[Verdict], /, *, changed: int = 0) -> str:
    """How many statements and forms, by status, and how many are not as recorded.

    Args:
        verdicts: on all forms.
        changed: how many forms have values that are not as recorded.
    """
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.status] = counts.get(verdict.status, 0) + 1
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
    unexpected = sum(not verdict.as_expected for verdict in verdicts)
    wrong = [f"{unexpected} NOT as recorded"] * bool(unexpected)
    wrong += [f"values of {plural(changed, 'form')} NOT as recorded"] * bool(changed)
    ending = "; ".join(wrong) or "all as recorded"
    things = f"{plural(len(grouped(verdicts)), 'statement')}, {plural(len(verdicts), 'form')}"
    return f"{things}: {statuses}; {ending}"


def statement_table(statements: Iterable[Statement], /, *, width: int = USUAL) -> Table:
    """What there is: id, label, kind and forms; widths are given, since Rich is slow to find them.

    Args:
        statements: of one paper or more.
        width: of the screen, in columns.
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
