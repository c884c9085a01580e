"""Norm-based generalization bounds for Transformers that do not depend on the sequence length.

J. Trauger, A. Tewari: Sequence Length Independent Norm-Based Generalization Bounds for
Transformers (AISTATS 2024, PMLR 238, arXiv:2310.13088).

Section 2: `norms`, `rademacher`, `generalization`, `covering_numbers`, `dudley`, `model`.
Section 3: `sparsification`, `counting`, `linear_covers` (covers that are built), `linear_bounds`
(their sizes). Section 4: `single_layer`, `multi_layer`, `perturbation`. Section 5: `masking`.
Measured against them: `attention_search`. Side by side with other bounds: `comparisons`; on a
trained network: `extract_norms`, `network_bound`, `certificate`; on one of any library:
`parameters`, `fold`, `certificate.applicable`. Section 6: `sparse_majority`,
`majority_model`, `trends`, and the folder `experiments`.

Conventions. ||W||_{q,p} is the l_p norm over *columns* of their l_q norms; `column_norm` and
`row_norm` keep the two orientations apart. Tokens are the rows of X. Rademacher complexities
include the factor 1/m. Logarithms are natural.
"""
