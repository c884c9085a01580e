"""Programs composed at random, each with two meanings: in JAX, and by mpmath at 400 bits.

A program is a list of steps; each names an operation, and the earlier steps that it takes. The
oracle runs the same steps on `mpf`s (lists of them for vectors, Python's integers for machine
integers), in real arithmetic with the infinities and NaN of floats. No code of the rules is used,
nor FLINT. What the program cannot mean alone (a division by zero, whose sign floats decide) is
evaluated with every answer; where the oracle has no value itself it raises `truth.Unknown`.

A constant is the float that is coded, or the number that is meant by it (.1 + .2 - .3 means zero).
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import xlogy
from mpmath import mp

from oracle.truth import BITS, Unknown

NAN, INF, ZERO, ONE = mp.nan, mp.inf, mp.mpf(0), mp.mpf(1)
HUGE = 1e5
"""Beyond, exponentials are left alone: their digits do not fit anywhere."""
Meaning = Callable[[], Any]
CONSTANTS: tuple[tuple[float, Meaning], ...] = (
    (0.1, lambda: ONE / 10),
    (1 / 3, lambda: ONE / 3),
    (math.pi, lambda: +mp.pi),
    (1 - 0.99, lambda: ONE / 100),
    (0.1 + 0.2 - 0.3, lambda: ZERO),
    (100.2 - 100.1, lambda: ONE / 10),
    (1e-12, lambda: ONE / 10**12),
    (-0.7, lambda: -mp.mpf(7) / 10),
    (math.sqrt(2), lambda: mp.sqrt(2)),
    (math.log(2), lambda: mp.log(2)),
    (1e300, lambda: mp.mpf(10) ** 300),
    (3 * 0.1, lambda: mp.mpf(3) / 10),
    *((v, lambda v=v: mp.mpf(v)) for v in (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, -2.5, 7.0, 1e6)),
)


class Run:
    """One evaluation by the oracle.

    Attributes:
        pole: what a number divided by zero gives.
        met: whether that was asked for.
        largest: of the finite numbers that were met; 400 bits tell apart what 120 digits do.
    """

    def __init__(self, reading: str = "coded", pole: Any = NAN, seed: int = 0) -> None:
        self.reading, self.pole, self.met = reading, pole, False
        self.rng, self.largest = np.random.default_rng(seed), ZERO

    def constant(self, coded: float, meant: Meaning) -> Any:
        """The float, the number meant, or (mixed) one of them."""
        as_coded = self.reading == "coded" or (self.reading == "mixed" and self.rng.random() < 0.5)
        return mp.mpf(coded) if as_coded else meant()

    def at_pole(self) -> Any:
        self.met = True
        return self.pole


class Op(NamedTuple):
    """An operation: types of what it takes and gives, both meanings, and its static part."""

    takes: tuple[str, ...]
    gives: str
    jax: Callable[..., Any]
    true: Callable[..., Any]
    static: Callable[[np.random.Generator], tuple] = lambda rng: ()
    weight: float = 1.0


OPS: dict[str, Op] = {}


def op(name, takes, gives, in_jax, true, static=lambda rng: (), weight=1.0):
    OPS[name] = Op(tuple(takes.split()), gives, in_jax, true, static, weight)


# Scalars of floats.


def total(inside, minus=NAN, plus=NAN, where=lambda x: True, most=math.inf):
    def value(run, x):
        if mp.isnan(x):
            return NAN
        if mp.isinf(x):
            return plus if x > 0 else minus
        if abs(x) > most:
            raise Unknown
        return inside(x) if where(x) else NAN

    return value


def _reciprocal_root(run, x):
    return (
        run.at_pole() if x == 0 else total(lambda v: 1 / mp.sqrt(v), NAN, ZERO, _positive)(run, x)
    )


def _integral(f):
    return lambda x: x if abs(x) > 2**300 else mp.mpf(f(x))


_positive, _not_negative = (lambda x: x > 0), (lambda x: x >= 0)
_log = lambda x: -INF if x == 0 else mp.log(x)
_logistic = lambda x: 1 / (1 + mp.exp(-x))
_floor, _ceil = _integral(mp.floor), _integral(mp.ceil)
_trunc = lambda x: _floor(x) if x >= 0 else _ceil(x)
_sign = lambda x: mp.mpf((x > 0) - (x < 0))
UNARY: dict[str, tuple[Callable, Callable]] = {
    "neg": (jnp.negative, total(lambda x: -x, INF, -INF)),
    "abs": (jnp.abs, total(abs, INF, INF)),
    "sign": (jnp.sign, total(_sign, -ONE, ONE)),
    "sqrt": (jnp.sqrt, total(mp.sqrt, NAN, INF, _not_negative)),
    "rsqrt": (lax.rsqrt, _reciprocal_root),
    "cbrt": (jnp.cbrt, total(lambda x: _sign(x) * mp.cbrt(abs(x)), -INF, INF)),
    "square": (jnp.square, total(lambda x: x * x, INF, INF)),
    "exp": (jnp.exp, total(mp.exp, ZERO, INF, most=HUGE)),
    "exp2": (jnp.exp2, total(lambda x: mp.power(2, x), ZERO, INF, most=HUGE)),
    "expm1": (jnp.expm1, total(mp.expm1, -ONE, INF, most=HUGE)),
    "log": (jnp.log, total(_log, NAN, INF, _not_negative)),
    "log2": (jnp.log2, total(lambda x: _log(x) / mp.log(2), NAN, INF, _not_negative)),
    "log10": (jnp.log10, lambda run, x: log_10(run, x)),
    "log1p": (jnp.log1p, total(lambda x: _log(1 + x), NAN, INF, lambda x: x >= -1)),
    "sigmoid": (jax.nn.sigmoid, total(_logistic, ZERO, ONE, most=HUGE)),
    "tanh": (jnp.tanh, total(mp.tanh, -ONE, ONE, most=HUGE)),
    "sinh": (jnp.sinh, total(mp.sinh, -INF, INF, most=HUGE)),
    "cosh": (jnp.cosh, total(mp.cosh, INF, INF, most=HUGE)),
    "sin": (jnp.sin, total(mp.sin, most=HUGE)),
    "cos": (jnp.cos, total(mp.cos, most=HUGE)),
    "tan": (jnp.tan, total(mp.tan, most=HUGE)),
    "asin": (jnp.arcsin, total(mp.asin, where=lambda x: abs(x) <= 1)),
    "acos": (jnp.arccos, total(mp.acos, where=lambda x: abs(x) <= 1)),
    "atan": (jnp.arctan, total(mp.atan, -mp.pi / 2, mp.pi / 2)),
    "asinh": (jnp.arcsinh, total(mp.asinh, -INF, INF)),
    "acosh": (jnp.arccosh, total(mp.acosh, NAN, INF, lambda x: x >= 1)),
    "atanh": (
        jnp.arctanh,
        total(
            lambda x: x * INF if abs(x) == 1 else mp.atanh(x), where=lambda x: abs(x) <= 1
        ),
    ),
    "erf": (lax.erf, total(mp.erf, -ONE, ONE, most=100)),
    "erfc": (lax.erfc, total(mp.erfc, mp.mpf(2), ZERO, most=100)),
    "floor": (jnp.floor, total(_floor, -INF, INF)),
    "ceil": (jnp.ceil, total(_ceil, -INF, INF)),
    "round": (jnp.round, total(_integral(mp.nint), -INF, INF)),
    "trunc": (jnp.trunc, total(_trunc, -INF, INF)),
    "relu": (lambda x: jnp.maximum(x, 0.0), total(lambda x: max(x, ZERO), ZERO, INF)),
    "cube": (lambda x: x**3, total(lambda x: x**3, -INF, INF)),
    "fourth": (lambda x: x**4, total(lambda x: x**4, INF, INF)),
    "reciprocal": (lambda x: 1 / x, lambda run, x: divided(run, ONE, x)),
    "power -2": (lambda x: x**-2, lambda run, x: power(run, x, mp.mpf(-2))),
    "power 1.5": (lambda x: x**1.5, lambda run, x: power(run, x, mp.mpf(1.5))),
    "power .5": (lambda x: jnp.power(x, 0.5), lambda run, x: power(run, x, mp.mpf(0.5))),
    "power -.5": (lambda x: x**-0.5, lambda run, x: power(run, x, mp.mpf(-0.5))),
    "nan to num": (
        jnp.nan_to_num,
        lambda run, x: nan_to_num(run, x),
    ),
    "isnan 2": (
        lambda x: jnp.where(jnp.isnan(x), 2.0, x), lambda run, x: mp.mpf(2) if mp.isnan(x) else x
    ),
    "isfinite 3": (
        lambda x: jnp.where(jnp.isfinite(x), x, 3.0),
        lambda run, x: x if mp.isfinite(x) else mp.mpf(3),
    ),
    "0 * log": (
        lambda x: 0.0 * jnp.log(x),
        lambda run, x: ZERO * total(_log, NAN, INF, _not_negative)(run, x),
    ),
    "x log x": (lambda x: xlogy(x, x), lambda run, x: x_log_y(run, x, x)),
    "softplus": (jax.nn.softplus, lambda run, x: log_add_exp(run, x, ZERO)),
}  # fmt: skip


def log_10(run, x):
    """JAX multiplies by a float for 1 / log(10)."""
    factor = run.constant(0.4342944819032518, lambda: 1 / mp.log(10))
    return total(_log, NAN, INF, _not_negative)(run, x) * factor


def nan_to_num(run, x):
    if mp.isnan(x):
        return ZERO
    return _sign(x) * np.finfo(float).max if mp.isinf(x) else x


def divided(run, a, b):
    if mp.isnan(a) or mp.isnan(b) or (mp.isinf(a) and mp.isinf(b)):
        return NAN
    if b == 0:
        return NAN if a == 0 else run.at_pole()
    return a / b


def power(run, x, y):
    if y == 0 or x == 1:
        return ONE
    if mp.isnan(x) or mp.isnan(y):
        return NAN
    if mp.isinf(x) or mp.isinf(y):
        raise Unknown
    if x == 0:
        return ZERO if y > 0 else run.at_pole() if y == mp.floor(y) else INF
    if x < 0 and y != mp.floor(y):
        return NAN
    if abs(y * mp.log(abs(x))) > HUGE:
        raise Unknown
    if 2 * y == mp.floor(2 * y) and y != mp.floor(y):
        return mp.sqrt(x) ** int(2 * y)  # exact where the root is
    return mp.power(x, int(y)) if y == mp.floor(y) else mp.exp(y * mp.log(x))


def x_log_y(run, x, y):
    return ZERO if x == 0 else x * total(_log, NAN, INF, _not_negative)(run, y)


def log_add_exp(run, a, b):
    if mp.isnan(a) or mp.isnan(b):
        return NAN
    high, low = max(a, b), min(a, b)
    if mp.isinf(high) or mp.isinf(low):
        return high
    if high - low > HUGE:
        raise Unknown
    return high + mp.log1p(mp.exp(low - high))


def larger(run, a, b):
    return NAN if mp.isnan(a) or mp.isnan(b) else max(a, b)


def smaller(run, a, b):
    return NAN if mp.isnan(a) or mp.isnan(b) else min(a, b)


def _quotient(whole):
    """a - b whole(a / b), where floats of moderate size are meant."""

    def value(run, a, b):
        if mp.isnan(a) or mp.isnan(b):
            return NAN
        if not mp.isfinite(a) or not mp.isfinite(b) or b == 0 or abs(a / b) > 1e40:
            raise Unknown
        return whole(a, b)

    return value


def hypotenuse(run, a, b):
    if mp.isinf(a) or mp.isinf(b):
        raise Unknown
    return mp.sqrt(a * a + b * b)


BINARY: dict[str, tuple[Callable, Callable]] = {
    "add": (jnp.add, lambda run, a, b: a + b),
    "sub": (jnp.subtract, lambda run, a, b: a - b),
    "mul": (jnp.multiply, lambda run, a, b: a * b),
    "div": (jnp.divide, divided),
    "max": (jnp.maximum, larger),
    "min": (jnp.minimum, smaller),
    "pow": (jnp.power, power),
    "fmax": (jnp.fmax, lambda run, a, b: b if mp.isnan(a) else a if mp.isnan(b) else max(a, b)),
    "hypot": (jnp.hypot, hypotenuse),
    "logaddexp": (jnp.logaddexp, log_add_exp),
    "xlogy": (xlogy, x_log_y),
    "mod": (jnp.mod, _quotient(lambda a, b: a - b * mp.floor(a / b))),
    "fmod": (jnp.fmod, _quotient(lambda a, b: a - b * _trunc(a / b))),
    "floor_divide": (jnp.floor_divide, _quotient(lambda a, b: mp.floor(a / b))),
}
for _name, (_jax, _true) in UNARY.items():
    op(_name, "f", "f", _jax, _true, weight=0.7)
for _name, (_jax, _true) in BINARY.items():
    op(_name, "f f", "f", _jax, _true, weight=5.0 if _name in ("add", "sub", "mul") else 2.0)

_as = lambda kind, x: jnp.asarray(x).astype(kind)
_wide = lambda x: x.astype(jnp.float64)

# Constants.
_index = lambda rng: (int(rng.integers(len(CONSTANTS))),)
op("constant", "", "f", lambda k: CONSTANTS[k][0], lambda run, k: run.constant(*CONSTANTS[k]),
   _index, 9.0)  # fmt: skip
op("array constant", "", "f", lambda k: jnp.asarray(CONSTANTS[k][0]),
   lambda run, k: run.constant(*CONSTANTS[k]), _index, 2.0)  # fmt: skip


def _literal32(run, k):
    coded, meant = CONSTANTS[k]
    return run.constant(float(np.float32(coded)), meant)


_few = lambda rng: (int(rng.choice([0, 1, 2, 7, 8, 13])),)
op("float32 literal", "f", "f",
   lambda x, k: _wide(jnp.maximum(_as(jnp.float32, x), CONSTANTS[k][0])),
   lambda run, x, k: larger(run, nearest(x, jnp.float32), _literal32(run, k)), _few)  # fmt: skip
op("less than a float32", "f", "b",
   lambda x, k: _as(jnp.float32, x) < CONSTANTS[k][0],
   lambda run, x, k: bool(nearest(x, jnp.float32) < _literal32(run, k)), _few, 1.0)  # fmt: skip
op("constants", "", "v", lambda *k: jnp.asarray([CONSTANTS[i][0] for i in k]),
   lambda run, *k: [run.constant(*CONSTANTS[i]) for i in k],
   lambda rng: tuple(map(int, rng.integers(len(CONSTANTS), size=3))), 2.0)  # fmt: skip

# Conversions to narrow floats and back; jumps and choices inside of them.
NARROW = {jnp.float32: (24, -126, 128), jnp.bfloat16: (8, -126, 128), jnp.float16: (11, -14, 16)}


def nearest(x, kind):
    digits, least, most = NARROW[kind]
    if not mp.isfinite(x) or x == 0:
        return x
    exponent = mp.frexp(x)[1]
    if exponent <= least + 1:
        raise Unknown  # subnormal numbers may be flushed to zero
    unit = mp.ldexp(ONE, exponent - digits)
    out = mp.nint(x / unit) * unit
    return _sign(x) * INF if abs(out) >= mp.ldexp(ONE, most) else out


for _kind in NARROW:
    _n = _kind.__name__
    op(f"to {_n}", "f", "f", lambda x, k=_kind: _wide(_as(k, x)),
       lambda run, x, k=_kind: nearest(x, k), weight=1.0)  # fmt: skip
    op(f"max in {_n}", "f f", "f",
       lambda x, y, k=_kind: _wide(jnp.maximum(_as(k, x), _as(k, y))),
       lambda run, x, y, k=_kind: larger(run, nearest(x, k), nearest(y, k)),
       weight=0.7)  # fmt: skip
    op(f"floor in {_n}", "f", "f", lambda x, k=_kind: _wide(jnp.floor(_as(k, x))),
       lambda run, x, k=_kind: UNARY["floor"][1](run, nearest(x, k)), weight=0.5)  # fmt: skip
    op(f"less in {_n}", "f f", "b",
       lambda x, y, k=_kind: _as(k, x) < _as(k, y),
       lambda run, x, y, k=_kind: bool(nearest(x, k) < nearest(y, k)), weight=0.7)  # fmt: skip
op("float32 of float32", "f", "f",
   lambda x: _wide(_as(jnp.float32, x).astype(jnp.bfloat16)),
   lambda run, x: nearest(nearest(x, jnp.float32), jnp.bfloat16))  # fmt: skip
op("equal after float32", "f", "b", lambda x: _wide(_as(jnp.float32, x)) == x,
   lambda run, x: bool(nearest(x, jnp.float32) == x))  # fmt: skip

# Booleans.
for _name, _jax, _true in (
    ("lt", jnp.less, lambda a, b: a < b),
    ("le", jnp.less_equal, lambda a, b: a <= b),
    ("gt", jnp.greater, lambda a, b: a > b),
    ("ge", jnp.greater_equal, lambda a, b: a >= b),
    ("eq", jnp.equal, lambda a, b: a == b),
    ("ne", jnp.not_equal, lambda a, b: a != b),
):
    op(_name, "f f", "b", _jax, lambda run, a, b, f=_true: bool(f(a, b)), weight=1.5)
op("isnan", "f", "b", jnp.isnan, lambda run, x: bool(mp.isnan(x)), weight=2.0)
op("isfinite", "f", "b", jnp.isfinite, lambda run, x: bool(mp.isfinite(x)))
op("isinf", "f", "b", jnp.isinf, lambda run, x: bool(mp.isinf(x)))
op("and", "b b", "b", jnp.logical_and, lambda run, a, b: a and b)
op("or", "b b", "b", jnp.logical_or, lambda run, a, b: a or b)
op("xor", "b b", "b", jnp.logical_xor, lambda run, a, b: a != b)
op("not", "b", "b", jnp.logical_not, lambda run, a: not a)
op("any", "v", "b", lambda v: jnp.any(v > 0), lambda run, v: any(x > 0 for x in v))
op("all", "v", "b", lambda v: jnp.all(v < 1), lambda run, v: all(x < 1 for x in v))
_choice = lambda run, b, x, y: x if b else y
for _kind, _weight in (("f", 6.0), ("v", 2.0), ("i32", 1.0), ("i64", 1.0), ("b", 1.0)):
    op(f"where {_kind}", f"b {_kind} {_kind}", _kind, jnp.where, _choice, weight=_weight)
op("bool to float", "b", "f", lambda b: b.astype(jnp.float64), lambda run, b: mp.mpf(int(b)))

# Integers of the machine.
LIMITS = {"i32": (jnp.int32, -(2**31), 2**32), "i64": (jnp.int64, -(2**63), 2**64),
          "u32": (jnp.uint32, 0, 2**32)}  # fmt: skip


def wrapped(n, kind):
    _, low, count = LIMITS[kind]
    return (int(n) - low) % count + low


def _as_integer(run, x, kind):
    if not mp.isfinite(x):
        raise Unknown
    n = int(_trunc(x))
    if wrapped(n, kind) != n:
        raise Unknown
    return n


def _over(f):
    def value(run, a, b, kind):
        if b == 0 or (b == -1 and a == LIMITS[kind][1]):
            raise Unknown
        return f(a, b)

    return value


for _kind, (_type, _low, _count) in LIMITS.items():
    op(f"to {_kind}", "f", _kind, lambda x, t=_type: jnp.asarray(x).astype(t),
       functools.partial(_as_integer, kind=_kind), weight=2.5)  # fmt: skip
    op(f"{_kind} to float", _kind, "f", lambda n: n.astype(jnp.float64), lambda run, n: mp.mpf(n),
       weight=2.5)  # fmt: skip
    for _narrow in (jnp.float32, jnp.bfloat16):
        op(f"{_kind} to {_narrow.__name__}", _kind, "f",
           lambda n, t=_narrow: n.astype(t).astype(jnp.float64),
           lambda run, n, t=_narrow: nearest(mp.mpf(n), t), weight=0.7)  # fmt: skip
    _integers = lambda rng, low=_low: (int(rng.choice([1, 2, 3, 5, 12345, 65536, 2**31 - 1, low])),)
    op(f"{_kind} constant", "", _kind, lambda n, t=_type: jnp.asarray(n, t), lambda run, n: n,
       _integers, 1.0)  # fmt: skip
    for _name, _jax, _true in (
        ("add", jnp.add, lambda a, b, k: a + b),
        ("sub", jnp.subtract, lambda a, b, k: a - b),
        ("mul", jnp.multiply, lambda a, b, k: a * b),
        ("xor", jnp.bitwise_xor, lambda a, b, k: a ^ b),
        ("and", jnp.bitwise_and, lambda a, b, k: a & b),
        ("max", jnp.maximum, lambda a, b, k: max(a, b)),
    ):
        op(f"{_kind} {_name}", f"{_kind} {_kind}", _kind, _jax,
           lambda run, a, b, f=_true, k=_kind: wrapped(f(a, b, k), k), weight=0.8)  # fmt: skip
    op(f"{_kind} mod", f"{_kind} {_kind}", _kind, jnp.mod,
       lambda run, a, b, k=_kind: _over(lambda a, b: a % b)(run, a, b, k), weight=0.8)  # fmt: skip
    op(f"{_kind} floordiv", f"{_kind} {_kind}", _kind, jnp.floor_divide,
       lambda run, a, b, k=_kind: _over(lambda a, b: a // b)(run, a, b, k), weight=0.8)  # fmt: skip
    op(f"{_kind} square", _kind, _kind, lambda n: n**2, lambda run, n, k=_kind: wrapped(n * n, k),
       weight=0.4)  # fmt: skip
    op(f"{_kind} lt", f"{_kind} {_kind}", "b", jnp.less, lambda run, a, b: a < b, weight=0.4)
    op(f"{_kind} eq", f"{_kind} {_kind}", "b", jnp.equal, lambda run, a, b: a == b, weight=0.4)
    op(f"bool to {_kind}", "b", _kind, lambda b, t=_type: b.astype(t), lambda run, b: int(b),
       weight=0.4)  # fmt: skip
    for _other, (_t2, *_) in LIMITS.items():
        if _other != _kind:
            op(f"{_kind} to {_other}", _kind, _other, lambda n, t=_t2: n.astype(t),
               lambda run, n, k=_other: wrapped(n, k), weight=0.4)  # fmt: skip

# Vectors of three.
op("stack", "f f f", "v", lambda *x: jnp.stack(list(map(jnp.asarray, x))), lambda run, *x: list(x),
   weight=7.0)  # fmt: skip
for _name in ("add", "mul", "sub", "div", "max"):
    op(f"v {_name}", "v v", "v", BINARY[_name][0],
       lambda run, v, w, f=BINARY[_name][1]: [f(run, a, b) for a, b in zip(v, w)])  # fmt: skip
    op(f"v {_name} f", "v f", "v", BINARY[_name][0],
       lambda run, v, x, f=BINARY[_name][1]: [f(run, a, x) for a in v], weight=0.5)  # fmt: skip
for _name in ("exp", "log", "sqrt", "floor", "sign", "abs", "square", "isnan 2", "tanh"):
    op(f"v {_name}", "v", "v", UNARY[_name][0],
       lambda run, v, f=UNARY[_name][1]: [f(run, x) for x in v], weight=0.5)  # fmt: skip


def _sum(xs):
    return functools.reduce(lambda a, b: a + b, xs)


def _folded(f):
    return lambda run, v: functools.reduce(functools.partial(f, run), v)


def _ordered(v):
    return sorted(x for x in v if not mp.isnan(x)) + [x for x in v if mp.isnan(x)]


def _spread(run, v):
    if not all(map(mp.isfinite, v)):
        return NAN
    mean = _sum(v) / 3
    return _sum([(x - mean) ** 2 for x in v]) / 3


def _finite(f):
    """Unknown where a number is infinite, NaN where one is undefined."""

    def value(run, *vs):
        flat = [x for v in vs for row in v for x in (row if isinstance(row, list) else [row])]
        if any(map(mp.isnan, flat)):
            return NAN
        if any(map(mp.isinf, flat)):
            raise Unknown
        return f(run, *vs)

    return value


def _exponentials(v):
    if max(v) - min(v) > HUGE:
        raise Unknown
    return [mp.exp(x - max(v)) for x in v]


def _position(best):
    def value(run, v):
        if any(map(mp.isnan, v)):
            raise Unknown
        return v.index(best(v))

    return value


def _total_below(run, a, b):
    """Of two zeros floats have an order that the numbers have not."""
    if mp.isnan(a) or mp.isnan(b) or (a == 0 and b == 0):
        raise Unknown
    return a < b


def _orders(run, v):
    """Positions from the largest down; of equal ones the first."""
    if any(map(mp.isnan, v)) or sum(x == 0 for x in v) > 1:
        raise Unknown
    return sorted(range(3), key=lambda i: (-v[i], i))


def _known(f):
    """Of numbers; unknown where one is infinite or undefined."""

    def value(run, *vs):
        if not all(mp.isfinite(x) for v in vs for x in v):
            raise Unknown
        return f(run, *vs)

    return value


def _running_log_sums(run, v):
    out, total = [], -INF
    for x in v:
        total = log_add_exp(run, total, x)
        out.append(total)
    return out


def _factor(run, v):
    """The lower factor of [[a, b], [b, c]]; NaN where it is not positive definite."""
    a, b, c = v
    if not a > 0 or not c - b * b / a > 0:
        return [NAN] * 3
    root = mp.sqrt(a)
    return [root, b / root, mp.sqrt(c - b * b / a)]


def _in_lower_factor(v):
    a = jnp.stack([jnp.stack([v[0], v[1]]), jnp.stack([v[1], v[2]])])
    found = lax.linalg.cholesky(a, symmetrize_input=False)
    return jnp.stack([found[0, 0], found[1, 0], found[1, 1]])


def _size_by_qr(v):
    """The size of a vector, from its reflection."""
    return jnp.abs(jnp.linalg.qr(v[:, None])[1][0, 0])


def _put_thrice(fold):
    return lambda run, v, w: [fold(run, fold(run, v[0], w[0]), w[2]), fold(run, v[1], w[1]), v[2]]


_AT = jnp.array([0, 1, 0])
op("cumlogsumexp", "v", "v", lambda v: lax.cumlogsumexp(v), _known(_running_log_sums))
op("top 2", "v", "v", lambda v: jnp.append(lax.top_k(v, 2)[0], v[0]),
   lambda run, v: [*(v[i] for i in _orders(run, v)[:2]), v[0]])  # fmt: skip
op("where the top is", "v v", "v", lambda v, w: w[lax.top_k(v, 3)[1]],
   lambda run, v, w: [w[i] for i in _orders(run, v)])  # fmt: skip
op("pairs", "v", "v", lambda v: lax.reduce_window(v, 0.0, lax.add, (2,), (1,), ((1, 0),)),
   lambda run, v: [v[0], v[0] + v[1], v[1] + v[2]])  # fmt: skip
op("larger of pairs", "v", "v",
   lambda v: lax.reduce_window(v, -jnp.inf, lax.max, (2,), (1,), ((0, 1),)),
   lambda run, v: [larger(run, v[0], v[1]), larger(run, v[1], v[2]), v[2]])  # fmt: skip
op("smaller of pairs", "v", "v",
   lambda v: lax.reduce_window(v, jnp.inf, lax.min, (2,), (1,), ((0, 1),)),
   lambda run, v: [smaller(run, v[0], v[1]), smaller(run, v[1], v[2]), v[2]])  # fmt: skip
op("products of pairs", "v", "v",
   lambda v: lax.reduce_window(v, 1.0, lax.mul, (2,), (1,), ((0, 1),)),
   lambda run, v: [v[0] * v[1], v[1] * v[2], v[2]])  # fmt: skip
op("convolve", "v v", "v", lambda v, w: jnp.convolve(v, w, mode="same"),
   _known(lambda run, v, w: [v[0] * w[1] + v[1] * w[0],
                              v[0] * w[2] + v[1] * w[1] + v[2] * w[0],
                              v[1] * w[2] + v[2] * w[1]]))  # fmt: skip
for _name, _jax, _true in (
    ("multiply", "multiply", lambda run, a, b: a * b), ("min", "min", smaller),
    ("max", "max", larger),
):  # fmt: skip
    op(f"scatter {_name}", "v v", "v",
       lambda v, w, f=_jax: getattr(v.at[_AT], f)(w), _put_thrice(_true))  # fmt: skip
op("searchsorted", "f", "f",
   lambda x: jnp.searchsorted(jnp.array([-1.0, 0.5, 2.0]), x).astype(jnp.float64),
   lambda run, x: mp.mpf(sum(_total_below(run, mp.mpf(g), x) for g in (-1, 0.5, 2))))  # fmt: skip
op("lower factor", "v", "v", _in_lower_factor, _known(_factor))
op("size by qr", "v", "f", _size_by_qr, _known(lambda run, v: mp.sqrt(_sum([x * x for x in v]))))
op("sum", "v", "f", jnp.sum, lambda run, v: _sum(v), weight=2.0)
op("prod", "v", "f", jnp.prod, lambda run, v: v[0] * v[1] * v[2])
op("mean", "v", "f", jnp.mean, lambda run, v: _sum(v) / 3)
op("reduce max", "v", "f", jnp.max, _folded(larger))
op("reduce min", "v", "f", jnp.min, _folded(smaller))
op("nansum", "v", "f", jnp.nansum, lambda run, v: _sum([ZERO if mp.isnan(x) else x for x in v]))
op("var", "v", "f", jnp.var, _spread)
op("std", "v", "f", jnp.std, lambda run, v: mp.sqrt(_spread(run, v)))
op("norm", "v", "f", jnp.linalg.norm, _finite(lambda run, v: mp.sqrt(_sum([x * x for x in v]))))
op("norm 1", "v", "f", lambda v: jnp.linalg.norm(v, 1), lambda run, v: _sum(list(map(abs, v))))
op("median", "v", "f", jnp.median, _finite(lambda run, v: sorted(v)[1]))
op("logsumexp", "v", "f", jax.nn.logsumexp,
   _finite(lambda run, v: max(v) + mp.log(_sum(_exponentials(v)))))  # fmt: skip
op("softmax", "v", "v", jax.nn.softmax,
   lambda run, v: [_finite(lambda run, w, i=i: _exponentials(w)[i] / _sum(_exponentials(w)))(run, v)
                   for i in range(3)])  # fmt: skip
op("dot", "v v", "f", jnp.dot, lambda run, v, w: _sum([a * b for a, b in zip(v, w)]))
op("sort", "v", "v", jnp.sort, lambda run, v: _ordered(v))
op("argsort", "v v", "v", lambda v, w: w[jnp.argsort(v)],
   lambda run, v, w: [w[i] for i in sorted(range(3), key=lambda i: v[i])]
   if not any(map(mp.isnan, v)) else _refuse())  # fmt: skip
op("cumsum", "v", "v", jnp.cumsum, lambda run, v: [v[0], v[0] + v[1], v[0] + v[1] + v[2]])
op("cumprod", "v", "v", jnp.cumprod, lambda run, v: [v[0], v[0] * v[1], v[0] * v[1] * v[2]])
op("cummax", "v", "v", lax.cummax,
   lambda run, v: [_folded(larger)(run, v[:i]) for i in (1, 2, 3)])  # fmt: skip
op("flip", "v", "v", jnp.flip, lambda run, v: v[::-1])
op("roll", "v", "v", lambda v: jnp.roll(v, 1), lambda run, v: [v[2], v[0], v[1]])
op("where of vectors", "v v", "v", lambda v, w: jnp.where(v > w, v, w * 2),
   lambda run, v, w: [a if a > b else b * 2 for a, b in zip(v, w)])  # fmt: skip
op("clip", "v f f", "v", lambda v, a, b: jnp.clip(v, a, b),
   lambda run, v, a, b: [smaller(run, larger(run, x, a), b) for x in v])  # fmt: skip
op("clip f", "f f f", "f", lambda v, a, b: jnp.clip(v, a, b),
   lambda run, x, a, b: smaller(run, larger(run, x, a), b), weight=2.0)  # fmt: skip
op("argmax", "v", "i64", jnp.argmax, _position(max), weight=1.5)
op("argmin", "v", "i64", jnp.argmin, _position(min))
op("count", "v", "i64", lambda v: jnp.sum(v > 0), lambda run, v: sum(x > 0 for x in v))
op("pick", "v i64", "f", lambda v, i: v[jnp.mod(i, 3)], lambda run, v, i: v[i % 3], weight=2.0)
op("take clip", "v i64", "f", lambda v, i: jnp.take(v, i, mode="clip"),
   lambda run, v, i: v[min(max(i, 0), 2)])  # fmt: skip
op("take fill", "v i64", "f", lambda v, i: v.at[i].get(mode="fill", fill_value=jnp.nan),
   lambda run, v, i: v[i] if -3 <= i < 3 else NAN)  # fmt: skip


def _with(v, i, x):
    return [*v[: i % 3], x, *v[i % 3 + 1 :]]


op("set", "v i64 f", "v", lambda v, i, x: v.at[jnp.mod(i, 3)].set(x),
   lambda run, v, i, x: _with(v, i, x))  # fmt: skip
op("add at", "v i64 f", "v", lambda v, i, x: v.at[jnp.mod(i, 3)].add(x),
   lambda run, v, i, x: _with(v, i, v[i % 3] + x))  # fmt: skip
op("maximum where", "v b", "f", lambda v, b: jnp.max(v, where=jnp.stack([b, ~b, b]), initial=-1.0),
   lambda run, v, b: functools.reduce(
       functools.partial(larger, run), [-ONE] + ([v[0], v[2]] if b else [v[1]])))  # fmt: skip

# Matrices, 2x2 ("m") and 3x3 ("n").
op("matrix 2", "f f f f", "m", lambda *x: jnp.stack(list(map(jnp.asarray, x))).reshape(2, 2),
   lambda run, a, b, c, d: [[a, b], [c, d]], weight=6.0)  # fmt: skip
op("matrix 3", "v v v", "n", lambda *x: jnp.stack(x), lambda run, *v: [list(r) for r in v],
   weight=3.0)  # fmt: skip
op("outer", "v v", "n", jnp.outer, lambda run, v, w: [[a * b for b in w] for a in v])


def _product(run, a, b):
    return [[_sum([x * row[j] for x, row in zip(r, b)]) for j in range(len(b[0]))] for r in a]


def _symmetric(a):
    return [[a[i][j] + a[j][i] for j in range(len(a))] for i in range(len(a))]


def _det(a):
    if len(a) == 2:
        return a[0][0] * a[1][1] - a[0][1] * a[1][0]
    minor = lambda j: [[x for k, x in enumerate(r) if k != j] for r in a[1:]]
    return _sum([(-1) ** j * a[0][j] * _det(minor(j)) for j in range(3)])


def _regular(a):
    det = _det(a)
    scale = max(abs(x) for r in a for x in r) ** len(a)
    if det == 0:
        return None
    if abs(det) < mp.mpf(10) ** -30 * scale:
        raise Unknown
    return det


def _solve(run, a, b):
    """By Cramer's rule."""
    det = _regular(a)
    if det is None:
        return [run.at_pole() for _ in a]
    swap = lambda j: [[b[i] if k == j else x for k, x in enumerate(r)] for i, r in enumerate(a)]
    return [_det(swap(j)) / det for j in range(len(a))]


