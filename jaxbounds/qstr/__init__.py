"""q-sparse token regression: Transformers against feedforward and recurrent networks.

A. Mousavi-Hosseini, C. Sanford, D. Wu, M. A. Erdogdu: When Do Transformers Outperform Feedforward
and Recurrent Networks? A Statistical Perspective. 2025. arXiv:2503.11272,
doi:10.48550/arXiv.2503.11272.

Data and models: `links`, `encodings`, `data`, `layers`, `transformer`, `recurrent`, `gated`,
`state_space`, `architectures`.

Theory: `retrieval` (A.2), `heads` (Propositions 3 and 21), `label_limits` (after Theorem 4), `span`
(Theorem 6), `interpolator` (Lemmas 36-38). Further theory: `relu_networks` and `rnn_construction`
(Appendix C.1), `rnn_bounds` (Proposition 8, Theorem 9), `bounds` (Appendices A and C.2), `packing`
(Lemma 41). Three modules hold constructions that contradict a reading of the paper's theory:
`few_heads`, `two_heads`, `code_rnn`.

||Theta_QK||_{2,1} is the sum of the l_2 norms of the columns of Theta_QK, which multiply z_j in
Theta_QK^T z_j. A docstring that means the rows instead says so.

Indices are 0-based: the paper's "i >= N/2" reads "i >= N/2 - 1" here. A code such as E3 names an
erratum; `jaxbounds show qstr.E3` explains it.
"""
