"""Decide whether a quantity rises or falls with H, from the differences within each trial.

The decision uses the mean change over trials and its 95% Student interval. The mean of a loss is a
geometric mean.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import xarray as xr
from scipy import stats

from jaxbounds.experiments.experiment import Finding

MOST_TRIALS = 10_000
"""A message says how many trials would decide an open claim if they are fewer than this. A larger
limit gives more messages a number.
"""


def shown(values: np.ndarray, /, *, log10: bool = False) -> str:
    """Return the mean over trials as text; for decimal logarithms, return the geometric mean."""
    mean = float(np.mean(values))
    return _power(mean) if log10 else f"{mean:.3g}"


def _power(log10: float) -> str:
    return f"{10**log10:.2e}" if log10 > -300 else f"1e{log10:.0f}"


def spread(values: np.ndarray, /, *, log10: bool = False) -> str:
    """Return the spread over trials (the last axis) as text.

    The spread is the largest standard deviation over trials. For decimal logarithms, the text gives
    10 to the power of this deviation, or the least and the largest trial if this power exceeds ten.
    """
    if values.shape[-1] < 2:
        return "one trial"
    deviations = np.std(values, axis=-1, ddof=1)
    largest = float(np.max(deviations))
    if not log10:
        return f"standard deviation over trials at most {largest:.2g}"
    if largest < 1:
        return f"standard deviation over trials at most a factor of {10**largest:.3g}"
    widest = values.reshape(-1, values.shape[-1])[int(np.argmax(deviations))]
    low, high = (_power(float(bound)) for bound in (widest.min(), widest.max()))
    return f"trials lie far apart, at most from {low} to {high}"


def half_width(change: np.ndarray, /) -> float:
    """Return half the width of the mean's 95% Student interval, which is infinite for one trial."""
    if change.size < 2:
        return float("inf")
    quantile = stats.t.ppf(0.975, change.size - 1)
    return float(quantile * np.std(change, ddof=1) / np.sqrt(change.size))


def interval(change: np.ndarray, /) -> str:
    """Return the mean over trials and its 95% interval as text."""
    mean = float(np.mean(change))
    if change.size < 2:
        return f"{mean:+.3f} (one trial)"
    return f"{mean:+.3f} +- {half_width(change):.3f}"


def what_would_decide(change: np.ndarray, /) -> str:
    """Say how many trials would decide the claim if all trials vary as the present trials do."""
    if change.size < 2:
        return "two trials or more are needed"
    size, deviation = abs(float(np.mean(change))), float(np.std(change, ddof=1))
    counts = np.arange(2, MOST_TRIALS)
    halves = stats.t.ppf(0.975, counts - 1) * deviation / np.sqrt(counts)
    enough = counts[(halves < size) & (counts > change.size)]
    if not enough.size:
        return f"more than {MOST_TRIALS} trials like these would be needed"
    return f"about {enough[0]} trials like these would decide"


def decide(first: np.ndarray, second: np.ndarray, /, *, rising: bool) -> bool | None:
    """Decide whether `second` is above (below) `first`, using the differences within each trial.

    The decision is True or False if the 95% Student interval of the mean difference excludes zero.
    The decision is None if this interval contains zero, or if there are fewer than two trials.
    """
    change = (second - first) if rising else (first - second)
    mean = np.mean(change)
    return bool(mean > 0) if abs(mean) > half_width(change) else None


def why_not(
    decision: bool | None, change: np.ndarray, where: str, /, *, log10: bool = False
) -> str:
    """Return why a quantity's changes within each trial do not show the claim; "" if they do.

    If the changes leave the claim undecided, the text says how many trials would decide it.
    """
    if decision:
        return ""
    unit = " in log10" if log10 else ""
    if decision is None:
        end = what_would_decide(change)
        return f"unclear {where}: paired change {interval(change)}{unit}, {end}"
    return f"reversed {where}: paired change {interval(change)}{unit}"


def combine(decisions: Sequence[bool | None], /) -> bool | None:
    """Return False if any decision is False, True if all decisions are True, else None.

    The result for no decisions is None.
    """
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
) -> Finding | None:
    """Decide the claim that a quantity rises (falls) from each H to the next, at each step.

    `panel` counts the optimisers of the data set from 0. `heads` gives the least and the largest H
    of the claim. The function ignores `steps` that were not recorded. If `rising` is False, the
    claim says that the quantity falls.

    Returns:
        The text of the claim, with the decision. The result is None if the data set lacks the
        quantity or all `steps`, or has fewer than two H in the range `heads`.
    """
    if name not in dataset:
        return None
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
            where = f"from H = {low} to {high} at step {k}"
            odd.append(why_not(decisions[-1], second - first, where, log10=log10))
    sizes = ", ".join(str(H) for H in chosen)
    means = "geometric means" if log10 else "means"
    words += [spread(rows, log10=log10), *filter(None, odd)]
    return Finding(text, combine(decisions), f"{means} at H = {sizes}; " + "; ".join(words))
