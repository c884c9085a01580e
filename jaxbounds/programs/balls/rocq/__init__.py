"""JAX programs as scalar operations that the kernel of Rocq, a proof assistant, checks."""
