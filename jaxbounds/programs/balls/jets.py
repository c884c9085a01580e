"""Compute Taylor polynomials (jets) of programs, at a point and on a neighbourhood of it.

Each coefficient has its exact value at the point, if `exact` has a formula for it, and a ball
around its values on the neighbourhood. Taylor's theorem uses the lower coefficients at the point,
and the coefficients of the highest degree (Lagrange's remainder) on the neighbourhood. If the
neighbourhood reaches both sides of a kink (`max`, `abs`, a comparison), the program forks. Each
continuation records the condition under which the program takes it.
"""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb, arb_series, fmpq

from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.exact import Exact, Field, GivenUp, fraction
from jaxbounds.programs.balls.scalars import Scalars
from jaxbounds.programs.balls.values import NAN, ONE, OPEN, NotSupported, Reading, Undecided


class Coefficient(NamedTuple):
    """The coefficient of one monomial.

    Attributes:
        at: the exact value of the coefficient at the point; None if `exact` has no formula for it.
        over: a ball that contains the coefficient's values on the neighbourhood.
    """

    at: Exact | None
    over: arb


class Jet:
    """One coefficient for each monomial of a `Jets`; None stands for a coefficient that is zero."""

    __slots__ = ("of",)

    def __init__(self, of: list[Coefficient | None]) -> None:
        self.of = of


def _finite(x: Jet) -> bool:
    return all(v is None or v.over.is_finite() for v in x.of)


def _both(a: Coefficient, b: Coefficient, function: Callable, over: arb) -> Coefficient:
    at = None
    if a.at is not None and b.at is not None:
        try:
            at = function(a.at, b.at)
        except GivenUp:
            at = None
    return Coefficient(at, over)


def _plus(a: Coefficient | None, b: Coefficient | None) -> Coefficient | None:
    if a is None or b is None:
        return a if b is None else b
    return _both(a, b, lambda u, v: u + v, functions.plus(a.over, b.over))


def _times(a: Coefficient, b: Coefficient) -> Coefficient:
    return _both(a, b, lambda u, v: u * v, functions.times(a.over, b.over))


