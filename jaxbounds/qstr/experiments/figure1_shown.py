"""Show the results of Figure 1 as a drawing and as a table.

If some runs are censored (stopped before they learned), a mean over runs is only a lower bound.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from jaxbounds.experiments.plotting import grid_ticks
from jaxbounds.qstr.experiments.figure1_claims import HONEST, PUBLISHED, left_out, said
from jaxbounds.qstr.experiments.online import Protocol

if TYPE_CHECKING:  # slow to import
    import matplotlib.figure


def in_words(protocol: Protocol, /) -> str:
    """Return one line of text with the settings on which the figure's numbers depend."""
    law = "simple-qSTR" if protocol.simple else "qSTR"
    test = "simple" if protocol.test_on == "simple" else "the same"
    goal = f"risk < {protocol.threshold:g} on {test} data"
    return (
        f"{law}, {protocol.link} link, d = {protocol.d}, q = {protocol.q}, batch {protocol.batch}; "
        f"learned: {goal}, in at most {protocol.max_samples:,} samples"
    )


def _cells(
    dataset: xr.Dataset, name: str, ending: str
) -> tuple[np.ndarray, Float[np.ndarray, "N S"], Bool[np.ndarray, "N S"]]:
    part = dataset.sel(architecture=name).dropna("N", how="all", subset=["samples" + ending])
    values, seen = part["samples" + ending].values, part["seen" + ending].values
    late = ~np.isfinite(values)
    return part.N.values, np.where(late, seen[:, None], values), late


def _curves(dataset: xr.Dataset) -> Iterator[tuple[int, str, str]]:
    for index, name in enumerate(dataset.architecture.values.tolist()):
        for ending in ("", HONEST) if "samples" + HONEST in dataset else ("",):
            yield index, name, ending


def table(dataset: xr.Dataset, /) -> str:
    """Return a table of the mean, least and largest number of samples, with a row for each cell.

    A cell is an architecture at one prompt length N.
    """
    lines = [dataset.attrs.get("protocol", "")]
    for _, name, ending in _curves(dataset):
        test = ", honest test" if ending else ""
        for N, samples, late in zip(*_cells(dataset, name, ending)):
            low, high = f"{samples.min():,.0f}", f"{samples.max():,.0f}"
            words = f"{samples.mean():,.0f} ({low} to {high})"
            if late.any():
                words = f"more than {words}: {late.sum()} of {late.size} not learned"
            lines.append(f"{name}{test}, N = {N}: {words}")
    for name, N in left_out(dataset).items():
        lines.append(f"{name}: not run above N = {N}; longest_gru = 0 runs it there")
    return "\n".join(lines)


def figure(dataset: xr.Dataset, /) -> "matplotlib.figure.Figure":
    """Plot the number of samples that each architecture needs against N, on logarithmic axes.

    The curves are means over runs. Upward triangles mark means that are lower bounds.
    """
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(figsize=(5.8, 4.8), layout="constrained")
    published = PUBLISHED.get(dataset.attrs.get("published", ""), {})
    censored, short = False, left_out(dataset)
    for index, name, ending in _curves(dataset):
        color, (lengths, shown, late) = f"C{index}", _cells(dataset, name, ending)
        label, line = (f"{said(name)}, honest test", "--") if ending else (said(name), "-")
        label += f" (not run above N = {short[name]})" if name in short else ""
        means, open_ = shown.mean(axis=1), late.any(axis=1)
        axes.plot(lengths, means, line, label=label, color=color)
        axes.plot(lengths[~open_], means[~open_], "o", color=color)
        axes.plot(lengths[open_], means[open_], "^", color=color, mfc="white", ms=8)
        # Side by side, so that runs of two architectures at the budget do not hide one another.
        place = np.broadcast_to(lengths[:, None] * (1 + 0.012 * index), shown.shape)
        axes.scatter(place[~late], shown[~late], s=8, color=color, alpha=0.5)
        axes.scatter(place[late], shown[late], marker="x", color=color)
        censored |= bool(late.any())
        points = [(N, n) for N, n in published.get(name, {}).items() if N in dataset.N.values]
        if points and not ending:
            axes.plot(
                *zip(*points), "s", mfc="none", ms=9, color=color, label=f"{said(name)}, published"
            )
    axes.set(xscale="log", yscale="log", xlabel="N", ylabel="samples to threshold")
    grid_ticks(axes.xaxis, dataset.N.values)
    words = dataset.attrs.get("protocol", "").replace("; ", ";\n")
    draws, tasks = dataset.sizes["seed"], len(np.unique(dataset.task))
    words += f"\n{draws} run(s) of each cell, on {tasks} task(s): dots; lines: their means"
    if short:
        words += f"\nleft out by the setting longest_gru, not by any result: {', '.join(short)}"
    if censored:
        words += "\ncrosses: not learned by then; triangles: means that are lower bounds"
    axes.set_title(words, fontsize=8)
    axes.legend()
    return fig
