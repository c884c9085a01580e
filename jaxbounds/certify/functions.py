"""Scalar functions on balls: each contains the image of every real in its argument's ball."""

import operator
from collections.abc import Callable

from flint import arb

from jaxbounds.certify.values import INF, NAN, ONE, OPEN, ZERO, hull

HALF = arb(0.5)


def square_root(x: arb, /) -> arb:
    """The root, of the part of the ball that is not negative."""
    if x.is_zero():
        return ZERO
    if x > 0:
        return x.sqrt() if x.is_finite() else (INF if x.is_exact() else NAN)
    if not x.is_finite() or x < 0:
        return NAN
    return hull(ZERO, x.upper().sqrt())


def logarithm(x: arb, /) -> arb:
    """The logarithm; minus infinity at an exact zero."""
    return -INF if x.is_zero() else x.log()


def log1p(x: arb, /) -> arb:
    """log(1 + x); minus infinity at an exact minus one."""
    return -INF if x.is_exact() and x == -1 else x.log1p()


def _with_limits(at_minus: arb, at_plus: arb, inside: Callable[[arb], arb]) -> Callable[[arb], arb]:
    """A function that has limits at the two infinities."""

    def function(x: arb) -> arb:
        if x.is_exact() and not x.is_finite():
            return at_minus if x == -INF else at_plus if x == INF else NAN
        return inside(x)

    return function


def _monotone(function: Callable[[arb], arb]) -> Callable[[arb], arb]:
    """An increasing function from the ends of the ball, where the ball is wide."""

    def by_ends(x: arb) -> arb:
        if x.is_exact() or not x.is_finite():
            return function(x)
        return function(x.lower()).union(function(x.upper()))

    return by_ends


_exp = _with_limits(ZERO, INF, _monotone(lambda x: x.exp()))
_expm1 = _with_limits(-ONE, INF, _monotone(lambda x: x.expm1()))
_logistic = _with_limits(ZERO, ONE, _monotone(lambda x: 1 / (1 + (-x).exp())))
_tanh = _with_limits(-ONE, ONE, _monotone(lambda x: x.tanh()))
_erf = _with_limits(-ONE, ONE, _monotone(lambda x: x.erf()))


def integer_power(x: arb, n: int, /) -> arb:
    """x^n for a whole n, tight for even powers around zero."""
    if n < 0:
        return divide(ONE, integer_power(x, -n))
    if n % 2 == 0 and x.is_finite() and x.contains(0):
        return arb(0) ** n if x.is_exact() else hull(ZERO, x.abs_upper() ** n)
    return x if n == 1 else x**n


def power(x: arb, y: arb, /) -> arb:
    """x^y, for negative x only at whole y."""
    if y.is_zero():
        return ONE
    whole = y.unique_fmpz() if y.is_exact() and abs(y) < 2**20 else None
    if whole is not None:
        return integer_power(x, int(whole))
    if x.is_zero():
        return ZERO if y > 0 else INF if y < 0 and y.is_finite() else NAN
    if x > 0 and y.is_finite():
        return x**y
    broken = y.is_exact() and not y.is_integer()
    if x.is_finite() and y.is_finite() and y > 0 and x.upper() > 0 and (x >= 0 or broken):
        # Below zero such a power is undefined; on [0, u] it is at most u^y.
        return hull(ZERO, x.upper() ** y)
    return NAN


def divide(a: arb, b: arb, /) -> arb:
    """The quotient; unknown for b = 0, whose sign as a float is not known."""
    if b.is_zero():
        return NAN
    if b.is_exact() and not b.is_finite() and not b.is_nan() and a.is_finite():
        return ZERO
    return a / b


def remainder(a: arb, b: arb, /) -> arb:
    """A - b trunc(a / b), where the quotient's whole part is certain."""
    quotient = divide(a, b)
    if not quotient.is_finite():
        return NAN
    return a - b * truncated(quotient)


def truncated(x: arb, /) -> arb:
    """The whole part, towards zero."""
    if x >= 0:
        return floor(x)
    return ceil(x) if x <= 0 else hull(ceil(x.lower()), floor(x.upper()))


def absolute(x: arb, /) -> arb:
    """The size; from zero on where the ball contains it."""
    return hull(ZERO, x.abs_upper()) if x.is_finite() and x.contains(0) else abs(x)


def sign(x: arb, /) -> arb:
    """The sign; the hull of the possible ones around zero."""
    if x > 0:
        return ONE
    if x < 0:
        return -ONE
    if x.is_zero():
        return ZERO
    return (-ONE).union(ONE) if x.is_finite() else NAN


