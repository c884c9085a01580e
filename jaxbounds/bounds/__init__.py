"""The bounds of the four papers for a user's own network, or reasons why they do not apply.

`network.bounds_for` returns, for each paper, its bound or the reasons why the bound does not apply.
`heads` tests whether a network is the attention model (2) of the paper multihead. `result` defines
the classes that hold these bounds and reasons.
"""

from jaxbounds.bounds.network import bounds_for
from jaxbounds.bounds.result import Bounds, PaperBound

__all__ = ["Bounds", "PaperBound", "bounds_for"]
