"""The experiments of this paper for `jaxbounds run`: its figures, and a comparison of bounds."""

from jaxbounds.seqlength.experiments.comparison import COMPARISON
from jaxbounds.seqlength.experiments.majority import MAJORITY

EXPERIMENTS = (MAJORITY, COMPARISON)

__all__ = ["EXPERIMENTS"]
