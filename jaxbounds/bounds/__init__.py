"""The bounds of the four papers for a user's own network, or reasons why they do not apply.

`network.bounds_for` collects the answers of all papers. `heads` tests whether a network is model
(2) of the paper multihead. `result` defines the classes of the answers.
"""

from jaxbounds.bounds.network import bounds_for
from jaxbounds.bounds.result import Bounds, PaperBound

__all__ = ["Bounds", "PaperBound", "bounds_for"]
