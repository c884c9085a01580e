"""Return the share of a direction's squared norm in each leaf, layer or head; find head axes."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.curvature.leaves import is_real, select
from jaxbounds.networks.curvature.paths import Params, leaves_of, sharing_of


def shares(vector: Params, /, *, depth: int | None = None) -> dict[str, float]:
    """Return the share of a direction's squared norm in each leaf or layer, the largest first.

    Args:
        vector: the direction, a pytree like `Extremes.vector_minimum`.
        depth: the number of leading names of a path that identify a layer; by default all names, so
            that each leaf has its own share.
    """
    found: dict[str, float] = {}
    for path, leaf in _once(vector):
        name = "/".join(path.split("/")[:depth])
        found[name] = found.get(name, 0.0) + float(jnp.sum(jnp.asarray(leaf, float) ** 2))
    total = sum(found.values()) or 1.0
    ordered = sorted(found.items(), key=lambda pair: -pair[1])
    return {name: part / total for name, part in ordered}


def head_shares(vector: Params, heads: Mapping[str, int], /) -> Float[Array, " H"]:
    """Return the share of a direction's squared norm in each head.

    The shares add up to at most 1; the remaining share belongs to leaves that are not split into
    heads.

    Args:
        vector: the direction, a pytree like `Extremes.vector_minimum`.
        heads: a mapping from a pattern of paths to the axis that runs over the heads.

    Raises:
        Refused: if `heads` matches no leaf, or leaves have different numbers of heads.
    """
    selection = select(vector, heads=heads)
    own, _ = selection.arrays(vector)
    entries = [leaf for leaf in selection.chosen if leaf]
    per_head = [
        jnp.sum(jnp.moveaxis(leaf, axis, 0).reshape(leaf.shape[axis], -1) ** 2, axis=1)
        for leaf, (_, _, _, axis) in zip(own, entries)
        if axis is not None
    ]
    total = sum(jnp.sum(leaf.astype(selection.dtype) ** 2) for leaf in _reals(vector))
    return sum(part.astype(selection.dtype) for part in per_head) / jnp.where(total > 0, total, 1)


def _once(tree: Params) -> list[tuple[str, Any]]:
    found, sharing = [(path, leaf) for path, leaf, _ in leaves_of(tree)], sharing_of(tree)
    return found if sharing is None else sharing.once(found)


def _reals(tree: Params) -> list[Array]:
    return [jnp.asarray(leaf) for _, leaf in _once(tree) if is_real(leaf)]


def head_axes(params: Params, /) -> dict[str, int]:
    """Return the axes of the heads in Flax's attention (linen and nnx), for `heads=`.

    In Flax's attention, query, key and value have kernels (features, H, d) and biases (H, d), and
    the output has a kernel (H, d, features).

    Raises:
        Refused: if no parameters have these names and shapes of Flax's attention.
    """
    found: dict[str, int] = {}
    for path, leaf, _ in leaves_of(params):
        *_, layer, kind = ("", *path.split("/"))
        rank = getattr(leaf, "ndim", 0)
        if layer in ("query", "key", "value") and (kind, rank) in (("kernel", 3), ("bias", 2)):
            found[path] = rank - 2
        elif (layer, kind, rank) == ("out", "kernel", 3):
            found[path] = 0
    if not found:
        raise Refused(
            f"params has type={type(params).__name__} and no attention with kernels (features, H, "
            "d) under the names query, key, value, out. Try to write heads={pattern of paths: axis "
            "of heads} yourself"
        )
    return found
