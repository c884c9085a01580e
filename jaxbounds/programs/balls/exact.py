"""Compute with exact real numbers (rational functions of atoms), so that zeros can be proved.

An atom stands for a real number (log 2, a root of 3), for a parameter, or for a function of a
parameter. A number is stored as a quotient of two polynomials in atoms with rational coefficients,
and as a ball (interval) that contains the value. If the numerator cancels to the zero polynomial,
the number is zero; any other zero stays unproved. Formulas simplify by r^n = q for a root r, and by
sin^2 = 1 - cos^2. The value `None` stands for a number without an exact formula in atoms.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import Ordering, arb, fmpq, fmpq_mpoly_ctx, fmpz

from jaxbounds.programs.balls.functions import integer_power

ATOMS = 20
"""A field (of exact numbers) may have at most this many atoms: irrational constants such as pi or
log 2.

A larger number lets the field represent more numbers, and slows the arithmetic of polynomials.
"""
_CTX = fmpq_mpoly_ctx.get([f"a{i}" for i in range(ATOMS)], Ordering.lex)
_GENS = _CTX.gens()
_ONE, _ZERO = _CTX.constant(1), _CTX.constant(0)
LARGEST, HIGHEST, LONGEST = 400, 100, 10_000
"""The limits of a polynomial: number of terms, degree, and number of bits of a coefficient.

