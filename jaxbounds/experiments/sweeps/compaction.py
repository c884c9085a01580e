"""The compaction of unfinished lanes, so that whole groups of finished lanes can be skipped."""

import numpy as np


def compaction(over: np.ndarray, group: int, devices: int, /) -> np.ndarray | None:
    """Choose the lane for each position, so that the fewest groups have work left.

    A lane keeps its slot within a group, because the compiled program gives it certainly equal bits
    only there. Groups with work come first, so they are distributed evenly over the devices.

    Args:
        over: (positions,) whether the lane at each position is finished. Positions lie in groups of
            `group` lanes; group number i is on device i modulo `devices`.
        group: the number of lanes in a group.
        devices: the number of devices.

    Returns:
        (positions,) old positions, or None if no device would have less to do.
    """
    table = over.reshape(-1, group)
    busy = np.flatnonzero(~table.all(axis=1)) % devices
    need = -(-np.max(np.sum(~table, axis=0)) // devices)
    if need >= np.max(np.bincount(busy, minlength=devices)):
        return None
    return (np.argsort(table, axis=0, kind="stable") * group + np.arange(group)).ravel()