def _refuse():
    raise Unknown


def _all_finite(*values):
    flat = [x for v in values for r in v for x in (r if isinstance(r, list) else [r])]
    if any(map(mp.isinf, flat)):
        raise Unknown
    return not any(map(mp.isnan, flat))


def _eigen(a):
    if all(x == 0 for r in a for x in r):
        return [ZERO] * len(a), None
    values, vectors = mp.eigsy(mp.matrix(a))
    order = sorted(range(len(a)), key=lambda i: values[i])
    columns = [[vectors[i, j] for i in range(len(a))] for j in order]
    return [values[i] for i in order], columns


def _apart(values, which):
    scale = max(abs(v) for v in values)
    if any(abs(v - values[which]) < 1e-6 * scale for i, v in enumerate(values) if i != which):
        raise Unknown


def _eigenvalue(run, a, which):
    return _eigen(_symmetric(a))[0][which] if _all_finite(a) else NAN


def _eigenvector(run, a, which, first, second):
    """A product of two entries of a vector, which has no sign."""
    if not _all_finite(a):
        return NAN
    values, columns = _eigen(_symmetric(a))
    if columns is None:
        raise Unknown
    _apart(values, which)
    return columns[which][first] * columns[which][second]


def _eigenvector_entry(run, a, which, entry):
    """An entry with the sign that floats have there."""
    if not _all_finite(a):
        return NAN
    values, columns = _eigen(_symmetric(a))
    if columns is None:
        raise Unknown
    _apart(values, which)
    symmetric = np.array([[float(x) for x in r] for r in _symmetric(a)])
    if not np.isfinite(symmetric).all():
        raise Unknown
    near = np.asarray(jnp.linalg.eigh(jnp.asarray(symmetric))[1])[:, which]
    along = sum(float(x) * y for x, y in zip(columns[which], near))
    if abs(abs(along) - 1) > 1e-3:
        raise Unknown
    return columns[which][entry] * (1 if along > 0 else -1)


