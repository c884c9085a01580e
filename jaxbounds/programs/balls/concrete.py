"""Run equations on integers, booleans and random keys, which need no balls (intervals).

NumPy runs the common equations, because NumPy has JAX's machine integers and needs no compilation.
The JAX primitive itself runs all rarer equations.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls import elementwise, movement
from jaxbounds.programs.balls.values import NotSupported, axes_of, dtype_of, enclosed, is_float

Values = list[Any]


def _iota(p: Mapping[str, Any]) -> np.ndarray:
    shape = [1] * len(p["shape"])
    shape[p["dimension"]] = -1
    numbers = np.arange(p["shape"][p["dimension"]]).reshape(shape)
    return np.broadcast_to(numbers, p["shape"]).astype(p["dtype"])


_ENTRYWISE: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "not": np.invert,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_FOLDS: dict[str, Callable[..., Any]] = {
    "reduce_sum": np.sum,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_and": np.bitwise_and.reduce,
    "reduce_or": np.bitwise_or.reduce,
}
_ANY_VALUES = {"convert_element_type", "select_n", "concatenate", *movement.REARRANGE}


_EXACT = {"bitcast_convert_type", *movement.RULES}
"""The primitives that make exact floats from integers, such as a conversion."""


def concrete(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Return the results of an equation without float operands.

    Raises:
        NotSupported: if the equation computes floats without an enclosure (a callback, a random
            number).
    """
    name, plain = eqn.primitive.name, not any(isinstance(x, jax.Array) for x in xs)
    if name == "iota" and not xs:
        return [enclosed(_iota(eqn.params))]
    if plain and name in _ENTRYWISE and xs[0].dtype in (np.bool_, np.int32, np.int64):
        with np.errstate(over="ignore"):
            return [np.asarray(_ENTRYWISE[name](*xs))]
    if plain and name in _FOLDS and xs[0].size and xs[0].dtype in (np.bool_, np.int32, np.int64):
        folded = _FOLDS[name](xs[0], axis=axes_of(eqn))
        return [np.asarray(folded, dtype=dtype_of(eqn.outvars[0]))]
    if plain and name in _ANY_VALUES:
        return (elementwise.RULES | movement.RULES)[name](eqn, xs, run)
    if any(is_float(v) for v in eqn.outvars) and name not in _EXACT:
        raise NotSupported(
            f"primitive={name!r} returns floats that ball arithmetic does not enclose. Try float "
            f"operands"
        )
    as_jax = lambda x: x if isinstance(x, jax.Array) else jnp.asarray(x)
    out = eqn.primitive.bind(*map(as_jax, xs), **eqn.params)
    return [enclosed(o) for o in (out if eqn.primitive.multiple_results else [out])]
