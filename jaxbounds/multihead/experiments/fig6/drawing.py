"""The drawing of Figure 6: losses and accuracies against epochs, one colour for each H."""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

if TYPE_CHECKING:  # slow to import
    import matplotlib.axes
    import matplotlib.figure

QUANTITIES = {
    "train_loss": "training loss",
    "test_loss": "test loss",
    "train_accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
}
RULES = {"bag_of_words": "bag of words", "lexicon": "lexicon"}


def figure(dataset: xr.Dataset, /) -> "matplotlib.figure.Figure":
    """Draw means over trials, with standard errors as bands; each arm has its own row.

    An arm is one way to vary the number of heads.
    """
    import matplotlib.pyplot as plt

    arms = dataset.panel.values.tolist()
    rows, columns = (2, 2) if len(arms) == 1 else (len(arms), 4)
    size = (3.9 * columns if rows == 2 and len(arms) == 1 else 3.1 * columns, 2.7 * rows + 0.8)
    fig, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    heads, trials = dataset.H.values, dataset.sizes["trial"]
    colors = plt.get_cmap("viridis")(np.linspace(0.0, 0.88, len(heads)))
    for index, arm in enumerate(arms):
        cells = grid.ravel() if len(arms) == 1 else grid[index]
        for axis, (name, label) in zip(cells, QUANTITIES.items()):
            _draw(axis, dataset.sel(panel=arm), name, colors)
            axis.set_ylabel(label)
        text = dataset.attrs["arms"][arm]
        if len(arms) == 1:
            fig.suptitle(text, x=0.01, ha="left", fontsize=12)
        else:
            cells[0].set_title(text, loc="left", fontsize=12)
    last = grid[-1]
    for axis in last:
        axis.set_xlabel("epoch")
    handles = [plt.Line2D([], [], color=color, lw=2.4) for color in colors]
    about = f"mean and standard error of {trials} trials; claims pair the trials"
    legend = fig.legend(
        handles,
        [f"H = {H}" for H in heads.tolist()],
        title="\n".join(filter(None, (about, dataset.attrs.get("settings", "")))),
        loc="outside lower center",
        ncols=len(heads),
        frameon=False,
    )
    legend.get_title().set_multialignment("center")
    return fig


def _draw(axis: "matplotlib.axes.Axes", part: xr.Dataset, name: str, colors: np.ndarray) -> None:
    values = part[name].transpose("H", "trial", "step").values.astype(float)
    epochs = part.epoch.values
    means, count = values.mean(1), values.shape[1]
    errors = values.std(1, ddof=1) / np.sqrt(count) if count > 1 else np.zeros_like(means)
    for color, mean, error in zip(colors, means, errors):
        axis.fill_between(epochs, mean - error, mean + error, color=color, alpha=0.15, lw=0)
        axis.plot(epochs, mean, color=color, lw=2, marker="o", ms=3)
    axis.set_xlim(0, epochs[-1])
    axis.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    axis.grid(alpha=0.25, lw=0.5)
    if name == "test_accuracy":
        for rule, label in RULES.items():
            if rule in part:
                _reference(axis, float(part[rule].mean()), label)
    if name.endswith("loss") and means.min() < means.max() / 2:
        axis.set_ylim(bottom=0)


def _reference(axis: "matplotlib.axes.Axes", value: float, label: str) -> None:
    axis.axhline(value, color="0.25", lw=1, ls="--")
    axis.annotate(
        f"{label} {value:.3f}",
        (0.98, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=9,
        color="0.25",
    )
