"""q-sparse token regression: Transformers against feedforward and recurrent networks.

A. Mousavi-Hosseini, C. Sanford, D. Wu, M. A. Erdogdu: When Do Transformers Outperform Feedforward
and Recurrent Networks? A Statistical Perspective. 2025. arXiv:2503.11272,
doi:10.48550/arXiv.2503.11272.

||Theta_QK||_{2,1} is the sum of the l_2 norms of the columns of Theta_QK, which multiply z_j in
Theta_QK^T z_j. A docstring that means the sum of the rows' l_2 norms says so.

Indices start at 0 in this library: the paper's "i >= N/2" becomes "i >= N/2 - 1". A code such as E3
is the name of an erratum of the paper; `jaxbounds show qstr.E3` explains this erratum.
"""
