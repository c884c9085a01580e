"""Define functions on balls (intervals): the result contains the image of each real in the ball.

The result is NaN if the function is undefined somewhere in the argument's ball.
"""

import operator
from collections.abc import Callable

from flint import arb

from jaxbounds.programs.balls.values import (
    INF,
    NAN,
    ONE,
    OPEN,
    ZERO,
    Nonnegative,
    hull,
    known_nonnegative,
    nonnegative,
)

HALF = arb(0.5)
LARGEST = arb(2) ** 2048
"""The largest angle for which sine and cosine are computed. Sine and cosine of a larger angle are
NaN. The reduction of the angle modulo pi needs as many digits as the angle has, so a larger limit
takes more time.
"""


def square_root(x: arb, /) -> arb:
    """Return the square root; NaN if the number may be negative."""
    if x.is_zero():
        return ZERO
    if x > 0:
        return x.sqrt() if x.is_finite() else INF
    if x.is_finite() and nonnegative(x):
        return hull(ZERO, x.upper().sqrt())
    return NAN


def logarithm(x: arb, /) -> arb:
    """Return the logarithm; minus infinity at an exact zero."""
    return -INF if x.is_zero() else _log(x)


def log1p(x: arb, /) -> arb:
    """Return log(1 + x); minus infinity at an exact minus one."""
    return -INF if x.is_exact() and x == -1 else _log1p(x)


def _total(
    inside: Callable[[arb], arb], at_minus: arb = NAN, at_plus: arb = NAN, /
) -> Callable[[arb], arb]:

    def function(x: arb) -> arb:
        if not x.is_finite():
            return at_minus if x == -INF else at_plus if x == INF else NAN
        y = inside(x)
        return y if y.is_finite() else NAN

    return function


def _of_angle(inside: Callable[[arb], arb], /) -> Callable[[arb], arb]:
    return _total(lambda x: inside(x) if x.abs_upper() < LARGEST else NAN)


def _monotone(function: Callable[[arb], arb]) -> Callable[[arb], arb]:
    return lambda x: function(x) if x.is_exact() else hull(function(x.lower()), function(x.upper()))


def plus(a: arb, b: arb, /) -> arb:
    """Return the sum of two balls, marked as nonnegative if both balls are nonnegative."""
    c = a + b
    if type(a) is Nonnegative or type(b) is Nonnegative:
        return known_nonnegative(c) if nonnegative(a) and nonnegative(b) else c
    return c


def times(a: arb, b: arb, /) -> arb:
    """Return the product of two balls, marked as nonnegative if both balls are nonnegative."""
    c = a * b
    if type(a) is Nonnegative or type(b) is Nonnegative:
        return known_nonnegative(c) if nonnegative(a) and nonnegative(b) else c
    return c


_log = _total(lambda x: x.log() if x > 0 else NAN, NAN, INF)
_log1p = _total(lambda x: x.log1p() if x > -1 else NAN, NAN, INF)
_raised = lambda x: known_nonnegative(x.exp())  # the ball of a tiny e^x may reach below zero
_exp = _total(_monotone(_raised), ZERO, INF)
_expm1 = _total(_monotone(lambda x: x.expm1()), -ONE, INF)
_logistic = _total(_monotone(lambda x: divide(ONE, plus(ONE, _raised(-x)))), ZERO, ONE)
_tanh = _total(_monotone(lambda x: x.tanh()), -ONE, ONE)
_erf = _total(_monotone(lambda x: x.erf()), -ONE, ONE)
_digamma = _monotone(lambda x: x.digamma())


def integer_power(x: arb, n: int, /) -> arb:
    """Return x^n for an integer n; for even n and a ball around 0, the result begins at 0."""
    if n < 0:
        return divide(ONE, integer_power(x, -n))
    if n == 0:
        return ONE
    if n == 1:
        return x
    if not x.is_finite():
        return (INF if x == INF or n % 2 == 0 else -INF) if x.is_exact() and not x.is_nan() else NAN
    if not x > 0 and not x < 0 and (n % 2 == 0 or nonnegative(x)):
        return ZERO if x.is_zero() else hull(ZERO, x.abs_upper() ** n)
    if not x > 0 and not x < 0:
        return hull(x.lower() ** n, x.upper() ** n)  # odd powers increase
    return x**n


