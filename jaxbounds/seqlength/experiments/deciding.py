"""Decide whether runs at several lengths show a trend, and estimate how many runs would decide."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jaxbounds.seqlength.trends import trend


class Decision(NamedTuple):
    """The answer of `decide`: whether the values change with x, or how many runs would suffice.

    Attributes:
        present: True if the change is present, False if it is excluded, None if the runs do not
            decide.
        runs: the estimated number of runs at each x that would decide, a multiple of the present
            number. None means more than 16 times the present number.
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
    """Decide whether the values change along x by about `change`, or by less.

    The change is present if `trend` finds a significant slope with the sign of `change`. It is
    excluded if the values minus a straight line with the slope of `change` have a significant slope
    of the opposite sign. If neither test is significant, the function repeats the tests with 2, 4,
    ... copies of every run. The first number of copies that decides estimates the number of runs
    needed.

    Args:
        x: the abscissa of each row of `values`, for example the sequence length.
        values: the measured values; each row contains the runs at one x.
        keep: a boolean mask; True marks the runs that enter the tests.
        kind: the summary of the runs at one x, "mean" or "max".
        change: the values at the largest x minus the values at the least x.
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
