"""Bound derivatives on boxes: run programs on values and their slopes, in forward mode.

A slope contains every difference quotient of the value over the box. At a kink (`max`, `abs`) the
slope is the hull of the slopes on both sides. If the enclosures (balls) are too wide to decide a
choice between two numbers, the value may jump, and the slope is unknown (NaN). The slope ignores
`stop_gradient`, because a bound needs the true derivative.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from flint import arb

from jaxbounds.ground.jax_internals import ClosedJaxpr, JaxprEqn
from jaxbounds.programs.balls import elementwise, functions, loops, movement
from jaxbounds.programs.balls.elementwise import rounds
from jaxbounds.programs.balls.interpreter import Interpreter
from jaxbounds.programs.balls.linear_algebra import contracted
from jaxbounds.programs.balls.values import (
    NAN,
    ONE,
    OPEN,
    ZERO,
    Flags,
    NotSupported,
    as_flags,
    as_reals,
    axes_of,
    dtype_of,
    each,
    hull,
    is_reals,
    reals,
)
from jaxbounds.programs.balls.windows import convolved

Values = list[Any]
TWO = arb(2)


class Sloped:
    """An array of balls (intervals), with an array of slopes for each coordinate of the box."""

    def __init__(self, value: np.ndarray, slopes: list[np.ndarray]) -> None:
        self.value, self.slopes = value, slopes

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the array `value`."""
        return self.value.shape


def _steps(x: arb, y: arb) -> arb:
    """Return a step function's slope on the ball x: zero if the value y is one number, else NaN."""
    return ZERO if y.is_exact() else NAN


_DERIVATIVES: dict[str, Callable[[arb, arb], arb]] = {
    "neg": lambda x, y: -ONE,
    "exp": lambda x, y: y,
    "exp2": lambda x, y: y * arb.const_log2(),
    "expm1": lambda x, y: y + 1,
    "log": lambda x, y: functions.divide(ONE, x),
    "log1p": lambda x, y: functions.divide(ONE, 1 + x),
    "logistic": lambda x, y: functions.UNARY["logistic"](x) * functions.UNARY["logistic"](-x),
    "tanh": lambda x, y: 1 - functions.integer_power(y, 2),
    "sqrt": lambda x, y: functions.divide(ONE, 2 * y) if x > 0 else NAN,
    "rsqrt": lambda x, y: functions.divide(-y, 2 * x),
    "square": lambda x, y: 2 * x,
    "abs": lambda x, y: functions.sign(x),
    "cbrt": lambda x, y: functions.divide(ONE, 3 * functions.integer_power(y, 2)),
    "tan": lambda x, y: 1 + functions.integer_power(y, 2),
    "asin": lambda x, y: functions.UNARY["rsqrt"](1 - functions.integer_power(x, 2)),
    "acos": lambda x, y: -functions.UNARY["rsqrt"](1 - functions.integer_power(x, 2)),
    "asinh": lambda x, y: functions.UNARY["rsqrt"](1 + functions.integer_power(x, 2)),
    "atanh": lambda x, y: functions.divide(ONE, 1 - functions.integer_power(x, 2)),
    "erfc": lambda x, y: -2 / arb.const_sqrt_pi() * (-functions.integer_power(x, 2)).exp(),
    "sin": lambda x, y: x.cos(),
    "cos": lambda x, y: -x.sin(),
    "sinh": lambda x, y: x.cosh(),
    "cosh": lambda x, y: x.sinh(),
    "atan": lambda x, y: 1 / (1 + functions.integer_power(x, 2)),
    "erf": lambda x, y: 2 / arb.const_sqrt_pi() * (-functions.integer_power(x, 2)).exp(),
    "lgamma": lambda x, y: x.digamma() if x > 0 else NAN,
    "sign": _steps,
    "floor": _steps,
    "ceil": _steps,
    "round": _steps,
}
"""For each primitive f, a function that encloses f'(x) from the balls of x and of f(x)."""

