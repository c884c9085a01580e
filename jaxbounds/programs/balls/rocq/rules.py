"""Define the rules that record a JAX primitive as scalar operations, for a proof in Rocq."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from jax.dtypes import issubdtype
from jax.lax import RoundingMethod

from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls import loops, movement
from jaxbounds.programs.balls.certificate import as_fraction
from jaxbounds.programs.balls.linear_algebra import laid_out
from jaxbounds.programs.balls.rocq.ledger import Ledger
from jaxbounds.programs.balls.rocq.operations import (
    CEIL,
    CUBE_ROOT,
    FLOOR,
    HALF_FACTORIAL,
    NEAREST,
    Operation,
)
from jaxbounds.programs.balls.rocq.spectral import singular_values
from jaxbounds.programs.balls.rocq.terms import Comparison, Fact, Real
from jaxbounds.programs.balls.values import NotSupported, Undecided, axes_of, dtype_of, is_soft

Values = list[Any]
_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=", "ne": "<>"}


def objects(shape: tuple[int, ...], entries: Iterable[Any]) -> np.ndarray:
    """Return an object array of the given shape, filled with the entries in row-major order."""
    out = np.empty(math.prod(shape), dtype=object)
    for position, entry in enumerate(entries):
        out[position] = entry
    return out.reshape(shape)


def lifted(x: Any, ledger: Ledger, /) -> np.ndarray:
    """Return an operand as an array of recorded numbers and proved booleans."""
    x = np.asarray(x)

    def one(v: Any) -> Any:
        if isinstance(v, Real | Fact):
            return v
        if isinstance(v, bool | np.bool_):
            return Fact(bool(v), (), ledger)
        if isinstance(v, int | float | np.number):
            v = float(v) if isinstance(v, float | np.floating) else int(v)
            if isinstance(v, float) and not math.isfinite(v):
                return one(arb(v))
            return ledger.literal(Fraction(v))
        if v.is_nan() or (v.is_finite() and not v.is_exact()):
            return ledger.undefined("a number of the program that is undefined or not exact")
        if not v.is_finite():
            return ledger.infinite(v)
        return ledger.literal(as_fraction(v))

    return objects(x.shape, map(one, x.ravel().tolist() if x.dtype != object else x.ravel()))


def as_number(x: Any, ledger: Ledger) -> Real:
    """Return a proved boolean as the number 0 or 1, and a number unchanged."""
    return ledger.literal(int(bool(x))) if isinstance(x, Fact) else x


def _entrywise(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    together = np.broadcast_arrays(*arrays)
    shape = together[0].shape
    rows = zip(np.ndindex(*shape), *(x.ravel() for x in together))
    return objects(shape, (function(index, *entries) for index, *entries in rows))


def _numbers(x: Any, run: Any) -> np.ndarray:
    flat = lifted(x, run.ledger)
    return objects(flat.shape, (as_number(v, run.ledger) for v in flat.ravel()))


def _facts(x: Any, run: Any) -> np.ndarray:
    ledger = run.ledger
    flat = lifted(x, ledger)
    as_fact = lambda v: v if isinstance(v, Fact) else ledger.compare(v, "<>", ledger.literal(0))
    return objects(flat.shape, map(as_fact, flat.ravel()))


def unary(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Record a function of one argument, applied to each entry."""
    name = eqn.primitive.name
    function = _SPECIAL.get(name) or (lambda ledger, a, i: ledger.unary(name, a, i))
    x = _numbers(xs[0], run)
    return [_entrywise(lambda i, a: function(run.ledger, a, i), x)]


def _sign(ledger: Ledger, a: Real, index: Any) -> Real:
    if a.why or a.exact == 0:
        return a if a.why else ledger.literal(0)
    return ledger.literal(1 if ledger.compare(a, ">", ledger.literal(0)) else -1)


def _cube_root(ledger: Ledger, a: Real, index: Any) -> Real:
    if a.why or a.exact == 0:
        return a if a.why else ledger.literal(0)
    if ledger.compare(a, ">", ledger.literal(0)):
        return ledger.apply(CUBE_ROOT, ((a,),), index)
    positive = ledger.unary("neg", a, index)
    return ledger.unary("neg", ledger.apply(CUBE_ROOT, ((positive,),), index), index)


