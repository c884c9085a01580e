"""Sweeps over seeds and grids: vmapped, sharded over devices, in chunks that survive a crash."""

from jaxbounds.sweeps.checkpoint import Checkpoints, leaves_of, records_in, with_leaves
from jaxbounds.sweeps.merging import merge_parts
from jaxbounds.sweeps.reporting import progress
from jaxbounds.sweeps.shares import OnlyAShare, Share
from jaxbounds.sweeps.sweep import sweep
from jaxbounds.sweeps.swept import Swept, lanes_of

__all__ = [
    "Checkpoints",
    "OnlyAShare",
    "Share",
    "Swept",
    "lanes_of",
    "leaves_of",
    "merge_parts",
    "progress",
    "records_in",
    "sweep",
    "with_leaves",
]
