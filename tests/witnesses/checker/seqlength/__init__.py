"""Sequence Length Independent Norm-Based Generalization Bounds for Transformers (AISTATS 2024).

`inequalities`: single displays of Sections 2 to 4 and Appendix C. `covers`: covering numbers of
linear maps against packings, Sections 3 and 4, Appendices D and F. `networks`: Section 4.3 and
Appendix E.
"""

from . import covers, inequalities, networks

__all__ = ["covers", "inequalities", "networks"]