def _log_gamma(ledger: Ledger, a: Real, index: Any) -> Real:
    """Record log Gamma(x) in the ledger, for a positive multiple x of 1/2.

    The value is log (n-1)! for x = n, and log((2n)! sqrt(pi) / (4^n n!)) for x = n + 1/2.
    """
    if a.exact is None or a.exact.denominator > 2 or not Fraction(1, 2) <= a.exact <= 1000:
        return ledger.undefined("lgamma of a number other than 1/2, 1, 3/2, ..., 1000")
    ledger.choose(Fact(True, (Comparison(a, "=", ledger.literal(a.exact)),), ledger))
    n = math.floor(a.exact)
    if a.exact == n:
        return ledger.unary("log", ledger.literal(math.factorial(n - 1)), index)
    share = Fraction(math.factorial(2 * n), 4**n * math.factorial(n))
    return ledger.apply(HALF_FACTORIAL, ((ledger.literal(share),),), index)


def _whole(operation: Operation) -> Callable[[Ledger, Real, Any], Real]:
    def function(ledger: Ledger, a: Real, index: Any) -> Real:
        if a.why or a.exact is not None:
            return ledger.apply(operation, ((a,),), index)
        ends = [operation.exact(as_fraction(end)) for end in (a.ball.lower(), a.ball.upper())]
        if ends[0] != ends[1]:
            raise Undecided(f"{operation.name} jumps between the bounds of its argument")
        return ledger.apply(operation, ((a,),), index, ends[0])

    return function


_SPECIAL: dict[str, Callable[[Ledger, Real, Any], Real]] = {
    "sign": _sign,
    "cbrt": _cube_root,
    "lgamma": _log_gamma,
    "floor": _whole(FLOOR),
    "ceil": _whole(CEIL),
}


