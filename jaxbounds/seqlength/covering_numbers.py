"""Exact covering numbers of small finite classes (Section 2.4), by search.

Covers are internal (made of members of the class) and strict (distance < epsilon). The distance of
f and g is the largest over the inputs: sup_i ||f(x_i) - g(x_i)||_q.
"""

import itertools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.arrays import traced

LARGEST_CLASS = 16
"""The largest number of functions in a class; a larger class takes more time, twice as much for
each function."""


class Staircase(NamedTuple):
    """A covering number as a step function of epsilon.

    N(epsilon) = counts[j] for radii[j] < epsilon <= radii[j + 1], with radii[0] = 0. The last count
    is 1, the covering number at every epsilon > radii[-1].
    """

    radii: Float[np.ndarray, "steps"]
    counts: Int[np.ndarray, "steps"]

    def log_covering(self, epsilon: ArrayLike, /) -> Float[np.ndarray, "*shape"]:
        """Compute ln N(epsilon) for an array of epsilon > 0."""
        return np.log(self.counts[np.searchsorted(self.radii, epsilon, side="left") - 1])


def sup_distances(
    values: Float[np.ndarray | Array, "functions points k"],
    q: float,
    /,
    *,
    quasi: bool = False,
) -> Float[np.ndarray | Array, "functions functions"]:
    """Compute sup_i ||f(x_i) - g(x_i)||_q for all pairs of functions.

    Raises:
        Refused: if q < 1, because l_q is then no norm. The argument `quasi` allows 0 < q < 1, as
            Section 2.4 does (erratum E13).
    """
    if not (q >= 1 or (quasi and q > 0)):
        raise Refused(f"q={q}, expected at least 1, because l_q is no norm for q < 1. Try q=1")
    difference = abs(values[:, None] - values[None, :])
    if np.isinf(q):
        return difference.max(axis=(-1, -2))
    return ((difference**q).sum(axis=-1) ** (1.0 / q)).max(axis=-1)


def smallest_cover(covers: Bool[np.ndarray | Array, "centres members"], /) -> int | Array:
    """Compute the least number of rows of the mask `covers` with a True in every column.

    If some column has no True and the mask is traced, the result is the number of rows plus one.

    Raises:
        Refused: if there are more than 16 rows, or if a column of a concrete (not traced) mask has
            no True.
    """
    centres, members = covers.shape
    if centres > LARGEST_CLASS:
        raise Refused(
            f"functions={centres}, expected at most {LARGEST_CLASS}, because exact covering"
            " numbers enumerate all subsets. Try fewer functions"
        )
    if traced(covers):
        subsets = (jnp.arange(2**centres)[:, None] >> jnp.arange(centres)[None, :]) & 1
        complete = jnp.all(subsets @ covers.astype(subsets.dtype) > 0, axis=1)
        return jnp.min(jnp.where(complete, subsets.sum(axis=1), centres + 1))
    masks = [int(sum(1 << j for j in np.flatnonzero(row))) for row in covers]
    everything = (1 << members) - 1
    for size in range(centres + 1):
        for subset in itertools.combinations(masks, size):
            reached = 0
            for mask in subset:
                reached |= mask
            if reached == everything:
                return size
    raise Refused(
        f"all centres={centres} together do not cover every member of the class, expected a cover; "
        f"perhaps epsilon=0. Try a positive epsilon"
    )


def covering_number(distances: Float[np.ndarray | Array, "n n"], epsilon: Any, /) -> int | Array:
    """Compute N(epsilon) of a finite class from its pairwise distances.

    Raises:
        Refused: if there are more than 16 functions or epsilon is not positive.
    """
    if not (traced(epsilon) or epsilon > 0):
        raise Refused(f"epsilon={epsilon}, expected a positive number. Try epsilon=0.1")
    return smallest_cover(distances < epsilon)


def covering_staircase(distances: Float[np.ndarray | Array, "n n"], /) -> Staircase:
    """Compute N(epsilon) for all epsilon > 0 at once.

    Raises:
        Refused: if there are more than 16 functions.
    """
    radii = np.unique(distances)
    # Just above radii[j] exactly the pairs with distance <= radii[j] are covered.
    counts = np.array([smallest_cover(distances <= radius) for radius in radii])
    return Staircase(radii, counts)
