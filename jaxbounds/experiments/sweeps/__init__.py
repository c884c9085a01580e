"""Run sweeps over seeds and grids.

A sweep computes groups of its runs (lanes) with `jax.vmap`, on all devices, and writes checkpoints.
"""

from jaxbounds.experiments.sweeps.checkpoint import Checkpoints, leaves_of, records_in, with_leaves
from jaxbounds.experiments.sweeps.merging import merge_parts, merge_sweeps
from jaxbounds.experiments.sweeps.orbax_states import read_state, write_state
from jaxbounds.experiments.sweeps.reporting import each_part, progress
from jaxbounds.experiments.sweeps.shares import OnlyAShare, Share
from jaxbounds.experiments.sweeps.sweep import sweep
from jaxbounds.experiments.sweeps.swept import Swept, lanes_of

__all__ = [
    "Checkpoints",
    "OnlyAShare",
    "Share",
    "Swept",
    "each_part",
    "lanes_of",
    "leaves_of",
    "merge_parts",
    "merge_sweeps",
    "progress",
    "read_state",
    "records_in",
    "sweep",
    "with_leaves",
    "write_state",
]
