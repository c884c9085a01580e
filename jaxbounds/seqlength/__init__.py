"""Norm-based generalization bounds for Transformers that do not depend on the sequence length.

J. Trauger, A. Tewari: Sequence Length Independent Norm-Based Generalization Bounds for Transformers
(AISTATS 2024, PMLR 238, arXiv:2310.13088).

All modules use these conventions. ||W||_{q,p} is the l_p norm of the l_q norms of the *columns* of
W. Tokens are the rows of X. Rademacher complexities include the factor 1/m. Logarithms are natural.
A value is certified if a proof shows that it is a valid bound, with every constant explicit.
"""
