"""Experiments: each module has a frozen config, `run`, `figure` and `claims`."""
