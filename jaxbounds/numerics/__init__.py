"""Norms, array modules, suprema from below, chaining: no theory of any paper."""
