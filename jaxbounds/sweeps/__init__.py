"""Sweeps over seeds and grids: vmapped, sharded over devices, in chunks that survive a crash."""

from jaxbounds.sweeps.checkpoint import Checkpoints, leaves_of, with_leaves
from jaxbounds.sweeps.reporting import progress
from jaxbounds.sweeps.sweep import Swept, lanes_of, sweep

__all__ = ["Checkpoints", "Swept", "lanes_of", "leaves_of", "progress", "sweep", "with_leaves"]