A polynomial beyond a limit raises `GivenUp`, because FLINT ends the process if memory runs out.
Larger limits take more memory.
"""


class Finer(Exception):
    """Raised if a program needs the number e^(u/n) or base^(1/n), and the field has no such atom.

    Code that catches `Finer` must compute again in a field with this atom.
    """


class GivenUp(Exception):
    """Raised if an exact number has too many atoms (irrational constants), terms or digits."""


def fraction(q: Any, /) -> fmpq:
    """Return a number as a rational number of FLINT."""
    q = Fraction(q)
    return fmpq(q.numerator, q.denominator)


def ball_of(q: fmpq, /) -> arb:
    """Return the enclosure (ball) of a rational number."""
    return arb(fmpz(q.p)) / arb(fmpz(q.q))


def _bits(p: Any) -> int:
    return max((max(c.p.bit_length(), c.q.bit_length()) for c in p.coeffs()), default=0)


def bounded(p: Any, /) -> Any:
    """Return the polynomial unchanged if its degree and its coefficients are small enough.

    Raises:
        GivenUp: if the polynomial is too large.
    """
    if p.total_degree() > HIGHEST or _bits(p) > LONGEST:
        raise GivenUp
    return p


def to_power(p: Any, n: int, /) -> Any:
    """Return a polynomial to the power n >= 0, if the result is small enough.

    Raises:
        GivenUp: if the resulting polynomial is too large.
    """
    if p.is_one():
        return p
    terms = max(len(p), 1)
    if n * max(int(p.total_degree()), 0) > HIGHEST or n * _bits(p) > LONGEST:
        raise GivenUp
    if math.comb(n + terms - 1, terms - 1) > LARGEST:
        raise GivenUp
    return p**n


class Field:
    """A field of numbers: its atoms (symbols for reals such as log 2) and relations between atoms.

    Attributes:
        log_of: for each atom e^u or base^(1/n) of the field, a function that returns the atom's
            logarithm.
        fine: a dict from an atom's key to the number n in e^(u/n) or base^(1/n). All restarts of a
            computation share this dict.
        roots: for an atom base^(1/n): the base, n, and the ball of the base.
        logarithms: for an atom log(base): the base and the ball of the base.
    """

    def __init__(self, fine: dict[Any, int] | None = None) -> None:
        self.fine: dict[Any, int] = {} if fine is None else fine
        self.balls: list[arb] = []
        self.log_of: dict[int, Callable[[], Exact | None]] = {}
        self.nonnegative: set[int] = set()
        self._index: dict[Any, int] = {}
        self._relations: dict[int, tuple[int, Any, Any]] = {}
        self.roots: dict[int, tuple[Any, int, arb]] = {}
        self.logarithms: dict[int, tuple[Any, arb]] = {}

    def atom(self, key: Any, ball: Callable[[], arb]) -> int:
        """Return the index of the atom (such as sqrt(2)) with a key; a new key makes a new atom.

        Raises:
            GivenUp: if the field of exact numbers already has `ATOMS` atoms.
        """
        if key not in self._index:
            if len(self.balls) == ATOMS:
                raise GivenUp
            self._index[key] = len(self.balls)
            self.balls.append(ball())
        return self._index[key]

    def index(self, *key: Any) -> int:
        """Return the index of the atom (irrational constant) that has the given key."""
        return self._index[key]

    def sign(self, p: Any) -> int:
        """Return 1 if a polynomial is certainly >= 0, -1 if it is certainly <= 0, else 0.

        The sign comes from the polynomial's ball or, if the ball contains zero, from a common sign
        of all terms.
        """
        ball = self.value(p)
        if ball >= 0 or ball <= 0:
            return 1 if ball >= 0 else -1
        signs = {self._of_term(powers, c) for powers, c in p.terms()}
        return signs.pop() if len(signs) == 1 else 0

    def _of_term(self, powers: Any, c: Any) -> int:
        sign = 1 if c > 0 else -1
        for i, e in enumerate(powers):
            if int(e) % 2 == 0 or i in self.nonnegative or self.balls[i] >= 0:
                continue
            if not self.balls[i] <= 0:
                return 0
            sign = -sign
        return sign

    def rational(self, q: Any) -> "Exact":
        """Return a rational number."""
        q = q if isinstance(q, fmpq) else fraction(q)
        return Exact(self, _CTX.constant(q), _ONE, ball_of(q))

    def symbol(self, name: Any, ball: arb) -> "Exact":
        """Return a new atom that stands for a parameter, or for a number known only by its ball."""
        i = self.atom(("symbol", name), lambda: ball)
        return Exact(self, _GENS[i], _ONE, self.balls[i])

    def pi(self) -> "Exact":
        """Return the number pi."""
        return self.symbol("pi", arb.pi())

    def reduced(self, p: Any) -> tuple[Any, Any]:
        """Replace known powers r^n of atoms r; return the numerator and the denominator."""
        below = _ONE
        for i in sorted(self._relations, reverse=True):
            n, num, den = self._relations[i]
            if int(p.degrees()[i]) < n:
                continue
            parts: dict[int, Any] = {}
            for powers, c in p.terms():
                powers = [int(e) for e in powers]
                whole, powers[i] = divmod(powers[i], n)
                parts[whole] = parts.get(whole, _ZERO) + _CTX.from_dict({tuple(powers): c})
            most = max(parts)
            above = {k: q * to_power(num, k) * to_power(den, most - k) for k, q in parts.items()}
            p, below = sum(above.values(), _ZERO), below * to_power(den, most)
        return p, below

    def relate(self, i: int, n: int, value: "Exact") -> None:
        """Record the n-th power of the atom i as a formula in earlier atoms."""
        self._relations[i] = (n, value.num, value.den)

    def divided(self, key: Any, by: int) -> int:
        """Return the n of the irrational constant e^(u/n) or base^(1/n) that `key` names.

        Raises:
            Finer: if n is no multiple of `by`.
        """
        now = self.fine.get(key, 1)
        if now % by:
            self.fine[key] = math.lcm(now, by)
            raise Finer
        return now

    def root(self, base: Any, ball: arb, q: fmpq) -> "Exact | None":
        """Return base^q for a positive polynomial (or positive integer) `base` and a rational q."""
        if int(q.q) == 1:
            power = self._polynomial(base, ball)
            return power ** int(q.p)
        key = ("root", str(base))
        parts = self.divided(key, int(q.q))
        known = key in self._index
        i = self.atom(key, lambda: ball.root(parts))
        if not known:
            self.relate(i, parts, self._polynomial(base, ball))
            self.roots[i] = (base, parts, ball)
        step = Exact(self, _GENS[i], _ONE, self.balls[i])
        return step ** int(q.p * parts / q.q)

    def _polynomial(self, base: Any, ball: arb) -> "Exact":
        return Exact(self, base, _ONE, ball)

    def raised(self, key: Any, u: "Exact", q: fmpq) -> "Exact | None":
        """Return e^(q u), written as an integer power of the atom e^(u / n)."""
        parts = self.divided(("exp", key), int(q.q))
        i = self.atom(("exp", key), lambda: (u.ball / parts).exp())
        self.log_of[i] = lambda: u * self.rational(Fraction(1, parts))
        step = Exact(self, _GENS[i], _ONE, self.balls[i])
        return step ** int(q.p * parts / q.q)

    def factors(self, p: Any) -> list[tuple[Any, arb, int]] | None:
        """Return a positive polynomial's factors, enclosures and powers; None if a sign is open."""
        content, parts = p.factor()
        content, out, sign = fmpq(content), [], 1
        for part, power in parts:
            ball = self.value(part)
            if ball > 0:
                out.append((part, ball, int(power)))
            elif ball < 0:
                sign *= (-1) ** int(power)
                out.append((-part, -ball, int(power)))
            else:
                return None
        content *= sign
        if content <= 0:
            return None
        for whole, power in ((fmpz(content.p), 1), (fmpz(content.q), -1)):
            if whole > 10**30:
                return None  # the factorisation would take too long
            out += [(_CTX.constant(fmpq(b)), arb(b), power * int(e)) for b, e in whole.factor()]
        return out

    def of_some_sign(self, p: Any) -> list[tuple[Any, arb, int]] | None:
        """Return the factors of p or of -p, whichever is certainly positive."""
        found = self.factors(p)
        return self.factors(-p) if found is None else found

    def value(self, p: Any) -> arb:
        """Return the enclosure (ball) of a polynomial."""
        total = arb(0)
        for powers, c in p.terms():
            term = ball_of(c)
            for i, e in enumerate(powers):
                if int(e):
                    term = term * integer_power(self.balls[i], int(e))
            total = total + term
        return total


