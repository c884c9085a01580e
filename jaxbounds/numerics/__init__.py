"""Numerical tools: norms, array modules, lower estimates of suprema, and chaining.

This package contains no theory of any paper.
"""
