"""Check a sweep's arguments before any program is compiled."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import can_be_stored


def canonical(leaf: Any, /) -> Any:
    """Convert a NumPy array to the type that JAX gives it (float32 for float64 without x64)."""
    if not isinstance(leaf, np.ndarray):
        return leaf
    return leaf.astype(jax.dtypes.canonicalize_dtype(leaf.dtype), copy=False)


def is_key(leaf: Any, /) -> bool:
    """Tell whether a leaf is an array of typed PRNG keys."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def impl_of(leaf: Any, /) -> Any:
    """Return the random generator of an array of typed keys, or of a `ShapeDtypeStruct`."""
    found: list[Any] = []

    def look(keys: Any) -> Any:
        found.append(jax.random.key_impl(keys))
        return keys

    jax.eval_shape(look, leaf)
    return found[0]


def is_one_old_key(leaf: Any, /) -> bool:
    """Tell whether a leaf is a single key from `jax.random.PRNGKey`, not an array of keys."""
    return leaf.dtype == np.uint32 and leaf.ndim == 1 and leaf.shape[0] in (2, 4)


def by_path(tree: Any, /) -> dict[str, Any]:
    """Return a dict from paths, such as "['rate']", to the leaves of a pytree."""
    return {
        jax.tree_util.keystr(path) or "the value": leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def count_of(lanes: Any, /) -> int:
    """Return the number of lanes (runs) in a pytree; each leaf has one row for each lane.

    Raises:
        Refused: if a leaf is not an array with an axis of lanes, the leaves have different lengths,
            there are no lanes, or a leaf is a single old-style key.
    """
    found = by_path(lanes)
    for path, leaf in found.items():
        if not hasattr(leaf, "dtype") or not hasattr(leaf, "shape") or not leaf.shape:
            raise Refused(
                f"lanes{path} is {type(leaf).__name__} without an axis of lanes (runs), expected "
                f"an array with one row for each lane. Try jnp.asarray([...])"
            )
        if is_one_old_key(leaf) and any(word in path.lower() for word in ("key", "rng")):
            raise Refused(
                f"lanes{path} has shape={leaf.shape}, which may be a single old-style key (random "
                f"key) or {leaf.shape[0]} seeds. Try jax.random.split(jax.random.key(0), lanes)"
            )
    lengths = {path: leaf.shape[0] for path, leaf in found.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        said = ", ".join(f"{path}: {length}" for path, length in lengths.items())
        raise Refused(
            f"lanes (the inputs of the runs) has arrays of lengths={said or 'none'}, expected "
            f"equal lengths of at least 1. Try lanes_of, which combines all values with all seeds"
        )
    return next(iter(lengths.values()))


def bits_of(dtype: Any, /) -> int:
    """Return the number of bits of a dtype; a typed key counts as 8 bits."""
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return 8
    if jnp.issubdtype(dtype, jnp.integer):
        return int(jnp.iinfo(dtype).bits)
    return int(jnp.finfo(dtype).bits) if jnp.issubdtype(dtype, jnp.inexact) else 8


def refuse_types(what: str, leaves: Iterable[tuple[str, Any]], /, *, stored: bool) -> None:
    """Refuse types of arrays that a sweep cannot carry or, if `stored` is true, cannot store.

    Raises:
        Refused: if a leaf has an unsupported type; the message names the first leaf with an
            unsupported type.
    """
    for path, leaf in leaves:
        if bits_of(leaf.dtype) < 8:
            raise Refused(
                f"{what}{path} has type={leaf.dtype}, but XLA cannot pass this type from one "
                "program to the next. Try int8, and convert inside the step"
            )
        if stored and not is_key(leaf) and not can_be_stored(np.dtype(leaf.dtype)):
            raise Refused(
                f"{what}{path} has type={leaf.dtype}, but a file cannot store this type. Try "
                "folder=None"
            )


def refuse_numbers(**numbers: int | None) -> None:
    """Refuse counts that are not positive whole numbers.

    Raises:
        Refused: if a count is not a positive whole number; the message names the first wrong count.
    """
    for name, value in numbers.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if value is not None and not (whole and value >= 1):
            raise Refused(
                f"{name}={value!r}, expected a positive whole number. Try leaving {name} out"
            )
