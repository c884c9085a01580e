"""Translate JAX programs into scalar operations that the kernel of Rocq (a proof assistant) checks.
"""
