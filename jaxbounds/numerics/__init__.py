"""Numerical tools that belong to no paper: norms, ascents, chaining, and NumPy beside JAX."""