def power(x: arb, y: arb, /) -> arb:
    """Return x^y; for negative x the exponent y must be an integer."""
    if y.is_zero():
        return ONE
    whole = y.unique_fmpz() if y.is_exact() and abs(y) < 2**20 else None
    if whole is not None:
        return integer_power(x, int(whole))
    if not y.is_finite():
        return NAN
    if x.is_zero():
        # 0^y is infinite for y < 0; if y may be an integer, its sign is that of the float zero.
        return ZERO if y > 0 else INF if y < 0 and not y.contains_integer() else NAN
    if not x.is_finite():
        return INF if x == INF and y > 0 else ZERO if x == INF and y < 0 else NAN
    if x > 0:
        z = x**y
        return z if z.is_finite() else NAN
    if y > 0 and nonnegative(x):
        return hull(ZERO, x.upper() ** y)  # on [0, u] the power is at most u^y
    return NAN


def divide(a: arb, b: arb, /) -> arb:
    """Return the quotient; NaN for b = 0, because the sign of the float zero is unknown."""
    if not b.is_finite():
        return ZERO if b.is_exact() and not b.is_nan() and a.is_finite() else NAN
    c = a / b
    if not c.is_finite():
        # The quotient of an infinity and b is known if the sign of b is known; a zero has none.
        known = not a.is_finite() and (b > 0 or b < 0)
        return c if known and c.is_exact() and not c.is_nan() else NAN
    return known_nonnegative(c) if type(a) is Nonnegative and b > 0 else c


def remainder(a: arb, b: arb, /) -> arb:
    """Return a - b trunc(a / b); the ball is wide if the quotient's whole part is not certain."""
    quotient = divide(a, b)
    if not quotient.is_finite() or not a.is_finite():
        return NAN
    return a - b * truncated(quotient)


def truncated(x: arb, /) -> arb:
    """Round towards zero: return the integer part."""
    if x >= 0:
        return floor(x)
    return ceil(x) if x <= 0 else hull(ceil(x.lower()), floor(x.upper()))


def absolute(x: arb, /) -> arb:
    """Return the absolute value; the ball begins at zero if x may be zero."""
    if not x.is_finite():
        return abs(x) if x.is_exact() else NAN
    return abs(x) if x > 0 or x < 0 else hull(ZERO, x.abs_upper())


def sign(x: arb, /) -> arb:
    """Return the sign. If x may be zero, return a ball around all possible signs."""
    if x > 0:
        return ONE
    if x < 0:
        return -ONE
    if x.is_zero():
        return ZERO
    if not x.is_finite():
        return NAN
    return hull(ZERO, ONE) if nonnegative(x) else (-ONE).union(ONE)


def greater(a: arb, b: arb, /) -> arb:
    """Return an enclosure (ball) of the larger of two numbers."""
    if a.is_nan() or b.is_nan():
        return NAN
    if a >= b:
        return a
    if b >= a:
        return b
    larger = a.max(b)
    return known_nonnegative(larger) if nonnegative(a) or nonnegative(b) else larger


def less(a: arb, b: arb, /) -> arb:
    """Return an enclosure (ball) of the smaller of two numbers."""
    if a.is_nan() or b.is_nan():
        return NAN
    if a <= b:
        return a
    if b <= a:
        return b
    smaller = a.min(b)
    return known_nonnegative(smaller) if nonnegative(a) and nonnegative(b) else smaller


def cube_root(x: arb, /) -> arb:
    """Return the real cube root: the hull of the cube roots of the ball's ends."""
    if not x.is_finite():
        return x if x.is_exact() else NAN
    one = lambda v: v.root(3) if v > 0 else -((-v).root(3)) if v < 0 else ZERO
    return hull(one(x.lower()), one(x.upper()))


def floor(x: arb, /) -> arb:
    """Return the largest integer <= x; at a jump of floor, enclose all possible values."""
    if not x.is_finite():
        return x if x.is_exact() else NAN
    low, high = x.lower().floor(), x.upper().floor()
    return low if low == high else low.union(high)


def ceil(x: arb, /) -> arb:
    """Return the least integer >= x; at a jump of ceil, enclose all possible values."""
    return -floor(-x)


