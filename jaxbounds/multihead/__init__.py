"""Deora, Ghaderi, Taheri, Thrampoulidis: Optimization and Generalization of Multi-head Attention.

The paper appeared in Transactions on Machine Learning Research, April 2024
(openreview.net/forum?id=wTGjn7JvYK; arXiv:2310.12680). All numbers of lemmas and equations refer to
the published version.

A code such as S6 names a sharpening, and a code such as E5 names an erratum. The command `jaxbounds
show multihead.S6` explains a code.

Shapes: n samples, T tokens (rows of X), d dimensions, H heads. Parameters are a dict {"U": (H, T,
d), "W": (H, d, d)}. Data are a dict {"X": (n, T, d), "y": (n,) integers in {-1, +1}}.
"""
