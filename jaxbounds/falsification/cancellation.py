"""Test whether the sides of a bound differ only by the rounding of an instance's entries.

A search ignores violations as small as rounding. Only ball arithmetic can confirm such a violation.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Instance, Statement
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.evaluation import Xp, is_floating
from jaxbounds.falsification.measure import Measured

NOISE = 1e-12
"""Two sides may be equal, up to rounding, if their difference is below this share of the instance's
largest entry plus one. A larger share mistakes more small violations for rounding."""


def largest_entry(instance: Instance, xp: Xp = jnp, /, *, axes: int = 0) -> Any:
    """Return the largest absolute float of an instance; `axes` is the number of batch axes."""
    floats = [x for x in jax.tree.leaves(instance) if is_floating(x.dtype)]
    last = lambda leaf: tuple(range(axes, leaf.ndim))
    sizes = [xp.max(xp.abs(leaf), axis=last(leaf), initial=0.0) for leaf in floats]
    return xp.max(xp.stack(sizes), axis=0) if sizes else 0.0


def is_cancellation(lhs: Any, rhs: Any, largest: Any, /) -> Any:
    """Return whether a rounding error in an entry of size `largest` could explain lhs != rhs."""
    with np.errstate(invalid="ignore"):  # infinite sides are far apart
        return abs(lhs - rhs) <= NOISE * (largest + 1.0)


def is_noise(statement: Statement, m: Measured, largest: Any, /) -> Any:
    """Return whether a violation of a bound is so small that rounding may explain it."""
    return (m.value > edge(statement)) & is_cancellation(m.lhs, m.rhs, largest)
