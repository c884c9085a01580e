"""Run programs on values other than balls (intervals), such as Taylor polynomials.

An `Algebra` defines these values, called its elements, and the functions on them. An array of
floats becomes an array of elements.
"""

import functools
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from flint import arb

from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls import loops, movement
from jaxbounds.programs.balls.elementwise import rounds
from jaxbounds.programs.balls.interpreter import Interpreter
from jaxbounds.programs.balls.linear_algebra import laid_out
from jaxbounds.programs.balls.values import (
    NotSupported,
    Undecided,
    as_flags,
    as_reals,
    axes_of,
    dtype_of,
    each,
    flags,
    is_float,
    is_narrow,
    is_reals,
    reals,
    shape_of,
)

Values = list[Any]
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_MOVES = frozenset(movement.RULES) - {name for name in movement.RULES if "scatter-" in name}


@runtime_checkable
class Algebra(Protocol):
    """The interface of an arithmetic on elements, such as Taylor polynomials, not on numbers."""

    def lift(self, ball: arb) -> Any:
        """Return a constant (a ball, or interval) as an element such as a Taylor polynomial."""

    def apply(self, name: str, *entries: Any) -> Any:
        """Apply the function of a named JAX primitive to one or two elements of the arithmetic."""

    def power(self, x: Any, n: int) -> Any:
        """Return the element x to the integer power n."""

    def compare(self, name: str, a: Any, b: Any, fork: Callable[[int, str], int]) -> int:
        """Compare two elements of the algebra: return 0 (no), 1 (yes) or 2 (undecided)."""

    def larger(self, a: Any, b: Any, fork: Callable[[int, str], int]) -> Any:
        """Return the larger of two elements, such as two Taylor polynomials."""

    def join(self, cases: list[Any]) -> Any:
        """Return an element that covers all possible results of an undecided choice."""

    def finite(self, x: Any) -> int:
        """Tell whether an element of the algebra is finite: 0 (no), 1 (yes) or 2 (undecided)."""

    def hull(self, x: Any) -> arb:
        """Return a ball (interval) that contains every number that the element may stand for."""


class Scalars(Interpreter):
    """An interpreter that runs JAX programs on the elements of an `Algebra` in place of numbers."""

    def __init__(self, algebra: Algebra, **options: Any) -> None:
        super().__init__(**options)
        self.algebra = algebra

    def lifted(self, x: Any) -> Any:
        """Turn each ball (interval) into a constant element of the arithmetic."""
        if not is_reals(x):
            return x
        return each(lambda v: self.algebra.lift(v) if isinstance(v, arb) else v, x)

    def _constant(self, x: Any) -> Any:
        return self.lifted(super()._constant(x))

    def _equation(self, eqn: JaxprEqn, values: Values) -> Values:
        name = eqn.primitive.name
        if name in loops.RULES or name == "custom_linear_solve":
            return self.rules[name](eqn, values, self)
        if not any(map(is_reals, values)):
            return list(map(self.lifted, super()._equation(eqn, values)))
        if any(is_narrow(dtype_of(v)) for v in eqn.outvars):
            raise NotSupported(
                f"primitive={name!r} computes in floats narrower than float64. Try float64"
            )
        if name in _MOVES:
            return list(map(self.lifted, self.rules[name](eqn, values, self)))
        try:
            return self._of_elements(eqn, values)
        except (Undecided, NotSupported):
            raise
        except (ValueError, ArithmeticError) as problem:
            raise NotSupported(f"primitive={name!r}: {problem}. Try other operations") from problem

    def _of_elements(self, eqn: JaxprEqn, values: Values) -> Values:
        name = eqn.primitive.name
        if name in RULES:
            return RULES[name](self, eqn, values)
        shape = np.broadcast_shapes(*map(np.shape, values))
        alone = len(eqn.outvars) == 1 and shape_of(eqn.outvars[0]) == shape
        if alone and all(map(is_float, [*eqn.invars, *eqn.outvars])):
            act = functools.partial(self.algebra.apply, name)
            return [each(act, *(self.lifted(as_reals(x)) for x in values))]
        raise NotSupported(
            f"this arithmetic has no rule for primitive={name!r}. Try other operations"
        )

    def larger(self, a: Any, b: Any) -> Any:
        """Return the larger of two elements of the algebra."""
        return self.algebra.larger(a, b, self.fork)

    def smaller(self, a: Any, b: Any) -> Any:
        """Return the smaller of two elements of the algebra."""
        minus = functools.partial(self.algebra.apply, "neg")
        return minus(self.larger(minus(a), minus(b)))

    def add(self, a: Any, b: Any) -> Any:
        """Return the sum of two elements of `algebra`, such as two jets."""
        return self.algebra.apply("add", a, b)

    def mul(self, a: Any, b: Any) -> Any:
        """Return the product of two elements of the algebra."""
        return self.algebra.apply("mul", a, b)

    @property
    def zero(self) -> Any:
        """Return zero as an element of the algebra, the kind of numbers that the rule computes."""
        return self.algebra.lift(arb(0))


