"""What the four papers say of a network of one's own: their bounds, or all reasons why none.

`network.bounds_for` asks them all; `heads` is what model (2) of multihead needs; `result` is what
comes out.
"""

from jaxbounds.bounds.network import bounds_for
from jaxbounds.bounds.result import Bounds, PaperBound

__all__ = ["Bounds", "PaperBound", "bounds_for"]
