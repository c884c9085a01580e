"""Numerical tools: norms, the choice of NumPy or JAX, lower estimates of suprema, and chaining.

This package contains no formula that is specific to a paper.
"""
