"""Define scalar operations: the text in Rocq, and the functions on balls and on fractions.

If Rocq's library or its tactic `interval` lacks a function (log1p, tanh, ...), the text writes out
a formula of the function. The formula contains the argument only once, which keeps the enclosure of
the result tight.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb

from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.rocq.numbers import root_of
from jaxbounds.programs.balls.rocq.terms import APPLIED, ATOM, MINUS, PLUS, POWER, TIMES, Real
from jaxbounds.programs.balls.values import ONE

Exact = Callable[..., Fraction | None]
DIGITS = 2048
"""The largest number of binary digits of a fraction in exact arithmetic.

A larger number stores longer fractions exactly.
"""


class Operation(NamedTuple):
    """One operation on real numbers, with the texts and functions that record and prove its result.

    Attributes:
        text: the text in Rocq, with {0} and {1} in place of the arguments.
        level: the precedence level of the text in Rocq's syntax.
        inner: the loosest precedence level at which each argument needs no parentheses.
        ball: the function that computes the operation on balls (intervals).
        exact: the function that computes the operation on fractions; it returns None if the result
            is no fraction.
        tactic: the tactic that proves the bounds of the result.
        exactly: the tactic of Rocq that proves the exact fraction.
        cost: the number of scalar operations that this operation adds to the file's count, which
            has a limit.
    """

    name: str
    text: str
    level: int
    inner: tuple[int, ...]
    ball: Callable[..., arb]
    exact: Exact = lambda *_: None
    tactic: str = "enclosed"
    exactly: str = "lra"
    cost: int = 1

    def written(self, arguments: tuple[tuple[Real, ...], ...]) -> str:
        """Return the text in Rocq that applies the operation to its arguments."""
        return self.text.format(*(a.shown(l) for (a,), l in zip(arguments, self.inner)))


def _at(point: int, value: Fraction) -> Exact:
    return lambda x: value if x == point else None


_ZERO, _ONE = Fraction(0), Fraction(1)
_KNOWN = "rewrite ?Ropp_0, ?Rmult_0_r, ?Rplus_0_r, ?exp_0, ?ln_1; lra"
_u, _b = functions.UNARY, functions.BINARY


def _function(name: str, text: str, exact: Exact, cost: int = 1, inner: int = ATOM) -> Operation:
    level = APPLIED if text.split(" ", 1)[0].isalpha() else PLUS
    return Operation(name, text, level, (inner,), _u[name], exact, exactly=_KNOWN, cost=cost)


def _quotient(a: Fraction, b: Fraction) -> Fraction | None:
    return a / b if b else None


UNARY = {
    "neg": Operation("neg", "- {0}", MINUS, (POWER,), _u["neg"], lambda x: -x),
    "abs": Operation(
        "abs", "Rabs {0}", APPLIED, (ATOM,), _u["abs"], abs,
        exactly="unfold Rabs; destruct Rcase_abs; lra",
    ),
    "square": Operation("square", "{0} ^ 2", POWER, (APPLIED,), _u["square"], lambda x: x * x),
    "sqrt": Operation(
        "sqrt", "sqrt {0}", APPLIED, (ATOM,), _u["sqrt"], root_of, exactly="apply root_is; lra"
    ),
    "rsqrt": Operation("rsqrt", "1 / sqrt {0}", TIMES, (ATOM,), _u["rsqrt"], cost=2),
    "exp": _function("exp", "exp {0}", _at(0, _ONE)),
    "exp2": _function("exp2", "exp ({0} * ln 2)", _at(0, _ONE), 3, TIMES),
    "expm1": _function("expm1", "exp {0} - 1", _at(0, _ZERO), 2),
    "log": _function("log", "ln {0}", _at(1, _ZERO)),
    "log1p": _function("log1p", "ln (1 + {0})", _at(0, _ZERO), 2, TIMES),
    "logistic": _function("logistic", "1 / (1 + exp (- {0}))", _at(0, Fraction(1, 2)), 3, POWER),
    "tanh": _function("tanh", "1 - 2 / (exp (2 * {0}) + 1)", _at(0, _ZERO), 5, APPLIED),
    "sin": _function("sin", "sin {0}", lambda x: None),
    "cos": _function("cos", "cos {0}", lambda x: None),
    "tan": _function("tan", "tan {0}", lambda x: None),
    "atan": _function("atan", "atan {0}", lambda x: None),
}  # fmt: skip
"""The operations of one argument: a dict from a primitive's name to the operation."""

