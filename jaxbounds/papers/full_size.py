"""Which figures ran at the paper's full size, and where their numbers stand."""

from collections.abc import Mapping

from jaxbounds.experiments.experiment import Experiment

FULL_SIZE: Mapping[str, str] = {
    "qstr.fig1a": "2026-11-21, version 0.1, seed 0: jaxbounds guide figures",
}
"""For each figure that ran with its preset "published": the date, the version, and the place of the
numbers. A figure with that preset that is not listed never ran at full size."""


def full_size(experiment: Experiment, /) -> str:
    """Say whether a figure ran at the paper's settings; "" where the paper has no such settings."""
    if "published" not in experiment.presets:
        return ""
    known = FULL_SIZE.get(experiment.id)
    return f"ran at full size: {known}" if known else "never ran at full size (--preset published)"