def _singular_values(a):
    gram = _product(None, [list(r) for r in zip(*a)], a)
    return [mp.sqrt(max(v, ZERO)) for v in _eigen(gram)[0][::-1]]


def _singular_value(run, a, which):
    if not _all_finite(a):
        return NAN
    return _singular_values(a)[which]


def _polar(run, a, i, j):
    """U V^T = A (A^T A)^(-1/2)."""
    if not _all_finite(a):
        return NAN
    values = _singular_values(a)
    if values[-1] < 1e-6 * values[0] or values[0] == 0:
        raise Unknown
    for k in range(len(a)):
        _apart(values, k)
    squares, columns = _eigen(_product(None, [list(r) for r in zip(*a)], a))
    n = range(len(a))
    root = [[_sum([c[p] * c[q] / mp.sqrt(s) for s, c in zip(squares, columns)]) for q in n]
            for p in n]  # fmt: skip
    return _product(None, a, root)[i][j]


def _polar_in_jax(a, i, j):
    u, _, v = jnp.linalg.svd(a, full_matrices=False)
    return (u @ v)[i, j]


for _kind, _size in (("m", 2), ("n", 3)):
    _one = lambda rng, n=_size: (int(rng.integers(n)),)
    _two = lambda rng, n=_size: tuple(map(int, rng.integers(n, size=2)))
    _three = lambda rng, n=_size: tuple(map(int, rng.integers(n, size=3)))
    op(f"{_kind} matmul", f"{_kind} {_kind}", _kind, jnp.matmul, _product, weight=0.7)
    op(f"{_kind} transpose", _kind, _kind, jnp.transpose,
       lambda run, a: [list(r) for r in zip(*a)], weight=0.4)  # fmt: skip
    op(
        f"{_kind} trace",
        _kind,
        "f",
        jnp.trace,
        lambda run, a: _sum([a[i][i] for i in range(len(a))]),
    )
    op(f"{_kind} entry", _kind, "f", lambda a, i, j: a[i, j], lambda run, a, i, j: a[i][j], _two)
    op(f"{_kind} det", _kind, "f", jnp.linalg.det,
       lambda run, a: _det(a) if _all_finite(a) else NAN, weight=1.5)  # fmt: skip
    op(f"{_kind} frobenius", _kind, "f", jnp.linalg.norm,
       lambda run, a: mp.sqrt(_sum([x * x for r in a for x in r]))
       if _all_finite(a) else NAN)  # fmt: skip
    op(f"{_kind} spectral", _kind, "f", lambda a: jnp.linalg.norm(a, 2),
       lambda run, a: _singular_value(run, a, 0))  # fmt: skip
    op(f"{_kind} inverse", _kind, "f", lambda a, i, j: jnp.linalg.inv(a)[i, j],
       lambda run, a, i, j: _solve(run, a, [mp.mpf(int(k == j)) for k in range(len(a))])[i]
       if _all_finite(a) else NAN, _two)  # fmt: skip
    op(f"{_kind} logdet", _kind, "f", lambda a: jnp.linalg.slogdet(a)[1],
       lambda run, a: (-INF if (d := _regular(a)) is None else mp.log(abs(d)))
       if _all_finite(a) else NAN)  # fmt: skip
    op(f"{_kind} eigenvalue", _kind, "f", lambda a, k: jnp.linalg.eigvalsh(a + a.T)[k], _eigenvalue,
       _one)  # fmt: skip
    op(f"{_kind} eigenvector", _kind, "f",
       lambda a, k, i, j: (lambda v: v[i, k] * v[j, k])(jnp.linalg.eigh(a + a.T)[1]), _eigenvector,
       _three)  # fmt: skip
    op(f"{_kind} eigenvector entry", _kind, "f",
       lambda a, k, i: jnp.linalg.eigh(a + a.T)[1][i, k], _eigenvector_entry, _two)  # fmt: skip
    op(f"{_kind} singular value", _kind, "f",
       lambda a, k: jnp.linalg.svd(a, compute_uv=False)[k], _singular_value, _one)  # fmt: skip
    op(f"{_kind} polar", _kind, "f", _polar_in_jax, _polar, _two)
