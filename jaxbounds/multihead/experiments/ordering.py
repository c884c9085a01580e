"""Whether a quantity rises or falls along the heads: differences paired within each trial."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import xarray as xr
from scipy import stats

from jaxbounds.experiments import Claim


def shown(values: np.ndarray, /, *, log10: bool = False) -> str:
    """The mean over trials, geometric for decimal logarithms."""
    mean = float(np.mean(values))
    if not log10:
        return f"{mean:.3g}"
    return f"{10**mean:.2e}" if mean > -300 else f"1e{mean:.0f}"


def spread(values: np.ndarray, /, *, log10: bool = False) -> str:
    """The largest standard deviation over trials (the last axis), a factor for logarithms."""
    largest = float(np.max(np.std(values, axis=-1, ddof=1))) if values.shape[-1] > 1 else 0.0
    if not log10:
        return f"{largest:.2g}"
    return f"x{10**largest:.3g}" if largest < 3 else f"x1e{largest:.0f}"


def decide(first: np.ndarray, second: np.ndarray, /, *, rising: bool) -> bool | None:
    """Whether `second` lies above (below) `first`, paired.

    True or False where the 95% Student interval of the mean difference excludes zero, None where it
    does not or where there are fewer than two trials.
    """
    change = (second - first) if rising else (first - second)
    if change.size < 2:
        return None
    half = stats.t.ppf(0.975, change.size - 1) * np.std(change, ddof=1) / np.sqrt(change.size)
    mean = np.mean(change)
    return bool(mean > 0) if abs(mean) > half else None


def combine(decisions: Sequence[bool | None], /) -> bool | None:
    """False if one is, else None if one is (or there is none), else True."""
    if any(d is False for d in decisions):
        return False
    return True if decisions and all(decisions) else None


def along_heads(
    dataset: xr.Dataset,
    name: str,
    text: str,
    /,
    *,
    panel: int,
    steps: Sequence[int],
    rising: bool,
    heads: tuple[float, float] = (1, np.inf),
) -> Claim | None:
    """The claim that a quantity is ordered along neighbouring H at each of the steps.

    Args:
        dataset: of `run_curves`.
        name: the quantity.
        text: of the claim.
        panel: its index.
        steps: those that were recorded count.
        rising: or falling.
        heads: least and largest H that count.

    Returns:
        None where the data set holds fewer than two such H or none of the steps.
    """
    values = dataset[name].isel(panel=panel)
    chosen = [H for H in dataset.H.values.tolist() if heads[0] <= H <= heads[1]]
    steps = [k for k in steps if k in dataset.step.values]
    if len(chosen) < 2 or not steps:
        return None
    log10 = name.startswith("log10")
    rows = values.sel(H=chosen, step=steps).transpose("step", "H", "trial").values.astype(float)
    decisions, words, odd = [], [], []
    for k, row in zip(steps, rows):
        words.append(f"step {k}: " + ", ".join(shown(trials, log10=log10) for trials in row))
        for (low, first), (high, second) in pairwise(zip(chosen, row)):
            decisions.append(decide(first, second, rising=rising))
            if not decisions[-1]:
                what = "unclear" if decisions[-1] is None else "reversed"
                odd.append(f"{what} from H = {low} to {high} at step {k}")
    sizes = ", ".join(str(H) for H in chosen)
    words += [f"standard deviation over trials at most {spread(rows, log10=log10)}", *odd]
    return Claim(text, combine(decisions), f"H = {sizes}; " + "; ".join(words))
