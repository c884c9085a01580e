"""On the Optimization and Generalization of Multi-head Attention (TMLR 2024).

`losses`: Sections 2, 5.2 and 6, Appendix A. `stability`: Section 6.2, Appendix C. `mixture`: the
tokenized mixture DM1, without checks. `first_phase`: Section 5.1, Appendices C.3 and D. `oracle`:
Section 5.3, Appendix E. `orders`: what Section 5.3 compares, and Fact 2.
"""

from . import first_phase, losses, mixture, oracle, orders, stability

__all__ = ["first_phase", "losses", "mixture", "oracle", "orders", "stability"]
