"""The paper's figures, and its bounds beside others: what `jaxbounds run` knows of this paper."""

from jaxbounds.seqlength.experiments.comparison import COMPARISON
from jaxbounds.seqlength.experiments.majority import MAJORITY

EXPERIMENTS = (MAJORITY, COMPARISON)

__all__ = ["EXPERIMENTS"]
