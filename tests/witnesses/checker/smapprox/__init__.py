"""Statistically Meaningful Approximation: Approximating Turing Machines with Transformers.

`margins`: Section 2. `circuits`: Appendix B. `machines`: Appendix C. Everything but Lemma 2.4 is a
matter of integers.
"""

from . import circuits, machines, margins

__all__ = ["circuits", "machines", "margins"]
