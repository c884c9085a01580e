"""The seeds that public functions take."""

import numbers

from jaxbounds.ground.exceptions import Refused

SEEDS = 2**32
"""How many seeds there are, from 0 on; a larger number would let seeds pass that NumPy refuses."""


def refuse_other_seeds(seed: int, /) -> None:
    """Refuse a seed that NumPy's or JAX's generators take differently or not at all.

    Raises:
        Refused: if the seed is no whole number, is negative, or exceeds 2^32 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or not 0 <= seed < SEEDS:
        raise Refused(f"seed={seed!r} is no whole number from 0 to 2^32 - 1. Try seed=0")
