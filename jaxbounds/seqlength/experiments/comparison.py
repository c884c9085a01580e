"""The paper's bounds beside a log(T) bound and parameter counting: along T, m and the norm."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments import Claim, Experiment
from jaxbounds.seqlength.comparisons import (
    BOUNDS,
    Setting,
    compare,
    covering_crossover,
    first_informative,
)

CERTIFIED = [name for name, bound in BOUNDS.items() if bound.certified]


def _powers(low: float, high: float, count: int) -> tuple[float, ...]:
    return tuple(float(f"{value:.4g}") for value in np.geomspace(low, high, count))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A class of single-layer Transformers, and the three lines along which bounds are compared.

    Attributes:
        setting: the point through which the lines go.
        T: sequence lengths.
        m: sample sizes.
        B_QK: norms of W_QK.
    """

    setting: Setting = field(default_factory=lambda: Setting(d=16))
    T: tuple[float, ...] = _powers(1, 1e6, 7)
    m: tuple[float, ...] = _powers(1e2, 1e8, 13)
    B_QK: tuple[float, ...] = _powers(1e-2, 1e3, 11)

    def __post_init__(self) -> None:
        """Refuse lines that are empty or do not increase.

        Raises:
            ValueError: naming the line.
        """
        for name in ("T", "m", "B_QK"):
            line = getattr(self, name)
            if len(line) < 2 or list(line) != sorted(set(line)) or not line[0] > 0:
                raise ValueError(f"{name} must be positive and increase, got {line}")


def run(config: Comparison, key: Array, /) -> xr.Dataset:
    """Evaluate every bound on the three lines; nothing is random.

    Returns:
        over_T (bound, T), over_m and over_B_QK with `trivial_over_...` and `winner_over_...`;
        `certified` and `first_m` (the least m with a bound below the trivial value, inf if beyond
        2^60) over `bound`; `crossover`, the x = B_QK B_x / eps from which on parameter counting has
        the smaller cover.
    """
    setting, names = config.setting, list(BOUNDS)
    table: dict[str, Any] = {}
    for over in ("T", "m", "B_QK"):
        line = compare(setting, over=over, values=getattr(config, over))
        stacked = np.stack([line[name].values for name in names])
        table[f"over_{over}"] = (("bound", over), stacked)
        for extra in ("trivial", "winner"):
            table[f"{extra}_over_{over}"] = (over, line[extra].values)
    at = lambda name: lambda m: BOUNDS[name].value(replace(setting, m=m))
    first = [first_informative(at(name), setting.trivial) for name in names]
    table["first_m"] = ("bound", np.array([np.inf if m is None else float(m) for m in first]))
    table["certified"] = ("bound", np.array([BOUNDS[name].certified for name in names]))
    table["crossover"] = covering_crossover(setting.d**2)
    lines = {name: list(getattr(config, name)) for name in ("T", "m", "B_QK")}
    return xr.Dataset(table, coords={"bound": names, **lines}, attrs={"precision": "float64"})


def _words(winners: np.ndarray, line: np.ndarray) -> str:
    """Who wins from where on: "trivial, sharpened from 1e+04"."""
    label = lambda name: BOUNDS[name].label if name in BOUNDS else name
    changes = [i for i in range(1, len(line)) if winners[i] != winners[i - 1]]
    parts = [f"{label(winners[i])} from {line[i]:.3g}" for i in changes]
    return ", ".join([label(winners[0]), *parts])


def claims(data: xr.Dataset, /) -> tuple[Claim, ...]:
    """What the paper says of its bounds beside others, decided on a dataset of `run`."""
    growth = data["over_T"].max("T") / data["over_T"].min("T")
    flat = float(growth.sel(bound=CERTIFIED).max())
    grown = float(growth.sel(bound="log_length"))
    longest, shortest = float(data["T"].max()), float(data["T"].min())
    found = [
        Claim(
            "Section 1: the bounds do not depend on T",
            flat == 1.0,
            f"largest over least for T = {shortest:.3g} to {longest:.3g}: {flat:.6g}",
        ),
        Claim("Section 1: Edelman et al.'s grows with T", grown > 1.0, f"{grown:.3g} times"),
    ]
    ratio = data["over_T"].sel(bound="lemma_3_6") / data["over_T"].sel(bound="log_length")
    clipped = bool((data["over_T"].sel(bound="lemma_3_6") >= data["trivial_over_T"]).all())
    number = f"ratio {float(ratio.min()):.3g} to {float(ratio.max()):.3g}"
    text = "Section 2.5: by the same method below the log(T) bound at every T"
    found.append(
        Claim(text, None if clipped else bool((ratio < 1).all()), number + ", clipped" * clipped)
    )
    first = dict(zip(data["bound"].values.tolist(), data["first_m"].values.tolist()))
    number = ", ".join(f"{BOUNDS[name].label} {m:.3g}" for name, m in first.items())
    text = "m*: fewer samples than parameter counting until below the trivial value"
    found.append(Claim(text, first["sharpened"] < first["parameter_counting"], number))
    ours = ("sharpened", "lemma_3_6", "theorem_4_1")
    winners, line = data["winner_over_m"].values, data["m"].values
    informative = winners != "trivial"
    decided = bool(np.isin(winners[informative], ours).all()) if informative.any() else None
    text = "where each wins, by m: a norm-based bound wherever any is informative"
    found.append(Claim(text, decided, _words(winners, line)))
    winners, line = data["winner_over_B_QK"].values, data["B_QK"].values
    rank = np.select([np.isin(winners, ours), winners == "parameter_counting"], [0, 1], 2)
    text = "where each wins, by norm: norm-based at small norms, parameter counting at large"
    ordered = bool((np.diff(rank) >= 0).all() and rank[0] == 0)
    found.append(Claim(text, ordered, _words(winners, line)))
    text = "parameter counting has the smaller cover at small scales"
    number = f"from x = B_QK B_x / eps = {float(data['crossover']):.3g} on"
    found.append(Claim(text, bool(np.isfinite(data["crossover"])), number))
    return tuple(found)


def figure(data: xr.Dataset, /) -> Any:
    """The three lines side by side; dashed where constants are hidden, dotted the trivial value."""
    import matplotlib.pyplot as plt

    fig, panels = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", sharey=True)
    labels = {"T": "sequence length $T$", "m": "samples $m$", "B_QK": r"$\|W_{QK}\|$"}
    for axes, (over, words) in zip(panels, labels.items()):
        for name, sure in zip(data["bound"].values, data["certified"].values):
            values = data[f"over_{over}"].sel(bound=name)
            style, label = "-" if sure else "--", BOUNDS[str(name)].label
            axes.plot(data[over], values, style, label=label)
        axes.plot(data[over], data[f"trivial_over_{over}"], ":", color="grey", label="trivial")
        axes.set(xscale="log", yscale="log", xlabel=words)
    panels[0].set_ylabel("bound on the Rademacher complexity")
    panels[0].legend(fontsize="small")
    return fig


COMPARISON = Experiment(
    id="seqlength.comparison",
    label="Sections 1 and 2.5",
    title="this paper's bounds, a log(T) bound and parameter counting, along T, m and the norm",
    config=Comparison(),
    run=run,
    figure=figure,
    claims=claims,
)
