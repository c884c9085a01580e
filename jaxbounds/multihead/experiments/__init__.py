"""The paper's figures as sweeps: each module has a frozen config, `run`, `figure` and `claims`."""

from jaxbounds.multihead.experiments import ntk, planted, sparse_context

EXPERIMENTS = (*sparse_context.EXPERIMENTS, *planted.EXPERIMENTS, ntk.EXPERIMENT)
"""What `jaxbounds run` knows of this paper."""
