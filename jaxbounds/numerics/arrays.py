"""The choice between NumPy and `jax.numpy`, so that one formula serves numbers and traced values.

Outside of a trace, NumPy and Python numbers evaluate a formula, since an operation of `jax.numpy`
takes a hundred times as long. In a trace, `jax.numpy` computes the whole formula, including
constants such as ln 2 or an identity matrix. The traced program so holds no rounded constants.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

Count = int | Int[Array, ""]
"""An integer, known or traced."""


def traced(*values: Any) -> bool:
    """Tell whether one of the values, or a leaf of one, is a tracer of JAX."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def array_module(*values: Any) -> Any:
    """Return `jax.numpy` if one of the values is traced, else `numpy`."""
    return jnp if traced(*values) else np


def real(n: Any, /) -> Any:
    """Return a traced integer as a float, for products with floats; return a number unchanged.

    JAX refuses to mix integers and floats under strict promotion.
    """
    return n.astype(float) if traced(n) else n


def log(n: Any, /, *others: Any) -> Any:
    """Return the natural logarithm of a scalar, or of a known integer of any size.

    Args:
        n: the scalar or the integer.
        others: other values of the formula; the result is traced if `n` or one of them is traced.
    """
    if not traced(n, *others):
        return math.log(n)
    return jnp.log(n if traced(n) else float(n))


def number(value: Any, /) -> Any:
    """Return a scalar as a Python number, an array as NumPy's; return a traced value unchanged."""
    if traced(value):
        return value
    known = np.asarray(value)
    return known if known.ndim else known.item()
