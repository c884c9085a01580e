"""Decide whether runs at several lengths show a trend, and estimate how many runs would decide."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jaxbounds.seqlength.trends import trend


class Decision(NamedTuple):
    """The answer of `decide`: whether the values change with x, or how many runs would suffice.

    Attributes:
        present: True if the slope of the values is significant and has the sign of `change`, the
            slope that the caller of `decide` asks about. False if the slope is not significant, and
            a test excludes slopes at least as large as `change`. None otherwise.
        runs: the estimated number of runs at each x that would decide the question. The estimated
            number of runs is a multiple of the present number of runs. None if the decision would
            need more than 16 times the present number of runs.
    """

    present: bool | None
    runs: int | None


def decide(
    x: Float[np.ndarray, "T"],
    values: Float[np.ndarray, "T seeds"],
    keep: Bool[np.ndarray, "T seeds"],
    /,
    *,
    kind: str,
    change: float,
    level: float,
) -> Decision:
    """Decide whether the values change along x as much as `change` states, or change less.

    `trend` tests the values, and then the values minus a straight line with the slope of `change`.
    The second test excludes the slope of `change` if the slope that remains after the subtraction
    is significant and has the opposite sign. If neither test is significant, the function repeats
    the tests with 2, 4, ... copies of every run. The first number of copies at which a test is
    significant estimates the number of runs that would decide the question.

    Args:
        x: the value of x (for example the sequence length) for each row of `values`. The docstring
            of `trend` describes the errors raised.
        values: the measured values of all runs; each row contains the runs at one x.
        keep: a boolean mask; True marks the runs that enter the tests.
        kind: the summary of the runs at one x, "mean" or "max".
        change: the change that the test asks about: the values at the largest x minus the values at
            the least x.
        level: the significance level of both tests.
    """
    ramp = (change / np.ptp(x) * (x - x.min()))[:, None]
    for times in (1, 2, 4, 8, 16):
        many, kept = np.tile(values, times), np.tile(keep, times)
        found = trend(x, many, kept, kind=kind)
        left = trend(x, many - ramp, kept, kind=kind)
        present = found.slope * change > 0 and found.p_value < level
        if present or (left.slope * change < 0 and left.p_value < level):
            return Decision(present if times == 1 else None, times * values.shape[1])
    return Decision(None, None)