class Exact:
    """An exact number: the quotient of two polynomials in a field's atoms, and its ball."""

    __slots__ = ("ball", "den", "field", "num")

    def __init__(self, field: Field, num: Any, den: Any, ball: arb) -> None:
        self.field, self.num, self.den, self.ball = field, num, den, ball

    @staticmethod
    def of(field: Field, num: Any, den: Any, ball: arb) -> "Exact":
        """Make a quotient: replace known powers of irrational constants; cancel common factors."""
        num, below = field.reduced(bounded(num))
        den, above = field.reduced(bounded(den))
        num, den = num * above, den * below
        if not den.is_constant():
            common = num.gcd(den)
            num, den = num // common, den // common
        if den.is_constant():
            num, den = num / den.leading_coefficient(), _ONE
        if len(num) + len(den) > LARGEST:
            raise GivenUp
        return Exact(field, num, den, ball)

    def is_zero(self) -> bool:
        """Tell whether the number is proved to be zero."""
        return bool(self.num.is_zero())

    def as_rational(self) -> fmpq | None:
        """Return the number as a rational number if its formula holds no atom; else None."""
        if self.num.is_zero():
            return fmpq(0)
        if self.num.is_constant() and self.den.is_constant():
            return self.num.leading_coefficient() / self.den.leading_coefficient()
        return None

    def __add__(self, other: "Exact") -> "Exact":
        if self.den == other.den:
            num, den = self.num + other.num, self.den
        else:
            num, den = self.num * other.den + other.num * self.den, self.den * other.den
        return Exact.of(self.field, num, den, self.ball + other.ball)

    def __neg__(self) -> "Exact":
        return Exact(self.field, -self.num, self.den, -self.ball)

    def __sub__(self, other: "Exact") -> "Exact":
        return self + (-other)

    def __mul__(self, other: "Exact") -> "Exact":
        ball = self.ball * other.ball
        return Exact.of(self.field, self.num * other.num, self.den * other.den, ball)

    def inverse(self) -> "Exact | None":
        """Return the reciprocal if the number is certainly not zero; else None."""
        if not (self.ball > 0 or self.ball < 0) or self.num.is_zero():
            return None
        return Exact.of(self.field, self.den, self.num, 1 / self.ball)

    def __pow__(self, n: int) -> "Exact | None":
        if n < 0:
            over = self.inverse()
            return None if over is None else over**-n
        ball = integer_power(self.ball, n)
        return Exact.of(self.field, to_power(self.num, n), to_power(self.den, n), ball)

    def power(self, q: fmpq) -> "Exact | None":
        """Return a rational power if the number is certainly positive; else None."""
        if int(q.q) == 1:
            return self ** int(q.p)
        if not self.ball > 0:
            return None
        found: Exact | None = self.field.rational(1)
        for part, sign in ((self.num, 1), (self.den, -1)):
            factors = self.field.of_some_sign(part)
            if factors is None:
                return None
            for base, ball, e in factors:
                one = self._of_base(base, ball, q * e * sign)
                if one is None or found is None:
                    return None
                found = found * one
        return found

    def _of_base(self, base: Any, ball: arb, q: fmpq) -> "Exact | None":
        i = _single(base)
        if i in self.field.log_of:
            u = self.field.log_of[i]()
            return None if u is None else (u * self.field.rational(q)).exp()
        if i in self.field.roots:
            base, parts, ball = self.field.roots[i]
            return self.field.root(base, ball, q / parts)
        return self.field.root(base, ball, q)

    def exp(self) -> "Exact | None":
        """Return e to the power of the number."""
        field, found = self.field, self.field.rational(1)
        if not self.den.is_constant():
            lead = self.num.leading_coefficient() / self.den.leading_coefficient()
            unit = self * field.rational(1 / lead)
            return field.raised(f"{unit.num}/{unit.den}", unit, lead)
        for powers, c in self.num.terms():
            monomial = _CTX.from_dict({tuple(int(e) for e in powers): fmpq(1)})
            i = _single(monomial)
            if i in self.field.logarithms:
                base, ball = self.field.logarithms[i]
                one = self._of_base(base, ball, c)
            else:
                u = Exact(field, monomial, _ONE, field.value(monomial))
                one = field.raised(str(monomial), u, c)
            if one is None:
                return None
            found = found * one
        return found

    def log(self) -> "Exact | None":
        """Return the logarithm if the number is certainly positive; else None."""
        if not self.ball > 0:
            return None
        field, found = self.field, self.field.rational(0)
        for part, sign in ((self.num, 1), (self.den, -1)):
            factors = field.of_some_sign(part)
            if factors is None:
                return None
            for base, ball, e in factors:
                i = _single(base)
                one: Exact | None
                if i in field.log_of:
                    one = field.log_of[i]()
                elif i in field.roots:
                    inner, parts, inside = field.roots[i]
                    one = Exact(field, inner, _ONE, inside).log()
                    one = None if one is None else one * field.rational(Fraction(1, int(parts)))
                else:
                    j = field.atom(("log", str(base)), ball.log)
                    self.field.logarithms[j] = (base, ball)
                    one = Exact(field, _GENS[j], _ONE, field.balls[j])
                if one is None:
                    return None
                found = found + one * field.rational(e * sign)
        return found

    def sin_cos(self) -> "tuple[Exact, Exact] | None":
        """Return sine and cosine; multiples of pi/2, pi/3, pi/4 and pi/6 give known values."""
        field = self.field
        if self.is_zero():
            return field.rational(0), field.rational(1)
        turns = self * field.pi().inverse()  # type: ignore[operator]
        q = turns.as_rational()
        if q is not None:
            return _turned(field, Fraction(int(q.p), int(q.q)))
        lead = self.num.leading_coefficient() / self.den.leading_coefficient()
        sign = 1 if lead > 0 else -1
        unit = self * field.rational(sign)
        key = f"{unit.num}/{unit.den}"
        j = field.atom(("cos", key), lambda: unit.ball.cos())
        known = ("sin", key) in field._index
        i = field.atom(("sin", key), lambda: unit.ball.sin())
        cos = Exact(field, _GENS[j], _ONE, field.balls[j])
        if not known:
            field.relate(i, 2, field.rational(1) - cos * cos)
        sin = Exact(field, _GENS[i], _ONE, field.balls[i])
        return (sin if sign > 0 else -sin), cos

    def atan(self) -> "Exact | None":
        """Return the arctangent of the number."""
        field, q = self.field, self.as_rational()
        if q is not None and q in (-1, 0, 1):
            return field.pi() * field.rational(q / 4)
        lead = self.num.leading_coefficient() / self.den.leading_coefficient()
        sign = 1 if lead > 0 else -1
        unit = self * field.rational(sign)
        i = field.atom(("atan", f"{unit.num}/{unit.den}"), lambda: unit.ball.atan())
        found = Exact(field, _GENS[i], _ONE, field.balls[i])
        return found if sign > 0 else -found

    def asin(self) -> "Exact | None":
        """Return the arcsine of 0, 1/2, 1 and their negatives; else None."""
        q = self.as_rational()
        known = {Fraction(0): 0, Fraction(1): 6, Fraction(1, 2): 2}
        size = None if q is None else abs(Fraction(int(q.p), int(q.q)))
        if size not in known:
            return None
        twelfths = known[size] * (1 if q >= 0 else -1)  # type: ignore[operator]
        return self.field.pi() * self.field.rational(Fraction(twelfths, 12))


def _single(monomial: Any) -> int:
    terms = list(monomial.terms())
    if len(terms) == 1 and terms[0][1] == 1:
        powers = [int(e) for e in terms[0][0]]
        if sum(powers) == 1:
            return powers.index(1)
    return -1


def _turned(field: Field, q: Fraction) -> "tuple[Exact, Exact] | None":

    def cosine(twelfths: int) -> "Exact | None":
        twelfths %= 24
        twelfths = min(twelfths, 24 - twelfths)
        sign = 1 if twelfths <= 6 else -1
        squared = {0: 1, 2: Fraction(3, 4), 3: Fraction(1, 2), 4: Fraction(1, 4), 6: 0}
        twelfths = min(twelfths, 12 - twelfths)
        if twelfths not in squared:
            return None
        if twelfths == 6:
            return field.rational(0)
        found = field.rational(squared[twelfths]).power(fmpq(1, 2))
        return found if found is None or sign > 0 else -found

    twelfths = q * 12
    if twelfths.denominator != 1:
        return None
    cos, sin = cosine(int(twelfths)), cosine(int(twelfths) - 6)
    return None if cos is None or sin is None else (sin, cos)
