"""What Section 6 says about Figures 1 to 3, decided on the data of `seqlength.majority`.

Only runs that learned count: an untrained network has no gap at any length. "No increasing trend"
is reproduced where the slope of the paper's statistic, the maximum over runs, is not significantly
positive at 5%; the numbers of the mean and against ln T stand beside it. Nothing is corrected for
looking at several.
"""

import numpy as np
import xarray as xr

from jaxbounds.experiments import Claim
from jaxbounds.seqlength.trends import Trend, trend

LEVEL = 0.05

FIGURES = (
    ("Figure 1: no increasing trend of max sum |weight| (not both slope > 0 and p < .05)", "l1"),
    ("Figure 2: no increasing trend of the max gap (not both slope > 0 and p < .05)", "gap"),
)


def _trends(data: xr.Dataset, name: str, keep: np.ndarray) -> dict[str, Trend]:
    """Slopes of the maximum and the mean over runs, against T / 100 and against ln T."""
    T, values = data["T"].values.astype(float), data[name].values.astype(float)
    scales = {"": T / 100.0, " on ln T": np.log(T)}
    return {
        kind + scale: trend(x, values, keep, kind=kind)
        for scale, x in scales.items()
        for kind in ("max", "mean")
    }


def _in_words(found: dict[str, Trend]) -> str:
    return "; ".join(f"{name} {t.slope:+.3g} (p = {t.p_value:.2g})" for name, t in found.items())


def _no_trend(data: xr.Dataset, keep: np.ndarray, text: str, name: str) -> Claim:
    found = _trends(data, name, keep)
    rises = found["max"].slope > 0 and found["max"].p_value < LEVEL
    return Claim(text, not rises, _in_words(found))


def _accuracy(data: xr.Dataset, keep: np.ndarray) -> tuple[Claim, ...]:
    text = "Figure 3: accuracy does not fall with T (not both mean slope < 0 and p < .05)"
    found = _trends(data, "accuracy", keep)
    falls = found["mean"].slope < 0 and found["mean"].p_value < LEVEL
    whole = Claim(text, not falls, _in_words(found))
    text = "Figure 3: a plateau from T = 100 on (p >= .05, best accuracy > 0.7)"
    long = data["T"].values >= 100
    if keep[long].any(axis=1).sum() < 3:
        return whole, Claim(text, None, "needs runs that learned at three lengths from 100 on")
    far = data.isel(T=np.flatnonzero(long))
    slope, p = trend(far["T"].values / 100.0, far["accuracy"].values, keep[long], kind="max")
    top = float(far["accuracy"].max())
    number = f"max accuracy {top:.3f}, slope {slope:+.3g}, p = {p:.2g}"
    return whole, Claim(text, p >= LEVEL and top > 0.7, number)


def _bounds(data: xr.Dataset) -> tuple[Claim, ...]:
    """Where the bound stands, and that only the norms carry its dependence on T."""
    bound, gap = float(data["bound"].min()), float(np.abs(data["gap"]).max())
    vacuous = bound >= 1.0
    number = f"least bound {bound:.3g}, largest gap {gap:.3g}" + ", vacuous" * vacuous
    below = Claim("Section 4: gap <= bound", None if vacuous else gap <= bound, number)
    fixed = data["bound_fixed"].values
    spread = float(np.ptp(fixed) / fixed[0])
    constant = Claim(
        "Section 4: at fixed norms the bound does not depend on T", spread == 0, f"{spread:.1g}"
    )
    text = "Section 4: at trained norms its trend is that of their product (slopes within .05)"
    if data.sizes["T"] < 2:
        return below, constant, Claim(text, None, "needs two lengths")
    slopes = [
        float(np.polyfit(data["T"].values / 100.0, np.log(data[name].values), 1)[0])
        for name in ("bound", "norm_product")
    ]
    number = f"slope of ln bound {slopes[0]:+.3f}, of ln norms {slopes[1]:+.3f} per 100 tokens"
    follows = Claim(text, abs(slopes[0] - slopes[1]) < 0.05, number)
    return below, constant, follows


def claims(data: xr.Dataset, /) -> tuple[Claim, ...]:
    """Figures 1 to 3 and the bound on a dataset of `majority.run`."""
    keep = data["learned"].values.astype(bool)
    share = float(keep.mean())
    text = "more than half of the runs have learned (others are left out)"
    learned = Claim(text, share > 0.5, f"{share:.0%}")
    if keep.any(axis=1).sum() < 2:
        unknown = "too few lengths have runs that learned"
        open_ = tuple(Claim(text, None, unknown) for text, _ in FIGURES)
        return learned, *open_, Claim("Figure 3: a plateau", None, unknown), *_bounds(data)
    shown = tuple(_no_trend(data, keep, text, name) for text, name in FIGURES)
    return learned, *shown, *_accuracy(data, keep), *_bounds(data)
