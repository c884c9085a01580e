"""How many trials decide the claims of Figure 6, from the results of a run of it.

    jaxbounds run multihead.fig6
    python benchmarks/fig6_power.py results/multihead.fig6

A claim is decided where the 95% Student interval of the slope along log2 H, paired by trial,
excludes zero. For each slope: its mean and standard deviation over the trials at hand; with how
many trials such an interval excludes zero with probability 80 and 90%, first if the true slope is
the one measured, then if it is the least that the claim counts (by the noncentral t distribution;
the standard deviation is an estimate of few trials, and so are these numbers).
"""

from pathlib import Path

import numpy as np
import tyro
from scipy import stats

from jaxbounds.experiments.results import load
from jaxbounds.multihead.experiments.fig6.claims import (
    ACCURACY_RISE,
    TEST_DROP,
    TRAIN_DROP,
    _slopes,
)


def trials_for(effect: float, deviation: float, power: float) -> int:
    """The fewest trials whose two-sided 5% t test has this power; 0 if more than 100,000."""
    size = abs(effect) / deviation
    counts = np.unique(np.round(np.geomspace(2, 1e5, 4000)).astype(int))
    bound, shift = stats.t.ppf(0.975, counts - 1), size * np.sqrt(counts)
    reached = stats.nct.sf(bound, counts - 1, shift) >= power
    return int(counts[np.argmax(reached)]) if reached.any() else 0


def main(folder: Path, /) -> None:
    """Print a row for each slope that a claim rests on."""
    data = load(folder / "result.nc").isel(panel=0)
    heads, epochs = data.H.values, data.epoch.values
    at = lambda name, epoch: data[name].isel(step=int(np.argmin(np.abs(epochs - epoch))))
    last = float(epochs[-1])
    rows = [
        *((f"train loss, epoch {e:g}", at("train_loss", e), -TRAIN_DROP) for e in (1, 2, last)),
        ("test loss, epoch 1", at("test_loss", 1), -TEST_DROP),
        ("best test accuracy", data.test_accuracy.max("step"), ACCURACY_RISE),
    ]
    doublings = np.log2(heads[-1] / heads[0])
    print(f"{data.sizes['trial']} trials, H = {', '.join(map(str, heads))}; slopes along log2 H")
    print(f"{'':<22} {'mean':>9} {'deviation':>9}  80%, 90% of it   80%, 90% of the least")
    for name, values, least in rows:
        slopes = _slopes(heads, values.transpose("H", "trial").values.astype(float))
        mean, deviation = float(slopes.mean()), float(slopes.std(ddof=1))
        shown = [
            f"{trials_for(effect, deviation, 0.8):>7,} {trials_for(effect, deviation, 0.9):>7,}"
            for effect in (mean, least / doublings)
        ]
        print(f"{name:<22} {mean:>+9.5f} {deviation:>9.5f}  {'   '.join(shown)}")


if __name__ == "__main__":
    tyro.cli(main)
