"""Translate JAX programs into operations that Rocq (a proof assistant) can check."""
