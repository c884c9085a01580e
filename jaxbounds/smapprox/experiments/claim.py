"""A qualitative statement of the paper as a predicate on a result."""

from typing import NamedTuple


class Claim(NamedTuple):
    """One claim about a dataset.

    Attributes:
        text: the claim in words.
        reproduced: whether it holds on the data.
        number: the number that decides it.
    """

    text: str
    reproduced: bool
    number: float
