"""The fitted exponents, claims and figure of the experiment on how loose Section 3's bounds are."""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from jaxbounds.experiments.controls import turned
from jaxbounds.experiments.experiment import Control, Finding
from jaxbounds.experiments.plotting import OKABE_ITO, grid_ticks
from jaxbounds.experiments.settings import default_settings

if TYPE_CHECKING:  # slow to import
    import matplotlib.axes
    import matplotlib.figure

NEAR = 0.1
"""A measured exponent counts as equal to a factor's exponent if the exponents differ by at most
this value. A larger value accepts larger differences.
"""
HESSIAN, CONVEXITY = "|Hess Phi|", "-min Hess L / L"
SHOWN = ("|grad L| / L", "max Hess L", CONVEXITY)
"""The quantities that the figure shows, one per row: those of Corollary 1 (1), (2) and (3)."""
AXES = ("H", "T", "d", "R")

SETTINGS = default_settings(
    least={"heads": 256, "tokens": 40, "dimensions": 12, "radii": 8, "seeds": 3, "steps": 3000},
    others="The question is ours: an exponent is asked of the sizes of the default or larger ones. "
    "Lemma 6, Corollary 1 and the sharpened bounds speak of every network, at any size.",
)
"""The least settings (sizes, seeds, steps) at which the experiment decides its claims."""


def _bent(axis: str, power: float) -> Control:
    def control(dataset: xr.Dataset) -> xr.Dataset:
        growth = xr.where(dataset.axis == axis, dataset.value**power, 1.0)
        return dataset.assign(left=(dataset.left * growth).transpose(*dataset.left.dims))

    return control


def _at(share: float, bound: str) -> Control:
    def control(dataset: xr.Dataset) -> xr.Dataset:
        left = share * dataset[bound]
        return dataset.assign(left=left, error=0 * left)

    return control


CONTROLS: dict[str, Control] = {
    "hold as printed": _at(1.1, "printed"),
    "the factor 1 / sqrt(H)": _bent("H", -0.2),
    "the factor sqrt(T)": _bent("T", -0.2),
    "the factor R^5": _bent("R", -0.3),
    "no factor of d": _at(1.1, "sharp"),
    "tight within a factor 2": _at(0.4, "sharp"),
    "looser along training": turned("step", "run_left", "run_sharp"),
}
"""For each claim, a function that changes the experiment's data so that the claim is false."""


def slope(values: np.ndarray, sizes: np.ndarray, /, *, last: int = 0) -> float:
    """Compute the least-squares slope of log values against log sizes.

    If `last` > 0, the fit uses only the last `last` sizes.
    """
    values, sizes = values[-last:], sizes[-last:]
    if not np.all(values > 0):
        return float("nan")
    x = np.log(sizes) - np.mean(np.log(sizes))
    return float(np.log(values) @ x / (x @ x))


def exponent(
    dataset: xr.Dataset, side: str, family: str, axis: str, quantity: str, /, *, last: int = 0
) -> float:
    """Fit the exponent with which a quantity or its bound grows along an axis.

    The fit uses the means over seeds.

    `side` is "left" for the measured quantity, "printed" for its printed bound, or "sharp" for its
    sharpened bound. `family` is "random" or "aligned", and `axis` is the size that varies: "H",
    "T", "d" or "R". If `last` > 0, the fit uses only the `last` largest sizes.
    """
    part = dataset[side].sel(family=family, quantity=quantity)
    part = part.isel(point=np.flatnonzero(dataset.axis.values == axis)).mean("seed")
    return slope(part.values, part.value.values, last=last)


def table(dataset: xr.Dataset, /) -> str:
    """Return a table, as text, with the exponents of each measured quantity and of its bounds."""
    lines = [
        dataset.attrs["settings"],
        "exponents:        axis   random  aligned  printed    sharp",
    ]
    for quantity in dataset.quantity.values.tolist():
        for axis in AXES:
            found = [exponent(dataset, "left", f, axis, quantity) for f in ("random", "aligned")]
            bounds = [
                exponent(dataset, side, "aligned", axis, quantity) for side in ("printed", "sharp")
            ]
            numbers = "".join(f"{number:9.2f}" for number in (*found, *bounds))
            lines.append(f"{quantity:<18}{axis:>4}{numbers}")
    return "\n".join(lines)


