"""JAX programs as data."""
