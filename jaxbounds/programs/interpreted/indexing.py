"""Run gathers, scatters and slices of a program in NumPy, by one array of indices for each axis."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.lax import GatherScatterMode as Mode

from jaxbounds.programs.interpreted.values import NotInterpreted, Rule


class _Layout(NamedTuple):
    """The axes along which a gather's result, or a scatter's updates, hold slices of the operand.

    Attributes:
        window: axes of the gather's result along which slices lie.
        dropped: axes of the operand that a slice loses, because the slice has length 1 along these
            axes.
        mapped: axes of the operand; entry i of an index vector gives the slice's start along axis
            `mapped[i]`.
        batching: axes of the operand that are paired with batch axes of the indices.
        along: the axes of the indices that are paired with `batching`.
    """

    window: Sequence[int]
    dropped: Sequence[int]
    mapped: Sequence[int]
    batching: Sequence[int]
    along: Sequence[int]


def _places(
    shape: Sequence[int], indices: Any, sizes: Sequence[int], layout: _Layout, mode: Any
) -> tuple[tuple[Any, ...], Any]:
    many = np.shape(indices)[:-1]
    kept = [a for a in range(len(shape)) if a not in (*layout.dropped, *layout.batching)]
    ndim = len(many) + len(kept)
    rest = [axis for axis in range(ndim) if axis not in layout.window]

    def laid(x: Any, axes: Sequence[int]) -> Any:
        extents = [1] * ndim
        for axis, n in zip(axes, np.shape(x)):
            extents[axis] = n
        return np.reshape(x, extents)

    places = [np.zeros([1] * ndim, int) for _ in shape]
    inside: Any = np.ones([1] * ndim, bool)
    for i, axis in enumerate(layout.mapped):
        start, last = laid(indices[..., i], rest).astype(int), shape[axis] - sizes[axis]
        if mode == Mode.CLIP:
            start = np.clip(start, 0, last)
        inside = inside & (start >= 0) & (start <= last)
        places[axis] = places[axis] + start
    for axis, other in zip(layout.batching, layout.along):
        places[axis] = places[axis] + laid(np.arange(many[other]), [rest[other]])
    for axis, where in zip(kept, layout.window):
        places[axis] = places[axis] + laid(np.arange(sizes[axis]), [where])
    if mode not in (Mode.CLIP, Mode.FILL_OR_DROP) and not np.all(inside):
        raise NotInterpreted("an index lies outside of the operand")
    return tuple(places), inside


def _gather(
    x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, mode: Any,
    fill_value: Any = None, **_: Any
) -> Any:  # fmt: skip
    d = dimension_numbers
    layout = _Layout(
        d.offset_dims, d.collapsed_slice_dims, d.start_index_map,
        d.operand_batching_dims, d.start_indices_batching_dims,
    )  # fmt: skip
    places, inside = _places(np.shape(x), indices, slice_sizes, layout, mode)
    if np.all(inside):
        return x[places]
    if fill_value is None:
        raise NotInterpreted("an index lies outside of the operand")
    held = tuple(np.where(inside, place, 0) for place in places)
    return np.where(inside, x[held], fill_value)


def _scattered(put: Any) -> Rule:
    def rule(
        x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any, **_: Any
    ) -> Any:
        d, kept = dimension_numbers, iter(dimension_numbers.update_window_dims)
        gone = (*d.inserted_window_dims, *d.operand_batching_dims)
        sizes = [1 if a in gone else np.shape(updates)[next(kept)] for a in range(np.ndim(x))]
        layout = _Layout(
            d.update_window_dims, d.inserted_window_dims, d.scatter_dims_to_operand_dims,
            d.operand_batching_dims, d.scatter_indices_batching_dims,
        )  # fmt: skip
        places, inside = _places(np.shape(x), indices, sizes, layout, mode)
        chosen = np.broadcast_to(inside, np.shape(updates))
        found = np.array(x)
        where = tuple(np.broadcast_to(place, np.shape(updates))[chosen] for place in places)
        put(found, where, np.asarray(updates)[chosen])
        return found

    return rule


def _set(x: Any, where: Any, values: Any) -> None:
    x[where] = values


def _starts(x: Any, sizes: Sequence[int], starts: Sequence[Any]) -> tuple[slice, ...]:
    first = [
        int(np.clip(s, 0, n - size)) for s, n, size in zip(starts, np.shape(x), sizes, strict=True)
    ]
    return tuple(slice(a, a + size) for a, size in zip(first, sizes))


def _dynamic_slice(x: Any, *starts: Any, slice_sizes: Any, **_: Any) -> Any:
    return x[_starts(x, slice_sizes, starts)]


def _dynamic_update(x: Any, update: Any, *starts: Any, **_: Any) -> Any:
    found = np.array(x)
    found[_starts(x, np.shape(update), starts)] = update
    return found


RULES: dict[str, Rule] = {
    "gather": _gather,
    "scatter": _scattered(_set),
    "scatter-add": _scattered(np.add.at),
    "scatter-mul": _scattered(np.multiply.at),
    "scatter-max": _scattered(np.maximum.at),
    "scatter-min": _scattered(np.minimum.at),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update,
}
