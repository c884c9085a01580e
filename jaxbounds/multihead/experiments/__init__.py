"""The paper's figures: one module each, with settings, `run`, `figure` and `claims`."""

from jaxbounds.multihead.experiments import (
    fig6,
    looseness,
    ntk,
    planted,
    sparse_context,
    weakconvexity,
)

EXPERIMENTS = (
    *sparse_context.EXPERIMENTS,
    *planted.EXPERIMENTS,
    fig6.EXPERIMENT,
    looseness.EXPERIMENT,
    ntk.EXPERIMENT,
    weakconvexity.EXPERIMENT,
)
"""The experiments of this paper that `jaxbounds run` carries out."""