def greater(a: arb, b: arb, /) -> arb:
    """The larger of the two."""
    if a.is_nan() or b.is_nan():
        return NAN
    return a if a >= b else b if b >= a else a.max(b)


def less(a: arb, b: arb, /) -> arb:
    """The smaller of the two."""
    if a.is_nan() or b.is_nan():
        return NAN
    return a if a <= b else b if b <= a else a.min(b)


def cube_root(x: arb, /) -> arb:
    """The real cube root, from the ends of the ball."""
    if not x.is_finite():
        return x if x.is_exact() else NAN
    one = lambda v: v.root(3) if v > 0 else -((-v).root(3)) if v < 0 else ZERO
    return one(x.lower()).union(one(x.upper()))


def floor(x: arb, /) -> arb:
    """The largest integer below; the hull where the ball contains a jump."""
    if not x.is_finite():
        return x if x.is_exact() else NAN
    low, high = x.lower().floor(), x.upper().floor()
    return low if low == high else low.union(high)


def ceil(x: arb, /) -> arb:
    """The least integer above."""
    return -floor(-x)


def rounded(x: arb, /, to_even: bool) -> arb:
    """The nearest integer; exact halves to the even one, or away from zero."""
    if not x.is_finite():
        return x if x.is_exact() else NAN
    low, high = (x.lower() - HALF).ceil(), (x.upper() + HALF).floor()
    if low == high:
        return low
    if x.is_exact() and (2 * x).is_integer():  # a half
        return 2 * (low / 2).ceil() if to_even else (high if x > 0 else low)
    return low.union(high)


UNARY: dict[str, Callable[[arb], arb]] = {
    "neg": operator.neg,
    "abs": absolute,
    "sign": sign,
    "sqrt": square_root,
    "rsqrt": lambda x: divide(ONE, square_root(x)) if x > 0 else NAN,
    "cbrt": cube_root,
    "square": lambda x: integer_power(x, 2),
    "exp": _exp,
    "exp2": lambda x: _exp(x * arb.const_log2()),
    "expm1": _expm1,
    "log": logarithm,
    "log1p": log1p,
    "logistic": _logistic,
    "tanh": _tanh,
    "sinh": lambda x: x.sinh(),
    "cosh": lambda x: x.cosh(),
    "sin": lambda x: x.sin() if x.is_finite() else NAN,
    "cos": lambda x: x.cos() if x.is_finite() else NAN,
    "tan": lambda x: x.tan() if x.is_finite() else NAN,
    "asin": lambda x: x.asin(),
    "acos": lambda x: x.acos(),
    "atan": lambda x: x.atan(),
    "asinh": lambda x: x.asinh(),
    "acosh": lambda x: x.acosh(),
    "atanh": lambda x: x.atanh(),
    "erf": _erf,
    "erfc": lambda x: x.erfc(),
    "erf_inv": lambda x: x.erfinv(),
    "lgamma": lambda x: x.lgamma(),
    "digamma": lambda x: x.digamma(),
    "floor": floor,
    "ceil": ceil,
}
BINARY: dict[str, Callable[[arb, arb], arb]] = {
    "add": operator.add,
    "add_any": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": divide,
    "rem": remainder,
    "max": greater,
    "min": less,
    "pow": power,
    "atan2": lambda a, b: arb.atan2(a, b) if a.is_finite() and b.is_finite() else NAN,
    "igamma": lambda a, x: x.gamma_lower(a, regularized=1),
    "igammac": lambda a, x: x.gamma_upper(a, regularized=1),
}


def equal(a: arb, b: arb, /) -> int:
    """1 where both are one exact number, 0 where they cannot be equal, else open."""
    if a.is_nan() or b.is_nan():
        return OPEN
    return 1 if a == b else 0 if a != b else OPEN


def _ordered(
    yes: Callable[[arb, arb], bool], no: Callable[[arb, arb], bool]
) -> Callable[[arb, arb], int]:
    return lambda a, b: 1 if yes(a, b) else 0 if no(a, b) else OPEN


COMPARISONS: dict[str, Callable[[arb, arb], int]] = {
    "lt": _ordered(operator.lt, operator.ge),
    "le": _ordered(operator.le, operator.gt),
    "gt": _ordered(operator.gt, operator.le),
    "ge": _ordered(operator.ge, operator.lt),
    "eq": equal,
    "ne": lambda a, b: (1, 0, OPEN)[equal(a, b)],
}
