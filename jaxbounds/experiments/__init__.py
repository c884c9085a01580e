"""Experiments: their definition, sweeps, labelled results, provenance, and the style of figures."""
