"""Sides of a bound that differ by no more than what rounding leaves of an instance's entries.

A violation of that size leads no search, which would follow the noise, and `fails` does not rest on
it unless ball arithmetic confirms it: sums of numbers near one lose the last places too, whatever
the entries are.
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
"""Sides that differ by less than this part of the instance's largest entry, or of one, may be
equal."""


def largest_entry(instance: Instance, xp: Xp = jnp, /, *, axes: int = 0) -> Any:
    """The absolute value of the largest float of an instance; of each, over leading axes."""
    floats = [x for x in jax.tree.leaves(instance) if is_floating(x.dtype)]
    last = lambda leaf: tuple(range(axes, leaf.ndim))
    sizes = [xp.max(xp.abs(leaf), axis=last(leaf), initial=0.0) for leaf in floats]
    return xp.max(xp.stack(sizes), axis=0) if sizes else 0.0


def is_cancellation(lhs: Any, rhs: Any, largest: Any, /) -> Any:
    """Whether the sides of a `<=` may be equal, in an instance whose largest entry is that."""
    with np.errstate(invalid="ignore"):  # infinite sides are far apart
        return abs(lhs - rhs) <= NOISE * (largest + 1.0)


def is_noise(statement: Statement, m: Measured, largest: Any, /) -> Any:
    """Whether a bound is violated, and by nothing that is more than rounding."""
    return (m.value > edge(statement)) & is_cancellation(m.lhs, m.rhs, largest)
