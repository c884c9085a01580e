"""Define rules of ball arithmetic for primitives that rearrange arrays and compute nothing.

Some rules call a NumPy function. All other rules apply JAX's primitive to an array of indices, and
then move the entries by the resulting indices.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb
from jax import lax
from jax.dtypes import issubdtype

from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.values import (
    Flags,
    Undecided,
    as_flags,
    as_reals,
    dtype_of,
    flags,
    is_reals,
    is_soft,
    reals,
)

Values = list[Any]


def _broadcast(x: np.ndarray, p: Mapping[str, Any]) -> np.ndarray:
    shape = [1] * len(p["shape"])
    for axis, place in enumerate(p["broadcast_dimensions"]):
        shape[place] = x.shape[axis]
    return np.broadcast_to(x.reshape(shape), p["shape"])


def _sliced(x: np.ndarray, p: Mapping[str, Any]) -> np.ndarray:
    strides = p["strides"] or (1,) * x.ndim
    return x[tuple(map(slice, p["start_indices"], p["limit_indices"], strides))]


_BY_NUMPY: dict[str, Callable[[np.ndarray, Mapping[str, Any]], np.ndarray]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda x, p: x.reshape(p["new_sizes"]),
    "slice": _sliced,
    "squeeze": lambda x, p: np.squeeze(x, tuple(p["dimensions"])),
    "expand_dims": lambda x, p: np.expand_dims(x, tuple(p["dimensions"])),
    "rev": lambda x, p: np.flip(x, tuple(p["dimensions"])),
    "transpose": lambda x, p: np.transpose(x, p["permutation"]),
}


REARRANGE = frozenset(_BY_NUMPY)


def rearrange(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Evaluate an equation that only rearranges the entries of one array, such as `transpose`."""
    move_by = _BY_NUMPY[eqn.primitive.name]
    if isinstance(xs[0], Flags):
        return [flags(move_by(as_flags(xs[0]), eqn.params))]
    return [move_by(np.asarray(xs[0]), eqn.params)]


def concatenate(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Evaluate a `concatenate` equation: join arrays along one axis."""
    axis = eqn.params["dimension"]
    if any(map(is_reals, xs)):
        return [np.concatenate(list(map(as_reals, xs)), axis)]
    if any(isinstance(x, Flags) for x in xs):
        return [flags(np.concatenate(list(map(as_flags, xs)), axis))]
    return [np.concatenate(list(map(np.asarray, xs)), axis)]


_ALL = None
DATA: dict[str, tuple[int, ...] | None] = {
    "gather": (0,),
    "dynamic_slice": (0,),
    "dynamic_update_slice": (0, 1),
    "scatter": (0, 2),
    "pad": (0, 1),
    "split": _ALL,
    "stack": _ALL,
    "unstack": _ALL,
    "tile": _ALL,
}
"""For each primitive, the numbers of the operands that hold data; the other operands hold indices.
"""


def _fill(value: Any, dtype: Any) -> np.ndarray:
    """Return the entry that `gather` returns for an index out of bounds.

    If the program gives no value, the entry is NaN for floats, the least integer of a signed type,
    the largest of an unsigned type, and True for booleans.
    """
    if value is None and issubdtype(dtype, np.integer):
        limits = jnp.iinfo(dtype)
        value = limits.min if issubdtype(dtype, np.signedinteger) else limits.max
    elif value is None:
        value = np.nan if issubdtype(dtype, np.floating) else True
    return np.array([value], dtype)


def move(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Compute how a primitive such as `gather` moves positions, and move the entries alike.

    Raises:
        Undecided: if an index of the operation is a ball, not an integer.
    """
    name, params = eqn.primitive.name, dict(eqn.params)
    which = DATA[name]
    pool: list[Any] = []
    operands, start, integer = list[Any](), 0, jax.dtypes.canonicalize_dtype(int)
    for i, x in enumerate(xs):
        if which is not None and i not in which:
            if is_soft(x):
                raise Undecided(
                    f"the enclosures (balls) are too wide to decide an index of primitive={name!r}"
                )
            operands.append(jnp.asarray(x))
            continue
        size = int(np.size(x))
        operands.append(np.arange(start, start + size, dtype=integer).reshape(np.shape(x)))
        pool.append(x)
        start += size
    filled = _fill(params.get("fill_value"), dtype_of(eqn.outvars[0]))
    if name == "gather":
        params["fill_value"] = -1  # the pool's last entry is the fill value
    moved = eqn.primitive.bind(*operands, **params)
    results = moved if eqn.primitive.multiple_results else [moved]
    if any(map(is_reals, pool)):
        flat = np.concatenate([as_reals(x).ravel() for x in pool] + [as_reals(filled)])
        return [reals(r.shape, flat[np.asarray(r).ravel()]) for r in results]
    flat = np.concatenate([as_flags(x).ravel() for x in pool] + [as_flags(filled)])
    return [flags(flat[np.asarray(r)]) for r in results]


def _scattered(combine: Callable[[arb, arb], arb]) -> Callable[[JaxprEqn, Values, Any], Values]:
    def rule(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
        operand, index, updates = as_reals(xs[0]), xs[1], as_reals(xs[2])
        if is_soft(index):
            raise Undecided(
                f"the enclosures (balls) are too wide to decide which entry "
                f"primitive={eqn.primitive.name!r} updates"
            )
        out, p = operand.ravel().copy(), eqn.params
        for position, update in enumerate(updates.ravel()):
            one = np.zeros(updates.size)
            one[position] = 1
            hit = lax.scatter_add(  # marks the entry that the primitive would update
                jnp.zeros(operand.shape), jnp.asarray(index),
                jnp.asarray(one.reshape(updates.shape)), p["dimension_numbers"],
                indices_are_sorted=p["indices_are_sorted"], unique_indices=p["unique_indices"],
                mode=p["mode"],
            )  # fmt: skip
            for target in np.flatnonzero(np.asarray(hit)):
                out[target] = combine(out[target], update)
        return [out.reshape(operand.shape)]

    return rule


RULES = {
    **dict.fromkeys(_BY_NUMPY, rearrange),
    **dict.fromkeys(DATA, move),
    "concatenate": concatenate,
    "scatter-add": _scattered(functions.plus),
}
COMBINE = {
    "scatter-mul": _scattered(functions.times),
    "scatter-min": _scattered(functions.less),
    "scatter-max": _scattered(functions.greater),
}
"""Ball arithmetic's rules for nonlinear scatter primitives, such as "scatter-max". A rule combines
an array's entry with the entry's update."""
