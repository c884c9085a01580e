"""Analyse any network: the curvature of its loss, a training step, and its parameters by path."""
