"""Experiments: their definition, sweeps, labelled results, provenance, and figures' style."""