def rounded(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Record a rounding to the nearest integer (halves to even).

    Raises:
        NotSupported: if the program rounds halves away from zero.
    """
    if eqn.params["rounding_method"] != RoundingMethod.TO_NEAREST_EVEN:
        raise NotSupported(
            "rounding halves away from zero has no translation into Rocq, "
            f"rounding_method={eqn.params['rounding_method']}. Try jnp.round"
        )
    return [_entrywise(lambda i, a: _whole(NEAREST)(run.ledger, a, i), _numbers(xs[0], run))]


def binary(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Record a function of two arguments, applied to each pair of entries."""
    name = eqn.primitive.name
    a, b = (_numbers(x, run) for x in xs)
    return [_entrywise(lambda i, u, v: run.ledger.binary(name, u, v, i), a, b)]


def compare(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Record a comparison of numbers or of proved booleans."""
    name, ledger = eqn.primitive.name, run.ledger
    a, b = (lifted(x, ledger) for x in xs)

    def one(index: Any, u: Any, v: Any) -> Fact:
        if isinstance(u, Fact) and isinstance(v, Fact):
            same = u.truth == v.truth
            truth = {"eq": same, "ne": not same}.get(name)
            if truth is None:
                raise NotSupported(
                    f"primitive={name!r} orders booleans, which has no translation into Rocq. Try "
                    f"& or |"
                )
            return Fact(truth, u.because + v.because, ledger)
        return ledger.compare(as_number(u, ledger), _SIGNS[name], as_number(v, ledger))

    return [_entrywise(one, a, b)]


def is_finite(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Record `is_finite`, which is true for every finite number."""
    x = _numbers(xs[0], run)
    return [_entrywise(lambda i, a: Fact(bool(a.ball.is_finite()), (), run.ledger), x)]


def _joined(facts: Iterable[Fact], decisive: bool, ledger: Ledger) -> Fact:
    """Return the conjunction of proved booleans; if `decisive` is True, the disjunction."""
    facts = list(facts)
    for fact in sorted(facts, key=lambda f: len(f.because)):
        if fact.truth == decisive:
            return fact
    reasons = dict.fromkeys(c for fact in facts for c in fact.because)
    return Fact(not decisive, tuple(reasons), ledger)


def _logical(decisive: bool) -> Callable[[JaxprEqn, Values, Any], Values]:
    def rule(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
        if dtype_of(eqn.outvars[0]) != np.bool_:
            raise NotSupported(
                f"primitive={eqn.primitive.name!r} computes on bits of integers, for which "
                "there is no translation. Try booleans"
            )
        a, b = (_facts(x, run) for x in xs)
        return [_entrywise(lambda i, u, v: _joined((u, v), decisive, run.ledger), a, b)]

    return rule


def negation(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Return the negations of an operand's proved booleans."""
    return [_entrywise(lambda i, a: a.negated(), _facts(xs[0], run))]


def select(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Return the entries that a `select_n` selects; record the choice if its options differ."""
    which, *cases = (lifted(x, run.ledger) for x in xs)
    which = np.broadcast_to(which, cases[0].shape)

    def one(index: Any, k: Any, *options: Any) -> Any:
        same = all(option is options[0] for option in options)
        return options[0] if same else options[_integer(k)]

    return [_entrywise(one, which, *cases)]


def _integer(x: Any) -> int:
    if isinstance(x, Fact):
        return int(x)
    if x.exact is None or x.exact.denominator != 1:
        raise Undecided("an index is not an exact integer")
    return int(x.exact)


def clamp(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Record min(max(x, low), high)."""
    ledger, (low, x, high) = run.ledger, (_numbers(x, run) for x in xs)
    lower = _entrywise(lambda i, a, b: ledger.binary("max", a, b, i), x, low)
    return [_entrywise(lambda i, a, b: ledger.binary("min", a, b, i), lower, high)]


def integer_power(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Record x^y for a static integer y."""
    y = eqn.params["y"]
    return [_entrywise(lambda i, a: run.ledger.power(a, y, i), _numbers(xs[0], run))]


def convert(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Translate a conversion to another type that changes no number.

    Raises:
        NotSupported: if the conversion between types rounds.
    """
    new, old, ledger = eqn.params["new_dtype"], dtype_of(eqn.invars[0]), run.ledger
    x = lifted(xs[0], ledger)
    if new == np.bool_:
        return [_facts(x, run)]
    numbers = objects(x.shape, (as_number(v, ledger) for v in x.ravel()))
    if issubdtype(new, np.floating) and np.dtype(new).itemsize < 8 and old != np.bool_:
        raise NotSupported(f"a conversion to dtype={np.dtype(new).name} rounds. Try float64")
    if issubdtype(new, np.integer) and issubdtype(old, np.floating):
        zero = ledger.literal(0)
        towards = lambda a: FLOOR if ledger.compare(a, ">=", zero) else CEIL
        whole = lambda i, a: a if _is_whole(a) else _whole(towards(a))(ledger, a, i)
        return [_entrywise(whole, numbers)]
    return [numbers]


def _is_whole(a: Real) -> bool:
    return a.exact is not None and a.exact.denominator == 1


def rows_of(x: np.ndarray, axes: tuple[int, ...]) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the shape without the reduced axes, and one row of entries for each result."""
    keep = [i for i in range(x.ndim) if i not in axes]
    shape = tuple(x.shape[i] for i in keep)
    width = math.prod(x.shape[i] for i in axes)
    return shape, np.transpose(x, [*keep, *axes]).reshape(math.prod(shape), width)


def total(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Record the sums of an array along some axes."""
    shape, rows = rows_of(_numbers(xs[0], run), axes_of(eqn))
    sums = (
        run.ledger.total([(v,) for v in row], index) for index, row in zip(np.ndindex(*shape), rows)
    )
    return [objects(shape, sums)]


def _fold(name: str, empty: float) -> Callable[[JaxprEqn, Values, Any], Values]:
    def rule(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
        x = lifted(xs[0], run.ledger)
        shape, rows = rows_of(x, axes_of(eqn))
        if not rows.shape[1]:
            raise NotSupported(
                f"primitive={eqn.primitive.name!r} needs at least one number, got shape={x.shape}. "
                f"Try a nonempty axis"
            )
        if any(isinstance(v, Fact) for v in x.ravel()):
            decisive = name == "max"
            return [objects(shape, (_joined(row, decisive, run.ledger) for row in rows))]

        def folded(index: Any, row: np.ndarray) -> Real:
            done = row[0]
            for v in row[1:]:
                done = run.ledger.binary(name, done, v, index)
            return done

        return [objects(shape, map(folded, np.ndindex(*shape), rows))]

    return rule


def _facts_along(decisive: bool) -> Callable[[JaxprEqn, Values, Any], Values]:
    def rule(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
        shape, rows = rows_of(_facts(xs[0], run), axes_of(eqn))
        return [objects(shape, (_joined(row, decisive, run.ledger) for row in rows))]

    return rule


def _position(sign: str) -> Callable[[JaxprEqn, Values, Any], Values]:
    """For `argmax`, record that the entry exceeds all earlier and no later entry exceeds it."""

    def rule(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
        shape, rows = rows_of(_numbers(xs[0], run), axes_of(eqn))

        def first(row: np.ndarray) -> int:
            best = 0
            for i in range(1, len(row)):
                if run.ledger.compare(row[i], sign, row[best]):
                    best = i
            return best

        where = [first(row) for row in rows]
        return [np.array(where, dtype=eqn.params["index_dtype"]).reshape(shape)]

    return rule


def _running(name: str) -> Callable[[JaxprEqn, Values, Any], Values]:
    def rule(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
        axis, reverse = eqn.params["axis"], eqn.params["reverse"]
        x = _numbers(xs[0], run)
        x = np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0).copy()
        for i in range(1, len(x)):
            for j in np.ndindex(*x.shape[1:]):
                x[(i, *j)] = run.ledger.binary(name, x[(i - 1, *j)], x[(i, *j)], (i, *j))
        x = np.moveaxis(x, 0, axis)
        return [np.flip(x, axis) if reverse else x]

    return rule


def product(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Record each entry of a `dot_general`."""
    a, b = (_numbers(x, run) for x in xs)
    left, right, shape = laid_out(a, b, eqn.params["dimension_numbers"])
    pairs = ((u, v) for p, q in zip(left, right) for u in p for v in q.T)
    entries = (
        run.ledger.total(list(zip(u, v)), index) for index, (u, v) in zip(np.ndindex(*shape), pairs)
    )
    return [objects(shape, entries)]


def scatter_add(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Record the additions of `scatter-add`, one for each update.

    Raises:
        Undecided: if an index of the operation is not an exact integer.
    """
    operand, index, updates = _numbers(xs[0], run), xs[1], _numbers(xs[2], run)
    if is_soft(index):
        raise Undecided("an index of scatter-add is not an exact integer")
    out, dtype = operand.ravel().copy(), dtype_of(eqn.invars[0])
    for position, update in enumerate(updates.ravel()):
        one = np.zeros(updates.size, dtype)
        one[position] = 1
        marked = one.reshape(updates.shape)
        hit = eqn.primitive.bind(np.zeros(operand.shape, dtype), index, marked, **eqn.params)
        for target in np.flatnonzero(np.asarray(hit)):
            out[target] = run.ledger.binary("add", out[target], update, (int(target),))
    return [out.reshape(operand.shape)]


def svd(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Write a matrix's singular values, with a proof of their bounds, for Rocq (see `spectral`).

    Raises:
        NotSupported: if the program uses the singular vectors of the matrix.
    """
    if any(map(run.used, eqn.outvars[1:])):
        raise NotSupported(
            "the singular vectors of svd have no translation, "
            f"compute_uv={eqn.params['compute_uv']}. Try compute_uv=False"
        )
    a = _numbers(xs[0], run)
    batch = a.shape[:-2]
    found = [v for i in np.ndindex(*batch) for v in singular_values(a[i], run.ledger, i)]
    values = objects((*batch, min(a.shape[-2:])), found)
    return [values, *([None] * (len(eqn.outvars) - 1))]


_UNARY: tuple[str, ...] = (
    "neg",
    "abs",
    "sign",
    "sqrt",
    "rsqrt",
    "cbrt",
    "square",
    "exp",
    "exp2",
    "expm1",
    "log",
)
_UNARY += ("log1p", "logistic", "tanh", "sin", "cos", "tan", "atan", "floor", "ceil", "lgamma")
INTEGERS = frozenset(
    {
        *("add", "sub", "mul", "neg", "abs", "sign", "max", "min", "integer_pow", "select_n"),
        *("reduce_sum", "reduce_max", "reduce_min", "dot_general", "convert_element_type"),
        *("clamp", "square", *_SIGNS, *movement.RULES),
    }
)
"""The primitives whose rule takes both integers and reals. A rule of any other primitive gets
integers only as NumPy integers.
"""
RULES: dict[str, Callable[[JaxprEqn, Values, Any], Values]] = {
    **movement.RULES,
    **loops.RULES,
    **dict.fromkeys(_UNARY, unary),
    **dict.fromkeys(("add", "add_any", "sub", "mul", "div", "max", "min", "pow"), binary),
    **dict.fromkeys(_SIGNS, compare),
    "is_finite": is_finite,
    "and": _logical(False),
    "or": _logical(True),
    "not": negation,
    "select_n": select,
    "clamp": clamp,
    "integer_pow": integer_power,
    "round": rounded,
    "convert_element_type": convert,
    "reduce_sum": total,
    "reduce_prod": _fold("mul", 1),
    "reduce_max": _fold("max", -math.inf),
    "reduce_min": _fold("min", math.inf),
    "reduce_and": _facts_along(False),
    "reduce_or": _facts_along(True),
    "argmax": _position(">"),
    "argmin": _position("<"),
    "cumsum": _running("add"),
    "cumprod": _running("mul"),
    "cummax": _running("max"),
    "cummin": _running("min"),
    "dot_general": product,
    "scatter-add": scatter_add,
    "svd": svd,
}
