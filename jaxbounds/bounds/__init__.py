"""The bounds of the four papers on a user's own network, or all reasons why a bound does not apply.

`network.bounds_for` asks all papers; `heads` holds the conditions of model (2) of multihead;
`result` holds the answer.
"""

from jaxbounds.bounds.network import bounds_for
from jaxbounds.bounds.result import Bounds, PaperBound

__all__ = ["Bounds", "PaperBound", "bounds_for"]
