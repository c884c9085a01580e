"""Choose NumPy or `jax.numpy`, so that one formula works for numbers and for traced values.

Outside a trace, NumPy evaluates a formula, because an operation of `jax.numpy` takes a hundred
times as long. Inside a trace, `jax.numpy` computes the whole formula, so that the traced program
contains no constants that NumPy has rounded.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

Count = int | Int[Array, ""]
"""An integer: a Python number, or a traced scalar."""


def traced(*values: Any) -> bool:
    """Tell whether any leaf of the given values (pytrees) is a JAX tracer."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def array_module(*values: Any) -> Any:
    """Return `jax.numpy` if one of the values is traced, else `numpy`."""
    return jnp if traced(*values) else np


def real(n: Any, /) -> Any:
    """Convert a traced integer to a float, and return any other number unchanged.

    The conversion lets formulas multiply integers by floats, which JAX refuses under strict type
    promotion.
    """
    return n.astype(float) if traced(n) else n


def log(n: Any, /, *others: Any) -> Any:
    """Return the natural logarithm of a scalar, or of a Python integer of any size.

    If `n` or one of `others` (the other values in the formula) is traced, `jax.numpy` computes the
    logarithm.
    """
    if not traced(n, *others):
        return math.log(n)
    return jnp.log(n if traced(n) else float(n))


def number(value: Any, /) -> Any:
    """Return a scalar as a Python number, an array as a NumPy array, a traced value unchanged."""
    if traced(value):
        return value
    known = np.asarray(value)
    return known if known.ndim else known.item()
