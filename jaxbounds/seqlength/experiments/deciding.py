"""Decisions whether runs at several lengths show a rise, and how many runs would decide."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jaxbounds.seqlength.trends import trend


class Decision(NamedTuple):
    """Whether values rise (or fall) with x, and the number of runs that would decide.

    Attributes:
        present: True: the slope has the sign asked about and is significant. False: it is not, and
            a slope as large as asked about is excluded. None: neither.
        runs: the estimated number of runs per row that decides, a multiple of the present number;
            None if it is more than 16 times the present number.
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
    """Decide whether values change with the sign of `change`, or certainly by less than `change`.

    `trend` tests the values, and then the values minus a straight line with the slope of `change`.
    It excludes the slope if the remaining slope has the other sign and is significant. If neither
    test is significant, the function repeats every run 2, 4, ... times. This estimates the number
    of runs needed from the scatter of the present runs.

    Args:
        x: one abscissa per row. `trend` describes `x`, `values` and `keep` and the errors raised.
        values: one value per run.
        keep: the runs that count.
        kind: "mean" or "max".
        change: the change from the least x to the largest x that is to be excluded.
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
