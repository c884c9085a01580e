"""Numerical tools that belong to no paper: norms, NumPy or JAX, suprema from below, chaining."""