Rule = Callable[[Scalars, JaxprEqn, Values], Values]


def _folded(function: Callable[[Scalars], Callable], empty: float | None) -> Rule:
    def rule(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
        x, axes = xs[0], axes_of(eqn)
        keep = [i for i in range(x.ndim) if i not in axes]
        shape = tuple(x.shape[i] for i in keep)
        count = int(np.prod(shape, dtype=int))
        if not x.size:
            if empty is None:
                raise NotSupported(
                    f"primitive={eqn.primitive.name!r} needs at least one number, got "
                    f"shape={x.shape}. Try a nonempty axis"
                )
            return [reals(shape, [run.algebra.lift(arb(empty))] * count)]
        rows = np.transpose(x, [*keep, *axes]).reshape(count, -1)
        return [reals(shape, (functools.reduce(function(run), row) for row in rows))]

    return rule


def _running(function: Callable[[Scalars], Callable]) -> Rule:
    def rule(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
        axis, reverse = eqn.params["axis"], eqn.params["reverse"]
        x = np.moveaxis(np.flip(xs[0], axis) if reverse else xs[0], axis, 0).copy()
        for i in range(1, len(x)):
            x[i : i + 1] = each(function(run), x[i - 1 : i], x[i : i + 1])
        x = np.moveaxis(x, 0, axis)
        return [np.flip(x, axis) if reverse else x]

    return rule


def _dot(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    a, b = (run.lifted(as_reals(x)) for x in xs)
    left, right, shape = laid_out(a, b, eqn.params["dimension_numbers"])
    total = lambda u, v: functools.reduce(run.add, map(run.mul, u, v)) if len(u) else run.zero
    entries = (total(u, v) for p, q in zip(left, right) for u in p for v in q.T)
    return [reals(shape, entries)]


def _compare(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    name = eqn.primitive.name
    if eqn.invars[0] is eqn.invars[1]:
        known = 1 if name in ("le", "ge", "eq") else 0
        answers = [known if run.algebra.finite(v) == 1 else 2 for v in xs[0].ravel()]
        return [flags(np.reshape(np.array(answers, np.int8), xs[0].shape))]
    a, b = np.broadcast_arrays(*(run.lifted(as_reals(x)) for x in xs))
    found = [run.algebra.compare(name, u, v, run.fork) for u, v in zip(a.ravel(), b.ravel())]
    return [flags(np.reshape(np.array(found, np.int8), a.shape))]


def _select(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    which, cases = xs[0], [run.lifted(as_reals(x)) for x in xs[1:]]
    shape = cases[0].shape
    chosen = np.broadcast_to(as_flags(which) if len(cases) == 2 else np.asarray(which), shape)
    columns = [case.ravel() for case in cases]

    def pick(i: int, k: int) -> Any:
        row = [column[i] for column in columns]
        return run.algebra.join(row) if len(cases) == 2 and k == 2 else row[k]

    return [reals(shape, (pick(i, int(k)) for i, k in enumerate(chosen.ravel())))]


def _clamp(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    low, x, high = (run.lifted(as_reals(v)) for v in xs)
    return [each(run.smaller, each(run.larger, x, low), high)]


def _convert(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    new, old = eqn.params["new_dtype"], dtype_of(eqn.invars[0])
    if jax.dtypes.issubdtype(new, np.floating):
        if rounds(old, new):
            raise NotSupported(f"a conversion to dtype={np.dtype(new).name} rounds. Try float64")
        return [run.lifted(as_reals(xs[0]))]
    return run.rules["convert_element_type"](eqn, [each(run.algebra.hull, xs[0])], run)


def _steps(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    balls = [each(run.algebra.hull, x) if is_reals(x) else x for x in xs]
    found = run.rules[eqn.primitive.name](eqn, balls, run)
    if any(is_reals(x) and not all(v.is_exact() for v in x.ravel()) for x in found):
        raise Undecided(
            f"the operand of primitive={eqn.primitive.name!r} may lie on either side of a jump of "
            f"this function"
        )
    return list(map(run.lifted, found))


def _sort(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    if len(xs) > 1:
        raise NotSupported(
            f"a sort of several arrays together has no rule, got operands={len(xs)}. Try to sort "
            f"one array"
        )
    axis = eqn.params["dimension"]
    x = np.moveaxis(xs[0], axis, -1).copy()
    for index in np.ndindex(x.shape[:-1]):
        row = x[index]
        for i in range(len(row)):
            for j in range(len(row) - 1 - i):
                row[j], row[j + 1] = run.smaller(row[j], row[j + 1]), run.larger(row[j], row[j + 1])
    return [np.moveaxis(x, -1, axis)]


def _power(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    return [each(lambda v: run.algebra.power(v, eqn.params["y"]), xs[0])]


def _finite(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    answers = [run.algebra.finite(v) for v in xs[0].ravel()]
    return [flags(np.reshape(np.array(answers, np.int8), xs[0].shape))]


def _binary(name: str) -> Rule:
    def rule(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
        a, b = (run.lifted(as_reals(x)) for x in xs)
        return [each(functools.partial(run.algebra.apply, name), a, b)]

    return rule


def _extremum(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    a, b = (run.lifted(as_reals(x)) for x in xs)
    return [each(run.larger if eqn.primitive.name == "max" else run.smaller, a, b)]


def _absolute(run: Scalars, eqn: JaxprEqn, xs: Values) -> Values:
    return [each(lambda v: run.larger(v, run.algebra.apply("neg", v)), xs[0])]


RULES: dict[str, Rule] = {
    **dict.fromkeys(_COMPARISONS, _compare),
    **{name: _binary(name) for name in ("add", "sub", "mul", "div", "pow")},
    "add_any": _binary("add"),
    "max": _extremum,
    "min": _extremum,
    "abs": _absolute,
    "reduce_sum": _folded(lambda run: run.add, 0.0),
    "reduce_prod": _folded(lambda run: run.mul, 1.0),
    "reduce_max": _folded(lambda run: run.larger, None),
    "reduce_min": _folded(lambda run: run.smaller, None),
    "cumsum": _running(lambda run: run.add),
    "cumprod": _running(lambda run: run.mul),
    "cummax": _running(lambda run: run.larger),
    "cummin": _running(lambda run: run.smaller),
    **dict.fromkeys(("sign", "floor", "ceil", "round", "argmax", "argmin"), _steps),
    "dot_general": _dot,
    "select_n": _select,
    "clamp": _clamp,
    "convert_element_type": _convert,
    "integer_pow": _power,
    "is_finite": _finite,
    "sort": _sort,
}