op("solve", "n v", "v", jnp.linalg.solve,
   lambda run, a, v: _solve(run, a, v) if _all_finite(a, v) else [NAN] * 3, weight=1.5)  # fmt: skip
op(
    "matvec",
    "n v",
    "v",
    jnp.matmul,
    lambda run, a, v: [_sum([x * y for x, y in zip(r, v)]) for r in a],
)

# Loops and branches. Their bodies are operations of the table on their state and one number.
BODIES: tuple[tuple[Callable, Callable], ...] = (
    (lambda y, a: jnp.sin(y) + a, lambda run, y, a: UNARY["sin"][1](run, y) + a),
    (
        lambda y, a: jnp.where(y > a, y / 2, 3 * y + 1),
        lambda run, y, a: y / 2 if y > a else 3 * y + 1,
    ),
    (lambda y, a: y * y * 0.25 + a, lambda run, y, a: y * y / 4 + a),
    (lambda y, a: jnp.sqrt(y + a), lambda run, y, a: UNARY["sqrt"][1](run, y + a)),
    (lambda y, a: jnp.maximum(y - 1, a), lambda run, y, a: larger(run, y - 1, a)),
    (lambda y, a: 1 / (y + 1) + a, lambda run, y, a: divided(run, ONE, y + 1) + a),
    (lambda y, a: jnp.floor(y * 1.5) + a, lambda run, y, a: UNARY["floor"][1](run, y * 1.5) + a),
)  # fmt: skip
_loop = lambda rng: (int(rng.integers(len(BODIES))), int(rng.integers(1, 5)))


