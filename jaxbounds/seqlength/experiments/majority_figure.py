"""Figures 1 to 3 from the data of `seqlength.majority`."""

import textwrap
from typing import Any

import numpy as np
import xarray as xr

from jaxbounds.experiments.plotting import grid_ticks
from jaxbounds.experiments.settings import said_here
from jaxbounds.seqlength.experiments.majority_claims import claims, deviations

PANELS = (
    ("l1", r"$\sum |w|$"),
    ("gap", "validation minus training loss"),
    ("accuracy", "validation accuracy"),
)
WORDS = {True: "yes", False: "NO", None: "open"}


def _settings(data: xr.Dataset) -> str:
    lengths, seeds = data["learned"].shape
    faint = int((~data["learned"].values.astype(bool)).sum())
    runs = f"{seeds} runs at each of {lengths} lengths"
    runs += f", {faint} of {lengths * seeds} did not learn: faint, and not in the lines" * bool(
        faint
    )
    if "config" not in data.attrs:
        return f"{runs}. Settings not recorded."
    changed = deviations(data.attrs["config"])
    if not changed:
        return f"{runs}. The paper's settings."
    return f"{runs}. Settings not the paper's: {'; '.join(changed)}."


def figure(data: xr.Dataset, /) -> Any:
    """Draw Figures 1 to 3 side by side.

    Each figure shows every run, and the maximum and the mean over the runs that learned.
    """
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    lengths, learned = data["T"].values, data["learned"].values.astype(bool)
    some, found = learned.any(axis=1), claims(data)
    for number, (panel, (name, label)) in enumerate(zip(axes, PANELS), start=1):
        values = data[name].values
        for seed in range(values.shape[1]):
            shade = np.where(learned[:, seed], 0.9, 0.2)
            panel.scatter(lengths, values[:, seed], s=12, color="C0", alpha=shade)
        panel.scatter([], [], s=12, color="C0", label="one run")
        counted = np.where(learned, values, np.nan)[some]
        panel.plot(lengths[some], np.nanmax(counted, axis=1), color="C1", label="largest")
        panel.plot(lengths[some], np.nanmean(counted, axis=1), "--", color="C2", label="mean")
        lines = [f"Figure {number}"]
        for claim in found:
            what, _, says = claim.text.partition(": ")
            if what == lines[0]:
                lines.append(f"{WORDS[claim.reproduced]}: {says.split(' (')[0]}")
                here = said_here(claim)
                first = f"{here} at these settings" if here else claim.number.split(";")[0]
                lines += [f"   {first}"] * (claim.reproduced is None)
        panel.set(xlabel="sequence length $T$", ylabel=label)
        panel.set_title("\n".join(lines), fontsize="small", loc="left")
        grid_ticks(panel.xaxis, lengths)
    handles, names = axes[0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=3)
    fig.suptitle(textwrap.fill(_settings(data), 150), x=0.01, ha="left", fontsize=9)
    return fig