_LINEAR = {"add", "sub", "add_any", "reduce_sum", "cumsum", "concatenate", "convert_element_type",
           "reduce_window_sum"}  # fmt: skip
_LINEAR |= set(movement.RULES)


def _larger(a: arb, b: arb, da: arb, db: arb) -> arb:
    return da if a >= b else db if b >= a else hull(da, db)


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Sloped) else x


class Slopes(Interpreter):
    """An interpreter on values with slopes; `count` is the number of coordinates of the box."""

    def __init__(self, count: int, **options: Any) -> None:
        super().__init__(**options)
        self.count = count

    def _slope(self, x: Any, j: int) -> Any:
        if isinstance(x, Sloped):
            return x.slopes[j]
        return reals(np.shape(x), [ZERO] * int(np.size(x)))

    def _jumping(self, x: Any) -> Any:
        """Give each entry the slope zero if it is constant on the box, else NaN (unknown)."""
        if not is_reals(x):
            return x
        slope = each(lambda v: _steps(v, v), x)
        return Sloped(x, [slope] * self.count)

    def _each(self, slope: Callable[[int], np.ndarray], value: np.ndarray) -> Values:
        return [Sloped(value, [slope(j) for j in range(self.count)])]

    def _equation(self, eqn: JaxprEqn, values: Values) -> Values:
        name = eqn.primitive.name
        if not any(isinstance(x, Sloped) for x in values):
            results = super()._equation(eqn, values)
            # A choice between constants varies on the box only if its boolean is open.
            unsure = any(isinstance(x, Flags) for x in values)
            return list(map(self._jumping, results)) if unsure else results
        rule = self.rules.get(name)
        if rule is loops.call or rule is loops.same:
            return rule(eqn, values, self)
        if rule is None or name in loops.RULES:
            raise NotSupported(
                f"enclosures of slopes have no rule for primitive={name!r}. Try other operations"
            )
        plain = list(map(_value, values))
        if name in _RULES:
            return _RULES[name](self, eqn, values, plain)
        results = rule(eqn, plain, self)
        if not any(map(is_reals, results)):
            return results  # comparisons and indices have no slope
        if name == "convert_element_type" and rounds(
            dtype_of(eqn.invars[0]), dtype_of(eqn.outvars[0])
        ):
            return [self._jumping(v) for v in results]  # rounding is a step function
        if name in _LINEAR:
            data = lambda j: [self._slope(x, j) if self._is_data(name, i) else x
                              for i, x in enumerate(values)]  # fmt: skip
            if name == "gather":  # the fill value is constant, so its slope is zero
                eqn = eqn.replace(params=eqn.params | {"fill_value": 0})
            parts = [rule(eqn, data(j), self) for j in range(self.count)]
            return [Sloped(v, [p[i] for p in parts]) for i, v in enumerate(results)]
        if name in _DERIVATIVES and len(values) == 1:
            d = each(_DERIVATIVES[name], plain[0], results[0])
            return self._each(lambda j: each(_times, d, self._slope(values[0], j)), results[0])
        raise NotSupported(
            f"enclosures of slopes have no rule for primitive={name!r}. Try other operations"
        )

    @staticmethod
    def _is_data(name: str, operand: int) -> bool:
        which = (0, 2) if name == "scatter-add" else movement.DATA.get(name)
        return which is None or operand in which


def _times(a: arb, b: arb) -> arb:
    """Return the product a b; zero times an unknown factor (NaN) gives zero."""
    return ZERO if a.is_zero() or b.is_zero() else a * b


def _mul(run: Slopes, eqn: JaxprEqn, xs: Values, plain: Values) -> Values:
    a, b = map(as_reals, plain)
    value = run.rules["mul"](eqn, plain, run)[0]
    parts = lambda j: (each(_times, as_reals(run._slope(xs[0], j)), b),
                       each(_times, a, as_reals(run._slope(xs[1], j))))  # fmt: skip
    return run._each(lambda j: each(operator.add, *parts(j)), value)