def _fori(y, a, body, count):
    f = BODIES[body][0]
    return lax.fori_loop(0, count, lambda i, s: f(s, a), jnp.asarray(y, jnp.float64))


def _repeated(run, y, a, body, count):
    for _ in range(count):
        y = BODIES[body][1](run, y, a)
    return y


def _while(y, a, body, count):
    f = BODIES[body][0]
    go = lambda s: jnp.logical_and(s[0] < a, s[1] < count)
    start = (jnp.asarray(y, jnp.float64), jnp.asarray(0, jnp.int32))
    return lax.while_loop(go, lambda s: (f(s[0], a), s[1] + 1), start)[0]


def _while_true(run, y, a, body, count):
    for _ in range(count):
        if not y < a:
            break
        y = BODIES[body][1](run, y, a)
    return y


def _scan(v, y, body):
    def step(s, x):
        s = BODIES[body][0](s, x)
        return s, s - x

    return lax.scan(step, jnp.asarray(y, jnp.float64), v)[1]


def _scan_true(run, v, y, body):
    out = []
    for x in v:
        y = BODIES[body][1](run, y, x)
        out.append(y - x)
    return out


_count = lambda n: jnp.clip(n, 0, 4)
op("fori", "f f", "f", _fori, _repeated, _loop, 2.0)
op("while", "f f", "f", _while, _while_true, _loop, 2.0)
op("fori to n", "f f i64", "f", lambda y, a, n, body, c: _fori(y, a, body, _count(n)),
   lambda run, y, a, n, body, c: _repeated(run, y, a, body, min(max(n, 0), 4)), _loop)  # fmt: skip
