"""Define rules that reduce or sort along an axis: sums, extrema, positions, running folds."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from flint import arb

from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.values import (
    INF,
    ONE,
    OPEN,
    ZERO,
    Flags,
    Undecided,
    as_flags,
    as_reals,
    axes_of,
    dtype_of,
    each,
    flags,
    is_reals,
    known_nonnegative,
    nonnegative,
    reals,
    settled,
)

Values = list[Any]
Rule = Callable[[JaxprEqn, Values, Any], Values]


def _rows(x: np.ndarray, axes: tuple[int, ...]) -> tuple[tuple[int, ...], np.ndarray]:
    keep = [i for i in range(x.ndim) if i not in axes]
    shape = tuple(x.shape[i] for i in keep)
    count = int(np.prod(shape, dtype=int))
    width = int(np.prod([x.shape[i] for i in axes], dtype=int))
    return shape, np.transpose(x, [*keep, *axes]).reshape(count, width)


def _fold(function: Callable[[arb, arb], arb], empty: arb) -> Rule:
    def rule(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
        shape, rows = _rows(as_reals(xs[0]), axes_of(eqn))
        return [reals(shape, (functools.reduce(function, row, empty) for row in rows))]

    return rule


def total(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `reduce_sum`; the sum starts from the first entry, which keeps exact entries exact."""
    shape, rows = _rows(as_reals(xs[0]), axes_of(eqn))
    add = lambda row: functools.reduce(functions.plus, row) if len(row) else ZERO
    return [reals(shape, map(add, rows))]


