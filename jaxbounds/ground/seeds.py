"""Check the seeds that users pass to public functions."""

import numbers

from jaxbounds.ground.exceptions import Refused

SEEDS = 2**32
"""The number of allowed seeds, 0 to 2^32 - 1. If more seeds were allowed, NumPy would refuse some
of these seeds."""


def refuse_other_seeds(seed: int, /) -> None:
    """Refuse a seed that a random generator of NumPy or JAX would refuse or change.

    Raises:
        Refused: if the seed is not an integer, is negative, or exceeds 2^32 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or not 0 <= seed < SEEDS:
        raise Refused(f"seed={seed!r} is no whole number from 0 to 2^32 - 1. Try seed=0")
