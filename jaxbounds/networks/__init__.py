"""Analyse any network: measure its loss's curvature, train it, and list its parameters by path."""
