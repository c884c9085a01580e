"""Figures 2 to 5 drawn: one row of panels for each optimiser, one curve for each H."""

from typing import NamedTuple

import numpy as np
import xarray as xr

FLOOR = -16.0
"""log10 of the least loss that is drawn."""


class Quantity(NamedTuple):
    """A column of the figure.

    Attributes:
        name: in the data set; "log10_..." is drawn on a logarithmic axis.
        label: of the axis.
        line: a reference value, or NaN.
        line_label: what it is.
        log: whether the axis is logarithmic.
        guide: draws `guide` / k, dotted, where positive.
    """

    name: str
    label: str
    line: float = float("nan")
    line_label: str = ""
    log: bool = False
    guide: float = 0.0


def draw_curves(dataset: xr.Dataset, quantities: tuple[Quantity, ...], /):
    """Medians over trials, with every trial as a thin line."""
    import matplotlib.pyplot as plt

    panels, count = dataset.panel.values.tolist(), len(quantities)
    single = len(panels) == 1
    rows, columns = (-(-count // 3), min(3, count)) if single else (len(panels), count)
    size = ((3.6 if single else 2.6) * columns, 2.8 * rows + 0.6)
    fig, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for extra in grid.ravel()[count * len(panels) :]:
        extra.set_axis_off()
    heads = dataset.H.values
    colors = plt.get_cmap("viridis")(np.linspace(0.0, 0.88, len(heads)))
    for row, panel in enumerate(panels):
        cells = grid.ravel()[:count] if single else grid[row]
        for axis, quantity in zip(cells, quantities):
            _draw(axis, dataset.isel(panel=row), quantity, colors)
            if not single and row < len(panels) - 1:
                axis.set_xlabel("")
        cells[0].set_title(
            panel.replace("eta", r"$\eta$").replace("sqrt(H)", r"$\sqrt{H}$"),
            loc="left",
            fontsize=12,
        )
    handles = [plt.Line2D([], [], color=color, lw=2) for color in colors]
    names = [f"H = {H:,}".replace(",", " ") for H in heads.tolist()]
    fig.legend(handles, names, loc="outside lower center", ncols=len(heads), frameon=False)
    return fig


def _draw(axis, part: xr.Dataset, quantity: Quantity, colors: np.ndarray) -> None:
    logarithm = quantity.name.startswith("log10")
    values = part[quantity.name].transpose("H", "trial", "step").values.astype(float)
    if quantity.log:
        values = np.where(values > 0, values, np.nan)
    steps = part.step.values
    middle = np.median(values, axis=1)
    if logarithm:
        values, middle = (10 ** np.maximum(v, FLOOR - 4) for v in (values, middle))
    for color, trials in zip(colors, values):
        axis.plot(steps, trials.T, color=color, lw=0.6, alpha=0.35)
    for color, curve in zip(colors, middle):
        axis.plot(steps, curve, color=color, lw=1.8)
    axis.set(xscale="log", xlabel="step k", ylabel=quantity.label, xlim=(1, steps[-1]))
    if logarithm or quantity.log:
        axis.set_yscale("log")
        axis.yaxis.set_minor_formatter("")
    if logarithm:
        least = float(values.min())
        axis.set_ylim(max(10**FLOOR, least / 2), float(values.max()) * 2)
        if least < 10**FLOOR:
            axis.set_ylabel(f"{quantity.label} (above 1e{FLOOR:.0f})")
    if quantity.guide > 0:
        axis.plot(steps, quantity.guide / steps, color="0.25", lw=1, ls=":")
        place = steps[len(steps) // 4]
        _note(axis, "1/k", (place, quantity.guide / place), "data", (-4, -12))
    if np.isfinite(quantity.line):
        axis.axhline(quantity.line, color="0.25", lw=1, ls="--")
        axis.margins(y=0.12)
        _note(axis, quantity.line_label, (0.03, quantity.line), ("axes fraction", "data"), (0, 3))
    axis.grid(alpha=0.25, lw=0.5)


def _note(axis, text: str, where: tuple, coordinates, offset: tuple[int, int]) -> None:
    axis.annotate(
        text,
        where,
        xycoords=coordinates,
        xytext=offset,
        textcoords="offset points",
        fontsize=10,
        color="0.25",
    )
