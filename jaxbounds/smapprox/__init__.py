"""Boolean circuits and Turing machines compiled to networks, and their all-layer margins.

C. Wei, Y. Chen, T. Ma: Statistically Meaningful Approximation: a Case Study on Approximating Turing
Machines with Transformers. NeurIPS 2022. arXiv:2107.13163, doi:10.48550/arXiv.2107.13163.
"""
