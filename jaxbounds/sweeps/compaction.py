"""Moving unfinished lanes together, so that whole groups of finished ones can be skipped."""

import numpy as np


def compaction(over: np.ndarray, group: int, devices: int, /) -> np.ndarray | None:
    """Where to take the lane of each position from, so that the fewest groups have work left.

    A lane keeps its slot within a group, since only there the compiled program is certain to give
    it the same bits. Groups with work are dealt out evenly over the devices.

    Args:
        over: (positions,) whether the lane there is finished; each device owns an equal run of
            consecutive positions, in groups of `group`.
        group: lanes in a group.
        devices: how many there are.

    Returns:
        (positions,) old positions, or None if no device would have less to do.
    """
    table = over.reshape(-1, group)
    share = len(table) // devices
    now = np.max(np.sum(~table.all(axis=1).reshape(devices, share), axis=1))
    need = -(-np.max(np.sum(~table, axis=0)) // devices)
    if need >= now:
        return None
    ranked = np.argsort(table, axis=0, kind="stable") * group + np.arange(group)
    rank = np.arange(len(table))
    order = np.empty_like(ranked)
    order[rank % devices * share + rank // devices] = ranked
    return order.ravel()
