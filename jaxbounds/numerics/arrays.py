"""The choice of an array module: one formula serves numbers and traced values.

The host evaluates formulas with NumPy and Python numbers, since an operation of `jax.numpy` takes a
hundred times as long there. In a trace `jax.numpy` computes the formula, including constants such
as ln 2 or an identity matrix. Then the program holds the formula without rounded numbers.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

Count = int | Int[Array, ""]
"""A whole number, known or traced."""


def traced(*values: Any) -> bool:
    """Tell whether one of the values, or a leaf of one, is traced: its number is not known."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def array_module(*values: Any) -> Any:
    """Return `jax.numpy` if one of the values is traced, else `numpy`."""
    return jnp if traced(*values) else np


def real(n: Any, /) -> Any:
    """Return a traced integer as a float, for products with floats; a number as it is.

    Under strict promotion JAX refuses to mix the two kinds.
    """
    return n.astype(float) if traced(n) else n


def log(n: Any, /, *others: Any) -> Any:
    """Return the natural logarithm of a scalar, or of a known integer of any size.

    The result is traced if `n` is traced, or if one of `others`, which the formula also uses, is.
    """
    if not traced(n, *others):
        return math.log(n)
    return jnp.log(n if traced(n) else float(n))


def number(value: Any, /) -> Any:
    """Return a scalar as a Python number, an array as NumPy's; a traced value as it is."""
    if traced(value):
        return value
    known = np.asarray(value)
    return known if known.ndim else known.item()