class Jets:
    """The algebra of truncated power series in a few variables.

    Attributes:
        monomials: the exponents of each monomial of the series, sorted by degree.
        conditions: jets (Taylor polynomials) that are >= 0 wherever the program takes the branches
            of this run.
    """

    def __init__(self, field: Field, count: int, order: int) -> None:
        self.field, self.count, self.order = field, count, order
        powers = itertools.product(range(order + 1), repeat=count)
        self.monomials = sorted((p for p in powers if sum(p) <= order), key=lambda p: (sum(p), p))
        self._place = {p: i for i, p in enumerate(self.monomials)}
        self.conditions: list[Jet] = []

    # Constants and variables.

    def lift(self, ball: arb) -> Jet:
        """Return a ball as a constant Taylor polynomial, exact only if the ball has radius zero."""
        if ball.is_zero():
            return self.constant(None)
        exact = ball.is_exact() and ball.is_finite()
        at = self.field.rational(ball.fmpq()) if exact else None
        return self.constant(Coefficient(at, ball))

    def constant(self, value: Coefficient | None) -> Jet:
        """Return the Taylor polynomial with a given constant coefficient and no other term."""
        return Jet([value] + [None] * (len(self.monomials) - 1))

    def rational(self, q: Any) -> Coefficient:
        """Return a rational number as an exact coefficient of a Taylor polynomial."""
        q = q if isinstance(q, fmpq) else fraction(q)
        found = self.field.rational(q)
        return Coefficient(found, found.ball)

    def variable(self, j: int, value: Coefficient) -> Jet:
        """Return coordinate j as a Taylor polynomial: its value at the point plus variable j."""
        jet = self.constant(value)
        place = self._place[tuple(int(i == j) for i in range(self.count))]
        jet.of[place] = self.rational(1)
        return jet

    # Arithmetic.

    def _add(self, a: Jet, b: Jet) -> Jet:
        return Jet([_plus(u, v) for u, v in zip(a.of, b.of)])

    @property
    def _unknown(self) -> Jet:
        return self.constant(Coefficient(None, NAN))

    def _scaled(self, a: Jet, by: Coefficient) -> Jet:
        return Jet([None if u is None else self._cut(i, _times(u, by)) for i, u in enumerate(a.of)])

    def _cut(self, place: int, value: Coefficient) -> Coefficient:
        """Drop the exact value of a coefficient of the highest degree; proofs use only its ball."""
        top = sum(self.monomials[place]) == self.order
        return Coefficient(None, value.over) if top else value

    def _mul(self, a: Jet, b: Jet) -> Jet:
        if not (_finite(a) and _finite(b)):
            return self._unknown  # zero times an undefined value is not zero
        out: list[Coefficient | None] = [None] * len(self.monomials)
        left = [(p, u) for p, u in zip(self.monomials, a.of) if u is not None]
        right = [(p, v) for p, v in zip(self.monomials, b.of) if v is not None]
        for p, u in left:
            for q, v in right:
                if sum(p) + sum(q) > self.order:
                    break
                place = self._place[tuple(i + j for i, j in zip(p, q))]
                if sum(p) + sum(q) == self.order:
                    u, v = Coefficient(None, u.over), Coefficient(None, v.over)
                out[place] = _plus(out[place], _times(u, v))
        if a is b and len(out) and a.of[0] is not None and out[0] is not None:
            square = functions.UNARY["square"](a.of[0].over)
            out[0] = Coefficient(out[0].at, square)
        return Jet(out)

    def _composed(self, x: Jet, series: list[Coefficient | None]) -> Jet:
        """Return the jet of f(x), from the Taylor coefficients of f at the constant term of x."""
        rest = Jet([None, *x.of[1:]])
        flat = all(v is None for v in rest.of)
        out = self.constant(series[0] if flat else series[-1])
        for value in [] if flat else reversed(series[:-1]):
            out = self._add(self._mul(out, rest), self.constant(value))
        return out

    def _series(self, name: str, a: Coefficient) -> list[Coefficient | None]:
        return _SERIES[name](self, a)

    def _power(self, x: Jet, q: fmpq) -> Jet:
        a = x.of[0]
        if a is None:
            raise NotSupported(
                f"a power of zero has no Taylor series, power={q}. Try a positive base"
            )
        return self._composed(x, power_series(self, a, q))

    # The functions that `Scalars` calls.

    def power(self, x: Jet, n: int) -> Jet:
        """Return x to the integer power n."""
        if n < 0:
            return self._power(x, fmpq(n))
        out = self.lift(ONE)
        for _ in range(n):
            out = self._mul(out, x)
        if n % 2 == 0 and n and x.of[0] is not None and out.of[0] is not None:
            tight = functions.integer_power(x.of[0].over, n)
            out.of[0] = Coefficient(out.of[0].at, tight)
        return out

    def apply(self, name: str, *entries: Jet) -> Jet:
        """Return the jet of a primitive's result, from the jets of the operands.

        Raises:
            NotSupported: if this module has no Taylor series for the primitive.
        """
        if name == "add":
            return self._add(*entries)
        if name == "neg":
            return self._scaled(entries[0], self.rational(-1))
        if name == "sub":
            return self._add(entries[0], self.apply("neg", entries[1]))
        if name == "mul":
            return self._mul(*entries)
        if name == "square":
            return self._mul(entries[0], entries[0])
        if name == "div":
            return self._mul(entries[0], self._power(entries[1], fmpq(-1)))
        if name in _POWERS:
            return self._power(entries[0], _POWERS[name])
        if name == "pow":
            return self._general_power(*entries)
        if name not in _SERIES:
            raise NotSupported(f"no Taylor series for primitive={name!r}. Try other operations")
        x = entries[0]
        a = self.rational(0) if x.of[0] is None else x.of[0]
        return self._composed(x, self._series(name, a))

    def _general_power(self, x: Jet, y: Jet) -> Jet:
        fixed = all(v is None for v in y.of[1:])
        q: Any = fmpq(0) if y.of[0] is None else y.of[0].at and y.of[0].at.as_rational()
        if fixed and q is not None and q == int(q.p) and abs(q) <= 64:
            return self.power(x, int(q.p))
        if fixed and q is not None:
            return self._power(x, q)
        return self.apply("exp", self._mul(y, self.apply("log", x)))

    def hull(self, x: Jet) -> arb:
        """Return a ball that contains the Taylor polynomial's values on the neighbourhood."""
        return arb(0) if x.of[0] is None else x.of[0].over

    def finite(self, x: Jet) -> int:
        """Tell whether the Taylor polynomial's value is finite on all of the neighbourhood."""
        return 1 if self.hull(x).is_finite() else OPEN

    def join(self, cases: list[Jet]) -> Jet:
        """Refuse an undecided choice, because `compare` has already tried each of its answers.

        Raises:
            Undecided: always.
        """
        raise Undecided(
            "the enclosures (balls) are too wide to decide a branch or an index of the program on "
            "the neighbourhood of the point"
        )

    def compare(self, name: str, a: Jet, b: Jet, fork: Callable[[int, str], int]) -> int:
        """Compare two Taylor polynomials near the point; call `fork` if their order is undecided.

        Raises:
            Undecided: if a compared number may be undefined, or an equality (`eq`, `ne`) is
                undecided.
        """
        x, y = self.hull(a), self.hull(b)
        decided = functions.COMPARISONS[name](x, y)
        if decided != OPEN:
            return decided
        if x.is_nan() or y.is_nan():
            raise Undecided("a number in a comparison may be undefined on the neighbourhood")
        difference = self.apply("sub", a, b)
        if all(v is None for v in difference.of):
            return int(name in ("le", "ge", "eq"))
        weak = self._weak_sign(difference)
        if weak and name in (("ge", "lt") if weak > 0 else ("le", "gt")):
            return int(name in ("ge", "le"))
        if name in ("eq", "ne"):
            raise Undecided(
                "near the instance, two numbers that the program compares may or may not be equal"
            )
        up = fork(2, "a comparison") == 0  # a >= b
        self.conditions.append(difference if up else self.apply("neg", difference))
        return int((name in ("gt", "ge")) == up)

    def _weak_sign(self, x: Jet) -> int:
        """Return 1 if a constant is certainly >= 0, -1 if certainly <= 0; 0 in all other cases."""
        value = x.of[0]
        if self.count or value is None or value.at is None or not value.at.den.is_constant():
            return 0
        return self.field.sign(value.at.num)

    def larger(self, a: Jet, b: Jet, fork: Callable[[int, str], int]) -> Jet:
        """Return the larger of two Taylor polynomials; call `fork` if their order is undecided."""
        if self.hull(a).is_nan() or self.hull(b).is_nan():
            return self.constant(Coefficient(None, NAN))
        if self._weak_sign(self.apply("sub", a, b)) < 0:
            return b
        return a if self.compare("ge", a, b, fork) else b


