"""Norms, array modules, lower estimates of suprema, and chaining; no theory of any paper."""
