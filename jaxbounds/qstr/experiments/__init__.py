"""The paper's figures: one module each, with settings, `run`, `figure` and `claims`.

The default configurations take minutes on two cores; the "published" presets are for a GPU.
"""

from jaxbounds.qstr.experiments import constructions, figure1, figure2, phase

EXPERIMENTS = (*figure1.EXPERIMENTS, figure2.EXPERIMENT, phase.EXPERIMENT, constructions.EXPERIMENT)
"""The experiments of this paper that `jaxbounds run` can execute."""
