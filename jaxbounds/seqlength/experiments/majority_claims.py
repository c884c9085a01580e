"""A test of Section 6's claims about Figures 1 to 3, on the data of `seqlength.majority`.

The claims use only runs that learned, because an untrained network has no generalization gap at any
length. A claim of a trend holds if the slope is significant. A claim of no trend holds if the test
excludes every trend that doubles the values or changes the accuracy by 0.1. As in the paper, the
tests use the maximum over the runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from jaxbounds.experiments.controls import scaled, valued
from jaxbounds.experiments.experiment import Control, Finding
from jaxbounds.experiments.settings import opened
from jaxbounds.seqlength.experiments.config import PUBLISHED, TEXT
from jaxbounds.seqlength.experiments.deciding import decide
from jaxbounds.seqlength.trends import Trend, trend

LEVEL = 0.05 / 4
"""The significance level of each of the four tests, as a probability. A larger level decides more
claims, and decides wrongly more often."""

RISE = "no rise at p < .0125, a doubling excluded"
DROP = "no fall at p < .0125, by 0.1 excluded"
FIGURES = (
    (f"Figure 1: no increasing trend of max sum |weight| ({RISE})", "l1"),
    (f"Figure 2: no increasing trend of the max gap ({RISE})", "gap"),
)
FALL = f"Figure 3: mean accuracy does not fall with T ({DROP})"
PLATEAU = f"Figure 3: a plateau from T = 100 on ({DROP}, best accuracy > 0.7)"


def deviations(config: Mapping[str, Any], /) -> tuple[str, ...]:
    """List the settings that differ from the paper and its code, such as "epochs 300 for 600"."""
    plain: Callable[[Any], Any] = lambda value: list(value) if isinstance(value, tuple) else value
    short = lambda value: f"{len(value)}" if isinstance(value, list) else f"{value}"
    theirs, other = asdict(PUBLISHED), asdict(TEXT)
    words = []
    for name, published in theirs.items():
        # Settings of the machine change no run. The paper does not state how often it validates,
        # and no curve needs more validations than the preset makes.
        if name in ("chunk", "group") or name not in config:
            continue
        if name == "every" and config[name] <= published:
            continue
        own = plain(config[name])
        if name == "embedding":
            changed = [f"{n} {v}" for n, v in own.items() if v != published[n]]
            words += [f"embedding {', '.join(changed)}"] if changed else []
        elif own not in (plain(published), plain(other[name])):
            words.append(f"{name} {short(own)} for {short(plain(published))}")
    return tuple(words)


def _trends(data: xr.Dataset, name: str, keep: np.ndarray) -> dict[str, Trend]:
    T, values = data["T"].values.astype(float), data[name].values.astype(float)
    scales = {"": T / 100.0, " on ln T": np.log(T)}
    return {
        kind + scale: trend(x, values, keep, kind=kind)
        for scale, x in scales.items()
        for kind in ("max", "mean")
    }


def _in_words(found: dict[str, Trend]) -> str:
    return "; ".join(f"{name} {t.slope:+.3g} (p = {t.p_value:.2g})" for name, t in found.items())


def _absent(
    data: xr.Dataset, name: str, keep: np.ndarray, kind: str, change: float
) -> tuple[bool | None, list[str]]:
    T, values = data["T"].values.astype(float), data[name].values.astype(float)
    found = decide(T, values, keep, kind=kind, change=change, level=LEVEL)
    if found.present is not None:
        return not found.present, []
    seeds = values.shape[1]
    enough = f"about {found.runs}" if found.runs else f"more than {16 * seeds}"
    return None, [f"not decided by {seeds} runs a length: {enough} would"]


def _no_trend(data: xr.Dataset, keep: np.ndarray, text: str, name: str) -> Finding:
    first = int(np.flatnonzero(keep.any(axis=1))[0])
    doubled = abs(float(data[name].values[first][keep[first]].max()))
    absent, why = _absent(data, name, keep, "max", doubled)
    return Finding(text, absent, "; ".join([*why, _in_words(_trends(data, name, keep))]))


def _accuracy(data: xr.Dataset, keep: np.ndarray) -> tuple[Finding, ...]:
    absent, why = _absent(data, "accuracy", keep, "mean", -0.1)
    words = _in_words(_trends(data, "accuracy", keep))
    whole = Finding(FALL, absent, "; ".join([*why, words]))
    long = data["T"].values >= 100
    if keep[long].any(axis=1).sum() < 3:
        return whole, Finding(PLATEAU, None, "needs runs that learned at three lengths from 100 on")
    far, kept = data.isel(T=np.flatnonzero(long)), keep[long]
    slope, p = trend(far["T"].values / 100.0, far["accuracy"].values, kept, kind="max")
    top = float(far["accuracy"].values[kept].max())
    absent, why = _absent(far, "accuracy", kept, "max", -0.1)
    number = f"max accuracy {top:.3f}, slope {slope:+.3g}, p = {p:.2g}"
    flat = absent if top > 0.7 else False
    return whole, Finding(PLATEAU, flat, "; ".join([*why, number]))


def _bounds(data: xr.Dataset) -> tuple[Finding, ...]:
    bound, gap = float(data["bound"].min()), float(np.abs(data["gap"]).max())
    vacuous = bound >= 1.0
    number = f"least bound {bound:.3g}, largest gap {gap:.3g}" + ", vacuous" * vacuous
    below = Finding("Section 4: gap <= bound", None if vacuous else gap <= bound, number)
    fixed = data["bound_fixed"].values
    spread = float(np.ptp(fixed) / fixed[0])
    constant = Finding(
        "Section 4: at fixed norms the bound does not depend on T", spread == 0, f"{spread:.1g}"
    )
    text = "Section 4: at trained norms its trend is that of their product (slopes within .05)"
    if data.sizes["T"] < 2:
        return below, constant, Finding(text, None, "needs two lengths")
    slopes = [
        float(np.polyfit(data["T"].values / 100.0, np.log(data[name].values), 1)[0])
        for name in ("bound", "norm_product")
    ]
    number = f"slope of ln bound {slopes[0]:+.3f}, of ln norms {slopes[1]:+.3f} per 100 tokens"
    follows = Finding(text, abs(slopes[0] - slopes[1]) < 0.05, number)
    return below, constant, follows


def claims(data: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide the claims about Figures 1 to 3 and about the bound on the data of `majority.run`."""
    keep = data["learned"].values.astype(bool)
    share = float(keep.mean())
    text = "more than half of the runs have learned (others are left out)"
    learned = Finding(text, share > 0.5, f"{share:.0%} of {keep.size}")
    shown: tuple[Finding, ...]
    if keep.any(axis=1).sum() < 2:
        unknown = "needs runs that learned at two lengths"
        shown = tuple(
            Finding(text, None, unknown) for text in (FIGURES[0][0], FIGURES[1][0], PLATEAU)
        )
    else:
        trends = (_no_trend(data, keep, text, name) for text, name in FIGURES)
        shown = (*trends, *_accuracy(data, keep))
    config = data.attrs.get("config")
    changed = ("settings not recorded",) if config is None else deviations(config)
    figures = (opened(one, changed, "--preset published") for one in (learned, *shown))
    return (*figures, *_bounds(data))


def _with_slope(name: str, change: float) -> Control:
    def control(data: xr.Dataset) -> xr.Dataset:
        along = (data["T"] - data["T"].min()) / (data["T"].max() - data["T"].min())
        other = data[name] + change * float(np.abs(data[name]).max()) * along
        return data.assign({name: other.transpose(*data[name].dims)})

    return control


CONTROLS: dict[str, Control] = {
    "have learned": valued(0.0, "learned"),
    "Figure 1": _with_slope("l1", 3.0),
    "Figure 2": _with_slope("gap", 3.0),
    "does not fall": _with_slope("accuracy", -0.5),
    "a plateau": _with_slope("accuracy", -0.5),
    "gap <= bound": scaled(1e3, "gap"),
    "at fixed norms": _with_slope("bound_fixed", 0.1),
    "its trend is that": _with_slope("bound", 3.0),
}
"""False data that the claims must reject: wrong trends, runs that have not learned, or a gap above
the bound."""
