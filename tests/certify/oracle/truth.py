"""True values of the scalar functions, and whether a ball contains one.

Exact arithmetic by fractions; the other functions by mpmath, with more bits where its algorithm
loses some. None says that the function is undefined there.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb
from mpmath import mp

BITS = 400
MARGIN = mp.ldexp(1, -360)
"""Relative error of a true value that is allowed for: far below the radius of 192 bits."""


class Unknown(Exception):
    """The oracle itself has no value here."""


def real(x: Any) -> Any:
    """A point as an `mpf`, exactly where 400 bits suffice."""
    return mp.mpf(x.numerator) / x.denominator if isinstance(x, Fraction | int) else mp.mpf(x)


def _number(x: arb) -> Any:
    mantissa, exponent = (int(v) for v in x.man_exp())
    return mp.ldexp(mp.mpf(mantissa), exponent)


def encloses(ball: arb, value: Any) -> bool:
    """Whether a ball contains a true value; NaN claims nothing, and nothing else may be claimed of
    what is undefined. The ends are read off the midpoint and the radius.
    """
    if ball.is_nan():
        return True
    if value is None:
        return False
    with mp.workprec(BITS):
        value = real(value)
        if not ball.is_finite():
            if not ball.is_exact():
                return True
            return bool(mp.isinf(value)) and (value > 0) == (ball.mid() > 0)
        middle, radius = _number(ball.mid()), _number(ball.rad())
        slack = MARGIN * abs(value)
        return bool(middle - radius - slack <= value <= middle + radius + slack)


def _defined(function: Callable[..., Any], bits: int = BITS, far: int = 0) -> Callable[..., Any]:
    """None for NaN, for what mpmath refuses and for what it says is complex.

    At `bits`, or at `far` bits for arguments beyond 2^30, of which so many digits are lost.
    """

    def value(*x: Any) -> Any:
        if any(isinstance(v, float) and math.isnan(v) for v in x):
            return None
        with mp.workprec(far if far and any(abs(v) > 2**30 for v in x) else bits):
            try:
                found = function(*map(real, x))
            except (ValueError, ZeroDivisionError):
                return None
            except mp.NoConvergence as problem:
                raise Unknown from problem
            if isinstance(found, mp.mpc):
                return None
            return None if mp.isnan(found) else +found

    return value


def _exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """By fractions, and by floats where one of the numbers is infinite."""

    def value(*x: Any) -> Any:
        if any(isinstance(v, float) and math.isnan(v) for v in x):
            return None
        found = function(*x)
        return None if isinstance(found, float) and math.isnan(found) else found

    return value


def _whole(function: Callable[[Any], int]) -> Callable[..., Any]:
    return _exact(lambda x: x if isinstance(x, float) else Fraction(function(x)))


def half_to_even(x: Fraction) -> int:
    """The nearest integer; Python's own rule for halves."""
    return round(x)


def half_away(x: Fraction) -> int:
    """The nearest integer, halves away from zero."""
    return math.floor(x + Fraction(1, 2)) if x > 0 else math.ceil(x - Fraction(1, 2))


def _quotient(a: Any, b: Any) -> Any:
    """Undefined by zero: a real zero has no sign, on which the infinity of floats hangs."""
    if b == 0 or (isinstance(a, float) and isinstance(b, float)):
        return None
    if isinstance(a, float):
        return a if b > 0 else -a
    return Fraction(0) if isinstance(b, float) else a / b


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(a, float) or b == 0:
        return None
    return a if isinstance(b, float) else a - b * math.trunc(a / b)


def _power(x: Any, y: Any) -> Any:
    if y == 0:
        return mp.one
    if x == 0:
        return mp.zero if y > 0 else mp.nan if y == mp.floor(y) else mp.inf
    if mp.isinf(y):
        size = abs(x)
        if size == 1:
            return mp.one
        return mp.inf if (size > 1) == (y > 0) else mp.zero
    if mp.isinf(x):
        odd = y == mp.floor(y) and y % 2 == 1
        return mp.zero if y < 0 else mp.inf if x > 0 or not odd else -mp.inf
    return mp.power(x, y) if x > 0 or y == mp.floor(y) else mp.nan


def power(x: Any, y: Any) -> Any:
    """x^y; anything to the power of zero is one, as in IEEE 754."""
    return mp.one if y == 0 else _defined(_power, 600, far=3000)(x, y)


