"""Whether runs at several lengths decide if something rises with the length, and how many would."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jaxbounds.seqlength.trends import trend


class Decision(NamedTuple):
    """Whether values rise (or fall) with x, None where they do not tell, and the runs that would.

    Attributes:
        present: True: a significant slope of that sign. False: no significant one, and one as large
            as asked about is excluded. None: neither.
        runs: about how many runs a row it takes to tell, a multiple of those at hand; None if more
            than 16 times as many.
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
    """Whether values change with the sign of `change`, or at least not by as much, over all of x.

    A slope is excluded by `trend` where without it, the values minus a straight line, the other
    sign is significant. If neither is decided, every run is counted 2, 4, ... times: an estimate of
    what is needed, from the scatter at hand.

    Args:
        x: as for `trend`, which says what `values` and `keep` are and what is raised, too.
        values: one per run.
        keep: the runs that count.
        kind: "mean" or "max".
        change: from the least x to the largest, what is to be excluded.
        level: of both tests.
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
