"""Experiments: each module has a frozen config, `run`, `figure` and `claims`."""

from jaxbounds.smapprox.experiments import machine, margins

EXPERIMENTS = (margins.EXPERIMENT, machine.EXPERIMENT)
"""What `jaxbounds run` knows of this paper."""
