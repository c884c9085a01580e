"""Draw how loose the forms (versions) of a statement are: the distribution of their ratios."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbounds.claims.statements import Statement
from jaxbounds.falsification import ON_AVERAGE, Verdict
from jaxbounds.report.columns import number
from jaxbounds.report.histogram import axis
from jaxbounds.report.rows import quantity

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
"""A line style for each form (version of a claim), for readers who cannot tell colours apart."""


def _beyond_axis(verdict: Verdict, left: float, right: float) -> str:
    quantiles, words = np.asarray(verdict.quantiles, float), ""
    below = float(np.mean(quantiles < left)) if len(quantiles) else 0.0
    if below >= 0.05:
        words += f", \N{LEFTWARDS ARROW} {below:.0%} of the draws"
    worst = [] if verdict.kind in ON_AVERAGE else [verdict.worst_ratio]  # last: it may be NaN
    largest = max([*verdict.quantiles, *worst], default=0.0)
    if largest > right:
        words += f", up to {number(largest)} \N{RIGHTWARDS ARROW}"
    return words


def slack_figure(statement: Statement, verdicts: Sequence[Verdict], /) -> Any:
    """Draw the fraction of random instances (draws) below each ratio, as a curve for each form.

    A form is one version of the statement; curves of loose forms lie to the left. If a single
    instance decides the verdict, a triangle marks the worst instance among draws, hand-written
    instances (cases) and the search. If a ratio lies outside the axis, the legend states the ratio,
    with an arrow to the left or right. Drawing the figure needs matplotlib.

    Returns:
        A matplotlib figure.
    """
    import matplotlib.pyplot as plt

    ax = axis(statement, verdicts)
    left, right = 10**ax.low, 10**ax.high
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    if ax.limit is not None:
        axes.axvspan(10**ax.limit, right, color="#f3e3dc", zorder=0)
        axes.axvline(10**ax.limit, color="#444444", linewidth=1)
    for verdict, dashes in zip(verdicts, itertools.cycle(DASHES)):
        label = f"{verdict.form}: {verdict.status}{_beyond_axis(verdict, left, right)}"
        ratios = np.clip(np.asarray(verdict.quantiles, float), left, right)
        shares = np.linspace(0, 1, len(ratios))
        (curve,) = axes.plot(ratios, shares, linestyle=dashes, label=label)
        one_instance_decides = statement.kind not in ON_AVERAGE
        if one_instance_decides and verdict.worst_ratio > 0:
            worst = min(max(verdict.worst_ratio, left), right)
            marker = {left: "<", right: ">"}.get(worst, "v")
            axes.plot(worst, 1.0, marker, markersize=7, color=curve.get_color(), clip_on=False)
    axes.set(
        xscale="log",
        xlim=(left, right),
        ylim=(0, 1),
        xlabel=quantity(statement)[1].split(";")[0],
        ylabel="share of the draws below",
        title=f"{statement.id}  {statement.label}",
    )
    axes.legend(loc="best")
    return figure
