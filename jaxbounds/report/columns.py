"""Define the columns of the table of verdicts for the terminal, HTML page, notebook and audit."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from jaxbounds.falsification import Verdict
from jaxbounds.falsification.evidence import CLOSE
from jaxbounds.falsification.found_equality import NEAR_ONE

ROUNDED = 1e-9
"""If the ratio lhs/rhs differs from 1 by at most this much, the difference counts as rounding. If
this limit is larger, more pairs of sides count as equal."""


def number(value: float, /) -> str:
    """Return a ratio in at most eight characters; only the ratio 1 is written as 1."""
    if value is None or math.isnan(value):
        return "-"
    if 0 < abs(value) < 1e-3 or abs(value) >= 1e4:
        return f"{value:.2g}"
    if value != 1 and abs(value - 1) < 5e-4:
        return f"1{value - 1:+.0e}"
    return f"{value:.3f}"


def closeness(verdict: Verdict, /) -> str:
    """Return the worst (largest) ratio of the two sides in words.

    The kind of the claim decides whether the words give looseness, exactness, an exponent or a
    frequency.
    """
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
    if verdict.status == "fails" and ratio < 1 - ROUNDED:  # a strict inequality with equal sides
        return "equal sides"
    if verdict.status == "holds" and verdict.near and abs(ratio - 1) <= CLOSE:
        if verdict.evidence in ("approached", "attained"):
            return verdict.evidence
        is_one = abs(ratio - 1) <= max(verdict.tolerance, ROUNDED)
        return "attained" if is_one and not verdict.reason.startswith(NEAR_ONE) else _equal(ratio)
    if abs(ratio - 1) <= ROUNDED:
        return _equal(ratio)
    if is_difference(verdict):
        return _difference(verdict)
    if ratio <= 0:
        smaller = "right" if verdict.relation == ">=" else "left"
        return f"{smaller} side 0" if ratio == 0 else f"{smaller} side < 0"
    return _apart(verdict, ratio)


def is_difference(verdict: Verdict, /) -> bool:
    """Tell whether the worst instance has no meaningful quotient of the sides, only a difference.

    The quotient has a meaning if the larger side exceeds zero by more than rounding, and the
    smaller side is >= 0.
    """
    if not verdict.sides:
        return False
    smaller, larger = _ordered(verdict)
    if larger <= 0 or smaller < 0:
        return True
    return larger <= ROUNDED < smaller and larger <= ROUNDED * smaller


def _ordered(verdict: Verdict) -> tuple[float, float]:
    lhs, rhs = verdict.sides
    return (rhs, lhs) if verdict.relation == ">=" else (lhs, rhs)


def _difference(verdict: Verdict) -> str:
    smaller, larger = _ordered(verdict)
    gap = smaller - larger
    if gap == 0:
        return "equal at worst" if smaller else "both sides 0"
    if gap > 0 and verdict.status != "fails":
        return f"{gap:.1g} undecided"
    beyond = "short" if verdict.relation == ">=" else "over"
    return f"{beyond if gap > 0 else 'loose'} by {abs(gap):.3g}"


def _equal(ratio: float) -> str:
    return "equal at worst" if ratio == 1 else f"equal to {abs(ratio - 1):.0e}"


def _apart(verdict: Verdict, ratio: float) -> str:
    factor = ratio if ratio > 1 else 1 / ratio
    words = f"x{factor:.3g}" if factor < 1e4 else f"x1e{math.log10(factor):.0f}"
    if ratio > 1 and verdict.status != "fails":
        few = f"x{factor:.3g}" if factor < 1e3 else f"x{factor:.0e}"
        return f"{few if factor >= 1.005 else _percent(factor)} undecided"
    beyond = "short" if verdict.relation == ">=" else "over"
    beyond = beyond if ratio > 1 else "loose"
    return f"{words} {beyond}" if factor >= 1.005 else f"{beyond} by {_percent(factor)}"


def _percent(factor: float) -> str:
    """Return the amount by which a factor exceeds one, in percent with one digit."""
    return f"{100 * (factor - 1):.0e}%" if factor < 1.0001 else f"{100 * (factor - 1):.1g}%"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the table of verdicts.

    Attributes:
        width: the width in the terminal, in characters. 0 means the rest of the screen's width, and
            None hides the column in the terminal.
        screen: the least width of the screen, in characters, at which the terminal shows the
            column.
        brief: whether notebooks and audits, which are narrow, show the column.
        css: the CSS class of the column's cells on the page; the head's class is `column-` and the
            last word of `name`.
        sort: the key by which the page sorts the column; empty if the page does not sort it.
    """

    name: str
    text: Callable[[Verdict], str]
    width: int | None
    screen: int = 0
    right: bool = False
    brief: bool = False
    css: str = ""
    sort: str = ""


def _status(verdict: Verdict) -> str:
    return f"{verdict.status} ({verdict.aside})" if verdict.aside else verdict.status


COLUMNS = (
    Column(name="statement", text=lambda v: v.id, width=29, brief=True, css="name", sort="name"),
    Column(name="kind", text=lambda v: v.kind, width=12, screen=124, css="kind", sort="kind"),
    Column(name="form", text=lambda v: v.form, width=0, brief=True, css="form-name"),
    Column(name="verdict", text=_status, width=12, brief=True, css="status", sort="verdict"),
    Column(name="how close", text=closeness, width=16, right=True, brief=True, css="ratio"),
    Column(
        name="evidence", text=lambda v: v.evidence, width=10, screen=100, brief=True, css="evidence"
    ),
    Column(name="draws", text=lambda v: "", width=None, css="spread"),
    Column(
        name="samples",
        text=lambda v: str(v.instances),
        width=8,
        screen=112,
        right=True,
        css="count",
        sort="samples",
    ),
    Column(name="largest size", text=lambda v: v.largest_size, width=26, screen=152, css="largest"),
)
"""All columns of the table of verdicts, in order; `report.rows` makes the page's cells that hold
more than text."""

BRIEF = tuple(column for column in COLUMNS if column.brief)
"""The columns that notebooks and audits show."""
