"""Numerical tools: norms, array modules, lower estimates of suprema, and chaining.

This package contains no formula that is specific to a paper.
"""
