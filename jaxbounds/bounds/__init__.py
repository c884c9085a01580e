"""The bounds of the four papers on a user's own network, or all reasons why a bound does not apply.

`network.bounds_for` collects the answers of all papers. `heads` tests whether a network is model
(2) of the paper multihead. `result` has the classes of the answers.
"""

from jaxbounds.bounds.network import bounds_for
from jaxbounds.bounds.result import Bounds, PaperBound

__all__ = ["Bounds", "PaperBound", "bounds_for"]