def _dot(run: Slopes, eqn: JaxprEqn, xs: Values, plain: Values) -> Values:
    a, b = map(as_reals, plain)
    value = run.rules["dot_general"](eqn, plain, run)[0]
    numbers = eqn.params["dimension_numbers"]

    def slope(j: int) -> np.ndarray:
        left = contracted(run._slope(xs[0], j), b, numbers)
        return each(operator.add, left, contracted(a, run._slope(xs[1], j), numbers))

    return run._each(slope, value)


def _convolution(run: Slopes, eqn: JaxprEqn, xs: Values, plain: Values) -> Values:
    a, b = map(as_reals, plain)
    value = run.rules["conv_general_dilated"](eqn, plain, run)[0]

    def slope(j: int) -> np.ndarray:
        left = convolved(run._slope(xs[0], j), b, eqn.params)
        return each(operator.add, left, convolved(a, run._slope(xs[1], j), eqn.params))

    return run._each(slope, value)


def _product_of(run: Slopes, eqn: JaxprEqn, xs: Values, plain: Values) -> Values:
    value = run.rules["reduce_prod"](eqn, plain, run)[0]
    axes, x = axes_of(eqn), as_reals(plain[0])
    order = [i for i in range(x.ndim) if i not in axes] + list(axes)
    rows = lambda y: np.transpose(y, order).reshape(value.size, -1)
    numbers = rows(x)

    def grows(row: np.ndarray, d: np.ndarray) -> arb:
        others = lambda i: functools.reduce(functions.times, [*row[:i], *row[i + 1 :]], ONE)
        return sum((_times(d[i], others(i)) for i in range(len(row))), ZERO)

    def slope(j: int) -> np.ndarray:
        return reals(value.shape, map(grows, numbers, rows(run._slope(xs[0], j))))

    return run._each(slope, value)


def _div(run: Slopes, eqn: JaxprEqn, xs: Values, plain: Values) -> Values:
    b = as_reals(plain[1])
    value = run.rules["div"](eqn, plain, run)[0]

    def slope(j: int) -> np.ndarray:
        moved = each(_times, value, run._slope(xs[1], j))
        over = each(operator.sub, run._slope(xs[0], j), moved)
        return each(lambda u, v: ZERO if u.is_zero() else functions.divide(u, v), over, b)

    return run._each(slope, value)


def _power(run: Slopes, eqn: JaxprEqn, xs: Values, plain: Values) -> Values:
    x = as_reals(plain[0])
    if eqn.primitive.name == "integer_pow":
        n = eqn.params["y"]
        d = each(lambda v: n * functions.integer_power(v, n - 1), x)
    elif isinstance(xs[1], Sloped):
        raise NotSupported(
            f"enclosures of slopes have no rule for primitive={eqn.primitive.name!r} with a "
            f"varying exponent. Try a number"
        )
    else:
        d = each(lambda v, y: y * functions.power(v, y - 1), x, as_reals(plain[1]))
    value = run.rules[eqn.primitive.name](eqn, plain, run)[0]
    return run._each(lambda j: each(_times, d, run._slope(xs[0], j)), value)


def _extremum(run: Slopes, eqn: JaxprEqn, xs: Values, plain: Values) -> Values:
    a, b = map(as_reals, plain)
    if eqn.primitive.name == "min":
        a, b = each(operator.neg, a), each(operator.neg, b)
    value = run.rules[eqn.primitive.name](eqn, plain, run)[0]
    return run._each(
        lambda j: each(_larger, a, b, run._slope(xs[0], j), run._slope(xs[1], j)), value
    )