def rounded(x: arb, /, to_even: bool) -> arb:
    """Return the nearest integer; a half rounds to the even integer or away from zero."""
    if not x.is_finite():
        return x if x.is_exact() else NAN
    low, high = (x.lower() - HALF).ceil(), (x.upper() + HALF).floor()
    if low == high:
        return low
    if x.is_exact() and (2 * x).is_integer():  # a half
        return 2 * (low / 2).ceil() if to_even else (high if x > 0 else low)
    return low.union(high)


def angle(a: arb, b: arb, /) -> arb:
    """Return atan2(a, b); the hull of -pi and pi if the balls may touch the cut a = 0, b <= 0."""
    if not a.is_finite() or not b.is_finite():
        return NAN
    if b > 0 or a > 0 or a < 0:
        return arb.atan2(a, b)
    return (-arb.pi()).union(arb.pi())


def _where(
    allowed: Callable[[arb, arb], bool], inside: Callable[[arb, arb], arb]
) -> Callable[[arb, arb], arb]:
    """Return NaN unless both balls (intervals) are finite and `allowed` accepts them."""

    def function(a: arb, b: arb) -> arb:
        if not (a.is_finite() and b.is_finite() and allowed(a, b)):
            return NAN
        c = inside(a, b)
        return c if c.is_finite() else NAN

    return function


_positive = lambda a, x: bool(a > 0) and nonnegative(x)
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
    "sinh": _total(_monotone(lambda x: x.sinh())),
    "cosh": _total(lambda x: x.cosh()),
    "sin": _of_angle(lambda x: x.sin()),
    "cos": _of_angle(lambda x: x.cos()),
    "tan": _of_angle(lambda x: x.tan()),
    "asin": _total(lambda x: x.asin()),
    "acos": _total(lambda x: x.acos()),
    "atan": _total(lambda x: x.atan(), -arb.pi() / 2, arb.pi() / 2),
    "asinh": _total(_monotone(lambda x: x.asinh())),
    "acosh": _total(_monotone(lambda x: x.acosh())),
    "atanh": _total(_monotone(lambda x: x.atanh())),
    "erf": _erf,
    "erfc": _total(_monotone(lambda x: x.erfc())),
    "erf_inv": _total(_monotone(lambda x: x.erfinv())),
    "lgamma": _total(lambda x: x.lgamma() if x > 0 else NAN),
    "digamma": _total(lambda x: _digamma(x) if x > 0 or not x.contains_integer() else NAN),
    "floor": floor,
    "ceil": ceil,
}
BINARY: dict[str, Callable[[arb, arb], arb]] = {
    "add": plus,
    "add_any": plus,
    "sub": operator.sub,
    "mul": times,
    "div": divide,
    "rem": remainder,
    "max": greater,
    "min": less,
    "pow": power,
    "atan2": angle,
    "igamma": _where(_positive, lambda a, x: x.gamma_lower(a, regularized=1)),
    "igammac": _where(_positive, lambda a, x: x.gamma_upper(a, regularized=1)),
}


def equal(a: arb, b: arb, /) -> int:
    """Return 1 if a and b are equal exact numbers, 0 if they cannot be equal, 2 if undecided."""
    if a.is_nan() or b.is_nan():
        return OPEN
    return 1 if a == b else 0 if a != b else OPEN


def _at_least(a: arb, b: arb) -> bool:
    return bool(a >= b) or (type(a) is Nonnegative and bool(b <= 0))


def _at_most(a: arb, b: arb) -> bool:
    return _at_least(b, a)


def _ordered(
    yes: Callable[[arb, arb], bool], no: Callable[[arb, arb], bool]
) -> Callable[[arb, arb], int]:
    return lambda a, b: 1 if yes(a, b) else 0 if no(a, b) else OPEN


COMPARISONS: dict[str, Callable[[arb, arb], int]] = {
    "lt": _ordered(operator.lt, _at_least),
    "le": _ordered(_at_most, operator.gt),
    "gt": _ordered(operator.gt, _at_most),
    "ge": _ordered(_at_least, operator.lt),
    "eq": equal,
    "ne": lambda a, b: (1, 0, OPEN)[equal(a, b)],
}
