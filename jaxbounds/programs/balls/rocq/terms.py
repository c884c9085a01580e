"""Define the terms of a file for Rocq: numbers with their bounds, and true comparisons."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb

from jaxbounds.ground.exceptions import NotSupported
from jaxbounds.programs.balls.rocq.numbers import fraction_text

ATOM, APPLIED, POWER, MINUS, TIMES, PLUS = 0, 10, 30, 35, 40, 50
"""Precedence levels of texts, as in Rocq's scope of the reals; a larger level binds less tightly.
"""


@dataclass(eq=False)
class Real:
    """A recorded real number, either a literal or a defined number.

    Attributes:
        ball: a ball (interval) that contains the number; for a defined number, the interval between
            its `bounds`.
        exact: the number as a fraction; None if no fraction is known.
        name: the name of the definition; empty for a literal.
        operation: the operation that gives the number; None for literals, entries of the inputs and
            variables.
        arguments: the operands of the operation `operation`. For a sum, each term is a tuple of
            factors. For any other operation, each operand is a tuple of one number.
        bounds: the decimal bounds of the number; None for an exact number.
        why: the operation that makes the number undefined or infinite. If `why` is not empty, no
            proof may use the number.
        below: a number that is known to be at least as large as this number; None if unknown.
        samples: the values of the number at sample values of the recorded variables; empty without
            variables.
    """

    ball: arb
    exact: Fraction | None = None
    name: str = ""
    operation: Any = None
    arguments: tuple[tuple["Real", ...], ...] = ()
    bounds: tuple[Decimal, Decimal] | None = None
    order: int = -1
    place: "Place | None" = None
    why: str = ""
    below: "Real | None" = None
    samples: tuple[arb, ...] = field(default=(), repr=False)

    @property
    def is_literal(self) -> bool:
        """Tell whether Rocq's text writes the number as a literal instead of by a name."""
        return not self.name

    def parts(self) -> Iterator["Real"]:
        """Yield the operands of the operation that computes this number, in order, each once."""
        yield from {id(x): x for term in self.arguments for x in term}.values()

    def shown(self, level: int = PLUS) -> str:
        """Return the number's Rocq name or literal, in parentheses if the precedence needs them.

        Raises:
            NotSupported: if the number has neither a name nor a literal, because its operation has
                no formula in Rocq.
        """
        if self.name:
            return self.name
        if self.exact is None:
            raise NotSupported(
                f"value={self.ball} has no formula in Rocq ({self.why or 'no translation'}). Try a "
                "witness file instead"
            )
        binds = TIMES if self.exact.denominator > 1 else MINUS if self.exact < 0 else ATOM
        words = fraction_text(self.exact)
        return f"({words})" if binds > level else words


class Place(NamedTuple):
    """A line of the program's source code; `file` gives a user's file without its folder."""

    file: str
    line: int
    function: str
    code: str


class Comparison(NamedTuple):
    """A true comparison of two numbers; the sign is one of < <= = <> > >=."""

    left: Real
    sign: str
    right: Real

    def __str__(self) -> str:
        return f"{self.left.shown()} {self.sign} {self.right.shown()}"


@dataclass(eq=False)
class Fact:
    """A boolean of the program, with its truth value and the true comparisons that prove it."""

    truth: bool
    because: tuple[Comparison, ...] = ()
    ledger: Any = field(default=None, repr=False)

    def __bool__(self) -> bool:
        """Return the truth value; the ledger records that the program's path depends on it."""
        if self.ledger is not None and self.because:
            self.ledger.choose(self)
        return self.truth

    def __int__(self) -> int:
        return int(bool(self))

    def negated(self) -> "Fact":
        """Return the negation of this proved boolean, with the comparisons that prove both."""
        return Fact(not self.truth, self.because, self.ledger)


class Choice(NamedTuple):
    """A recorded comparison that decided the program's path."""

    comparison: Comparison
    order: int
    place: Place | None
