"""Sequence Length Independent Norm-Based Generalization Bounds for Transformers (AISTATS 2024).

`inequalities`: single displays of Sections 2 to 4 and Appendix C. `covers`: covering numbers of
linear maps against packings, Sections 3 and 4, Appendices D and F. `packings`: covering numbers of
networks against packings, Section 4 and Appendix F. `networks`: Section 4.3 and Appendix E.
"""

from . import covers, inequalities, networks, packings

__all__ = ["covers", "inequalities", "networks", "packings"]
