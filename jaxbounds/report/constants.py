"""Print and draw sharp constants, and show how loose the papers' printed claims are.

The sharp constant of a claim is the largest ratio lhs/rhs over all instances.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from jaxbounds.constants import MEANING, AtSize, Exponent, SharpConstant
from jaxbounds.report.columns import number
from jaxbounds.report.describe import instance_text
from jaxbounds.report.markup import Html, element
from jaxbounds.report.schemas import Schema, many, object_schema
from jaxbounds.report.terminal import USUAL
from jaxbounds.report.worst import Worst

STYLES = {
    "attained": "green",
    "every instance": "green",
    "enumerated": "green",
    "limit": "blue",
    "rising": "magenta",
    "unbounded": "yellow",
    "drawn": "magenta",
    "as coded": "magenta",
    "none": "dim",
}


def constants_schema() -> Schema:
    """Return the schema of `jaxbounds constant --json` and constants.json."""
    return many(object_schema(SharpConstant))


def _decimals(found: AtSize) -> str:
    if not found.low:
        return f"~{found.ratio:.6g}"
    return f"{found.ratio:.{min(max(found.digits, 1), 10)}g}"


def _exact(found: AtSize) -> str:
    return f"{found.closed.text}  (1 in {1 / found.closed.chance:.0e})" if found.closed else ""


def constant_table(constant: SharpConstant, /, *, width: int = USUAL) -> Table:
    """Return a row for each size: the lower estimate of the constant, its digits, a closed form."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("size", max_width=max(12, width - 72), overflow="fold")
    table.add_column("C at least", justify="right", width=14, no_wrap=True)
    table.add_column("where", width=14)
    table.add_column("digits", justify="right", width=6)
    table.add_column("starts", justify="right", width=6)
    table.add_column("closed form", overflow="fold")
    for found in constant.sizes:
        size = ", ".join(f"{k}={v}" for k, v in found.size.items()) or "-"
        table.add_row(
            Text(size),
            Text(_decimals(found)),
            Text(found.where, style=STYLES[found.where]),
            str(found.digits or "-"),
            f"{found.agreeing}/{found.starts}",
            Text(_exact(found)),
        )
    return table


def exponent_text(exponent: Exponent, /) -> str:
    """Return the dependence on one size: "T^0.500 [0.499, 0.501]", or "no dependence on T"."""
    if exponent.word == "none":
        return f"no dependence on {exponent.axis}"
    if exponent.word != "power":
        return f"no single power of {exponent.axis}"
    ends = " (two sizes: no interval)"
    if exponent.low is not None and exponent.high is not None:
        ends = f" [{exponent.low:.4f}, {exponent.high:.4f}]"
    return f"{exponent.axis}^{exponent.value:.4f}{ends}"


def constant_text(constant: SharpConstant, /) -> str:
    """Return the text below a constant's table: formula, dependence on sizes, extremal instance."""
    lines = []
    if constant.law:
        lines.append(f"C = {constant.law}: at every tried size, to all known digits")
    if constant.dependence:
        lines.append("; ".join(map(exponent_text, constant.dependence)))
    if constant.fails:
        lines.append("C is above one, so the form fails as it stands")
    for word in dict.fromkeys(found.where for found in constant.sizes):
        lines.append(f"{word}: {MEANING[word]}")
    largest = constant.largest
    if largest.along:
        lines.append(f"the scale: {largest.along}")
    if largest.instance:
        there = "" if largest.instance_ratio is None else f" (there {largest.instance_ratio:.10g})"
        lines.append(
            f"the worst, rounded{there}: at {largest.size}, {instance_text(largest.instance)}"
        )
    if largest.kinds:
        kinds = (f"{largest.agreed.get(k, 0)} of {n} {k}" for k, n in largest.kinds.items())
        lines.append(f"starting points that lead there, by kind: {', '.join(kinds)}")
    if largest.gain is not None:
        lines.append(f"slopes at the instance allow a gain of at most {largest.gain:.1g}")
    if any(found.closed for found in constant.sizes):
        lines.append(
            "(1 in N): the chance that a formula as simple as this one agrees with the digits by "
            "accident. It does not say how likely the supremum is larger"
        )
    reasons = dict.fromkeys(found.reason for found in constant.sizes if found.reason)
    lines += [f"not certified (~): {reason}" for reason in reasons]
    ratio = "rhs/lhs" if constant.relation == ">=" else "lhs/rhs"
    lines.append(f"The digits are {ratio} at an instance, a lower estimate of the supremum.")
    return "\n".join(lines)


