"""Helpers for files, memory, text, and the internals of JAX, without any mathematics."""