# Taylor coefficients of functions, expanded about a coefficient.

Series = list[Coefficient | None]


def _applied(
    a: Coefficient, exact: Callable[[Exact], Exact | None], over: Callable[[arb], arb]
) -> Coefficient:
    at = None
    if a.at is not None:
        try:
            at = exact(a.at)
        except GivenUp:
            at = None
    return Coefficient(at, over(a.over))


def _inverse(a: Coefficient) -> Coefficient:
    return _applied(a, lambda u: u.inverse(), lambda v: functions.divide(ONE, v))


def power_series(jets: Jets, a: Coefficient, q: fmpq) -> Series:
    """Return the Taylor coefficients of (a + t)^q in t."""
    value = _applied(a, lambda u: u.power(q), lambda v: functions.power(v, _ball(q)))
    out: list[Coefficient | None] = [value]
    over, binomial = _inverse(a), fmpq(1)
    known = value
    for k in range(1, jets.order + 1):
        binomial = binomial * (q - (k - 1)) / k
        if binomial == 0:
            out += [None] * (jets.order + 1 - k)
            break
        known = _times(known, over)
        tight = Coefficient(known.at, functions.power(a.over, _ball(q - k)))
        out.append(_times(tight, jets.rational(binomial)))
    return out


def _ball(q: fmpq) -> arb:
    return arb(q.p) / arb(q.q)


def _exponential(jets: Jets, a: Coefficient) -> Series:
    value = _applied(a, lambda u: u.exp(), functions.UNARY["exp"])
    return [_times(value, jets.rational(Fraction(1, math.factorial(k)))) for k in _orders(jets)]


def _orders(jets: Jets) -> range:
    return range(jets.order + 1)


def _minus_one(jets: Jets, series: Series) -> Series:
    return [_plus(series[0], jets.rational(-1)), *series[1:]]


def _plus_one(jets: Jets, a: Coefficient) -> Coefficient:
    found = _plus(a, jets.rational(1))
    assert found is not None
    return found


def _logarithm(jets: Jets, a: Coefficient) -> Series:
    out: Series = [_applied(a, lambda u: u.log(), functions.UNARY["log"])]
    over, known = _inverse(a), jets.rational(1)
    for k in range(1, jets.order + 1):
        known = _times(known, over)
        tight = Coefficient(known.at, functions.integer_power(a.over, -k))
        out.append(_times(tight, jets.rational(Fraction((-1) ** (k - 1), k))))
    return out