def _needed(dataset: xr.Dataset, axis: str, quantity: str, factor: str, power: float) -> Finding:
    text = (
        f"the factor {factor} of beta_3 / sqrt(H) is needed: {quantity} of aligned networks "
        f"changes by it, its exponent within {NEAR}"
    )
    found = exponent(dataset, "left", "aligned", axis, quantity)
    random = exponent(dataset, "left", "random", axis, quantity)
    number = f"exponent {found:.3f} in {axis} against {power:g}; random networks {random:.3f}"
    return Finding(text, bool(abs(found - power) <= NEAR), number)


def _radius(dataset: xr.Dataset) -> Finding:
    text = (
        f"the factor R^5 of beta_3 is needed: {HESSIAN} of aligned networks grows by R^5 at large R"
    )
    found, sharp, random = (
        exponent(dataset, side, family, "R", HESSIAN, last=2)
        for side, family in (("left", "aligned"), ("sharp", "aligned"), ("left", "random"))
    )
    top = dataset.value.values[dataset.axis.values == "R"][-2:]
    number = (
        f"exponent {found:.2f} from R = {top[0]:g} to {top[1]:g}, where the sharpened bound has "
        f"{sharp:.2f}; random networks {random:.2f}"
    )
    return Finding(text, bool(abs(found - sharp) <= NEAR and sharp > 4.5), number)


def _excess(dataset: xr.Dataset, bound: str) -> tuple[float, str]:
    worst, place = -np.inf, ""
    for start, where in (("", "networks"), ("run_", "run")):
        left, error = dataset[f"{start}left"], dataset[f"{start}error"]
        ratio = ((left - error) / dataset[f"{start}{bound}"]).max(
            [d for d in left.dims if d != "quantity"]
        )
        if float(ratio.max()) > worst:
            worst = float(ratio.max())
            place = f"{dataset.quantity.values[int(np.argmax(ratio.values))]} of the {where}"
    return worst, place


def _dimension(dataset: xr.Dataset) -> Finding:
    text = (
        "no factor of d, and no ||W||, is needed: every left side is at most its sharpened bound, "
        "which has neither"
    )
    worst, place = _excess(dataset, "sharp")
    printed = exponent(dataset, "printed", "aligned", "d", CONVEXITY)
    found = [exponent(dataset, "left", f, "d", CONVEXITY) for f in ("aligned", "random")]
    number = (
        f"largest ratio {worst:.3g} ({place}); exponents in d: printed {printed:.2f}, aligned "
        f"{found[0]:.2f}, random {found[1]:.2f}"
    )
    return Finding(text, bool(worst <= 1 + 1e-9), number)


def _constants(dataset: xr.Dataset) -> Finding:
    text = "the sharpened beta_3 / sqrt(H) is tight within a factor 2: aligned networks use half"
    part = dataset.sel(family="aligned", quantity=CONVEXITY)
    ratio = (part.left / part.sharp).mean("seed")
    printed = (part.left / part.printed).mean("seed")
    at = int(np.argmax(ratio.values))
    number = (
        f"at most {float(ratio[at]):.3f}, at {ratio.axis.values[at]} = "
        f"{float(ratio.value[at]):g}; of the printed bound at most {float(printed.max()):.3f}"
    )
    return Finding(text, bool(ratio[at] >= 0.5), number)


def _printed(dataset: xr.Dataset) -> Finding:
    worst, place = _excess(dataset, "printed")
    proved, every = dataset.attrs["certified"], dataset.attrs["networks"]
    number = (
        f"largest ratio {worst:.3g} ({place}); both ends of the loss Hessian's spectrum are "
        f"certified at {proved} of {every} networks"
    )
    text = "Lemma 6 and Corollary 1 (1) to (3) hold as printed at every network"
    return Finding(text, bool(worst <= 1) if proved == every else None, number)


