"""Figure 1 read as the paper reads it, and against its published means.

A published mean is that of five runs on one task (link and encodings), whose luck all five share.
Whether it is reproduced is therefore decided over several draws of the task: `draws` of the
configuration.
"""

import numpy as np
import xarray as xr
from scipy.stats import t as student

from jaxbounds.experiments.experiment import Finding
from jaxbounds.qstr.experiments.exponents import Exponent, fit_exponent

PUBLISHED = {
    "1a": {
        "feedforward": {2: 2.9e3, 4: 9.0e3, 6: 20.4e3, 8: 39.4e3, 10: 65.4e3, 12: 115.6e3},
        "gru500": {2: 1.0e3, 4: 16.4e3, 6: 33.0e3, 8: 41.0e3, 10: 58.8e3, 12: 73.8e3},
        "transformer": {2: 3.0e3, 4: 5.85e3, 6: 10.65e3, 8: 14.7e3, 10: 15.95e3, 12: 17.2e3},
    },
    "1b": {
        "feedforward": {25: 242e3, 27: 310e3, 29: 440e3, 31: 563e3, 33: 630e3},
        "gru500": {25: 106e3, 27: 140e3, 29: 148e3, 31: 165e3, 33: 165e3},
        "transformer": {25: 118e3, 27: 169e3, 29: 128e3, 31: 124e3, 33: 140e3},
    },
}
"""For each panel, the means of five runs, digitised from the published plot."""

READ_ERROR = {"1a": 300.0, "1b": 2000.0}
"""Error of the digitised means, in samples, by panel."""

OCCLUDED = {
    ("1a", "feedforward", 2): 1000.0,
    ("1a", "feedforward", 8): 1000.0,
    ("1a", "gru500", 2): 1000.0,
    ("1b", "gru500", 25): 3000.0,
}
"""Larger read errors where markers hide one another."""

LEAST_TASKS = 3
"""Below which a spread over tasks, or an interval from resampled ones, decides nothing."""

HONEST = "_honest"
"""Ending of what was tested on the training law."""


def left_out(dataset: xr.Dataset, /) -> dict[str, int]:
    """Architectures that are not trained at the longest lengths, with the longest that they are."""
    trained = dataset.samples.notnull().any("seed")
    most = int(dataset.N.values.max())
    longest = {
        name: int(dataset.N.values[trained.sel(architecture=name).values].max(initial=0))
        for name in dataset.architecture.values.tolist()
    }
    return {name: N for name, N in longest.items() if most > N}


def exponents(dataset: xr.Dataset, /) -> dict[str, Exponent]:
    """For each architecture, the exponent of samples in N with its interval.

    Where there are several tasks, it is they that are resampled; the interval over the runs of a
    single task is conditional on it.
    """
    several = len(np.unique(dataset.task)) > 1
    found = {}
    for name in dataset.architecture.values.tolist():
        part = dataset.sel(architecture=name).dropna("N", how="all", subset=["samples"])
        if part.sizes["N"] >= 2 and np.isfinite(part.samples).any():
            data = part.N.values, part.samples.values, part.seen.values
            found[name] = fit_exponent(*data, groups=part.task.values if several else None)
    return found


def _at_least(dataset: xr.Dataset, name: str, N: int) -> tuple[xr.DataArray, bool]:
    """The samples with censored runs at what they saw (a lower bound), and whether any was."""
    part = dataset.sel(architecture=name, N=N)
    known = np.isfinite(part.samples)
    return part.samples.where(known, part.seen), not bool(known.all())


def _ratio(dataset: xr.Dataset, over: tuple, under: tuple, text: str, sign: str) -> Finding:
    """A ratio of means, "> 4" or "< 3.5"; None where censoring leaves it open."""
    (top, open_top), (low, open_low) = _at_least(dataset, *over), _at_least(dataset, *under)
    value, limit = float(top.mean() / low.mean()), float(sign[1:])
    # A censored numerator bounds the ratio from below, a censored denominator from above.
    undecided = open_top if value < limit else open_low
    reproduced = value < limit if sign[0] == "<" else value > limit
    number = f"ratio {value:.3g}" + ", censored" * (open_top or open_low)
    number += ": a larger max_samples would decide" * undecided
    return Finding(f"{text} (ratio {sign})", None if undecided else reproduced, number)


