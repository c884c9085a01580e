"""Experiments: their definition, sweeps, labelled results, provenance, the look of figures."""
