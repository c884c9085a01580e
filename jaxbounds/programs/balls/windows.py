"""Define rules for sliding windows (convolution, pooling), and for `cumlogsumexp`."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import arb

from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.linear_algebra import contracted
from jaxbounds.programs.balls.values import INF, NAN, ONE, ZERO, NotSupported, as_reals, hull, reals

Values = list[Any]
Rule = Callable[[JaxprEqn, Values, Any], Values]


def places(
    shape: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    holes: Sequence[int],
    apart: Sequence[int],
) -> np.ndarray:
    """Return the positions in the flat array that each window covers; -1 marks padding and gaps.

    The result has shape (windows along each axis.., entries of a window). `padding` counts the
    entries added before and after the dilated array; a negative number removes entries. `holes` is
    the distance between entries of the dilated array, and `apart` between entries of a window.
    """
    along = []
    for n, w, s, (before, after), h, d in zip(shape, window, strides, padding, holes, apart):
        spread = np.full((n - 1) * h + 1 if n else 0, -1)
        spread[::h] = np.arange(n)
        line = np.concatenate([np.full(max(before, 0), -1), spread, np.full(max(after, 0), -1)])
        line = line[max(-before, 0) : len(line) - max(-after, 0)]
        starts = np.arange(0, max(len(line) - (w - 1) * d, 0), s)
        along.append(line[starts[:, None] + d * np.arange(w)[None, :]])
    counts = [len(a) for a in along]
    out = np.full((*counts, int(np.prod(window, dtype=int))), -1)
    for index in np.ndindex(*counts):
        rows = [a[i] for a, i in zip(along, index)]
        for k, entry in enumerate(itertools.product(*rows)):
            if min(entry, default=0) >= 0:
                out[(*index, k)] = np.ravel_multi_index(entry, tuple(shape)) if entry else 0
    return out


def _of(p: Any, x: np.ndarray) -> np.ndarray:
    return places(
        x.shape, p["window_dimensions"], p["window_strides"], p["padding"], p["base_dilation"],
        p["window_dilation"],
    )  # fmt: skip


def _pooled(function: Callable[[arb, arb], arb], empty: arb) -> Rule:
    def rule(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
        x = as_reals(xs[0])
        seen, flat = _of(eqn.params, x), x.ravel()
        rows = seen.reshape(-1, seen.shape[-1])
        fold = lambda row: [flat[i] for i in row if i >= 0]
        of = lambda row: functools.reduce(function, row) if row else empty
        return [reals(seen.shape[:-1], (of(fold(row)) for row in rows))]

    return rule


_FOLDS: dict[str, Callable[[arb, arb], arb]] = {
    "add": functions.plus, "mul": functions.times, "max": functions.greater, "min": functions.less,
}  # fmt: skip


def general(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `reduce_window` to one array: a sum, product, maximum or minimum with a start value.

    Raises:
        NotSupported: if another function reduces the windows, because the result may depend on the
            order; or if the program pads and the start value changes a result. XLA's definition
            includes padding in the result, but compiled programs omit the padding.
    """
    inner = eqn.params["jaxpr"]
    program = getattr(inner, "jaxpr", inner)
    name = program.eqns[0].primitive.name if len(program.eqns) == 1 else ""
    if name not in _FOLDS or len(xs) != 2:
        raise NotSupported(
            f"reduce_window by function={name!r}, expected add, mul, max or min. Try one of these"
        )
    start, function = as_reals(xs[1]).item(), _FOLDS[name]
    x = as_reals(xs[0])
    seen, flat = _of(eqn.params, x), x.ravel()
    neutral = {"add": ZERO, "mul": ONE}.get(name, start)  # for an extremum, any start is neutral
    if (seen < 0).any() and neutral is not start and not start == neutral:
        raise NotSupported(
            "reduce_window with padding needs the reduction's identity as start, got "
            f"start={start}. Try no padding"
        )
    rows = seen.reshape(-1, seen.shape[-1])
    entries = lambda row: (flat[i] for i in row if i >= 0)
    return [
        reals(seen.shape[:-1], (functools.reduce(function, entries(row), start) for row in rows))
    ]


def convolved(a: np.ndarray, b: np.ndarray, p: Any, /) -> np.ndarray:
    """Apply `conv_general_dilated` to two arrays of balls; as in JAX, the kernel is not flipped."""
    numbers = p["dimension_numbers"]
    x, kernel = np.transpose(a, numbers.lhs_spec), np.transpose(b, numbers.rhs_spec)
    (batch, _, *shape), (features, depth, *window) = x.shape, kernel.shape
    seen = places(
        shape, window, p["window_strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"]
    )
    where = seen.reshape(-1, seen.shape[-1])
    groups, splits = p["feature_group_count"], p["batch_group_count"]
    rows = batch // splits
    out = np.empty((rows, features, len(where)), dtype=object)
    share = features // (groups * splits)
    for part in range(groups * splits):
        first, layer = (part * rows, 0) if splits > 1 else (0, part * depth)
        taken = x[first : first + rows, layer : layer + depth].reshape(rows, depth, -1)
        padded = np.concatenate([taken, reals((rows, depth, 1), [ZERO] * (rows * depth))], axis=2)
        patches = padded[:, :, where]  # -1 picks the last entry, which is the padding's zero
        own = slice(part * share, (part + 1) * share)
        weights = kernel[own].reshape(share, depth, -1)
        found = contracted(patches, weights, (((1, 3), (1, 2)), ((), ())))
        out[:, own] = np.moveaxis(found, 2, 1)
    result = out.reshape(rows, features, *seen.shape[:-1])
    return np.transpose(result, np.argsort(numbers.out_spec))


def convolution(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `conv_general_dilated`."""
    return [convolved(as_reals(xs[0]), as_reals(xs[1]), eqn.params)]


def _log_sum_exp(row: list[arb]) -> arb:
    finite = [v for v in row if v.is_finite()]
    if not finite:
        return -INF
    most = functools.reduce(lambda u, v: u if u >= v else v, finite)
    return most + sum(((v - most).exp() for v in finite), ZERO).log()


def running_log_sum_exp(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `cumlogsumexp` to both ends of each ball (interval); the function is increasing."""
    axis, reverse = eqn.params["axis"], eqn.params["reverse"]
    x = as_reals(xs[0])
    x = np.moveaxis(np.flip(x, axis) if reverse else x, axis, -1)
    out = np.empty(x.shape, dtype=object)
    for index in np.ndindex(x.shape[:-1]):
        row = list(x[index])
        for k in range(len(row)):
            out[(*index, k)] = _of_ends(row[: k + 1])
    out = np.moveaxis(out, -1, axis)
    return [np.flip(out, axis) if reverse else out]


def _of_ends(row: list[arb]) -> arb:
    if not all(v.is_finite() or v == -INF for v in row):
        return NAN
    if all(v.is_exact() for v in row):
        return _log_sum_exp(row)
    ends = ([v if not v.is_finite() else getattr(v, end)() for v in row]
            for end in ("lower", "upper"))  # fmt: skip
    return hull(*map(_log_sum_exp, ends))


RULES: dict[str, Rule] = {
    "reduce_window_sum": _pooled(functions.plus, ZERO),
    "reduce_window_max": _pooled(functions.greater, -INF),
    "reduce_window_min": _pooled(functions.less, INF),
    "reduce_window": general,
    "conv_general_dilated": convolution,
    "cumlogsumexp": running_log_sum_exp,
}
