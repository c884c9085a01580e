"""The claims about NTK margins of random starts, and their figure.

The function `claims` decides each claim at the seed with the least measured value.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from jaxbounds.experiments.controls import scaled, valued
from jaxbounds.experiments.experiment import Control, Finding
from jaxbounds.experiments.plotting import OKABE_ITO, grid_ticks
from jaxbounds.experiments.settings import default_settings

if TYPE_CHECKING:  # slow to import
    import matplotlib.axes
    import matplotlib.figure

SEPARATED = 0.999
"""The share of held-out samples that a direction must classify correctly. Fewer directions reach a
larger share.
"""

SETTINGS = default_settings(
    least={"samples": 400, "heads": 64, "scales": 1.0, "held_out": 2000, "seeds": 2},
    others="The question is the paper's and the data are ours: any data model of DM1 may be asked. "
    "A margin levels off at large n, so that fewer samples decide nothing.",
)
"""The settings at which the experiment decides its claims."""

_RANDOM = lambda start: start.str.startswith("random")

CONTROLS: dict[str, Control] = {
    "satisfies NTK separability": valued(-0.1, "margin", start=_RANDOM),
    "at least 3/4": scaled(0.5, "margin", n=lambda n: n == n.max()),
    "separates at least 99.9%": valued(0.9, "held_out_positive"),
    "larger NTK margin": scaled(1e-3, "margin", start=_RANDOM),
    "beat the linear oracle": scaled(1e-3, "margin", start=_RANDOM),
}
"""For each claim, a function that changes the experiment's data so that the claim is false."""


def _heads(name: str) -> int:
    return int(name.split("H = ")[1].split(",")[0])


