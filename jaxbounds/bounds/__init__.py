"""The bounds of the four papers for a user's own network, or reasons why they do not apply."""

from jaxbounds.bounds.network import bounds_for
from jaxbounds.bounds.result import Bounds, PaperBound

__all__ = ["Bounds", "PaperBound", "bounds_for"]