op("scan", "v f", "v", _scan, _scan_true, lambda rng: (int(rng.integers(len(BODIES))),), 1.5)
op("cond", "b f f", "f",
   lambda b, y, a, i, j: lax.cond(b, BODIES[i][0], BODIES[j][0], jnp.asarray(y, jnp.float64),
                                  jnp.asarray(a, jnp.float64)),
   lambda run, b, y, a, i, j: BODIES[i if b else j][1](run, y, a),
   lambda rng: tuple(map(int, rng.integers(len(BODIES), size=2))), 2.0)  # fmt: skip
op("switch", "i64 f f", "f",
   lambda n, y, a: lax.switch(n, [f for f, _ in BODIES[:3]], jnp.asarray(y, jnp.float64),
                              jnp.asarray(a, jnp.float64)),
   lambda run, n, y, a: BODIES[min(max(n, 0), 2)][1](run, y, a))  # fmt: skip

LOOPS = {"fori", "while", "fori to n", "scan", "cond", "switch"}
"""What JAX compiles anew for every program, also outside of `jit`."""
_NAMES = tuple(OPS)
_WEIGHTS = np.array([OPS[name].weight for name in _NAMES])
_WEIGHTS /= _WEIGHTS.sum()


class Step(NamedTuple):
    """An operation on earlier values: inputs are numbered first."""

    name: str
    args: tuple[int, ...]
    static: tuple


