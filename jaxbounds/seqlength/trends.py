"""The claims of Section 6 as predicates: slopes over the sequence length, by permutation."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from jaxbounds.results import Claim


class Trend(NamedTuple):
    """A slope per 100 tokens and its two-sided permutation p-value."""

    slope: float
    p_value: float


def _slope(lengths: np.ndarray, values: np.ndarray) -> float:
    centred = lengths - lengths.mean()
    return float(100.0 * (centred @ values) / (centred @ centred))


def _summary(values: np.ndarray, keep: np.ndarray, kind: str) -> np.ndarray:
    shown = np.where(keep, values, np.nan)
    return np.nanmax(shown, axis=1) if kind == "max" else np.nanmean(shown, axis=1)


def trend(
    lengths: Float[np.ndarray, "T"],
    values: Float[np.ndarray, "T seeds"],
    keep: Bool[np.ndarray, "T seeds"],
    /,
    *,
    kind: str,
    permutations: int = 1000,
    seed: int = 0,
) -> Trend:
    """The least-squares slope of the mean or maximum over runs, against runs permuted over lengths.

    Raises:
        ValueError: if fewer than two lengths have a run to keep, or `kind` is neither "mean" nor
            "max".
    """
    if kind not in ("mean", "max"):
        raise ValueError(f"kind must be 'mean' or 'max', got {kind!r}")
    rows = keep.any(axis=1)
    if rows.sum() < 2:
        raise ValueError("a trend needs runs that learned at two lengths at least")
    lengths, values, keep = lengths[rows], values[rows], keep[rows]
    observed = _slope(lengths, _summary(values, keep, kind))
    rng, kept = np.random.default_rng(seed), values[keep]
    shuffled = values.copy()
    extreme = 0
    for _ in range(permutations):
        shuffled[keep] = rng.permutation(kept)
        extreme += abs(_slope(lengths, _summary(shuffled, keep, kind))) >= abs(observed) - 1e-15
    return Trend(observed, (extreme + 1) / (permutations + 1))


def claims(data: xr.Dataset, /) -> tuple[Claim, ...]:
    """Figures 1 to 3 and the bound on a dataset of `experiments.run`.

    Only runs that learned count: an untrained network has no gap at any length. A claim of "no
    increasing trend" is reproduced where the slope is not significantly positive at 5%; no
    correction for looking at several.
    """
    lengths = data["T"].values.astype(float)
    keep = data["learned"].values.astype(bool)
    share = float(keep.mean())
    found = [Claim("more than half of the runs have learned", share > 0.5, f"{share:.0%}")]
    figures = (
        ("Figure 1: no increasing trend (not both slope > 0 and p < 0.05)", "l1", "max"),
        ("Figure 2: no increasing trend (not both slope > 0 and p < 0.05)", "gap", "max"),
        ("Figure 3: no fall with T (not both slope < 0 and p < 0.05)", "accuracy", "mean"),
    )
    if keep.any(axis=1).sum() < 2:
        unknown = "too few lengths have runs that learned"
        return (*found, *(Claim(text, None, unknown) for text, _, _ in figures))
    for text, column, kind in figures:
        slope, p = trend(lengths, data[column].values.astype(float), keep, kind=kind)
        wrong = slope < 0 if column == "accuracy" else slope > 0
        number = f"{kind} {column}: slope {slope:+.3g} per 100 tokens, permutation p = {p:.3g}"
        found.append(Claim(text, not (wrong and p < 0.05), number))
    accuracy = data["accuracy"].values.astype(float)
    long = lengths >= 100
    text = "Figure 3: a plateau from T = 100 on (p >= 0.05, best accuracy > 0.7)"
    if keep[long].any(axis=1).sum() < 3:
        number = "needs runs that learned at three lengths from 100 on"
        found.append(Claim(text, None, number))
    else:
        slope, p = trend(lengths[long], accuracy[long], keep[long], kind="max")
        top = float(accuracy[long].max())
        number = f"max accuracy {top:.3f}, slope {slope:+.3g} per 100 tokens, p = {p:.3g}"
        found.append(Claim(text, p >= 0.05 and top > 0.7, number))
    bound, gap = float(data["bound"].min()), float(np.abs(data["gap"]).max())
    vacuous = bound >= 1.0
    number = f"least bound {bound:.3g}, largest gap {gap:.3g}" + ", vacuous" * vacuous
    found.append(Claim("Section 4: gap <= bound", None if vacuous else gap <= bound, number))
    return tuple(found)


def figure(data: xr.Dataset, /) -> Any:
    """Figures 1 to 3 side by side, every run shown: faint where it did not learn."""
    import matplotlib.pyplot as plt

    panels = (
        ("l1_increase", "increase of sum |weight|"),
        ("gap", "validation minus training loss"),
        ("accuracy", "validation accuracy"),
    )
    fig, rows = plt.subplots(1, 3, figsize=(11, 3.2))
    lengths, learned = data["T"].values, data["learned"].values.astype(bool)
    for axes, (name, label) in zip(rows, panels):
        values = data[name].values
        for seed in range(values.shape[1]):
            shade = np.where(learned[:, seed], 0.9, 0.2)
            axes.scatter(lengths, values[:, seed], s=12, color="C0", alpha=shade)
        axes.plot(lengths, values.max(axis=1), color="C1", label="largest")
        axes.plot(lengths, values.mean(axis=1), color="C2", label="mean")
        axes.set(xlabel="sequence length", ylabel=label)
    rows[0].legend(fontsize="small")
    fig.tight_layout()
    return fig