def _circular(first: int) -> Callable[[Jets, Coefficient], Series]:

    def series(jets: Jets, a: Coefficient) -> Series:
        pair = lambda which: lambda u: (lambda found: found and found[which])(u.sin_cos())
        sin = _applied(a, pair(0), functions.UNARY["sin"])
        cos = _applied(a, pair(1), functions.UNARY["cos"])
        minus = jets.rational(-1)
        turn = [sin, cos, _times(sin, minus), _times(cos, minus)]
        return [
            _times(turn[(first + k) % 4], jets.rational(Fraction(1, math.factorial(k))))
            for k in _orders(jets)
        ]

    return series


def _hyperbolic(first: int) -> Callable[[Jets, Coefficient], Series]:
    def series(jets: Jets, a: Coefficient) -> Series:
        half = jets.field.rational(Fraction(1, 2))

        def exact(sign: int) -> Callable[[Exact], Exact | None]:
            def value(u: Exact) -> Exact | None:
                up, down = u.exp(), (-u).exp()
                if up is None or down is None:
                    return None
                return (up + down if sign > 0 else up - down) * half

            return value

        both = [
            _applied(a, exact(-1), functions.UNARY["sinh"]),
            _applied(a, exact(1), functions.UNARY["cosh"]),
        ]
        return [
            _times(both[(first + k) % 2], jets.rational(Fraction(1, math.factorial(k))))
            for k in _orders(jets)
        ]

    return series


def _logistic_at(u: Exact) -> Exact | None:
    below = (-u).exp()
    return None if below is None else (below + u.field.rational(1)).inverse()


def _tanh_at(u: Exact) -> Exact | None:
    twice = u.field.rational(2)
    s = _logistic_at(u * twice)
    return None if s is None else s * twice - u.field.rational(1)


def _riccati(
    name: str, exact: Callable[[Exact], Exact | None], constant: int, linear: int
) -> Callable[[Jets, Coefficient], Series]:
    """Return a function that gives the series of a solution of y' = constant + linear y - y^2."""

    def series(jets: Jets, a: Coefficient) -> Series:
        y: list[Coefficient] = [_applied(a, exact, functions.UNARY[name])]
        for k in range(jets.order):
            rate = _times(y[k], jets.rational(linear)) if linear else None
            if k == 0 and constant:
                rate = _plus(rate, jets.rational(constant))
            for i in range(k + 1):
                rate = _plus(rate, _times(_times(y[i], y[k - i]), jets.rational(-1)))
            if k == 0 and rate is not None and not linear:  # a square gives a tighter 1 - y^2
                rate = Coefficient(rate.at, 1 - functions.integer_power(y[0].over, 2))
            y.append(_times(rate or jets.rational(0), jets.rational(Fraction(1, k + 1))))
        return list(y)

    return series


def _integrated(jets: Jets, value: Coefficient, rates: list[Coefficient | None]) -> Series:
    rest = [
        None if r is None else _times(r, jets.rational(Fraction(1, k)))
        for k, r in enumerate(rates[: jets.order], 1)
    ]
    return [value, *rest]


def _quadratic(jets: Jets, a: Coefficient, sign: int) -> list[Coefficient]:
    square = _applied(a, lambda u: u * u, functions.UNARY["square"])
    return [
        _plus_one(jets, _times(square, jets.rational(sign))),
        _times(a, jets.rational(2 * sign)),
        jets.rational(sign),
    ]


def _to_power(jets: Jets, p: list[Coefficient], q: fmpq) -> list[Coefficient | None]:
    """Return the coefficients b of the power series p(t)^q.

    The recurrence is k p_0 b_k = sum_i (q i - (k - i)) p_i b_{k-i}.
    """
    b: list[Coefficient | None] = [
        _applied(p[0], lambda u: u.power(q), lambda v: functions.power(v, _ball(q)))
    ]
    over = _inverse(p[0])
    for k in range(1, jets.order + 1):
        total: Coefficient | None = None
        for i in range(1, min(k, len(p) - 1) + 1):
            before = b[k - i]
            factor = q * i - (k - i)
            if before is not None and factor != 0:
                total = _plus(total, _times(_times(p[i], before), jets.rational(factor)))
        b.append(
            None if total is None else _times(_times(total, over), jets.rational(Fraction(1, k)))
        )
    return b


