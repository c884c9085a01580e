"""A comparison of the paper's bounds with a log(T) bound and parameter counting."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments.controls import scaled, turned, valued
from jaxbounds.experiments.experiment import Control, Experiment, Finding
from jaxbounds.experiments.settings import default_settings
from jaxbounds.ground.exceptions import Refused
from jaxbounds.seqlength.comparisons import (
    BOUNDS,
    Setting,
    compare,
    covering_crossover,
    first_informative,
)

_POINT = Setting(d=16, m=10**7)
"""The default class of Transformers, for which every bound is below the trivial value (Theorem 4.1
only for m >= 590,336)."""

OURS = ("theorem_4_1_corrected", "lemma_3_6", "sharpened")
"""The paper's bound as printed, with the entropy integral of the other bounds, and sharpened."""


def _powers(low: float, high: float, count: int) -> tuple[float, ...]:
    return tuple(float(f"{value:.4g}") for value in np.geomspace(low, high, count))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A class of single-layer Transformers, and the values of T, m and B_QK that a run tries.

    Attributes:
        setting: the class; a run changes T, m or B_QK in it, and keeps the rest.
        T: the sequence lengths.
        m: the sample sizes.
        B_QK: the bounds on ||W_QK||_{1,1}.
    """

    setting: Setting = field(default_factory=lambda: _POINT)
    T: tuple[float, ...] = _powers(1, 1e6, 7)
    m: tuple[float, ...] = _powers(1e2, 1e8, 13)
    B_QK: tuple[float, ...] = _powers(1e-2, 1e3, 11)

    def __post_init__(self) -> None:
        for name in ("T", "m", "B_QK"):
            line = getattr(self, name)
            if len(line) < 2 or list(line) != sorted(set(line)) or not line[0] > 0:
                raise Refused(
                    f"{name}={line}, expected at least two positive increasing values. Try to sort"
                    " them"
                )


def run(config: Comparison, key: Array, /) -> xr.Dataset:
    """Evaluate every bound while one of T (length), m (sample size) and B_QK (norm) varies.

    Returns:
        A dataset with the bounds `over_T`, `over_m` and `over_B_QK`, with axes such as (bound, T).
        `trivial_over_...` holds the trivial bound, and `winner_over_...` the name of the least
        bound. `certified` and `first_m` have the axis `bound`; `first_m` is the least m at which
        the bound is below the trivial value, or inf above 2^60. `crossover` is the x = B_QK B_x /
        eps above which parameter counting gives a smaller cover than Lemma 3.6.
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
    about = {"precision": "float64", "config": asdict(config)}
    return xr.Dataset(table, coords={"bound": names, **lines}, attrs=about)


def _words(winners: np.ndarray, line: np.ndarray) -> str:
    label = lambda name: BOUNDS[name].label if name in BOUNDS else name
    changes = [i for i in range(1, len(line)) if winners[i] != winners[i - 1]]
    parts = [f"{label(winners[i])} from {line[i]:.3g}" for i in changes]
    return ", ".join([label(winners[0]), *parts])


def _informative(data: xr.Dataset, name: str, over: str) -> np.ndarray:
    return (data[f"over_{over}"].sel(bound=name) < data[f"trivial_over_{over}"]).values


def _over_length(data: xr.Dataset) -> tuple[Finding, ...]:
    growth = data["over_T"].max("T") / data["over_T"].min("T")
    longest, shortest = float(data["T"].max()), float(data["T"].min())
    here = data.attrs.get("config", {}).get("setting", {}).get("m")
    at = f", here m = {here:.3g}" if here else ""

    def claim(text: str, name: str, shown: Any) -> Finding:
        if not _informative(data, name, "T").all():
            least = float(data["first_m"].sel(bound=name))
            needed = f"m >= {least:.3g} samples would decide" if least < np.inf else "no m decides"
            return Finding(text, None, f"clipped at the trivial value: {needed}{at}")
        number = float(growth.sel(bound=name))
        between = f"largest over least for T = {shortest:.3g} to {longest:.3g}: {number:.6g}"
        return Finding(text, bool(shown(number)), between)

    flat = [
        claim(f"Section 1: {BOUNDS[name].label} does not depend on T", name, lambda g: g == 1.0)
        for name in OURS
    ]
    text = f"Section 1: {BOUNDS['log_length'].label}, grows with T"
    grows = claim(text, "log_length", lambda g: g > 1.0)
    ratio = data["over_T"].sel(bound="lemma_3_6") / data["over_T"].sel(bound="log_length")
    clipped = not _informative(data, "lemma_3_6", "T").any()
    number = f"ratio {float(ratio.min()):.3g} to {float(ratio.max()):.3g}"
    text = "Section 2.5: Lemma 3.6 by the same method below Edelman et al. at every T"
    below = Finding(
        text, None if clipped else bool((ratio < 1).all()), number + ", clipped" * clipped
    )
    return *flat, grows, below


SETTINGS = default_settings(
    exact={f"setting.{n}": getattr(_POINT, n) for n in ("d", "B_x", "B_QK", "heads")},
    least={"T": 1e6, "m": 1e8, "B_QK": 1e3},
    others="The paper names no point: which bound is least depends on it, and is asked of the "
    "default's lines. A bound that does not depend on T does so at every point.",
)
"""The settings at which a run decides the claims. A smaller run leaves the claims open."""


