"""Terms of a file for Rocq: numbers with their bounds, and true comparisons."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb

from jaxbounds.programs.balls.rocq.numbers import fraction_text

ATOM, APPLIED, POWER, MINUS, TIMES, PLUS = 0, 10, 30, 35, 40, 50
"""Precedences of texts, as in Rocq's scope of the reals."""


@dataclass(eq=False)
class Real:
    """A real number: a literal, or a definition.

    Attributes:
        ball: a ball that encloses it; for a definition the ball of its decimal bounds.
        exact: its exact fraction; None if it is unknown.
        name: the name of the definition; empty for a literal.
        operation: the operation on its arguments; None for literals, instances and variables.
        arguments: for a sum, its terms, each a tuple of factors; for another operation, a tuple of
            one number for each argument.
        bounds: decimal bounds; None if it is exact.
        order: its place in the record.
        place: its line of the program.
        why: the operation that makes it undefined or infinite; no proof may rest on it then.
        below: a number that it is known not to exceed.
        samples: its values at the sample points of the ledger's parameters; empty without any.
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
        """Tell whether the number is written as a literal wherever it is used."""
        return not self.name

    def parts(self) -> Iterator["Real"]:
        """Yield the arguments of its operation, each once, in order."""
        yield from {id(x): x for term in self.arguments for x in term}.values()

    def shown(self, level: int = PLUS) -> str:
        """Return its name or number, in parentheses where the level needs them."""
        if self.name:
            return self.name
        assert self.exact is not None
        binds = TIMES if self.exact.denominator > 1 else MINUS if self.exact < 0 else ATOM
        words = fraction_text(self.exact)
        return f"({words})" if binds > level else words


class Place(NamedTuple):
    """A line of the program.

    Attributes:
        file: the file relative to the package, or the name of a user's file.
        line: the line's number.
        function: the function that contains the line.
        code: the text of the line.
    """

    file: str
    line: int
    function: str
    code: str


class Comparison(NamedTuple):
    """A true comparison of two numbers by one of < <= = <> > >=."""

    left: Real
    sign: str
    right: Real

    def __str__(self) -> str:
        return f"{self.left.shown()} {self.sign} {self.right.shown()}"


@dataclass(eq=False)
class Fact:
    """A boolean of the program: its value, and the true comparisons behind it."""

    truth: bool
    because: tuple[Comparison, ...] = ()
    ledger: Any = field(default=None, repr=False)

    def __bool__(self) -> bool:
        """Return its value; its comparisons then become part of the program's path."""
        if self.ledger is not None and self.because:
            self.ledger.choose(self)
        return self.truth

    def __int__(self) -> int:
        return int(bool(self))

    def negated(self) -> "Fact":
        """Return the opposite, with the same comparisons."""
        return Fact(not self.truth, self.because, self.ledger)


class Choice(NamedTuple):
    """A comparison that decides the program's path."""

    comparison: Comparison
    order: int
    place: Place | None