def constant_figure(constant: SharpConstant, /) -> Any:
    """Draw the sharp constant C against the size on which C depends most, with matplotlib.

    The figure has one line for each combination of values of the other sizes.
    """
    import matplotlib.pyplot as plt

    from jaxbounds.experiments.plotting import grid_ticks

    found = [f for f in constant.sizes if f.ratio > 0]
    axes_of = sorted(constant.dependence, key=lambda e: -abs(e.value))
    axis = axes_of[0].axis if axes_of else next(iter(found[0].size), "")
    figure, axes = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    groups: dict[str, list[AtSize]] = {}
    for f in found:
        rest = ", ".join(f"{k}={v}" for k, v in f.size.items() if k != axis)
        groups.setdefault(rest, []).append(f)
    for rest, group in groups.items():
        group.sort(key=lambda f: f.size.get(axis, 0))
        x = [f.size.get(axis, 0) for f in group]
        axes.plot(x, [f.ratio for f in group], marker="o", label=rest or None)
    every = sorted({f.size.get(axis, 1) for f in found})
    axes.set(xlabel=axis, ylabel="C, at least", title=f"{constant.id}  {constant.form}")
    axes.set(xscale="log", yscale="log") if len(every) > 1 else None
    grid_ticks(axes.xaxis, every)
    if len(groups) > 1:
        axes.legend()
    return figure


BY_VERIFY = "verify"
"""The word in the column "where" (the place of the supremum) if `verify` found a larger ratio
lhs/rhs than the search for the constant.
"""
_LARGER = 1 + 1e-6
"""If a verdict's worst ratio exceeds a constant by this factor, the table shows the ratio instead
of the constant. Recorded numbers have eight digits, so smaller excesses are rounding. If this
factor is larger, the table ignores larger excesses.
"""


def looseness_rows(
    constants: Iterable[SharpConstant], worst: Worst = MappingProxyType({}), /
) -> list[tuple[str, ...]]:
    """Return for each constant a row (statement, form, C, looseness, where, formula).

    A form is one version of a claim: printed, corrected or sharpened. The entry `where` names the
    place of the supremum. The formula is a closed form, or a dependence on sizes. If `worst` has a
    larger ratio lhs/rhs than the constant, the row shows the ratio without a formula.
    """
    rows: list[tuple[str, ...]] = []
    for constant in constants:
        best = constant.largest
        ratio = worst.get((constant.id, constant.form), 0.0)
        if larger := ratio > max(best.ratio, 0.0) * _LARGER:
            best = replace(best, ratio=ratio, closed=None)
        by_verify = larger and best.where != "unbounded"
        where: str = BY_VERIFY if by_verify else best.where
        settled = by_verify or where not in ("none", "unbounded")
        loose = f"x{1 / best.ratio:.4g}" if 0 < best.ratio < 1 - 1e-9 and settled else ""
        word = f"at most {loose}" if loose and larger else loose
        if not larger and settled and best.ratio >= 1 - 1e-9:
            word = "sharp"
        word = "fails" if best.ratio > 1 + 1e-9 else word
        law = "" if larger else constant.law or (best.closed.text if best.closed else "")
        # An exponent that four decimals would show as zero counts as zero.
        varies = [e for e in constant.dependence if e.word != "none" and abs(e.value) >= 5e-5]
        depends = "" if larger else ", ".join(exponent_text(e).split(" (")[0] for e in varies)
        rows.append((constant.id, constant.form, number(best.ratio), word, where, law or depends))
    return rows


def looseness_section(
    constants: Sequence[SharpConstant], seen: frozenset[str], worst: Worst, /
) -> Html | None:
    """Return the page's part on the looseness of the printed forms (versions of a claim)."""
    rows = looseness_rows((c for c in constants if c.id in seen), worst)
    if not rows:
        return None
    names = ("statement", "form", "C at least", "loose", "where", "closed form, or dependence")
    body = (
        element(
            "tr",
            element("th", element("a", row[0], href=f"#{row[0]}"), scope="row"),
            *(element("td", cell) for cell in row[1:]),
        )
        for row in rows
    )
    by_verify = (BY_VERIFY, "a verdict has a larger ratio than the search for the constant")
    meanings = (
        element("div", element("dt", word), element("dd", meaning))
        for word, meaning in (*MEANING.items(), by_verify)
    )
    return element(
        "section",
        element("h2", "Sharp constants"),
        element(
            "p",
            "Lower estimates, by search, of the least C such that the left side is at most C times "
            "the printed right side (",
            element("code", "jaxbounds constant"),
            ").",
        ),
        element("dl", *meanings),
        element(
            "table",
            element("thead", element("tr", *(element("th", n, scope="col") for n in names))),
            element("tbody", *body),
            class_="constants",
        ),
        id="constants",
    )