class Composed(NamedTuple):
    """A program: the inputs are `count` numbers; the results are a number and booleans.

    Attributes:
        count: of inputs.
        steps: in order.
        results: numbers of the values returned, the first of them a float.
    """

    count: int
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def in_jax(self, x: jax.Array) -> tuple:
        """The results, as JAX computes them."""
        values: list[Any] = [x[i] for i in range(self.count)]
        for step in self.steps:
            given = [values[i] for i in step.args]
            if all(isinstance(v, float) for v in given):  # Python itself would round
                given = list(map(jnp.asarray, given))
            values.append(OPS[step.name].jax(*given, *step.static))
        return tuple(jnp.asarray(values[i]) for i in self.results)

    def number(self, x: jax.Array) -> jax.Array:
        """The first result."""
        return self._replace(results=self.results[:1]).in_jax(x)[0]

    def true(self, x: Sequence[float], run: Run) -> list[Any]:
        """The results by the oracle."""
        with mp.workprec(BITS):
            values: list[Any] = [mp.mpf(v) for v in x]
            for step in self.steps:
                given = [values[i] for i in step.args]
                values.append(OPS[step.name].true(run, *given, *step.static))
            floats = [v for v in values if isinstance(v, mp.mpf) and mp.isfinite(v)]
            run.largest = max([run.largest, *map(abs, floats)])
            return [values[i] for i in self.results]

    def __str__(self) -> str:
        lines = [f"t{i} = x[{i}]" for i in range(self.count)]
        for k, step in enumerate(self.steps):
            static = [
                repr(CONSTANTS[s][0]) if "onstant" in step.name and "i" not in OPS[step.name].gives
                and "u" not in OPS[step.name].gives else repr(s) for s in step.static
            ]  # fmt: skip
            given = ", ".join([*(f"t{i}" for i in step.args), *static])
            lines.append(f"t{self.count + k} = {step.name}({given})")
        return "; ".join([*lines, f"return {', '.join(f't{i}' for i in self.results)}"])


