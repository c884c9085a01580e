"""When Do Transformers Outperform Feedforward and Recurrent Networks? A Statistical Perspective.

`lemmas`: Lemmas 12, 38 and 41. `heads`: Theorem 1's head count.
"""

from . import heads, lemmas

__all__ = ["heads", "lemmas"]
