"""JAX programs as scalar operations that the kernel of Rocq checks: ledger, rules, scripts."""
