"""Read and evaluate traced JAX programs (jaxprs)."""
