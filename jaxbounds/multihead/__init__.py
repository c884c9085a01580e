"""Deora, Ghaderi, Taheri, Thrampoulidis: Optimization and Generalization of Multi-head Attention.

Transactions on Machine Learning Research, April 2024 (openreview.net/forum?id=wTGjn7JvYK), whose
numbering is followed here; arXiv:2310.12680.

Shapes: n samples, T tokens (rows of X), d dimensions, H heads. Parameters are a dict
{"U": (H, T, d), "W": (H, d, d)}; data are {"X": (n, T, d), "y": (n,) integers in {-1, +1}}.
"""
