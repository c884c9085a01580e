"""q-sparse token regression: Transformers against feedforward and recurrent networks.

A. Mousavi-Hosseini, C. Sanford, D. Wu, M. A. Erdogdu: When Do Transformers Outperform Feedforward
and Recurrent Networks? A Statistical Perspective. 2025. arXiv:2503.11272,
doi:10.48550/arXiv.2503.11272.

Data and models: `links`, `encodings`, `data`, `layers`, `transformer`, `recurrent`, `gated`,
`state_space`, `architectures`.

Theory: `retrieval` (A.2), `heads` (Propositions 3 and 21), `label_limits` (after Theorem 4), `span`
(Theorem 6), `interpolator` (Lemmas 36-38). Further theory: `relu_networks` and `rnn_construction`
(Appendix C.1), `rnn_bounds` (Proposition 8, Theorem 9), `bounds` (Appendices A and C.2), `packing`
(Lemma 41). Three modules build networks that the paper's theory, read literally, excludes:
`few_heads`, `two_heads`, `code_rnn`.

||Theta_QK||_{2,1} is the sum of the l_2 norms of the columns of Theta_QK, which multiply z_j in
Theta_QK^T z_j. A docstring that means the sum of the rows' l_2 norms says so.

Indices start at 0 in this library: the paper's "i >= N/2" becomes "i >= N/2 - 1". A code such as E3
is the name of an erratum of the paper; `jaxbounds show qstr.E3` explains this erratum.
"""
