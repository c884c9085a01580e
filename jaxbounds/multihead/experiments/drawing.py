"""The drawing of Figures 2 to 5: one row of panels for each optimiser, one curve for each H.

Thick lines are means over trials.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr

if TYPE_CHECKING:  # slow to import
    import matplotlib.axes
    import matplotlib.figure

DEEP = 16
"""The figure compresses the part of the loss's axis below 10^-DEEP. A larger DEEP compresses less.
"""
SHORT = 30.0
"""A logarithmic axis whose ends have a ratio below this number has ticks between powers of ten. A
larger number gives more axes such ticks.
"""


class Quantity(NamedTuple):
    """A quantity that the figure draws.

    Attributes:
        name: the variable of the data set; a name "log10_..." means a logarithmic axis.
        line: a reference value for a horizontal line, or NaN for no line.
        log: whether the axis is logarithmic.
        guide: if positive, the figure has a dotted guide line at `guide` / k for step k.
    """

    name: str
    label: str
    line: float = float("nan")
    line_label: str = ""
    log: bool = False
    guide: float = 0.0


def draw_curves(
    dataset: xr.Dataset,
    quantities: tuple[Quantity, ...],
    /,
    *,
    apart: np.ndarray | None = None,
    apart_label: str = "",
) -> "matplotlib.figure.Figure":
    """Draw each trial as a thin line, and the mean (for losses: geometric mean) as a thick line.

    The figure omits quantities that the data set lacks. `apart` holds flags over (panel, H, trial):
    the thin lines of the flagged trials are dashed, and `apart_label` describes these trials.
    """
    import matplotlib.pyplot as plt

    # A user's own student has no heads to measure.
    quantities = tuple(quantity for quantity in quantities if quantity.name in dataset)
    panels, count = dataset.panel.values.tolist(), len(quantities)
    single = len(panels) == 1
    rows, columns = (-(-count // 3), min(3, count)) if single else (len(panels), count)
    size = ((3.6 if single else 2.6) * columns, (2.8 if single else 2.1) * rows + 1.2)
    fig, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for extra in grid.ravel()[count * len(panels) :]:
        extra.set_axis_off()
    heads = dataset.H.values
    colors = plt.get_cmap("viridis")(np.linspace(0.0, 0.88, len(heads)))
    for row, panel in enumerate(panels):
        cells = grid.ravel()[:count] if single else grid[row]
        dashed = None if apart is None else apart[row]
        for axis, quantity in zip(cells, quantities):
            _draw(axis, dataset.isel(panel=row), quantity, colors, dashed)
            if single or row == 0:
                axis.set_title(quantity.label, fontsize=11)
            if single or row == len(panels) - 1:
                axis.set_xlabel("step k")
        name = panel.replace("eta", r"$\eta$").replace("sqrt(H)", r"$\sqrt{H}$")
        if single:
            fig.suptitle(name, x=0.01, ha="left", fontsize=12)
        else:
            cells[0].set_ylabel(name, fontsize=12)
    handles = [plt.Line2D([], [], color=color, lw=2) for color in colors]
    names = [f"H = {H:,}".replace(",", " ") for H in heads.tolist()]
    about = _about(dataset, apart_label if apart is not None and apart.any() else "")
    if any(_is_deep(dataset, quantity) for quantity in quantities):
        about += f"\naxes of losses are compressed below the dotted line at 1e-{DEEP}"
    place: dict = {"loc": "outside lower center", "ncols": len(heads), "frameon": False}
    fig.legend(handles, names, title=about, **place).get_title().set_multialignment("center")
    return fig


def _about(dataset: xr.Dataset, apart_label: str) -> str:
    trials = dataset.sizes["trial"]
    lines = "one trial"
    if trials > 1:
        lines = f"thick: mean of {trials} trials, geometric for losses; thin: each trial"
        lines += f", dashed where it {apart_label}" if apart_label else ""
    settings = dataset.attrs.get("settings", "").replace("gamma_attn", r"$\gamma_{attn}$")
    return "\n".join(filter(None, (lines, settings)))


def _is_deep(dataset: xr.Dataset, quantity: Quantity) -> bool:
    log10 = quantity.name.startswith("log10")
    return log10 and float(dataset[quantity.name].min()) < -DEEP


def _draw(
    axis: "matplotlib.axes.Axes",
    part: xr.Dataset,
    quantity: Quantity,
    colors: np.ndarray,
    dashed: np.ndarray | None,
) -> None:
    logarithm = quantity.name.startswith("log10")
    values = part[quantity.name].transpose("H", "trial", "step").values.astype(float)
    means = values.mean(axis=1)
    deep = _is_deep(part, quantity)
    if logarithm and not deep:
        values, means = 10**values, 10**means
    elif quantity.log:
        values, means = (np.where(v > 0, v, np.nan) for v in (values, means))
    steps = part.step.values
    for index, (color, trials) in enumerate(zip(colors, values)):
        for trial, curve in enumerate(trials):
            style = "-" if dashed is None or not dashed[index, trial] else (0, (4, 3))
            axis.plot(steps, curve, color=color, lw=0.7, alpha=0.45, ls=style)
    for color, curve in zip(colors, means):
        axis.plot(steps, curve, color=color, lw=1.8)
    axis.set(xscale="log", xlim=(1, steps[-1]))
    if deep:
        _compress(axis, values)
    elif logarithm or quantity.log:
        axis.set_yscale("log")
        axis.yaxis.set_minor_formatter("")
        if np.nanmax(values) < SHORT * np.nanmin(values):
            axis.yaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))  # type: ignore[call-arg]
            axis.yaxis.set_major_formatter("{x:g}")
    if quantity.guide > 0:
        guide = quantity.guide / steps
        place = len(steps) // 4
        axis.plot(steps, np.log10(guide) if deep else guide, color="0.25", lw=1, ls=":")
        height = np.log10(guide[place]) if deep else guide[place]
        _note(axis, "1/k", (steps[place], height), "data", (-4, -12))
    if np.isfinite(quantity.line):
        axis.axhline(quantity.line, color="0.25", lw=1, ls="--")
        axis.margins(y=0.12)
        _note(axis, quantity.line_label, (0.03, quantity.line), ("axes fraction", "data"), (0, 3))
    axis.grid(alpha=0.25, lw=0.5)


def _compress(axis: "matplotlib.axes.Axes", values: np.ndarray) -> None:
    least, most = float(values.min()), float(values.max())
    axis.set_yscale("symlog", linthresh=DEEP, linscale=1.6)
    axis.set_ylim(1.1 * least, max(most + 1, 1.0))
    ticks = [t for t in (0, -4, -8, -12, -16, -32, -100, -300, -1000, -3000) if t >= 1.1 * least]
    axis.set_yticks(ticks, [f"$10^{{{t}}}$" if t else "1" for t in ticks])
    axis.set_yticks([], minor=True)
    axis.axhline(-DEEP, color="0.25", lw=0.8, ls=":")


def _note(
    axis: "matplotlib.axes.Axes",
    text: str,
    where: tuple,
    coordinates: str | tuple[str, str],
    offset: tuple[int, int],
) -> None:
    axis.annotate(
        text,
        where,
        xycoords=coordinates,
        xytext=offset,
        textcoords="offset points",
        fontsize=10,
        color="0.25",
    )
