"""Define the ledger, which records a program's scalar operations for a file in Rocq."""

import functools
import re
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from flint import arb

from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.certificate import as_fraction
from jaxbounds.programs.balls.rocq.numbers import ball_between, exact_ball, outward
from jaxbounds.programs.balls.rocq.operations import BINARY, DIGITS, UNARY, Operation, Sum, power
from jaxbounds.programs.balls.rocq.terms import Choice, Comparison, Fact, Place, Real
from jaxbounds.programs.balls.values import INF, NotSupported, Undecided

TERMS = 8
"""The largest number of summands of a sum that one lemma bounds. A larger number slows Rocq's proof
of the lemma.
"""
MOST = 100_000
"""The largest number of definitions for one program. A larger number takes more memory."""
NAMES_OF_LEMMAS = ("way", "entry", "hypothesis")
"""The first word of each lemma's name, to which the file adds a number. No definition may have one
of these words as its name.
"""
FLIPPED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
ZERO, ONE = Fraction(0), Fraction(1)


class Ledger:
    """The recorded numbers, choices and proved booleans of one program, in order.

    Attributes:
        digits: the number of decimal digits in the bounds of a number.
        reals: the definitions, and the variables that stand for constants of the program.
        choices: the comparisons that decided the program's path.
        place: the line of the program's source code that is being translated.
    """

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.reals: list[Real] = []
        self.choices: dict[Any, Choice] = {}
        self.place: Place | None = None
        self._known: dict[Any, Real] = {}
        self._names: dict[str, int] = {}
        self._taken: dict[str, int] = {}
        self._group = ""
        self._clock = 0
        self._points = 0

    @property
    def now(self) -> int:
        """Return the number of definitions and proved booleans recorded so far."""
        return self._clock

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def group(self, place: Place | None) -> None:
        """Begin another equation, whose line of code names the next definitions."""
        self.place, self._group = place, ""

    def _named(self, index: Sequence[int] = ()) -> str:
        if not self._group:
            stem = self.place.function if self.place else "value"
            stem = re.sub(r"\W|^_+|_+$", "", stem, flags=re.ASCII).strip("_") or "value"
            stem = f"{stem}_of" if stem in NAMES_OF_LEMMAS else stem
            self._names[stem] = self._names.get(stem, 0) + 1
            self._group = f"{stem}_{self._names[stem]}"
        return "_".join([self._group, *map(str, index)]) if index else self._group

    # Numbers

    def literal(self, x: Fraction | int) -> Real:
        """Return a rational number that the file writes out, without a definition."""
        x = Fraction(x)
        return self.known(("literal", x), lambda: Real(exact_ball(x), x))

    def infinite(self, x: arb) -> Real:
        """Return an infinity, which comparisons may use and definitions may not use."""
        return self.known(("infinite", bool(x > 0)), lambda: Real(x))

    def undefined(self, why: str) -> Real:
        """Return a placeholder for an undefined or unknown result; `why` names the operation."""
        return self.known(("undefined", why), lambda: Real(NAN_BALL, why=why))

    def known(self, key: Any, make: Any) -> Real:
        """Return the number recorded under a key, else record what `make` returns."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def given(self, name: str, x: Fraction) -> Real:
        """Record an exact number, which is an entry of the program's inputs."""
        real = Real(exact_ball(x), x, self._free(name), order=self._tick())
        self.reals.append(real)
        return real

    def parameter(
        self, name: str, low: Fraction, high: Fraction, samples: Sequence[Fraction]
    ) -> Real:
        """Record a variable with a lower and an upper bound.

        If a comparison has one answer (true or false) at all sample values of the variables, the
        translation assumes this answer. Rocq's kernel then checks the answer for every value
        between the bounds.
        """
        with localcontext(prec=2000):
            ends = [Decimal(x.numerator) / Decimal(x.denominator) for x in (low, high)]
        real = Real(
            ball_between(*ends), None, self._free(name), "variable", bounds=(ends[0], ends[1]),
            order=self._tick(), samples=tuple(map(exact_ball, samples)),
        )  # fmt: skip
        self.reals.append(real)
        self._points = len(samples)
        return real

    def _at_points(self, x: Real) -> tuple[arb, ...]:
        return x.samples or (x.ball,) * self._points

    def variable(self, x: float, ball: arb) -> Real:
        """Record a constant of the program, which may be any number in a ball (interval)."""

        def make() -> Real:
            bounds = outward(ball, 2 * max(self.digits, 12))
            real = Real(
                ball_between(*bounds), None, f"constant_{self._count('constant')}", "variable",
                bounds=bounds, order=self._tick(), place=self.place,
            )  # fmt: skip
            self.reals.append(real)
            return real

        return self.known(("variable", x), make)

    def _count(self, stem: str) -> int:
        self._names[stem] = self._names.get(stem, 0) + 1
        return self._names[stem]

    # Operations

    def unary(self, name: str, a: Real, index: Sequence[int] = ()) -> Real:
        """Record the value of a function of one number, as a definition in Rocq."""
        if a.why:
            return a
        if not a.ball.is_finite():
            return self._of_infinity(name, a)
        if name == "log" and a.exact == 0:
            self.choose(self.compare(a, "=", self.literal(0)))
            return self.infinite(-INF)
        if name == "neg" and a.is_literal:
            return self.literal(-_exact(a))
        return self.apply(UNARY[name], ((a,),), index)

    def _of_infinity(self, name: str, a: Real) -> Real:
        value = functions.UNARY[name](a.ball)
        if value.is_exact() and value.is_finite():
            return self.literal(as_fraction(value))
        if not value.is_nan() and not value.is_finite():
            return self.infinite(value)
        return self.undefined(f"{name} of an infinite number")

    def binary(self, name: str, a: Real, b: Real, index: Sequence[int] = ()) -> Real:
        """Record a function of two numbers, simplified if an operand is zero or one."""
        simple = self._simplified(name, a, b)
        if simple is not None:
            return simple
        if name == "mul" and a is b:
            return self.unary("square", a, index)
        return self.apply(BINARY[name], ((a,), (b,)), index)

    def _simplified(self, name: str, a: Real, b: Real) -> Real | None:
        if name == "max" and (a.below is b or b.below is a):
            return b if a.below is b else a
        if a.why or b.why:
            return a if a.why else b
        if not (a.ball.is_finite() and b.ball.is_finite()):
            return self._with_infinity(name, a, b)
        u = a.exact if a.is_literal else None
        v = b.exact if b.is_literal else None
        if name in ("add", "add_any"):
            return b if u == 0 else a if v == 0 else None
        if name == "sub":
            if a is b:
                return self.literal(ZERO)
            return a if v == 0 else self.unary("neg", b) if u == 0 else None
        if name == "mul":
            if u == 0 or v == 0:
                return self.literal(ZERO)
            return b if u == 1 else a if v == 1 else None
        if name == "div":
            if b.exact == 0:
                return self.undefined("a division by zero")
            return a if v == 1 or (u == 0 and not b.ball.contains(0)) else None
        if name in ("max", "min") and a is b:
            return a
        if name == "pow" and b.exact is not None and b.exact.denominator == 1:
            return self.power(a, int(b.exact))
        if name == "pow" and b.exact == Fraction(1, 2):
            return self.unary("sqrt", a)
        if name == "pow" and a.exact == 0 and b.ball > 0:
            return self.literal(ZERO)
        if name == "pow" and not a.ball > 0:
            return self.undefined("a power whose base may not be positive")
        return None

    def _with_infinity(self, name: str, a: Real, b: Real) -> Real:
        value = functions.BINARY[name](a.ball, b.ball)
        if name in ("max", "min"):
            infinite, other = (a, b) if not a.ball.is_finite() else (b, a)
            return other if (name == "max") == bool(infinite.ball < 0) else infinite
        if not value.is_nan() and not value.is_finite():
            return self.infinite(value)
        if value.is_exact() and value.is_finite():
            return self.literal(as_fraction(value))
        return self.undefined(f"{name} of an infinite number")

    def power(self, a: Real, n: int, index: Sequence[int] = ()) -> Real:
        """Record the n-th power of a number."""
        if n == 0:
            return self.literal(ONE)
        if n == 1:
            return a
        if n == -1:
            return self.binary("div", self.literal(ONE), a, index)
        return self.apply(power(n) if n != 2 else UNARY["square"], ((a,),), index)

    def total(self, terms: Sequence[tuple[Real, ...]], index: Sequence[int] = ()) -> Real:
        """Record a sum of products; for more than `TERMS` products, record sums of partial sums."""
        kept = []
        for term in terms:
            for x in term:
                if x.why or not x.ball.is_finite():
                    return self._unbounded(terms)
            if any(x.is_literal and x.exact == 0 for x in term):
                continue
            factors = tuple(x for x in term if not (x.is_literal and x.exact == 1))
            kept.append(factors or (self.literal(ONE),))
        while len(kept) > TERMS:
            parts = [kept[i : i + TERMS] for i in range(0, len(kept), TERMS)]
            kept = [(self.total(part, (*index, i)),) for i, part in enumerate(parts)]
        if not kept:
            return self.literal(ZERO)
        if all(x.is_literal for term in kept for x in term):
            return self.literal(_exact_sum(kept))
        if len(kept) == 1:
            first, *others = kept[0]
            return self.binary("mul", first, others[0], index) if others else first
        cost = len(kept) - 1 + sum(len(term) - 1 for term in kept)
        return self.apply(Sum(cost), tuple(kept), index)

    def _unbounded(self, terms: Sequence[tuple[Real, ...]]) -> Real:
        products = [functools.reduce(lambda a, b: self.binary("mul", a, b), t) for t in terms]
        return functools.reduce(lambda a, b: self.binary("add", a, b), products)

    def apply(
        self,
        operation: Any,
        terms: tuple[tuple[Real, ...], ...],
        index: Sequence[int] = (),
        exact: Fraction | None = None,
    ) -> Real:
        """Return the definition of an operation's result; add a definition that is missing.

        The operation is an `Operation`, or a `Sum` whose terms are tuples of factors. The index of
        the result in its array becomes a part of the definition's name.
        """
        key = (operation.name, operation.written(terms))
        found = self._known.get(key)
        if found is not None:
            return found
        flat = isinstance(operation, Operation)
        for x in (x for term in terms for x in term):
            if x.why or not x.ball.is_finite():
                return x if x.why else self.undefined(f"{operation.name} of an infinite number")
        fractions = [tuple(x.exact for x in term) for term in terms]
        if exact is not None:
            pass
        elif all(x is not None for term in fractions for x in term):
            exact = operation.exact(*(f[0] if flat else f for f in fractions))
        elif not flat or operation.name == "mul":
            exact = _zero(fractions, flat)
        if exact is not None and max(map(int.bit_length, exact.as_integer_ratio())) > DIGITS:
            exact = None
        if exact is not None and all(x.is_literal for term in terms for x in term):
            return self._remember(key, self.literal(exact))
        real = Real(
            NAN_BALL, exact, operation=operation, arguments=terms, place=self.place,
            order=self._tick(),
        )  # fmt: skip
        if exact is not None:
            real.ball = exact_ball(exact)
        else:
            balls = [tuple(x.ball for x in term) for term in terms]
            ball = operation.ball(*(b[0] if flat else b for b in balls))
            if self._points:
                there = [tuple(map(self._at_points, term)) for term in terms]
                real.samples = tuple(
                    operation.ball(*(t[0][i] if flat else tuple(x[i] for x in t) for t in there))
                    for i in range(self._points)
                )
                ball = ball if ball.is_finite() else UNKNOWN
            if not all(v.is_finite() for v in (ball, *real.samples)):
                return self.undefined(f"{operation.name}, perhaps undefined or infinite")
            real.bounds = None if self._points else outward(ball, self.digits)
            real.ball = ball_between(*real.bounds) if real.bounds else ball
        real.name = self._free(self._named(index))
        self.reals.append(real)
        self._refuse_more()
        return self._remember(key, real)

    def record(
        self,
        operation: Any,
        arguments: tuple[tuple[Real, ...], ...],
        ball: arb,
        bounds: tuple[Decimal, Decimal],
        index: Sequence[int],
    ) -> Real:
        """Record the result of an operation, with the given bounds."""
        real = Real(
            ball, None, self._free(self._named(index)), operation, arguments, bounds,
            order=self._tick(), place=self.place,
        )  # fmt: skip
        self.reals.append(real)
        return real

    def _refuse_more(self) -> None:
        if len(self.reals) > MOST:
            raise NotSupported(
                f"operations={len(self.reals)} of the program, expected at most {MOST}. Try a "
                "smaller size"
            )

    def _remember(self, key: Any, real: Real) -> Real:
        self._known[key] = real
        return real

    def _free(self, name: str) -> str:
        self._taken[name] = self._taken.get(name, 0) + 1
        return name if self._taken[name] == 1 else f"{name}_step{self._taken[name] - 1}"

    # Comparisons

    def compare(self, a: Real, sign: str, b: Real) -> Fact:
        """Decide whether a comparison is true.

        Raises:
            NotSupported: if a compared number may be undefined.
            Undecided: if the bounds of the two compared numbers overlap.
        """
        if a.why or b.why:
            raise NotSupported(
                f"a compared number may be undefined, cause={a.why or b.why!r}. Try another "
                "instance"
            )
        if a.exact is not None and b.exact is not None:
            truth = _TRUE[sign](a.exact, b.exact)
        elif a is b:
            truth = sign in ("<=", ">=", "=")
            return Fact(truth, (), self)
        else:
            truth = self._decided(a, sign, b)
        if (a.is_literal and b.is_literal) or not (a.ball.is_finite() and b.ball.is_finite()):
            return Fact(truth, (), self)
        said = sign if truth else FLIPPED[sign]
        if said == "<>":
            said = "<" if self._decided(a, "<", b) else ">"
        return Fact(truth, (Comparison(a, said, b),), self)

    def _decided(self, a: Real, sign: str, b: Real) -> bool:
        compare = functions.COMPARISONS[_PRIMITIVE[sign]]
        if a.exact is not None and b.exact is not None:
            return bool(_TRUE[sign](a.exact, b.exact))
        pairs = zip(self._at_points(a), self._at_points(b)) if self._points else [(a.ball, b.ball)]
        answers = {compare(u, v) for u, v in pairs}
        known = answers.pop()
        if answers or known not in (0, 1):
            raise Undecided(
                "the bounds of two compared numbers overlap, so the comparison is undecided"
            )
        return bool(known)

    def choose(self, fact: Fact) -> None:
        """Record the comparisons behind a proved boolean that decides the program's path."""
        for comparison in fact.because:
            key = str(comparison)
            if key not in self.choices:
                self.choices[key] = Choice(comparison, self._tick(), self.place)


NAN_BALL, UNKNOWN = arb("nan"), arb(0, 1e300)
_PRIMITIVE = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "=": "eq", "<>": "ne"}
_TRUE: dict[str, Any] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
}


def _exact(x: Real) -> Fraction:
    assert x.exact is not None
    return x.exact


def _exact_sum(terms: Sequence[tuple[Real, ...]]) -> Fraction:
    done = ZERO
    for term in terms:
        product = ONE
        for factor in term:
            product *= _exact(factor)
        done += product
    return done


def _zero(terms: Sequence[tuple[Fraction | None, ...]], flat: bool) -> Fraction | None:
    """Return the exact sum of products; None if a product has an inexact factor and no factor 0."""
    if flat:
        return ZERO if any(f[0] == 0 for f in terms) else None
    done = ZERO
    for term in terms:
        product = ONE
        for factor in term:
            product = ZERO if factor == 0 else product
        if product:
            if any(f is None for f in term):
                return None
            for factor in term:
                product *= factor  # type: ignore[operator]
        done += product
    return done
