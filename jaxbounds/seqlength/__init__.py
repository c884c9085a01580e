"""Norm-based generalization bounds for Transformers that do not depend on the sequence length.

J. Trauger, A. Tewari: Sequence Length Independent Norm-Based Generalization Bounds for Transformers
(AISTATS 2024, PMLR 238, arXiv:2310.13088).

- Section 2 of the paper: `norms`, `rademacher`, `generalization`, `covering_numbers`, `dudley`,
  `model`.
- Section 3 of the paper: `sparsification`, `counting`, `linear_covers` (explicit covers),
  `linear_bounds` (cover sizes).
- Section 4 of the paper: `single_layer`, `multi_layer`, `perturbation`. The module
  `attention_search` estimates
  the attention's complexity from below.
- The module `masking` is about Section 5.
- Section 6 of the paper: `sparse_majority`, `majority_model`, `trends`, and the folder
  `experiments`.
- The module `comparisons` holds bounds from other papers.
- The modules `extract_norms`, `network_bound` and `certificate` are about trained networks. The
  modules `parameters` and
  `fold` and the function `certificate.applicable` apply the bounds to a network of any library.

All modules use these conventions. ||W||_{q,p} is the l_p norm of the l_q norms of the *columns*;
`column_norm` and `row_norm` distinguish the two orientations. Tokens are the rows of X. Rademacher
complexities include the factor 1/m. Logarithms are natural. A value is certified if a proof shows
that it is a valid bound, with every constant explicit.
"""