def _log_gamma(x: Any) -> Any:
    if x == mp.floor(x) and x <= 0:
        return mp.inf
    return mp.re(mp.loggamma(x)) if mp.isfinite(x) else mp.inf if x > 0 else mp.nan


def _error_tail(x: Any) -> Any:
    """The first terms of its expansion where mpmath gives up: the next is below 1e-400."""
    if not mp.isfinite(x) or x < 1e100:
        return mp.erfc(x)
    return mp.exp(-x * x) / (x * mp.sqrt(mp.pi)) * (1 - 1 / (2 * x * x))


def _erf_inverse(z: Any) -> Any:
    """Newton on log erfc, which is concave: monotone from the second step on."""
    if abs(z) >= 1:
        return mp.sign(z) * mp.inf if abs(z) == 1 else mp.nan
    if abs(z) < mp.ldexp(1, -90):
        w = mp.pi * z * z / 12
        return mp.sqrt(mp.pi) / 2 * z * (1 + w + w * w * 21 / 10)
    x, goal = mp.zero, mp.log1p(-abs(z))
    for _ in range(200):
        tail = mp.erfc(x)
        step = (mp.log(tail) - goal) * tail * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < mp.ldexp(abs(x), -BITS):
            return mp.sign(z) * x
    raise Unknown


def _incomplete(lower: bool) -> Callable[[Any, Any], Any]:
    def value(a: Any, x: Any) -> Any:
        if not (1e-6 < a < 20 and 0 <= x < 40):
            raise Unknown  # mpmath takes for ever, or the difference below loses digits
        part = mp.gammainc(a, 0, x, regularized=True)
        return part if lower else 1 - part

    return value


def _angle(y: Any, x: Any) -> Any:
    return mp.zero if x == y == 0 else mp.atan2(y, x)


UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": _exact(lambda x: -x),
    "abs": _exact(abs),
    "sign": _exact(lambda x: Fraction((x > 0) - (x < 0))),
    "sqrt": _defined(mp.sqrt),
    "rsqrt": _defined(lambda x: 1 / mp.sqrt(x)),
    "cbrt": _defined(lambda x: mp.sign(x) * mp.cbrt(abs(x)) if mp.isfinite(x) else x),
    "square": _exact(lambda x: x * x),
    "exp": _defined(mp.exp, far=1500),
    "exp2": _defined(lambda x: mp.exp(x * mp.log(2)), far=1500),
    "expm1": _defined(mp.expm1, far=1500),
    "log": _defined(lambda x: -mp.inf if x == 0 else mp.log(x)),
    "log1p": _defined(lambda x: -mp.inf if x == -1 else mp.log1p(x)),
    "logistic": _defined(lambda x: 1 / (1 + mp.exp(-x)), far=1500),
    "tanh": _defined(mp.tanh),
    "sinh": _defined(mp.sinh, far=1500),
    "cosh": _defined(mp.cosh, far=1500),
    "sin": _defined(mp.sin),
    "cos": _defined(mp.cos),
    "tan": _defined(mp.tan),
    "asin": _defined(mp.asin, 800),
    "acos": _defined(mp.acos, 800),
    "atan": _defined(mp.atan),
    "asinh": _defined(mp.asinh),
    "acosh": _defined(mp.acosh, 800),
    "atanh": _defined(lambda x: mp.sign(x) * mp.inf if abs(x) == 1 else mp.atanh(x)),
    "erf": _defined(mp.erf),
    "erfc": _defined(_error_tail, 800, far=4500),
    "erf_inv": _defined(_erf_inverse, 800),
    "lgamma": _defined(_log_gamma, 800),
    "digamma": _defined(mp.digamma, 500),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": _exact(lambda a, b: a + b),
    "add_any": _exact(lambda a, b: a + b),
    "sub": _exact(lambda a, b: a - b),
    "mul": _exact(lambda a, b: a * b),
    "div": _exact(_quotient),
    "rem": _exact(_remainder),
    "max": _exact(max),
    "min": _exact(min),
    "pow": power,
    "atan2": _defined(_angle),
    "igamma": _defined(_incomplete(lower=True), 600),
    "igammac": _defined(_incomplete(lower=False), 600),
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