def _against_published(
    dataset: xr.Dataset, panel: str, name: str, N: int
) -> tuple[Finding, Finding]:
    """Whether the mean is near the published one, and whether the latter is a likely draw."""
    samples, censored = _at_least(dataset, name, N)
    means, published = samples.groupby("task").mean().values, PUBLISHED[panel][name][N]
    error = OCCLUDED.get((panel, name, N), READ_ERROR[panel])
    count, mean = len(means), float(means.mean())
    number = f"{mean / 1e3:.1f}k ({mean / published - 1:+.0%})" + ", censored" * censored
    number += f"; {LEAST_TASKS} tasks would decide (draws)" * (count < LEAST_TASKS)
    spread = f"tasks {means.min() / 1e3:.1f}k to {means.max() / 1e3:.1f}k"
    near = likely = None
    if count >= LEAST_TASKS and not censored:
        near = abs(mean / published - 1) < 0.15
        # A further mean of five runs on another task falls within it with probability 95%.
        reach = student.ppf(0.975, count - 1) * means.std(ddof=1) * np.sqrt(1 + 1 / count)
        likely = bool(abs(mean - published) <= reach + error)
    cell = f"{name}, N = {N}:"
    return (
        Finding(f"{cell} mean over {count} task(s) within 15% of the published", near, number),
        Finding(
            f"{cell} published mean within the spread over tasks (95%, and read error)",
            likely,
            f"{spread}, published {published / 1e3:.1f}k",
        ),
    )


def _honest(dataset: xr.Dataset, name: str, N: int) -> Finding:
    """Whether the simple test set, on which the public code tests, changes the count."""
    renamed = {"samples": dataset.samples_honest, "seen": dataset.seen_honest}
    (simple, early), (honest, late) = (
        _at_least(data, name, N) for data in (dataset, dataset.assign(renamed))
    )
    change = float(honest.mean() / simple.mean()) - 1
    censored = early or late
    return Finding(
        f"{name}, N = {N}: with an honest test set the mean is within 15% of the simple one's",
        None if censored else abs(change) < 0.15,
        f"{float(honest.mean()) / 1e3:.1f}k ({change:+.0%})" + ", censored" * censored,
    )


_RATIOS = (
    (("transformer", 12), ("transformer", 4), "Transformer grows little from N = 4 to 12", "< 3.5"),
    (("feedforward", 12), ("feedforward", 4), "FFN grows much from N = 4 to 12", "> 6"),
    (("feedforward", 12), ("transformer", 12), "FFN needs more than Transformer, N = 12", "> 4"),
    (("gru128", 8), ("transformer", 8), "GRU needs more than Transformer, N = 8", "> 3"),
    (("gru500", 12), ("transformer", 12), "GRU needs more than Transformer, N = 12", "> 3"),
    (("feedforward", 12), ("gru500", 12), "FFN needs more than GRU, N = 12", "> 1"),
)


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """The paper's reading of the figure on this dataset, as far as its grid allows."""
    present = {
        (name, N)
        for name in dataset.architecture.values.tolist()
        for N in dataset.N.values.tolist()
        if not np.isnan(dataset.samples.sel(architecture=name, N=N)).any()
    }
    found = [_ratio(dataset, *row) for row in _RATIOS if {row[0], row[1]} <= present]
    slopes = exponents(dataset)
    wide = next((name for name in slopes if name.startswith("feedforward")), None)
    if "transformer" in slopes and wide:
        e, f = slopes["transformer"], slopes[wide]
        own = f"{e.slope:.2f} in [{e.low:.2f}, {e.high:.2f}]"
        text = "FFN's exponent above the Transformer's, intervals apart"
        number = f"FFN {f.slope:.2f} in [{f.low:.2f}, {f.high:.2f}], Transformer {own}"
        tasks = len(np.unique(dataset.task))
        drawn = tasks if tasks > 1 else dataset.sizes["seed"]
        apart = f.low > e.high or f.high < e.low
        decided = apart and drawn >= LEAST_TASKS
        number += "" if decided else f"; more than {drawn} run(s) would decide"
        found.append(Finding(text, bool(f.low > e.high) if decided else None, number))
    for name, N in left_out(dataset).items():
        text = f"{name} beside the others above N = {N}"
        found.append(Finding(text, None, "not run there: longest_gru = 0 would decide"))
    panel = dataset.attrs.get("published", "")
    for name, row in PUBLISHED.get(panel, {}).items():
        for N in row:
            if (name, N) in present:
                found += _against_published(dataset, panel, name, N)
    if "samples_honest" in dataset:
        found += [_honest(dataset, name, N) for name, N in sorted(present)]
    return tuple(found)
