"""Figures 1 to 3 from the data of `seqlength.majority`."""

from typing import Any

import numpy as np
import xarray as xr

PANELS = (
    ("l1_increase", r"increase of $\sum |w|$"),
    ("gap", "validation minus training loss"),
    ("accuracy", "validation accuracy"),
)


def figure(data: xr.Dataset, /) -> Any:
    """Figures 1 to 3 side by side, every run shown: faint where it did not learn."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    lengths, learned = data["T"].values, data["learned"].values.astype(bool)
    for number, (panel, (name, label)) in enumerate(zip(axes, PANELS), start=1):
        values = data[name].values
        for seed in range(values.shape[1]):
            shade = np.where(learned[:, seed], 0.9, 0.2)
            panel.scatter(lengths, values[:, seed], s=12, color="C0", alpha=shade)
        panel.scatter([], [], s=12, color="C0", label="one run")
        panel.plot(lengths, values.max(axis=1), color="C1", label="largest")
        panel.plot(lengths, values.mean(axis=1), "--", color="C2", label="mean")
        panel.set(xlabel="sequence length $T$", ylabel=label, title=f"Figure {number}")
    axes[0].legend()
    return fig
