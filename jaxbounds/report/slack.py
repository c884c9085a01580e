"""How loose the forms of a statement are: the distribution of their ratios, as a figure."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbounds.falsify import ON_AVERAGE, Verdict
from jaxbounds.report.histogram import axis
from jaxbounds.report.rows import quantity
from jaxbounds.statements import Statement

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
"""One for each form, so that colour is never the only difference."""


def slack_figure(statement: Statement, verdicts: Sequence[Verdict], /) -> Any:
    """The share of draws below each ratio, a curve for each form; to the left is looser.

    A triangle marks the worst instance (draws, cases and search), where a single one decides. Needs
    matplotlib.

    Args:
        statement: the statement.
        verdicts: of its forms.

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
        label = f"{verdict.form}: {verdict.status}"
        ratios = np.clip(np.asarray(verdict.quantiles, float), left, right)
        shares = np.linspace(0, 1, len(ratios))
        (curve,) = axes.plot(ratios, shares, linestyle=dashes, label=label)
        one_instance_decides = statement.kind not in ON_AVERAGE
        if one_instance_decides and math.isfinite(verdict.worst_ratio) and verdict.worst_ratio > 0:
            worst = min(max(verdict.worst_ratio, left), right)
            axes.plot(worst, 1.0, marker="v", markersize=7, color=curve.get_color(), clip_on=False)
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
