"""Experiments: each module has a frozen config, `run`, `figure` and `claims`."""

from jaxbounds.smapprox.experiments import learn, machine, margins

EXPERIMENTS = (margins.EXPERIMENT, machine.EXPERIMENT, learn.EXPERIMENT)
"""What `jaxbounds run` knows of this paper."""