def needed(program: Composed) -> Composed:
    """Without the steps on which no result depends."""
    read = set(program.results)
    for k in range(len(program.steps) - 1, -1, -1):
        if program.count + k in read:
            read.update(program.steps[k].args)
    kept = [k for k in range(len(program.steps)) if program.count + k in read]
    name = dict(zip(range(program.count), range(program.count)))
    name |= {program.count + k: program.count + i for i, k in enumerate(kept)}
    again = lambda numbers: tuple(name[i] for i in numbers)
    steps = tuple(program.steps[k]._replace(args=again(program.steps[k].args)) for k in kept)
    return Composed(program.count, steps, again(program.results))


def draw(rng: np.random.Generator, count: int, least: int = 3, most: int = 12) -> Composed:
    """A program: steps on what is there, more often on what is recent, the results needed only."""
    goal = int(rng.integers(least, most + 1))
    while True:
        kinds, steps = ["f"] * count, []
        while len(steps) < 4 * goal:
            name = str(rng.choice(_NAMES, p=_WEIGHTS))
            made, args = OPS[name], []
            for kind in made.takes:
                able = [i for i, k in enumerate(kinds) if k == kind]
                if not able:
                    break
                age = np.arange(len(able), 0, -1.0)
                args.append(int(rng.choice(able, p=(p := 1 / age) / p.sum())))
            if len(args) < len(made.takes):
                continue
            steps.append(Step(name, tuple(args), made.static(rng)))
            kinds.append(made.gives)
        floats = [i for i, k in enumerate(kinds) if k == "f" and i >= count]
        rng.shuffle(floats)
        for number in floats[:12]:
            program = needed(Composed(count, tuple(steps), (number,)))
            depends = any(i < count for s in program.steps for i in s.args)
            if depends and least <= len(program.steps) <= goal:
                flags = [program.count + i for i, s in enumerate(program.steps)
                         if OPS[s.name].gives == "b"]  # fmt: skip
                return program._replace(results=(*program.results, *flags[:2]))
