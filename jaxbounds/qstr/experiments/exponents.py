"""Fit the exponent with which the number of samples grows with the prompts' length.

Some runs may be censored (stopped before they learned).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num
from scipy.optimize import minimize
from scipy.special import log_ndtr
from scipy.stats import linregress
from scipy.stats import t as student

from jaxbounds.ground.exceptions import Refused


class Exponent(NamedTuple):
    """The fitted exponent `slope` of n = c N^slope, with a 95% interval.

    Attributes:
        slope: the maximum-likelihood estimate of the exponent.
        censored: the number of runs that did not learn; the fit knows only that each of these runs
            needs more samples than its budget.
    """

    slope: float
    low: float
    high: float
    censored: int


def _fit(x: np.ndarray, y: np.ndarray, known: np.ndarray) -> float:
    """Fit a line and return its slope, by a Tobit likelihood if some y are only lower bounds."""
    design = np.stack([np.ones_like(x), x], axis=1)
    first = np.linalg.lstsq(design, y, rcond=None)[0]
    if known.all():
        return float(first[1])
    spread = max(float(np.std(y - design @ first)), 1e-2)

    def cost(p: np.ndarray) -> tuple[float, np.ndarray]:
        scale = np.exp(p[2])
        z = (y - design @ p[:2]) / scale
        density, tail = -(z**2 + np.log(2 * np.pi)) / 2, log_ndtr(-z)
        slope = np.where(known, z, np.exp(density - tail))  # derivative of the cost in z
        gradient = np.append(-slope @ design / scale, np.sum(known) - slope @ z)
        return -float(np.sum(np.where(known, density - p[2], tail))), gradient

    bounds = [(None, None), (None, None), (np.log(1e-2), np.log(1e2))]
    found = minimize(cost, np.append(first, np.log(spread)), jac=True, bounds=bounds)
    return float(found.x[1])


def fit_exponent(
    lengths: Num[np.ndarray, "K"],
    samples: Float[np.ndarray, "K S"],
    budgets: Float[np.ndarray, "K"],
    /,
    *,
    groups: Num[np.ndarray, "S"] | None = None,
    resamples: int = 200,
    seed: int = 0,
) -> Exponent:
    """Fit the exponent with which the needed number of samples grows with the prompts' length.

    `samples` holds the number of samples that each run needed, for each N and seed. An inf marks a
    run that did not learn within the entry of `budgets` for its N. The seeds of a group share a
    task, so the bootstrap resamples whole `groups`; by default, each seed is its own group.

    Raises:
        Refused: if all lengths are equal, or no run learned within its budget.
    """
    lengths, samples = np.asarray(lengths, float), np.asarray(samples, float)
    if len(np.unique(lengths)) < 2:
        raise Refused(
            f"lengths={lengths}, expected at least two different lengths to fit an exponent. Try"
            " another length"
        )
    known = np.isfinite(samples)
    if not known.any():
        raise Refused(
            f"censored runs={len(known)} of {len(known)}: no run reached the threshold, so no"
            " exponent can be fitted. Try a larger budget of samples"
        )
    floor = np.broadcast_to(np.asarray(budgets, float)[:, None], samples.shape)
    y = np.log(np.where(known, samples, floor))
    x = np.broadcast_to(np.log(lengths)[:, None], y.shape)
    fit = lambda columns: _fit(*(v[:, columns].ravel() for v in (x, y, known)))
    rng = np.random.default_rng(seed)
    seeds = np.arange(samples.shape[1])
    labels = seeds if groups is None else groups
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    chosen = np.sort(rng.integers(0, len(members), (resamples, len(members))), axis=1)
    distinct, times = np.unique(chosen, axis=0, return_counts=True)
    fits = [fit(np.concatenate([members[g] for g in row])) for row in distinct]
    low, high = np.quantile(np.repeat(fits, times), [0.025, 0.975])
    return Exponent(fit(seeds), float(low), float(high), int(np.sum(~known)))


def regression_exponent(
    lengths: Num[np.ndarray, "K"], means: Float[np.ndarray, "K"], /
) -> Exponent:
    """Fit the exponent with which mean numbers of samples grow with the prompts' length.

    The function needs only the mean over runs at each length; all runs must have reached their
    threshold. The 95% interval uses Student's distribution and the scatter of the means about the
    line.

    Raises:
        Refused: if there are fewer than three lengths.
    """
    if len(lengths) < 3:
        raise Refused(f"lengths={list(lengths)}, expected three or more. Try more lengths")
    fit = linregress(np.log(lengths), np.log(means))
    reach = float(student.ppf(0.975, len(lengths) - 2) * fit.stderr)
    return Exponent(float(fit.slope), float(fit.slope) - reach, float(fit.slope) + reach, 0)