def _arctangent(jets: Jets, a: Coefficient) -> Series:
    value = _applied(a, lambda u: u.atan(), functions.UNARY["atan"])
    return _integrated(jets, value, _to_power(jets, _quadratic(jets, a, 1), fmpq(-1)))


def _arcsine(jets: Jets, a: Coefficient) -> Series:
    value = _applied(a, lambda u: u.asin(), functions.UNARY["asin"])
    return _integrated(jets, value, _to_power(jets, _quadratic(jets, a, -1), fmpq(-1, 2)))


def _arccosine(jets: Jets, a: Coefficient) -> Series:
    half = jets.field.pi() * jets.field.rational(Fraction(1, 2))
    minus = [s and _times(s, jets.rational(-1)) for s in _arcsine(jets, a)]
    return [_plus(minus[0], Coefficient(half, half.ball)), *minus[1:]]


def _error_function(jets: Jets, a: Coefficient) -> Series:
    zero = lambda u: u if u.is_zero() else None
    value = _applied(a, zero, functions.UNARY["erf"])
    root = jets.field.pi().power(fmpq(1, 2))
    factor = root and root.inverse()
    unit = Coefficient(factor and factor * jets.field.rational(2), 2 / arb.pi().sqrt())
    square = _applied(a, lambda u: -(u * u), lambda v: -functions.integer_power(v, 2))
    e: list[Coefficient] = [
        _times(unit, _applied(square, lambda u: u.exp(), functions.UNARY["exp"]))
    ]
    rates = [None, _times(a, jets.rational(-2)), jets.rational(-2)]
    for k in range(1, jets.order + 1):
        total: Coefficient | None = None
        for i in (1, 2):
            rate = rates[i]
            if i <= k and rate is not None:
                total = _plus(total, _times(rate, e[k - i]))
        e.append(_times(total or jets.rational(0), jets.rational(Fraction(1, k))))
    return _integrated(jets, value, list(e))


def _log_gamma(jets: Jets, a: Coefficient) -> Series:
    """Return FLINT's series of log Gamma; only its zeros, at 1 and 2, are exact values."""
    if not a.over > 0:
        return [Coefficient(None, NAN)] * (jets.order + 1)
    found = arb_series([a.over, 1], prec=jets.order + 1).lgamma()
    q = a.at and a.at.as_rational()
    zero = jets.field.rational(0) if q is not None and q in (1, 2) else None
    rest = [Coefficient(None, found[k]) for k in range(1, jets.order + 1)]
    return [Coefficient(zero, functions.UNARY["lgamma"](a.over)), *rest]


def _base_two(jets: Jets, a: Coefficient) -> Series:
    log2 = jets.field.rational(2).log()
    assert log2 is not None
    rate = Coefficient(log2, arb.const_log2())
    out, known = list[Coefficient | None](), jets.rational(1)
    for value in _exponential(jets, _times(a, rate)):
        out.append(value and _times(value, known))
        known = _times(known, rate)
    return out


def _shifted_logarithm(jets: Jets, a: Coefficient) -> Series:
    found = _logarithm(jets, _plus_one(jets, a))
    value = found[0]
    assert value is not None
    return [Coefficient(value.at, functions.UNARY["log1p"](a.over)), *found[1:]]


_POWERS = {"sqrt": fmpq(1, 2), "rsqrt": fmpq(-1, 2), "cbrt": fmpq(1, 3)}
_SERIES: dict[str, Callable[[Jets, Coefficient], Series]] = {
    "exp": _exponential,
    "exp2": _base_two,
    "expm1": lambda jets, a: _minus_one(jets, _exponential(jets, a)),
    "log": _logarithm,
    "log1p": _shifted_logarithm,
    "sin": _circular(0),
    "cos": _circular(1),
    "sinh": _hyperbolic(0),
    "cosh": _hyperbolic(1),
    "tanh": _riccati("tanh", _tanh_at, 1, 0),
    "logistic": _riccati("logistic", _logistic_at, 0, 1),
    "atan": _arctangent,
    "asin": _arcsine,
    "acos": _arccosine,
    "erf": _error_function,
    "lgamma": _log_gamma,
}


class JetRun(Scalars):
    """An interpreter of JAX programs on arrays of jets (Taylor polynomials)."""

    algebra: Jets

    def __init__(self, jets: Jets, reading: Reading, seconds: float | None = None) -> None:
        super().__init__(jets, reading=reading, seconds=seconds)
