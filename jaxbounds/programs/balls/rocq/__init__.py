"""Translate JAX programs into scalar operations that Rocq (a proof assistant) can check."""
