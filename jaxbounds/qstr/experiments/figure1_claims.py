"""Decide the paper's conclusions from Figure 1, and compare our means with the published means.

The paper concludes from panel (a) that feedforward and recurrent networks need many samples at
large N. It concludes from panel (b) that recurrent networks come close to Transformers.

A published mean is the mean over five runs on one task (link and encodings), so the random choice
of the task affects all five runs in the same way. Runs on one task can refute a published mean only
if the factor between the means is too large to come from the choice of the task. If the factor is
smaller, a refutation needs runs on several tasks (`draws`).
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import xarray as xr
from scipy.stats import t as student

from jaxbounds.experiments.experiment import Finding
from jaxbounds.experiments.settings import Settings
from jaxbounds.qstr.experiments.exponents import Exponent, fit_exponent, regression_exponent

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
"""The published means of five runs for each panel, digitised from the paper's plot."""

READ_ERROR = {"1a": 300.0, "1b": 2000.0}
"""A dictionary from each panel of the figure to the error, in samples, of the means that we read
from the panel's plot."""

OCCLUDED = {
    ("1a", "feedforward", 2): 1000.0,
    ("1a", "feedforward", 8): 1000.0,
    ("1a", "gru500", 2): 1000.0,
    ("1b", "gru500", 25): 3000.0,
}
"""The reading errors, in samples, of the published means whose markers overlap in the plot."""

LEAST_TASKS = 3
"""A confidence interval over tasks decides a claim only if there are at least this many tasks. A
larger number leaves more claims undecided.
"""

LINEAR = 0.8
"""An exponent below this number counts as growth slower than linear. A larger number accepts faster
growth.
"""
CLOSE = 2.0
"""Two numbers of samples are close if they differ by at most this factor. A larger factor makes
more pairs of numbers close.
"""
LUCK = 2.0
"""We assume that the random draw of the link and the encodings changes a mean over seeds by less
than this factor. In 18 cells (an architecture at one N), the largest measured change was a factor
of 1.67. A larger factor leaves more cells undecided.
"""

_CAPTION = {"protocol.d": 10, "protocol.q": 1, "protocol.link": "linear"}
_OTHERS = (
    "The caption states the law, the threshold, d and five runs. Batch, looks at the test risk, "
    "the size of the test set and its law, one task or one for each run, and widths are not stated."
)
SETTINGS = {
    "1a": Settings(
        exact=_CAPTION | {"protocol.simple": False, "protocol.threshold": 0.7},
        least={"seeds": 5, "lengths": 12},
        others=_OTHERS,
    ),
    "1b": Settings(
        exact=_CAPTION | {"protocol.simple": True, "protocol.threshold": 0.02},
        least={"seeds": 5, "lengths": 33},
        others=_OTHERS,
    ),
}
"""A dictionary from each panel to the settings in the caption of Figure 1."""

HONEST = "_honest"
"""The suffix of variables measured on test prompts with the distribution of the training
prompts."""


def panel_of(dataset: xr.Dataset, /) -> str:
    """Return the panel to which a dataset belongs: "1b" for simple prompts, else "1a"."""
    protocol = dataset.attrs.get("config", {}).get("protocol", {})
    return dataset.attrs.get("published") or ("1b" if protocol.get("simple") else "1a")


FAMILIES = {"transformer": "Transformer", "feedforward": "FFN", "gru": "RNN", "lstm": "RNN"}
"""A dictionary from the beginning of an architecture's name to the architecture's name in the
claims.
"""


def said(name: str, /) -> str:
    """Return an architecture's name as the claims print it, such as "FFN (feedforward256)"."""
    found = (word for start, word in FAMILIES.items() if name.startswith(start))
    word = next(found, "")
    return f"{word} ({name})" if word and name != "transformer" else word or name


def left_out(dataset: xr.Dataset, /) -> dict[str, int]:
    """Return the largest N with a run, for each architecture without a run at the last N."""
    trained = dataset.samples.notnull().any("seed")
    most = int(dataset.N.values.max())
    longest = {
        name: int(dataset.N.values[trained.sel(architecture=name).values].max(initial=0))
        for name in dataset.architecture.values.tolist()
    }
    return {name: N for name, N in longest.items() if most > N}