def every(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `reduce_and`: tell whether all flags along the axes are true."""
    x, axes = as_flags(xs[0]), axes_of(eqn)
    return [flags(np.where((x == 0).any(axis=axes), 0, np.where((x == 1).all(axis=axes), 1, OPEN)))]


def some(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `reduce_or`: tell whether any flag along the axes is true."""
    x, axes = as_flags(xs[0]), axes_of(eqn)
    return [flags(np.where((x == 1).any(axis=axes), 1, np.where((x == 0).all(axis=axes), 0, OPEN)))]


def _extremum(fold: Rule, of_flags: Rule) -> Rule:
    return lambda eqn, xs, run: (of_flags if isinstance(xs[0], Flags) else fold)(eqn, xs, run)


def _position(better: Callable[[arb, arb], bool]) -> Rule:

    def first(row: np.ndarray, run: Any) -> int:
        if any(v.is_nan() for v in row):
            raise Undecided(
                "the position of a maximum or minimum is undecided, as a number is unknown (NaN)"
            )
        possible = [
            i
            for i, v in enumerate(row)
            if not any(better(w, v) for w in row)
            and not any(functions.equal(w, v) == 1 for w in row[:i])
        ]
        if len(possible) == 1:
            return possible[0]
        return possible[run.fork(len(possible), "the position of an extremum")]

    def rule(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
        shape, rows = _rows(as_reals(xs[0]), axes_of(eqn))
        where = [first(row, run) for row in rows]
        return [np.array(where, dtype=eqn.params["index_dtype"]).reshape(shape)]

    return rule


def _running(function: Callable[[arb, arb], arb]) -> Rule:
    def rule(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
        axis, reverse = eqn.params["axis"], eqn.params["reverse"]
        x = as_reals(xs[0])
        x = np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0).copy()
        for i in range(1, len(x)):
            x[i] = (
                each(function, np.asarray(x[i - 1]), np.asarray(x[i]))
                if x.ndim > 1
                else (function(x[i - 1], x[i]))
            )
        x = np.moveaxis(x, 0, axis)
        return [np.flip(x, axis) if reverse else x]

    return rule


def _ascending(balls: list[arb]) -> list[arb]:
    order = lambda a, b: -1 if a < b else 1 if a > b else 0
    return sorted(balls, key=functools.cmp_to_key(order))


def order_statistics(balls: Any, /) -> list[arb]:
    """Enclose sorted reals: the k-th real lies between the balls' k-th lower and k-th upper end."""
    low, high = (_ascending([getattr(v, end)() for v in balls]) for end in ("lower", "upper"))
    known = sum(map(nonnegative, balls)) == len(balls)
    sorted_balls = [a if a == b else a.union(b) for a, b in zip(low, high)]
    return list(map(known_nonnegative, sorted_balls)) if known else sorted_balls


def sort(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Sort one array by `order_statistics`, or several arrays by keys whose order the balls decide.

    If a boolean key is undecided, the interpreter runs the program once for each value.

    Raises:
        Undecided: if several arrays are sorted together and the order of their keys is undecided.
    """
    axis, keys = eqn.params["dimension"], eqn.params["num_keys"]
    by = "a boolean sort key"
    keyed = [
        settled(x, run, by).astype(bool) if i < keys and isinstance(x, Flags) else x
        for i, x in enumerate(xs)
    ]
    moved = [np.moveaxis(x, axis, -1) for x in keyed]
    out = [np.empty_like(x) for x in moved]

    def before(index: tuple[int, ...]) -> Callable[[int, int], int]:
        def order(i: int, j: int) -> int:
            for key in moved[:keys]:
                a, b = key[index][i], key[index][j]
                if a < b:
                    return -1
                if a > b:
                    return 1
                if is_reals(key) and functions.equal(a, b) != 1:
                    raise Undecided(
                        "several arrays are sorted together, and the enclosures (balls) are too "
                        "wide to decide the order"
                    )
            return -1 if i < j else 1

        return order

    for index in np.ndindex(moved[0].shape[:-1]):
        row = moved[0][index]
        if len(xs) == 1 and is_reals(row):
            if any(v.is_nan() for v in row):
                raise Undecided("the order of entries is undecided, as a number is unknown (NaN)")
            out[0][index] = order_statistics(row)
            continue
        places = sorted(range(len(row)), key=functools.cmp_to_key(before(index)))
        for source, target in zip(moved, out):
            target[index] = source[index][places]
    return [np.moveaxis(x, -1, axis) for x in out]


def top_k(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Return the k largest entries in descending order, and their indices if the program uses them.

    Equal entries keep their order. The program forks (continues once for each possibility) if
    several entries may be the next largest.

    Raises:
        Undecided: if an entry to sort is NaN, that is, unknown.
    """
    k, axis = eqn.params["k"], eqn.params.get("axis", -1)
    x = np.moveaxis(as_reals(xs[0]), axis, -1)
    values = np.empty((*x.shape[:-1], k), dtype=object)
    places = np.zeros(values.shape, dtype=dtype_of(eqn.outvars[1]))
    for index in np.ndindex(x.shape[:-1]):
        row = x[index]
        if any(v.is_nan() for v in row):
            raise Undecided("the order of entries is undecided, as a number is unknown (NaN)")
        values[index] = order_statistics(row)[::-1][:k]
        if run.used(eqn.outvars[1]):
            places[index] = _ranked(row, k, run)
    return [np.moveaxis(values, -1, axis), np.moveaxis(places, -1, axis)]


def _same(a: arb, b: arb) -> bool:
    return functions.equal(a, b) == 1


def _ranked(row: np.ndarray, k: int, run: Any) -> list[int]:
    left, out = list(range(len(row))), []
    for _ in range(k):
        possible = [
            i
            for i in left
            if not any(row[j] > row[i] for j in left)
            # The order of two float zeros depends on their signs, which are unknown.
            and (row[i].is_zero() or not any(_same(row[j], row[i]) for j in left if j < i))
        ]
        many = len(possible) > 1
        out.append(
            possible[run.fork(len(possible), "the largest numbers")] if many else possible[0]
        )
        left.remove(out[-1])
    return out


_greatest, _least = _fold(functions.greater, -INF), _fold(functions.less, INF)
RULES: dict[str, Rule] = {
    "reduce_sum": total,
    "reduce_prod": _fold(functions.times, ONE),
    "reduce_max": _extremum(_greatest, some),
    "reduce_min": _extremum(_least, every),
    "reduce_and": every,
    "reduce_or": some,
    "argmax": _position(operator.gt),
    "argmin": _position(operator.lt),
    "cumsum": _running(functions.plus),
    "cumprod": _running(functions.times),
    "cummax": _running(functions.greater),
    "cummin": _running(functions.less),
    "sort": sort,
    "top_k": top_k,
}
