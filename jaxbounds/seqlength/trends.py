"""Slopes of measured values against the sequence length, with p-values from permuted runs."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jaxbounds.ground.exceptions import Refused


class Trend(NamedTuple):
    """A least-squares slope and its two-sided permutation p-value."""

    slope: float
    p_value: float


def _slope(x: np.ndarray, values: np.ndarray) -> float:
    centred = x - x.mean()
    return float((centred @ values) / (centred @ centred))


def _summary(values: np.ndarray, keep: np.ndarray, kind: str) -> np.ndarray:
    shown = np.where(keep, values, np.nan)
    return np.nanmax(shown, axis=1) if kind == "max" else np.nanmean(shown, axis=1)


def trend(
    x: Float[np.ndarray, "T"],
    values: Float[np.ndarray, "T seeds"],
    keep: Bool[np.ndarray, "T seeds"],
    /,
    *,
    kind: str,
    permutations: int = 1000,
    seed: int = 0,
) -> Trend:
    """Compute the slope of the mean or maximum over runs, and its permutation p-value.

    Args:
        x: the abscissa of each row of `values`, for example T or ln T.
        values: the measured values; each row contains the runs at one x.
        keep: a mask of the runs that count; a row without such runs is omitted.
        kind: the summary of the runs of one row, "mean" or "max".
        permutations: the number of permutations; the p-value is at least 1 / (permutations + 1).
        seed: the seed of the permutations.

    Raises:
        Refused: if fewer than two rows have a run that counts, or `kind` is neither "mean" nor
            "max".
    """
    if kind not in ("mean", "max"):
        raise Refused(f"kind={kind!r} is unknown, expected 'mean' or 'max'. Try kind='mean'")
    rows = keep.any(axis=1)
    if rows.sum() < 2:
        raise Refused(
            f"only rows={rows.sum()} have a run with keep=True, expected at least 2 for a "
            f"trend. Try more rows, for example more lengths"
        )
    x, values, keep = x[rows], values[rows], keep[rows]
    observed = _slope(x, _summary(values, keep, kind))
    rng, kept = np.random.default_rng(seed), values[keep]
    shuffled = values.copy()
    extreme = 0
    for _ in range(permutations):
        shuffled[keep] = rng.permutation(kept)
        extreme += abs(_slope(x, _summary(shuffled, keep, kind))) >= abs(observed) - 1e-15
    return Trend(observed, (extreme + 1) / (permutations + 1))
