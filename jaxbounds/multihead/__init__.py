"""Deora, Ghaderi, Taheri, Thrampoulidis: Optimization and Generalization of Multi-head Attention.

Numbering follows the TMLR 04/2024 version. Shapes: n samples, T tokens (rows of X), d dimensions,
H heads. Parameters are a dict {"U": (H, T, d), "W": (H, d, d)}; data are {"X": (n, T, d),
"y": (n,) integers in {-1, +1}}.
"""
