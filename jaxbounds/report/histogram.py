"""Draw histograms of a claim's ratios lhs/rhs as small SVG pictures, on a logarithmic axis.

A verdict stores the quantiles of the ratios at random instances (draws), in steps of 5%. A
twentieth of the random instances has ratios between two neighbouring quantiles. The picture assumes
that log10(ratio) is spread evenly between two neighbouring quantiles.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from jaxbounds.claims.statements import FITTED, Statement
from jaxbounds.falsification import ON_AVERAGE, Verdict
from jaxbounds.report.columns import number
from jaxbounds.report.markup import Html, element, joined

DECADES = {"<=": 5, ">=": 5, "=": 8, "->": 8}
"""The largest number of powers of ten on the axis of ratios, for each relation ("<=", ">=", "=").
An identity's ratios are far below one, so its axis is longer. If this number is larger, the axis
shows smaller ratios."""


class Axis(NamedTuple):
    """The axis of ratios: its range of log10(ratio), and log10 of the largest allowed ratio.

    The largest allowed ratio is None for a rate, a claim on growth up to a constant, which allows
    any ratio.
    """

    low: float
    high: float
    limit: float | None


def limit(statement: Statement, /) -> float | None:
    """Return the largest ratio that a claim allows; None for a claim on growth up to a constant."""
    if statement.kind in FITTED:
        return None
    return 1.0 if statement.is_bound else statement.tolerance


def axis(statement: Statement, verdicts: Iterable[Verdict], /) -> Axis:
    """Return one axis for all forms (versions) of a statement, to make pictures comparable."""
    allowed = limit(statement)
    verdicts = list(verdicts)
    seen = [q for v in verdicts for q in v.quantiles if q > 0]
    if statement.kind not in ON_AVERAGE:
        seen += [v.worst_ratio for v in verdicts if 0 < v.worst_ratio < math.inf]
    edges = [] if allowed is None else [allowed]
    most = DECADES[statement.relation]
    top = math.log10(max([*seen, *edges], default=1.0))
    if allowed is not None:
        top = min(top, math.log10(allowed) + most - 1)
    # The axis ignores the lowest tenth of a form, which may reach towards zero.
    starts = [min((q for q in v.quantiles[2:] if q > 0), default=math.inf) for v in verdicts]
    bottom = math.log10(min([start for start in [*starts, *edges] if start < math.inf] or [1.0]))
    low = math.floor(max(bottom, top - most))
    return Axis(low, max(top + 0.15, low + 1.15), None if allowed is None else math.log10(allowed))


def shares(quantiles: Sequence[float], low: float, high: float, bins: int, /) -> np.ndarray:
    """Return the fraction of the random instances below the axis, in each bin, and above the axis.

    The `quantiles` of the ratios are equally spaced. The axis ends at log10(ratio) = `low` and
    `high`. The sum of the `bins + 2` fractions is one.
    """
    logs = [math.log10(q) if q > 0 else -math.inf for q in quantiles]
    edges = np.concatenate([[-np.inf], np.linspace(low, high, bins + 1), [np.inf]])
    total = np.zeros(bins + 2)
    for left, right in itertools.pairwise(logs):
        # The logarithm of zero is infinite, so the spread starts at the left end of the axis.
        start = left if left > -math.inf else min(low, right)
        if right - start < 1e-9 or right == -math.inf:
            total[np.clip(np.searchsorted(edges, right, "right") - 1, 0, bins + 1)] += 1
        else:
            overlap = np.minimum(edges[1:], right) - np.maximum(edges[:-1], start)
            total += np.clip(overlap, 0.0, None) / (right - start)
    return total / max(1, len(logs) - 1)


def _bars(heights: np.ndarray, left: float, width: float, base: float, tall: float) -> str:
    step, peak = width / len(heights), max(heights.max(), 1e-12)
    return "".join(
        f"M{left + i * step:.1f} {base:g}v{-max(0.8, tall * share / peak):.1f}h{step:.2f}V{base:g}z"
        for i, share in enumerate(heights)
        if share > 0
    )


def sparkline(statement: Statement, verdict: Verdict, /) -> Html | None:
    """Draw the distribution of ratios for a table cell; all cells share one axis of ratios."""
    allowed = limit(statement)
    if allowed is None or not verdict.quantiles:
        return None
    end = math.log10(allowed)
    heights = shares(verdict.quantiles, end - 6, end + 2, 32)
    heights[1] += heights[0]
    heights[-2] += heights[-1]
    return element(
        "svg",
        element("path", d="M72.5 0v18", class_="limit"),
        element("path", d=_bars(heights[1:-1], 0, 96, 18, 17)),
        viewBox="0 0 96 18",
        class_="spark",
        aria_hidden="true",
    )


def _power(exponent: int) -> Html:
    if -3 <= exponent <= 3:
        return Html(f"{10.0**exponent:g}")
    sign = "−" if exponent < 0 else ""
    raised = element("tspan", f"{sign}{abs(exponent)}", dy="-4", font_size="8")
    return joined("10", raised)


def _ticks(ax: Axis, place: Callable[[float], float]) -> Iterable[Html]:
    every = math.ceil((ax.high - ax.low) / 6)
    for exponent in range(math.ceil(ax.low), math.floor(ax.high) + 1):
        x = f"{place(exponent):.1f}"
        yield element("path", d=f"M{x} 70v4", class_="axis")
        if exponent % every == 0:
            yield element("text", _power(exponent), x=x, y="86", text_anchor="middle")


def words(verdict: Verdict, draws: int, /) -> str:
    """Return a sentence with the median, 95% quantile and largest of the drawn ratios."""
    q = verdict.quantiles
    if not q:
        return "No finite ratio was drawn."
    shown = [f"{value:.3g}" for value in (q[len(q) // 2], q[-2], q[-1])]
    return f"{draws} draws: median {shown[0]}, 95% quantile {shown[1]}, largest {shown[2]}."


def histogram(verdict: Verdict, ax: Axis, worst: float | None, draws: int, /) -> Html:
    """Draw the distribution of one form, with the allowed region and the worst ratio marked.

    A form is one version of a claim: printed, corrected or sharpened. The quantiles of the ratios
    come from `draws` random instances. If ratios lie outside the axis, the picture shows their
    fraction of the instances, or the worst ratio, at the end of the axis.
    """
    left, width = 30.0, 302.0
    place = lambda log: left + width * (log - ax.low) / (ax.high - ax.low)
    parts: list[Html] = []
    if ax.limit is not None:
        x = place(ax.limit)
        parts += [
            element("path", d=f"M{x:.1f} 12H{left + width:g}V70H{x:.1f}z", class_="beyond"),
            element("path", d=f"M{x:.1f} 12V70", class_="limit"),
        ]
    if verdict.quantiles:
        found = shares(verdict.quantiles, ax.low, ax.high, 51)
        if found[0] > 0.005:
            for text, y in ((f"{found[0]:.0%}", 57), ("less", 69)):
                parts.append(element("text", text, x=left - 5, y=y, text_anchor="end"))
        if found[-1] > 0.005:
            more = f"{found[-1]:.0%} more"
            parts.append(element("text", more, x=left + width, y=24, text_anchor="end"))
        parts.append(element("path", d=_bars(found[1:-1], left, width, 70, 52), class_="bars"))
    parts.append(element("path", d=f"M{left:g} 70H{left + width:g}", class_="axis"))
    parts += _ticks(ax, place)
    if worst is not None and worst > 0:
        at = place(math.log10(worst)) if worst < math.inf else math.inf
        x = min(max(at, left), left + width)
        parts.append(element("path", d=f"M{x:.1f} 11l-4 -7h8z", class_="worst"))
        if at != x:
            inwards = {
                "text_anchor": "end" if at > x else "start",
                "x": x - math.copysign(7, at - x),
            }
            parts.append(element("text", number(worst), y=11, **inwards))
    return element(
        "svg",
        *parts,
        viewBox="0 0 340 92",
        class_="histogram",
        role="img",
        aria_label=words(verdict, draws),
    )