def _greatest(run: Slopes, eqn: JaxprEqn, xs: Values, plain: Values) -> Values:
    """Apply `reduce_max` or `reduce_min`; the slope covers every entry that may be extreme."""
    value = run.rules[eqn.primitive.name](eqn, plain, run)[0]
    axes = axes_of(eqn)
    x = as_reals(plain[0])
    x = x if eqn.primitive.name == "reduce_max" else each(operator.neg, x)
    order = [i for i in range(x.ndim) if i not in axes] + list(axes)
    rows = lambda y: np.transpose(y, order).reshape(value.size, -1)
    numbers = rows(x)
    possible = [[i for i, v in enumerate(r) if not any(w > v for w in r)] for r in numbers]

    def slope(j: int) -> np.ndarray:
        each_row = zip(rows(run._slope(xs[0], j)), possible)
        return reals(value.shape, (functools.reduce(hull, d[able]) for d, able in each_row))

    return run._each(slope, value)


def _select(run: Slopes, eqn: JaxprEqn, xs: Values, plain: Values) -> Values:
    value = run.rules["select_n"](eqn, plain, run)[0]
    if not is_reals(value):
        return [value]
    open_ones = as_flags(plain[0]) == OPEN if isinstance(plain[0], Flags) else np.array(False)
    open_ones = np.broadcast_to(open_ones, value.shape)
    which = np.where(open_ones, 0, as_flags(plain[0]) if open_ones.any() else np.asarray(plain[0]))

    def slope(j: int) -> np.ndarray:
        cases = [as_reals(run._slope(x, j)).ravel() for x in xs[1:]]
        ways = zip(np.broadcast_to(which, value.shape).ravel().tolist(), open_ones.ravel())
        return reals(value.shape, (NAN if o else cases[int(k)][i] for i, (k, o) in enumerate(ways)))

    return run._each(slope, value)


def _clamp(run: Slopes, eqn: JaxprEqn, xs: Values, plain: Values) -> Values:
    low, x, high = (np.broadcast_to(as_reals(v), np.shape(plain[1])) for v in plain)
    value = elementwise.clamp(eqn, plain, run)[0]
    spread = lambda i, j: np.broadcast_to(as_reals(run._slope(xs[i], j)), value.shape)
    above = each(functions.greater, x, low)

    def slope(j: int) -> np.ndarray:
        inner = each(_larger, x, low, spread(1, j), spread(0, j))
        return each(
            _larger, each(operator.neg, above), each(operator.neg, high), inner, spread(2, j)
        )

    return run._each(slope, value)


_RULES: dict[str, Callable[[Slopes, JaxprEqn, Values, Values], Values]] = {
    "mul": _mul,
    "dot_general": _dot,
    "conv_general_dilated": _convolution,
    "reduce_prod": _product_of,
    "div": _div,
    "pow": _power,
    "integer_pow": _power,
    "max": _extremum,
    "min": _extremum,
    "reduce_max": _greatest,
    "reduce_min": _greatest,
    "select_n": _select,
    "clamp": _clamp,
}


def has_rule(name: str, /) -> bool:
    """Tell whether the named primitive has a rule for slopes."""
    called = loops.RULES.get(name) in (loops.call, loops.same)
    return name in _RULES or name in _LINEAR or name in _DERIVATIVES or called


def sloped(program: ClosedJaxpr, boxes: np.ndarray, /, **options: Any) -> Values:
    """Run a program of one array of shape (B, k) on B boxes, with slopes along the k coordinates.

    The boxes are balls (intervals) of shape (B, k). The program's constants have slope zero.

    Raises:
        NotSupported: if a primitive has no rule for slopes.
        Undecided: if the enclosures (balls) are too wide to decide a branch of the program.
    """
    rows, count = boxes.shape
    unit = lambda j: reals((rows, count), (ONE if c == j else ZERO for _ in range(rows)
                                            for c in range(count)))  # fmt: skip
    run = Slopes(count, **options)
    ways = list(run.ways(program, Sloped(boxes, [unit(j) for j in range(count)])))
    if len(ways) > 1:
        raise NotSupported(
            f"the boxes allow ways={len(ways)} through the program, and enclosures of slopes need "
            f"a single way. Try smaller boxes"
        )
    return ways[0]