def _along_the_run(dataset: xr.Dataset) -> Finding:
    text = (
        "the bound on weak convexity gets looser along training: -min Hess L / L over the "
        "sharpened bound is smaller at the last step than at the first, in every run"
    )
    part = dataset.sel(quantity=CONVEXITY)
    ratio = (part.run_left / part.run_sharp).transpose("seed", "step").values
    steps, loss = dataset.step.values, dataset.run_loss.mean("seed").values
    means = ", ".join(
        f"step {k}: {m:.3g} (L = {v:.2g})" for k, m, v in zip(steps, ratio.mean(0), loss)
    )
    if len(steps) < 2:
        return Finding(text, None, f"one step. Try --steps 0 1000; {means}")
    return Finding(text, bool((ratio[:, -1] < ratio[:, 0]).all()), means)


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide which factors the bounds need, and how loose the bounds are during training."""
    exponents = (
        _needed(dataset, "H", CONVEXITY, "1 / sqrt(H)", -0.5),
        _needed(dataset, "T", HESSIAN, "sqrt(T)", 0.5),
        _radius(dataset),
    )
    looseness = (_constants(dataset), _along_the_run(dataset))
    return (
        _printed(dataset),
        *SETTINGS.judged(dataset, exponents),
        _dimension(dataset),
        *SETTINGS.judged(dataset, looseness),
    )


def _draw(
    axes: "matplotlib.axes.Axes", ratios: xr.DataArray, sizes: np.ndarray, color: str, style: str
) -> None:
    values = ratios.transpose("seed", ...).values
    axes.plot(sizes, values.mean(0), color=color, ls=style, marker="o", ms=3)
    axes.fill_between(sizes, values.min(0), values.max(0), color=color, alpha=0.15, lw=0)


def figure(dataset: xr.Dataset, /) -> "matplotlib.figure.Figure":
    """Draw the ratio of the measured quantity to its bound against each size.

    Dashed lines are for printed bounds, and solid lines for sharpened bounds.
    """
    import matplotlib.pyplot as plt

    fig, grid = plt.subplots(
        len(SHOWN), len(AXES) + 1, figsize=(12, 6.6), layout="constrained", sharey="row",
        sharex="col",
    )  # fmt: skip
    colors, sides = (
        {"random": OKABE_ITO[0], "aligned": OKABE_ITO[1]},
        {"printed": "--", "sharp": "-"},
    )
    for row, quantity in zip(grid, SHOWN):
        part = dataset.sel(quantity=quantity)
        for axes, axis in zip(row, AXES):
            chosen = part.isel(point=np.flatnonzero(dataset.axis.values == axis))
            for family, color in colors.items():
                one = chosen.sel(family=family)
                for side, style in sides.items():
                    _draw(axes, one.left / one[side], one.value.values, color, style)
        for side, style in sides.items():
            steps = 1 + dataset.step.values
            _draw(row[-1], part.run_left / part[f"run_{side}"], steps, OKABE_ITO[2], style)
        row[0].set_ylabel(f"{quantity}\nover its bound")
        for axes in row:
            axes.set(xscale="log", yscale="log")
            axes.axhline(1, color="0.25", lw=0.8)
    for axes, name in zip(grid[-1], (*AXES, "1 + step, Figure 2's run")):
        axes.set_xlabel(name)
        if name in AXES:
            grid_ticks(axes.xaxis, dataset.value.values[dataset.axis.values == name])
    handles = [plt.Line2D([], [], color=color) for color in (*colors.values(), OKABE_ITO[2])]
    handles += [plt.Line2D([], [], color="0.25", ls=style) for style in sides.values()]
    names = ["random networks", "aligned networks", "a run of Figure 2", "over the printed bound",
             "over the sharpened bound"]  # fmt: skip
    fig.legend(handles, names, loc="outside lower center", ncols=5, title=dataset.attrs["settings"])
    return fig
