"""One formula for numbers and for traced values: which array module computes it.

What is evaluated on the host runs on NumPy and Python numbers, where an operation of `jax.numpy`
takes a hundred times as long. Where JAX traces the same formula, `jax.numpy` computes it, constants
such as ln 2 or an identity matrix too: then the program holds the formula, and nothing rounded.
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
    """Whether one of the values, or a leaf of one, is traced: its number is not known."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def array_module(*values: Any) -> Any:
    """`jax.numpy` where one of the values is traced, else `numpy`."""
    return jnp if traced(*values) else np


def real(n: Any, /) -> Any:
    """A traced integer as a float, for products with floats; a number as it is.

    Under strict promotion JAX refuses to mix the two kinds.
    """
    return n.astype(float) if traced(n) else n


def log(n: Any, /, *others: Any) -> Any:
    """The natural logarithm of a scalar; of a known integer of any size.

    Traced if `n` is, or if one of the others is, which the formula is of as well.
    """
    if not traced(n, *others):
        return math.log(n)
    return jnp.log(n if traced(n) else float(n))


def number(value: Any, /) -> Any:
    """A scalar as a Python number, an array as NumPy's; what is traced as it is."""
    if traced(value):
        return value
    known = np.asarray(value)
    return known if known.ndim else known.item()