def _least(values: xr.DataArray, threshold: float) -> str:
    table = values.transpose("start", "seed")
    start, seed = np.unravel_index(np.argmin(table.values), table.shape)
    where = f"{table.start.values[start]}, seed {table.seed.values[seed]}"
    below = int(np.sum(table.values < threshold))
    words = f"least {float(table.min()):.4g} ({where})"
    return words + f"; below {threshold:.4g} in {below} of {table.size} runs" * (below > 0)


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide the claims about separability: at random starts, as n grows, and against baselines."""
    is_random = [name for name in dataset.start.values.tolist() if name.startswith("random")]
    part = dataset.sel(start=is_random)
    least = float(part.margin.min())
    gap = float(((dataset.margin_upper - dataset.margin) / dataset.margin_upper).max())
    seeds = f"{dataset.sizes['seed']} seed" + "s" * (dataset.sizes["seed"] > 1)
    found = [
        Finding(
            "random initialisation satisfies NTK separability (P3): the certified margin is "
            "positive for every scale, H, n and seed",
            least > 0,
            f"least margin {least:.3g} of {seeds}; largest duality gap {gap:.1e}",
        )
    ]
    sizes = sorted(dataset.n.values.tolist())
    heads = sorted({_heads(name) for name in is_random})
    largest = part.sel(n=sizes[-1])
    for H in (heads[0], heads[-1]):
        those = [name for name in is_random if _heads(name) == H]
        if len(sizes) > 2 and least > 0:
            kept = (largest.margin / part.sel(n=sizes[-3]).margin).sel(start=those)
            text = f"H = {H}: margin at n = {sizes[-1]} at least 3/4 of that at n = {sizes[-3]}"
            kept_enough = bool(kept.min() >= 0.75)
            found.append(Finding(text, kept_enough, f"share kept: {_least(kept, 0.75)}"))
        share = largest.held_out_positive.sel(start=those)
        text = f"H = {H}: theta* of n = {sizes[-1]} separates at least 99.9% of held-out samples"
        number = f"share of {dataset.held_out} separated: {_least(share, SEPARATED)}"
        found.append(Finding(text, bool(share.min() >= SEPARATED), number))
    starts = set(dataset.start.values.tolist())
    if {"first step", "zero"} <= starts:
        for other in ("first step", "zero"):
            ratio = largest.margin / dataset.margin.sel(start=other, n=sizes[-1])
            text = f"every random start has a larger NTK margin than {other!r} at n = {sizes[-1]}"
            number = f"ratio, to {float(ratio.max()):.3g}: {_least(ratio, 1.0)}"
            found.append(Finding(text, bool(ratio.min() > 1), number))
    linear = 2**0.5 * dataset.gamma_linear
    found.append(
        Finding(
            f"random starts beat the linear oracle, sqrt(2) gamma_lin, at n = {sizes[-1]}",
            bool(largest.margin.min() > linear),
            f"margin: {_least(largest.margin, linear)}; sqrt(2) gamma_lin {linear:.3g}, "
            f"gamma_attn {dataset.gamma_attention:.3g}",
        )
    )
    return SETTINGS.judged(dataset, found)


def figure(dataset: xr.Dataset, /) -> "matplotlib.figure.Figure":
    """Draw the margin, and the share of samples that are not separated, against n.

    Each line shows the worst value over the seeds, and each band shows the range of all seeds.
    """
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    names = dataset.start.values.tolist()
    looks = dict(zip(names, _looks(names)))
    for name, look in looks.items():
        part = dataset.sel(start=name)
        _band(axes[0], part.margin, look, worst="min")
        _band(axes[1], 1 - part.held_out_positive, look, worst="max")
    linear = 2**0.5 * dataset.gamma_linear
    if linear > 0:
        axes[0].axhline(linear, color="0.25", lw=1, ls=(0, (1, 1)))
        axes[0].annotate(
            r"linear oracle, $\sqrt{2}\, \gamma_{lin}$",
            (0.98, linear),
            xycoords=("axes fraction", "data"),
            xytext=(0, 4),
            textcoords="offset points",
            fontsize="small",
            ha="right",
        )
    axes[1].axhline(1 - SEPARATED, color="0.25", lw=1, ls=(0, (1, 1)))
    axes[0].set(xscale="log", yscale="log", xlabel="samples n")
    axes[0].set_title("best NTK margin")
    axes[0].yaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].yaxis.set_minor_formatter("")
    axes[1].set(xscale="log", xlabel="samples n")
    axes[1].set_title(f"held-out samples not separated, of {dataset.held_out} (dotted: 0.1%)")
    axes[1].yaxis.set_major_formatter("{x:.1%}")
    for axis in axes:
        grid_ticks(axis.xaxis, dataset.n.values)
    seeds = dataset.sizes["seed"]
    about = f"line: the worst of {seeds} seeds, which decides; band: all" if seeds > 1 else "1 seed"
    about = "\n".join(filter(None, (about, dataset.attrs.get("settings", ""))))
    handles = [plt.Line2D([], [], **look) for look in looks.values()]
    legend = fig.legend(handles, names, title=about, loc="outside lower center", ncols=4)
    legend.get_title().set_multialignment("center")
    return fig


def _looks(names: list[str]) -> Iterator[dict]:
    random = [name for name in names if name.startswith("random")]
    heads = sorted({_heads(name) for name in random})
    scales = sorted({name.rsplit(" ", 1)[1] for name in random}, key=float)
    plain = iter(("0.35", "0.65"))
    for name in names:
        if name not in random:
            yield {"color": next(plain), "ls": "-", "marker": "x"}
            continue
        place = scales.index(name.rsplit(" ", 1)[1])
        yield {
            "color": OKABE_ITO[heads.index(_heads(name)) % len(OKABE_ITO)],
            "ls": ("-", (0, (4, 2)), (0, (1, 1)))[place % 3],
            "marker": "osD"[place % 3],
        }


def _band(axis: "matplotlib.axes.Axes", values: xr.DataArray, look: dict, *, worst: str) -> None:
    low, high = values.min("seed"), values.max("seed")
    axis.fill_between(values.n, low, high, color=look["color"], alpha=0.2, lw=0)
    axis.plot(values.n, low if worst == "min" else high, **look)