def _growing(data: xr.Dataset) -> xr.Dataset:
    slope = 1 + 1e-3 * np.log(data["T"] / data["T"].min()) / np.log(data["T"].max())
    grown = (data["over_T"] * slope).where(data["bound"].isin(OURS), data["over_T"])
    return data.assign(over_T=grown.transpose(*data["over_T"].dims))


def _constant(data: xr.Dataset) -> xr.Dataset:
    first = data["over_T"].where(data["bound"] != "log_length", data["over_T"].isel(T=0))
    return data.assign(over_T=first.transpose(*data["over_T"].dims))


def _counted(data: xr.Dataset) -> xr.Dataset:
    winners = data["winner_over_m"]
    return data.assign(winner_over_m=winners.where(winners == "trivial", "parameter_counting"))


CONTROLS: dict[str, Control] = {
    "does not depend on T": _growing,
    "grows with T": _constant,
    "below Edelman et al.": scaled(1e-3, "over_T", bound="log_length"),
    "m*: ": scaled(1e6, "first_m", bound="sharpened"),
    "where each wins, by m": _counted,
    "where each wins, by norm": turned("B_QK", "winner_over_B_QK"),
    "smaller cover": valued(np.inf, "crossover"),
}
"""False data that the claims must reject: constant bounds grow, growing bounds are constant, or the
least bound is not the least."""


def claims(data: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide the paper's claims that compare its bounds with other bounds, on the data of `run`."""
    *at_any_point, below = _over_length(data)
    found = [below]
    first = dict(zip(data["bound"].values.tolist(), data["first_m"].values.tolist()))
    number = ", ".join(f"{BOUNDS[name].label} {m:.3g}" for name, m in first.items())
    text = "m*: sharpened, fewer samples than parameter counting until below the trivial value"
    found.append(Finding(text, first["sharpened"] < first["parameter_counting"], number))
    winners, line = data["winner_over_m"].values, data["m"].values
    informative = winners != "trivial"
    decided = bool(np.isin(winners[informative], OURS).all()) if informative.any() else None
    text = "where each wins, by m: a norm-based bound wherever any is informative"
    found.append(Finding(text, decided, _words(winners, line)))
    winners, line = data["winner_over_B_QK"].values, data["B_QK"].values
    rank = np.select([np.isin(winners, OURS), winners == "parameter_counting"], [0, 1], 2)
    text = "where each wins, by norm: norm-based at small norms, parameter counting at large"
    ordered = bool((np.diff(rank) >= 0).all() and rank[0] == 0)
    found.append(Finding(text, ordered, _words(winners, line)))
    text = "parameter counting has the smaller cover at small scales"
    number = f"from x = B_QK B_x / eps = {float(data['crossover']):.3g} on"
    at_any_point.append(Finding(text, bool(np.isfinite(data["crossover"])), number))
    return (*at_any_point, *SETTINGS.judged(data, found))


def _setting(data: xr.Dataset) -> str:
    one = data.attrs.get("config", {}).get("setting")
    if not one:
        return ""
    outer = dict(one["outer"])
    odd = "odd" if outer.pop("odd", False) else "not odd"
    product = np.prod(list(outer.values()))
    return (
        rf"Lines through T = {one['T']:,}, m = {one['m']:,}, $\|W_{{QK}}\|_{{1,1}}$ = "
        f"{one['B_QK']:g}; d = {one['d']}, heads = {one['heads']}, $B_x$ = {one['B_x']:g}, "
        rf"$B_w B_{{W_c}} B_{{W_v}} L_\sigma$ = {product:g}, $\sigma$ {odd}. Evaluated: no trials."
    )


def figure(data: xr.Dataset, /) -> Any:
    """Plot the bounds as functions of T, of m and of B_QK, side by side.

    A dashed curve is a bound with hidden constants. The dotted curve is the trivial value. A curve
    is faint where the bound is clipped at the trivial value.
    """
    import matplotlib.pyplot as plt

    fig, panels = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", sharey=True)
    labels = {"T": "sequence length $T$", "m": "samples $m$", "B_QK": r"$\|W_{QK}\|_{1,1}$"}
    for axes, (over, words) in zip(panels, labels.items()):
        silent, place = [], data[over]
        for name, sure in zip(data["bound"].values.tolist(), data["certified"].values):
            says, label = _informative(data, name, over), BOUNDS[name].label
            needed = f"{label} (m < {float(data['first_m'].sel(bound=name)):.2g})"
            silent += [] if says.any() else [needed if over == "T" else label]
            near = says | np.append(says[1:], False) | np.insert(says[:-1], 0, False)
            values, dashes = data[f"over_{over}"].sel(bound=name).values, "-" if sure else "--"
            (line,) = axes.plot(place, np.where(near, values, np.nan), dashes, label=label)
            axes.plot(place, values, dashes, color=line.get_color(), alpha=0.4, zorder=1)
        axes.plot(data[over], data[f"trivial_over_{over}"], ":", color="grey", label="trivial")
        if silent:
            said = f"faint, at the trivial value for every {words.split()[-1]}: {', '.join(silent)}"
            axes.set_title(said, fontsize="small", loc="left")
        axes.set(xscale="log", yscale="log", xlabel=words)
    panels[0].set_ylabel("bound on the Rademacher complexity")
    handles, names = panels[0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=len(names))
    if _setting(data):
        fig.suptitle(_setting(data), x=0.01, ha="left", fontsize=9)
    return fig


COMPARISON = Experiment(
    id="seqlength.comparison",
    label="Sections 1 and 2.5",
    title="this paper's bounds, a log(T) bound and parameter counting, against T, m and ||W_QK||",
    config=Comparison(),
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
)