def exponents(dataset: xr.Dataset, /) -> dict[str, Exponent]:
    """Fit the exponent with which the number of samples grows with N, for each architecture.

    If there are several tasks, the bootstrap resamples tasks. If there is only one task, the
    exponent's interval holds for this task alone.
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
    part = dataset.sel(architecture=name, N=N)
    known = np.isfinite(part.samples)
    return part.samples.where(known, part.seen), not bool(known.all())


def _ratio(dataset: xr.Dataset, over: tuple, under: tuple, text: str, sign: str) -> Finding:
    (top, open_top), (low, open_low) = _at_least(dataset, *over), _at_least(dataset, *under)
    value, limit = float(top.mean() / low.mean()), float(sign[1:])
    # A censored numerator bounds the ratio from below, a censored denominator from above.
    undecided = open_top if value < limit else open_low
    reproduced = value < limit if sign[0] == "<" else value > limit
    number = f"ratio {value:.3g}" + ", censored" * (open_top or open_low)
    number += ": a larger max_samples would decide" * undecided
    return Finding(f"{text} (ratio {sign})", None if undecided else reproduced, number)


def _against_published(dataset: xr.Dataset, panel: str, name: str, N: int) -> Iterator[Finding]:
    samples, censored = _at_least(dataset, name, N)
    means, published = samples.groupby("task").mean().values, PUBLISHED[panel][name][N]
    error = OCCLUDED.get((panel, name, N), READ_ERROR[panel])
    count, mean = len(means), float(means.mean())
    several = count >= LEAST_TASKS
    near = None if censored else abs(mean - published) <= 0.15 * published + error
    # A censored mean is a lower bound.
    beyond = mean > LUCK * published + error or (not censored and mean < published / LUCK - error)
    if near is False and not several:
        near = None
    near = False if beyond else near
    number = f"{mean / 1e3:.1f}k ({mean / published - 1:+.0%})" + ", censored" * censored
    number += f"; {LEAST_TASKS} tasks would decide (draws)" * (near is None and not several)
    cell = f"{name}, N = {N}:"
    text = f"{cell} mean over {count} task(s) within 15% of the published, and read error"
    yield Finding(text, near, number)
    if not several:
        return
    likely = None
    if not censored:
        # The mean of five runs on a further task is within this distance with probability 95%.
        reach = student.ppf(0.975, count - 1) * means.std(ddof=1) * np.sqrt(1 + 1 / count)
        likely = bool(abs(mean - published) <= reach + error)
    spread = f"tasks {means.min() / 1e3:.1f}k to {means.max() / 1e3:.1f}k"
    yield Finding(
        f"{cell} published mean within the spread over tasks (95%, and read error)",
        likely,
        f"{spread}, published {published / 1e3:.1f}k",
    )


def _honest(dataset: xr.Dataset, name: str, N: int) -> Finding:
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


_RATIOS = {
    "1a": (
        (("feedforward", 12), ("feedforward", 4), "FFN grows much from N = 4 to 12", "> 6"),
        (
            ("feedforward", 12),
            ("transformer", 12),
            "FFN needs more than Transformer, N = 12",
            "> 4",
        ),
        (("gru128", 8), ("transformer", 8), "RNN needs more than Transformer, N = 8", "> 3"),
        (("gru500", 12), ("transformer", 12), "RNN needs more than Transformer, N = 12", "> 3"),
        (("feedforward", 12), ("gru500", 12), "FFN needs more than RNN, N = 12", "> 1"),
    ),
    "1b": (
        (("feedforward", 33), ("feedforward", 25), "FFN grows much from N = 25 to 33", "> 1.6"),
        (
            ("feedforward", 33),
            ("transformer", 33),
            "FFN needs more than Transformer, N = 33",
            "> 2",
        ),
    ),
}
"""The ratios of means from which the paper draws its conclusions about each panel."""


def _less_than_linear(dataset: xr.Dataset, lengths: list[int]) -> Finding | None:
    if len(lengths) < 2:
        return None
    *before, last = lengths
    first = min((N for N in before if last <= 2 * N), default=before[-1])
    text = f"Transformer grows less than linearly from N = {first} to {last}"
    limit = (last / first) ** LINEAR
    found = _ratio(dataset, ("transformer", last), ("transformer", first), text, f"< {limit:.3g}")
    mean = lambda N: float(_at_least(dataset, "transformer", N)[0].mean())
    steps = ", ".join(
        f"N = {a} to {b}: {mean(b) / mean(a):.3g} ({b / a:.3g})" for a, b in pairwise(lengths)
    )
    return found._replace(number=f"{found.number}, linear {last / first:.3g}; {steps}")


def _close(dataset: xr.Dataset, name: str, lengths: list[int]) -> Finding:
    ratios, late = [], False
    for N in lengths:
        (own, own_late), (other, other_late) = (
            _at_least(dataset, one, N) for one in (name, "transformer")
        )
        ratios.append(float(own.mean() / other.mean()))
        late |= own_late or other_late
    close = all(1 / CLOSE < ratio < CLOSE for ratio in ratios)
    words = ", ".join(f"N = {N}: {ratio:.3g}" for N, ratio in zip(lengths, ratios))
    number = f"ratio {words}" + ", censored: a larger max_samples would decide" * late
    text = f"RNN stays close to Transformer: {name} within a factor {CLOSE:g} at every N"
    return Finding(text, None if late else close, number)


def _closer(dataset: xr.Dataset, name: str, wide: str, N: int) -> Finding:
    means = [_at_least(dataset, one, N) for one in (name, wide, "transformer")]
    own, other = (float(means[i][0].mean() / means[2][0].mean()) for i in (0, 1))
    late = any(censored for _, censored in means)
    number = f"{name} {own:.3g} and {wide} {other:.3g} times the Transformer's"
    number += ", censored: a larger max_samples would decide" * late
    nearer = abs(np.log(own)) < abs(np.log(other))
    text = f"RNN is closer to Transformer than FFN is: {name}, N = {N}"
    return Finding(text, None if late else bool(nearer), number)


def _steeper(dataset: xr.Dataset, more: str, less: str, text: str) -> Finding | None:
    slopes = exponents(dataset)
    if not {more, less} <= set(slopes):
        return None
    runs, tasks = dataset.sizes["seed"], len(np.unique(dataset.task))
    drawn = tasks if tasks > 1 else runs
    if drawn < LEAST_TASKS:  # the means' scatter about the line replaces the runs' spread
        high, low = (_regression(dataset, name) for name in (more, less))
    else:
        high, low = slopes[more], slopes[less]
    if high is None or low is None:
        return Finding(text, None, f"more than {drawn} run(s), or three lengths, would decide")
    words = [
        f"{n} {e.slope:.2f} in [{e.low:.2f}, {e.high:.2f}]" for n, e in ((more, high), (less, low))
    ]
    number, apart = ", ".join(words), high.low > low.high or high.high < low.low
    number += "" if apart else f"; more than {drawn} run(s) would decide"
    return Finding(text, bool(high.low > low.high) if apart else None, number)


def _regression(dataset: xr.Dataset, name: str) -> Exponent | None:
    part = dataset.sel(architecture=name).dropna("N", how="all", subset=["samples"])
    if part.sizes["N"] < 3 or not np.isfinite(part.samples).all():
        return None
    return regression_exponent(part.N.values, part.samples.mean("seed").values)


_OF_RNNS = {
    "1a": ("RNN needs more than Transformer",),
    "1b": ("RNN stays close to Transformer", "RNN depends on N much less than FFN"),
}
"""A dictionary from each panel of Figure 1 to the paper's claims about recurrent networks (RNNs).
"""


def _without_rnn(panel: str) -> Iterator[Finding]:
    why = "no recurrent network beside a Transformer at the same N. --preset published would decide"
    for text in _OF_RNNS[panel]:
        yield Finding(text, None, why)


def _of(dataset: xr.Dataset, start: str) -> str:
    names = dataset.architecture.values.tolist()
    return next((name for name in names if name.startswith(start)), "")


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide the paper's conclusions from the figure, as far as the runs of this dataset allow."""
    present = {
        (name, N)
        for name in dataset.architecture.values.tolist()
        for N in dataset.N.values.tolist()
        if not np.isnan(dataset.samples.sel(architecture=name, N=N)).any()
    }
    panel, wide, gated = panel_of(dataset), _of(dataset, "feedforward"), _of(dataset, "gru")
    of = lambda name: sorted(N for one, N in present if one == name)
    found: list[Finding | None] = [_less_than_linear(dataset, of("transformer"))]
    found += [_ratio(dataset, *row) for row in _RATIOS[panel] if {row[0], row[1]} <= present]
    text = "FFN's exponent above the Transformer's, intervals apart"
    found.append(_steeper(dataset, wide, "transformer", text))
    common = sorted(set(of(gated)) & set(of("transformer")))
    if not common:
        found += _without_rnn(panel)
    if panel == "1b" and common:
        found.append(_close(dataset, gated, common))
        both = sorted(set(common) & set(of(wide)))
        found += [_closer(dataset, gated, wide, N) for N in both[-1:]]
        text = "RNN depends on N much less than FFN: its exponent is below, intervals apart"
        found.append(_steeper(dataset, wide, gated, text))
    published = dataset.attrs.get("published", "")
    for name, row in PUBLISHED.get(published, {}).items():
        for N in row:
            if (name, N) in present:
                found += _against_published(dataset, published, name, N)
    if "samples_honest" in dataset:
        found += [_honest(dataset, name, N) for name, N in sorted(present)]
    return SETTINGS[panel].judged(dataset, filter(None, found))
