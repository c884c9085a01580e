"""Define rules that act on balls (intervals) entry by entry, such as comparisons and logic."""

import itertools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from flint import arb
from jax.dtypes import issubdtype
from jax.lax import RoundingMethod

from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.rounding import narrowed
from jaxbounds.programs.balls.values import (
    NAN,
    OPEN,
    ZERO,
    Flags,
    Undecided,
    as_flags,
    as_reals,
    dtype_of,
    each,
    flags,
    hull,
    is_narrow,
    is_reals,
    reals,
    settled,
)

Values = list[Any]
_SAME = {"eq": 1, "le": 1, "ge": 1, "ne": 0, "lt": 0, "gt": 0}


def _one_variable(eqn: JaxprEqn) -> bool:
    return eqn.invars[0] is eqn.invars[1]


def unary(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply a scalar function of one argument to each ball (interval) of an array."""
    return [each(functions.UNARY[eqn.primitive.name], xs[0])]


def binary(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply a scalar function of two arguments, with tighter rules for x * x and x - x."""
    name, (a, b) = eqn.primitive.name, map(as_reals, xs)
    if name in _OF_FLAGS and not any(map(is_reals, xs)):
        return _OF_FLAGS[name](eqn, xs, run)
    if _one_variable(eqn) and name == "mul":
        return [each(functions.UNARY["square"], a)]
    if _one_variable(eqn) and name == "sub":
        return [each(lambda v: ZERO if v.is_finite() else NAN, a)]
    return [each(functions.BINARY[name], a, b)]


def compare(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Compare balls (intervals) or booleans; overlapping balls give an undecided comparison."""
    name = eqn.primitive.name
    if any(isinstance(x, Flags) for x in xs):
        a, b = np.broadcast_arrays(*map(as_flags, xs))
        ways = [_ORDER[name](*pair) for pair in itertools.product(_completions(a), _completions(b))]
        same = np.logical_and.reduce([way == ways[0] for way in ways])
        return [flags(np.where(same, ways[0], OPEN))]
    if _one_variable(eqn):
        known = [OPEN if v.is_nan() else _SAME[name] for v in xs[0].ravel()]
        return [flags(np.reshape(np.array(known, np.int8), xs[0].shape))]
    a, b = np.broadcast_arrays(*map(as_reals, xs))
    function = functions.COMPARISONS[name]
    answers = [function(u, v) for u, v in zip(a.ravel(), b.ravel())]
    return [flags(np.reshape(np.array(answers, np.int8), a.shape))]


_ORDER: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _completions(x: np.ndarray) -> list[np.ndarray]:
    return [np.where(x == OPEN, decided, x) for decided in (0, 1)]


def ordered(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `lt_to` or `le_to` (the total order of floats).

    The comparison of zeros of unknown sign is undecided.
    """
    name = eqn.primitive.name.removesuffix("_to")
    if _one_variable(eqn):
        return [flags(np.full(np.shape(xs[0]), name == "le"))]
    a, b = np.broadcast_arrays(*map(as_reals, xs))
    function = functions.COMPARISONS[name]
    known = lambda u, v: OPEN if u.is_zero() and v.is_zero() else function(u, v)
    answers = [known(u, v) for u, v in zip(a.ravel(), b.ravel())]
    return [flags(np.reshape(np.array(answers, np.int8), a.shape))]


def next_float(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `nextafter`; for a ball with several floats, enclose the next floats of all."""
    with np.errstate(over="ignore"):  # the float after the largest float is infinite: unknown
        return [each(_next, *map(as_reals, xs))]


def _next(x: arb, y: arb) -> arb:
    if not (x.is_finite() and y.is_finite()):
        return NAN
    exact = x.is_exact() and arb(float(x)) == x
    if exact and y.is_exact() and x == y:
        return y
    if exact and (y > x or y < x):
        out = np.nextafter(float(x), np.inf if y > x else -np.inf)
        if not np.isfinite(out):
            return NAN
        tiny = abs(out) < np.finfo(float).tiny  # a compiled program may flush `out` to zero
        return hull(ZERO, arb(float(out))) if tiny else arb(float(out))
    ends = float(x.lower()), float(x.upper())
    low, high = np.nextafter(ends[0], -np.inf), np.nextafter(ends[1], np.inf)
    for _ in range(2):  # one step covers the rounding to a float, one step covers `nextafter`
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    finite = np.isfinite(low) and np.isfinite(high)
    return hull(arb(float(low)), arb(float(high))) if finite else NAN


def is_finite(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `is_finite`: the answer is undecided except for finite balls and exact infinities."""
    answer = lambda v: 1 if v.is_finite() else 0 if v.is_exact() and not v.is_nan() else OPEN
    answers = [answer(v) for v in xs[0].ravel()]
    return [flags(np.reshape(np.array(answers, np.int8), xs[0].shape))]


def conjunction(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `and` to flags (no, yes or undecided); the result is no if one flag is certainly no."""
    a, b = map(as_flags, xs)
    return [flags(np.where((a == 0) | (b == 0), 0, np.where((a == 1) & (b == 1), 1, OPEN)))]


def disjunction(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `or` to flags (no, yes, undecided); the result is yes if a flag is certainly yes."""
    a, b = map(as_flags, xs)
    return [flags(np.where((a == 1) | (b == 1), 1, np.where((a == 0) & (b == 0), 0, OPEN)))]


def exclusive(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `xor` to flags (no, yes, undecided); the result is undecided if an operand is."""
    a, b = map(as_flags, xs)
    return [flags(np.where((a == OPEN) | (b == OPEN), OPEN, a ^ b))]


def negation(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Negate booleans that are false, true or undecided; undecided booleans stay undecided."""
    a = as_flags(xs[0])
    return [flags(np.where(a == OPEN, OPEN, 1 - a))]


def select(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `select_n`.

    If the choice between floats is undecided, return balls that contain all options; for integers,
    run the program once for each option.

    Raises:
        Undecided: if the enclosures (balls) are too wide to decide a choice between more than two
            integers.
    """
    which, *cases = xs
    shape = np.shape(cases[0])
    if not isinstance(which, Flags):
        which = np.broadcast_to(np.asarray(which).astype(int), shape)
        if any(map(is_reals, cases)):
            columns = [as_reals(case).ravel() for case in cases]
            chosen = (columns[k][i] for i, k in enumerate(which.ravel().tolist()))
            return [reals(shape, chosen)]
        if any(isinstance(case, Flags) for case in cases):
            return [flags(np.choose(which, list(map(as_flags, cases))))]
        return [np.choose(which, list(map(np.asarray, cases)))]
    which = np.broadcast_to(as_flags(which), shape)
    if any(map(is_reals, cases)):
        no, yes = map(as_reals, cases)
        picks = zip(which.ravel(), no.ravel(), yes.ravel())
        return [reals(shape, (a if k == 0 else b if k == 1 else hull(a, b) for k, a, b in picks))]
    if isinstance(cases[0], Flags) or np.asarray(cases[0]).dtype == np.bool_:
        no, yes = map(as_flags, cases)
        open_choice = np.where(no == yes, no, OPEN)
        return [flags(np.where(which == 0, no, np.where(which == 1, yes, open_choice)))]
    if len(cases) > 2:
        raise Undecided(
            "the enclosures (balls) are too wide to decide a choice between more than two integers"
        )
    no, yes = map(np.asarray, cases)
    which = np.where(no == yes, 0, which)
    return [np.where(settled(which, run, "a choice between integers") == 1, yes, no)]


def clamp(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Return min(max(x, low), high)."""
    low, x, high = map(as_reals, xs)
    return [each(functions.less, each(functions.greater, x, low), high)]


def integer_power(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Return x^y for a static integer y."""
    return [each(lambda v: functions.integer_power(v, eqn.params["y"]), xs[0])]


def rounded(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Round to the nearest integer; the parameter `rounding_method` says how halves are rounded."""
    to_even = eqn.params["rounding_method"] == RoundingMethod.TO_NEAREST_EVEN
    return [each(lambda v: functions.rounded(v, to_even), xs[0])]


def convert(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Convert an array of balls, booleans or integers to another type.

    The interpreter runs the program once for each value of an undecided boolean.

    Raises:
        Undecided: if a ball contains numbers with different integer parts, or a number too large
            for the new type.
    """
    new, x = eqn.params["new_dtype"], xs[0]
    if issubdtype(new, np.floating):
        old = dtype_of(eqn.invars[0])
        return [
            as_reals(x) if not rounds(old, new) else each(lambda v: narrowed(v, new), as_reals(x))
        ]
    if is_reals(x):
        if new == np.bool_:
            answers = [(1, 0, OPEN)[functions.equal(v, ZERO)] for v in x.ravel()]
            return [flags(np.reshape(np.array(answers, np.int8), x.shape))]
        whole = [functions.truncated(v).unique_fmpz() for v in x.ravel()]
        certain = [int(v) for v in whole if v is not None]
        if len(certain) < len(whole):
            raise Undecided(
                "the enclosure (ball) of a number contains several possible integer parts"
            )
        limits = np.iinfo(new)
        if any(not limits.min <= v <= limits.max for v in certain):
            raise Undecided(f"a converted number is too large for the type {np.dtype(new)}")
        return [np.array(certain, dtype=new).reshape(x.shape)]
    if isinstance(x, Flags):
        if new == np.bool_:
            return [x]
        return [settled(x, run, "a boolean used as a number").astype(new)]
    return [np.asarray(x).astype(new)]


def rounds(old: Any, new: Any, /) -> bool:
    """Tell whether a conversion may change a number; a conversion to float64 counts as exact."""
    if not is_narrow(new) or old == np.bool_:
        return False
    if not issubdtype(old, np.floating):
        return True
    a, b = jnp.finfo(old), jnp.finfo(new)
    return a.nmant > b.nmant or a.maxexp > b.maxexp or a.minexp < b.minexp


_OF_FLAGS = {"max": disjunction, "min": conjunction}
RULES = {
    **dict.fromkeys(functions.UNARY, unary),
    **dict.fromkeys(functions.BINARY, binary),
    **dict.fromkeys(functions.COMPARISONS, compare),
    "lt_to": ordered,
    "le_to": ordered,
    "nextafter": next_float,
    "is_finite": is_finite,
    "and": conjunction,
    "or": disjunction,
    "xor": exclusive,
    "not": negation,
    "select_n": select,
    "clamp": clamp,
    "integer_pow": integer_power,
    "round": rounded,
    "convert_element_type": convert,
}