_LARGER = "apply Rmax_case_strong; intros; lra"
_SMALLER = "apply Rmin_case_strong; intros; lra"
ADD = Operation("add", "{0} + {1}", PLUS, (PLUS, TIMES), _b["add"], lambda a, b: a + b)
MULTIPLY = Operation("mul", "{0} * {1}", TIMES, (TIMES, MINUS), _b["mul"], lambda a, b: a * b)
BINARY = {
    "add": ADD,
    "add_any": ADD,
    "sub": Operation("sub", "{0} - {1}", PLUS, (PLUS, TIMES), _b["sub"], lambda a, b: a - b),
    "mul": MULTIPLY,
    "div": Operation("div", "{0} / {1}", TIMES, (TIMES, MINUS), _b["div"], _quotient),
    "max": Operation(
        "max", "Rmax {0} {1}", APPLIED, (ATOM, ATOM), _b["max"], max, tactic=_LARGER,
        exactly=_LARGER,
    ),
    "min": Operation(
        "min", "Rmin {0} {1}", APPLIED, (ATOM, ATOM), _b["min"], min, tactic=_SMALLER,
        exactly=_SMALLER,
    ),
    "pow": Operation("pow", "Rpower {0} {1}", APPLIED, (ATOM, ATOM), _b["pow"], cost=3),
}  # fmt: skip
"""The operations of two arguments: a dict from a primitive's name to the operation."""


def power(n: int, /) -> Operation:
    """Return the operation that raises a number to the integer power n."""
    size = abs(n)
    exact = lambda x: x**n if (x or n > 0) and size * _length(x) <= DIGITS else None
    ball = lambda x: functions.integer_power(x, n)
    text, level = (f"{{0}} ^ {n}", POWER) if n >= 0 else (f"1 / {{0}} ^ {size}", TIMES)
    return Operation("integer_pow", text, level, (APPLIED,), ball, exact, cost=1 + (n < 0))


def _length(x: Fraction) -> int:
    return max(x.numerator.bit_length(), x.denominator.bit_length(), 1)


def _cube_root(x: arb) -> arb:
    return functions.cube_root(x)


CUBE_ROOT = Operation("cbrt", "Rpower {0} (1 / 3)", APPLIED, (ATOM,), _cube_root, cost=3)
"""The cube root of a positive number."""


HALF_FACTORIAL = Operation(
    "lgamma", "ln ({0} * sqrt PI)", APPLIED, (TIMES,), lambda x: (x * arb.pi().sqrt()).log(), cost=3
)
"""The operation log(x sqrt(pi)), which is log Gamma(n + 1/2) for x = (2n)! / (4^n n!)."""


def whole(name: str, text: str, exact: Exact, tactic: str) -> Operation:
    """Return the operation of a function such as floor, whose integer result must be proved."""
    return Operation(name, text, APPLIED, (ATOM,), lambda x: ONE, exact, exactly=tactic, cost=2)


FLOOR = whole("floor", "IZR (Zfloor {0})", lambda x: Fraction(x // 1), "apply floor_is; lra")
CEIL = whole("ceil", "IZR (Zceil {0})", lambda x: Fraction(-(-x // 1)), "apply ceil_is; lra")
NEAREST = whole(
    "round",
    "IZR (ZnearestE {0})",
    lambda x: Fraction(round(x)),
    "apply nearest_is; apply Rabs_def1; lra",
)


def _of_terms(fold: Callable, times: Callable) -> Callable:
    def total(*terms: tuple) -> Any:
        done = None
        for term in terms:
            product = term[0]
            for factor in term[1:]:
                product = times(product, factor)
            done = product if done is None else fold(done, product)
        return done

    return total


@dataclass(frozen=True)
class Sum:
    """A sum of products, with the methods of an `Operation`."""

    cost: int
    name: str = "sum"
    tactic: str = "enclosed"
    exactly: str = "lra"

    def written(self, arguments: tuple[tuple[Real, ...], ...]) -> str:
        """Return the Rocq formula of a sum of products; `arguments` holds their factors."""
        one = lambda term: " * ".join(x.shown(MINUS if i else TIMES) for i, x in enumerate(term))
        return " + ".join(map(one, arguments))

    ball = staticmethod(_of_terms(functions.plus, functions.times))
    exact = staticmethod(_of_terms(lambda a, b: a + b, lambda a, b: a * b))
