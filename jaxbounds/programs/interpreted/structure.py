"""Define the rules that move, fold, sort and multiply arrays in NumPy: `reduce_sum`, ..."""

from typing import Any

import numpy as np

from jaxbounds.programs.interpreted.values import NotInterpreted, Rule


def _broadcast(x: Any, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    sizes = [1] * len(shape)
    for axis, place in enumerate(broadcast_dimensions):
        sizes[place] = np.shape(x)[axis]
    return np.broadcast_to(np.reshape(x, sizes), shape)


def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any, **_: Any) -> Any:
    steps = strides or (1,) * len(start_indices)
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


def _pad(x: Any, value: Any, *, padding_config: Any, **_: Any) -> Any:
    if any(low < 0 or high < 0 or between for low, high, between in padding_config):
        raise NotInterpreted("NumPy cannot pad by negative amounts or between entries")
    around = [(low, high) for low, high, _ in padding_config]
    return np.pad(x, around, constant_values=np.asarray(value).item())


def _iota(*, shape: Any, dimension: int, dtype: Any, **_: Any) -> Any:
    along = [-1 if axis == dimension else 1 for axis in range(len(shape))]
    return np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape(along), shape)


def _split(x: Any, *, sizes: Any, axis: int, **_: Any) -> list[Any]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _dot(
    x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any = None, **_: Any
) -> Any:
    if preferred_element_type is not None:
        x, y = x.astype(preferred_element_type), y.astype(preferred_element_type)
    (left, right), (left_batch, right_batch) = dimension_numbers
    of_x = list(range(np.ndim(x)))
    of_y = list(range(np.ndim(x), np.ndim(x) + np.ndim(y)))
    for one, other in zip((*left, *left_batch), (*right, *right_batch)):
        of_y[other] = of_x[one]
    batch = [of_x[axis] for axis in left_batch]
    free = [n for axis, n in enumerate(of_x) if axis not in (*left, *left_batch)]
    free += [n for axis, n in enumerate(of_y) if axis not in (*right, *right_batch)]
    return np.einsum(x, of_x, y, of_y, [*batch, *free])


def _folded(fold: Any) -> Rule:
    return lambda x, *, axes, **_: fold(x, axis=tuple(axes))


def _cumulated(fold: Any) -> Rule:
    def rule(x: Any, *, axis: int, reverse: bool, **_: Any) -> Any:
        found = fold.accumulate(np.flip(x, axis) if reverse else x, axis=axis)
        return np.flip(found, axis) if reverse else found

    return rule


def _sort(*xs: Any, dimension: int, num_keys: int, **_: Any) -> list[Any]:
    order = np.lexsort(xs[:num_keys][::-1], axis=dimension)
    return [np.take_along_axis(x, order, dimension) for x in xs]


def _top_k(x: Any, *, k: int, axis: int = -1, **_: Any) -> list[Any]:
    if np.any(x != x):
        raise NotInterpreted("one of the numbers to rank is NaN")
    # The sort starts from the end, so that equal entries keep their order when read backwards.
    ascending = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    order = np.shape(x)[axis] - 1 - np.take(np.flip(ascending, axis), range(k), axis)
    return [np.take_along_axis(x, order, axis), order]


def _platform(*, platforms: Any, **_: Any) -> Any:
    return np.int32(next(i for i, p in enumerate(platforms) if p is None or "cpu" in p))


RULES: dict[str, Rule] = {
    "platform_index": _platform,
    "broadcast_in_dim": _broadcast,
    "reshape": lambda x, *, new_sizes, **_: np.reshape(x, new_sizes),
    "squeeze": lambda x, *, dimensions, **_: np.squeeze(x, tuple(dimensions)),
    "expand_dims": lambda x, *, dimensions, **_: np.expand_dims(x, tuple(dimensions)),
    "rev": lambda x, *, dimensions, **_: np.flip(x, tuple(dimensions)),
    "transpose": lambda x, *, permutation, **_: np.transpose(x, permutation),
    "slice": _slice,
    "pad": _pad,
    "iota": _iota,
    "split": _split,
    "tile": lambda x, *, reps, **_: np.tile(x, reps),
    "unstack": lambda x, *, axis, **_: list(np.moveaxis(x, axis, 0)),
    "stack": lambda *xs, axis, **_: np.stack(xs, axis),
    "concatenate": lambda *xs, dimension, **_: np.concatenate(xs, dimension),
    "dot_general": _dot,
    "sort": _sort,
    "top_k": _top_k,
    "argmax": lambda x, *, axes, **_: np.argmax(x, *axes),
    "argmin": lambda x, *, axes, **_: np.argmin(x, *axes),
    **{f"reduce_{name}": _folded(fold) for name, fold in (
        ("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min),
        ("and", np.bitwise_and.reduce), ("or", np.bitwise_or.reduce),
        ("xor", np.bitwise_xor.reduce),
    )},
    **{f"cum{name}": _cumulated(fold) for name, fold in (
        ("sum", np.add), ("prod", np.multiply), ("max", np.maximum), ("min", np.minimum),
    )},
}  # fmt: skip
