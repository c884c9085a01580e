"""Move unfinished lanes (runs) together, so a sweep can skip whole groups of finished lanes."""

import numpy as np


def compaction(over: np.ndarray, group: int, devices: int, /) -> np.ndarray | None:
    """Assign lanes to positions so that as few groups as possible have unfinished lanes.

    A lane (one run of the sweep) keeps its slot, which is its position within a group. Only a lane
    in an unchanged slot is sure to compute the same bits. Groups with unfinished lanes come first,
    so all devices get equally many of these groups.

    The array `over`, of shape (positions,), tells whether the lane at each position is finished.
    Positions lie in groups of `group` lanes; group number i is on device i modulo `devices`.

    Returns:
        For each new position, the old position of its lane, of shape (positions,). None if no
        device would have less work after the move.
    """
    table = over.reshape(-1, group)
    busy = np.flatnonzero(~table.all(axis=1)) % devices
    need = -(-np.max(np.sum(~table, axis=0)) // devices)
    if need >= np.max(np.bincount(busy, minlength=devices)):
        return None
    return (np.argsort(table, axis=0, kind="stable") * group + np.arange(group)).ravel()
