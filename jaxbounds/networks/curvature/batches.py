"""Prepare batches of data, given as a list or cut from one set of examples, for a mean loss."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.curvature.paths import leaves_of, refuse_deleted

Batch = Any


class Group(NamedTuple):
    """Several batches of equal shape, stacked along a new leading axis.

    Attributes:
        stacked: a pytree like one batch; the leading axis of each array runs over the batches.
        weight: the factor of each batch's loss in the mean over all batches.
    """

    stacked: Any
    weight: Any


def _shapes(batch: Batch) -> Any:
    return jax.tree.map(lambda leaf: (tuple(jnp.shape(leaf)), jnp.result_type(leaf)), batch)


class Listed(tuple):
    """The list that the caller gave as the keyword `batches`. Each entry of the list is a batch."""


def _refuse_bare(batches: list[Batch]) -> None:
    """Refuse a list of arrays [x, y], because it may mean one batch or two batches."""
    bare = [hasattr(b, "dtype") and jnp.ndim(b) > 0 for b in batches]
    if len(batches) > 1 and all(bare) and len({jnp.shape(b)[0] for b in batches}) == 1:
        raise Refused(
            f"data is a list of len(data)={len(batches)} arrays of length "
            f"{jnp.shape(batches[0])[0]}, which may be one batch or several. Try the tuple (x, y, "
            "...) for one batch, or the keyword batches=[x, y, ...] for several"
        )


def named(data: Any, batches: Any, /) -> Any:
    """Prepare the data for `group`, from the argument `data` and the keyword `batches`.

    Raises:
        Refused: if both arguments are given; if `data` is a list [x, y] of arrays of equal length,
            which may be one batch or two batches.
    """
    if batches is None:
        if isinstance(data, list):
            _refuse_bare(data)
        return data
    if data is not None:
        raise Refused(
            "data and batches are both given, expected only one. Try batches= without data="
        )
    return Listed(batches) if isinstance(batches, list) else batches


def _refuse_leaf(name: str, leaf: Any) -> None:
    refuse_deleted(name, leaf)
    kind = getattr(leaf, "dtype", None)
    numbers = isinstance(leaf, bool | int | float | complex) or (
        kind is not None and getattr(kind, "kind", "V") in "biufcV"
    )
    if not numbers:
        shown = f"an array of {kind}" if kind is not None else f"a {type(leaf).__name__}"
        raise Refused(
            f"{name} is {shown}, expected an array of numbers. Try to replace it by an array"
        )


def _listed(batches: list[Batch]) -> tuple[Group, ...]:
    if not batches:
        raise Refused(
            f"batches={batches} is empty, expected at least one batch. Try batches=[batch]"
        )
    first = _shapes(batches[0])
    for i, batch in enumerate(batches[1:], 1):
        if _shapes(batch) != first:
            raise Refused(
                f"batch {i} and batch 0 differ in shape: expected {_shown(batches[0])}, got "
                f"{_shown(batch)}. Try to give all examples in one pytree with batch_size=, or one "
                "batch as a tuple (x, y)"
            )
    stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *batches)
    return (Group(stacked, 1 / len(batches)),)


def _shown(batch: Batch) -> str:
    leaves = jax.tree.leaves(batch)
    few = [f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}" for leaf in leaves[:4]]
    return "(" + ", ".join(few) + (", ..." if len(leaves) > 4 else "") + ")"


def _cut(examples: Batch, size: int) -> tuple[Group, ...]:
    leaves = jax.tree.leaves(examples)
    lengths = {jnp.shape(leaf)[0] if jnp.ndim(leaf) else 0 for leaf in leaves}
    if len(lengths) != 1 or 0 in lengths or not isinstance(size, int) or size < 1:
        raise Refused(
            "batch_size cuts arrays along their first axes, which need one positive length n, got "
            f"{_shown(examples)} and batch_size={size!r}. Try the tuple (x, y) with batch_size=32"
        )
    (n,) = lengths
    whole, rest = divmod(n, size)
    groups = []
    if whole:
        fold = lambda x: jnp.asarray(x)[: whole * size].reshape(whole, size, *jnp.shape(x)[1:])
        groups.append(Group(jax.tree.map(fold, examples), size / n))
    if rest:
        groups.append(
            Group(jax.tree.map(lambda x: jnp.asarray(x)[None, -rest:], examples), rest / n)
        )
    return tuple(groups)


def group(batches: Any, batch_size: int | None, /) -> tuple[Group, ...] | None:
    """Return the groups of batches over which a loss is averaged; None for a loss without batches.

    Args:
        batches: None for a loss without data, one batch (any pytree that is not a list), or a list
            of batches of equal shape. The batches of a list have equal weights.
        batch_size: the number of examples in a batch, for one pytree of examples (n, ...). The last
            batch may be shorter and then has a smaller weight. The mean over the batches is exact
            for a loss that is a mean over examples.

    Raises:
        Refused: if batches differ in shape, can be read only once, or are empty.
    """
    if isinstance(batches, Iterator):
        raise Refused(
            f"batches has type={type(batches).__name__}, an iterator that can be read only once, "
            "expected arrays or a list. Try list(batches)"
        )
    if batches is not None and not jax.tree.leaves(batches) and batches != []:
        raise Refused(
            f"batches={batches!r} hold no arrays, expected at least one. Try None if the loss "
            "takes no batch"
        )
    for path, leaf, _ in leaves_of(list(batches) if isinstance(batches, Listed) else batches):
        _refuse_leaf(f"the batch at {path!r}" if path else "the batch", leaf)
    if batches is None:
        if batch_size is not None:
            raise Refused(
                f"batch_size={batch_size} is given without data to cut into batches. Try data=(x, "
                "y)"
            )
        return None
    if isinstance(batches, list | Listed):
        if batch_size is not None:
            raise Refused(
                f"batch_size={batch_size} and a list of batches are both given, expected only one. "
                "Try the list without batch_size, or one pytree of examples with batch_size"
            )
        return _listed(list(batches))
    if batch_size is not None:
        return _cut(batches, batch_size)
    return single(batches)


def single(batch: Batch, /) -> tuple[Group, ...]:
    """Return the group that holds one batch; the batch may be a pytree of any type."""
    return (Group(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], batch), 1.0),)


def count(groups: tuple[Group, ...] | None, /) -> int:
    """Return the number of batches in all groups; 1 for a loss without batches."""
    return sum(jax.tree.leaves(g.stacked)[0].shape[0] for g in groups) if groups else 1


def told(groups: tuple[Group, ...] | None, /) -> str:
    """Return the number of batches and their shapes, as text for a message."""
    if not groups:
        return "of a loss without batches"
    parts = []
    for stacked, _ in groups:
        many = jax.tree.leaves(stacked)[0].shape[0]
        one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), stacked)
        parts.append(f"{many} batch{'es' * (many != 1)} {_shown(one)}")
    return "over " + " and ".join(parts)
