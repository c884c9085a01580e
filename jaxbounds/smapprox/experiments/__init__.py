"""The experiments of the paper for `jaxbounds run`."""

from jaxbounds.smapprox.experiments import learn, machine, margins

EXPERIMENTS = (margins.EXPERIMENT, machine.EXPERIMENT, learn.EXPERIMENT)
"""The experiments of this paper for `jaxbounds run`."""
